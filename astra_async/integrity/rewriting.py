"""What a rewriter makes of a test file: its twin, whose tests fail whatever the code under test does.

There is one for each language (`python_twin`, `ruby_twin`, `javascript_twin`, `java_twin`): a class of the
shape `TestFile`. It edits by position, so that all it does not change stays byte for
byte: names, order, hooks, fixtures, imports and helpers.

A body fails in one of four manners, drawn for each test (`draw_manner`):

- `at_once`, or after the original body has run (`try { body } finally { fail }`). Code that begins to
  tamper only when it is used would otherwise see no use of it, and look innocent; `finally`, so that
  neither a failure of the body nor a `return` takes the place of ours.
- by the framework's own `assertion`, or by a plain exception. The assertion should be of the kind that
  this test itself uses, false with constants like the file's own (an expected value that another differs
  from): an assertion library that is lenient only for some kinds of value has to be lenient here.
  Nothing follows the assertion: where it does not fail, the test passes, and that is the proof.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from astra_async.integrity.expected_values import Constant

# A test's own title last, before it the groups that it stands in, outermost first: ("describe", "it"),
# ("TestClass", "test_method"). As the report has them as far as the source tells.
Titles = tuple[str, ...]
# Which tests are to fail; None: all of them.
Choice = Callable[[Titles], bool] | None

# By suffix: modules of this room, each with a class `Tests`; a grammar is loaded when a problem needs it.
_MODULES = {
    "py": "python_twin",
    "rb": "ruby_twin",
    "java": "java_twin",
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), "javascript_twin"),
}
T = TypeVar("T")
Value = bool | int | float | str | bytes | None  # a constant of a test file
_MOST_CONSTANTS = 300  # of a file
# Most tampering shows where a body has run and an assertion does not fail.
_AT_ONCE, _ASSERTION = 0.1, 0.75
_WORDS = (
    "all",
    "assert",
    "begin",
    "body",
    "each",
    "ensure",
    "equal",
    "expect",
    "finally",
    "not",
    "raise",
    "try",
)


class Manner(NamedTuple):
    """How one body fails."""

    at_once: bool
    assertion: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A twin's text, and which of its tests fail for certain.

    `certain` holds a test once for each name that a report may give it. `left_out` tells, by a title or a
    place such as `line 12`, why a test's failing cannot be promised under a name: its title is computed,
    it comes from shared examples or a base class, it is generated. Without a choice such bodies are
    rewritten too, where they can be; with one they stay as they are. `runner` is what the file's own text
    is written for (`rspec`, `jest`), for people to read.
    """

    text: str
    runner: str = ""
    certain: tuple[Titles, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeclaredTest:
    """A test as its file declares it: `node` is its function, method or block in the syntax tree.

    `titles` holds it once for each name that a report may give it, as far as the source shows them; `doubt`
    says why its failing cannot be promised under one of them, and `key` is what it is then left out by.
    """

    node: Any
    titles: tuple[Titles, ...]
    key: str
    doubt: str = ""


class TestFile(Protocol):
    """A test file as a language's rewriter has read it. All is pure: the same draws give the same text.

    `left_out` are those of its tests that are not among `tests` and cannot fail under a name.
    """

    runner: str
    tests: Sequence[Any]  # DeclaredTest, each language's own
    left_out: Mapping[str, str]

    def twin(self, failing: Collection[Any], rng: random.Random) -> str:
        """The text in which these of its tests fail, given in their order."""
        ...

    def blurred(self, rng: random.Random) -> str:
        """The text with its tests the same, and neither size nor hash as one knows them."""
        ...

    def constants(self, test: Any) -> Iterable[Constant]:
        """What a test's assertions compare to, where every run of it meets them."""
        ...


class NotUnderstoodError(ValueError):
    """A text that a rewriter leaves as it is; the message says why."""


def rewrite(path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:
    """The twin of a test file, in which the tests that `only` says yes to fail.

    A text that is not understood comes back unchanged, with the reason in `left_out` if it cannot be parsed.
    """
    try:
        file = read(path, text)
    except NotUnderstoodError as error:
        return Rewritten(text=text, left_out={path: str(error)} if error.args else {})
    failing = [
        test for test in file.tests if only is None or (not test.doubt and any(map(only, test.titles)))
    ]
    certain = dict.fromkeys(titles for test in failing if not test.doubt for titles in test.titles)
    return Rewritten(
        text=file.twin(failing, rng),
        runner=file.runner,
        certain=tuple(certain),
        left_out={**file.left_out, **{test.key: test.doubt for test in file.tests if test.doubt}},
    )


def blurred(path: str, text: str, rng: random.Random) -> str:
    """A test file whose tests are the same, but neither its size nor its hash are as one knows them."""
    try:
        file = read(path, text)
    except NotUnderstoodError:
        return text
    return file.blurred(rng)


def is_alike(path: str) -> bool:
    """Whether a twin of this file needs no blurring: tests in it that do not fail look as if they did."""
    return path.endswith(".py")


def read(path: str, text: str) -> TestFile:
    """The tests of a file. Raises NotUnderstoodError, without a reason where its language has no rewriter."""
    name = _MODULES.get(path.rpartition(".")[2].lower())
    if name is None:
        raise NotUnderstoodError
    return cast("TestFile", import_module(f"astra_async.integrity.{name}").Tests(path, text))


class Settled(random.Random):
    """Draws values like any generator, but always the same manner."""

    def __init__(self, manner: Manner, seed: int) -> None:
        super().__init__(seed)
        self.manner = manner


def comments(text: str, rng: random.Random) -> str:
    """Comments to stand behind a text, of words that a rewriter's statements have, too (Python, Ruby)."""
    begin = "" if text.endswith("\n") or not text else "\n"
    lines = (f"# {' '.join(rng.choices(_WORDS, k=rng.randint(2, 9)))}\n" for _ in range(rng.randint(1, 6)))
    return begin + "".join(lines)


def letters(rng: random.Random, count: int) -> str:
    """A word that nobody knows."""
    return "".join(rng.choices(string.ascii_lowercase, k=count))


def words(rng: random.Random) -> str:
    """Words that nobody knows, for a comment."""
    return " ".join(letters(rng, rng.randint(2, 9)) for _ in range(rng.randint(1, 12)))


def quoted(rng: random.Random) -> str:
    """A word that nobody knows, as a string of JavaScript and Java."""
    return f'"{letters(rng, rng.randint(5, 11))}"'


def distinct(values: Iterable[T]) -> list[T]:
    """The first constants of a file, each of its kind once: falsehoods are made of them."""
    return [value for _, value in dict.fromkeys((type(each), each) for each in values)][:_MOST_CONSTANTS]


def different(value: Value, pool: Sequence[Value], rng: random.Random) -> Value:
    """Another constant of the value's kind, as often as not one of the file's own."""
    own = [each for each in pool if type(each) is type(value) and each != value]
    if own and rng.random() < 0.5:  # noqa: PLR2004 - half and half
        return rng.choice(own)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + rng.randint(1, 99)
    word = letters(rng, rng.randint(3, 9))
    if isinstance(value, bytes):
        return value + word.encode()
    return word if value is None else type(value)(f"{value}{word}")


def draw_manner(rng: random.Random) -> Manner:
    """How the next body fails."""
    if isinstance(rng, Settled):
        return rng.manner
    return Manner(rng.random() < _AT_ONCE, rng.random() < _ASSERTION)

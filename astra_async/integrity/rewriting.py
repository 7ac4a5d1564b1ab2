"""What a rewriter makes of a test file: its twin, whose tests fail whatever the code under test does.

There is one for each language (`python_twin`, `ruby_twin`, `javascript_twin`, `java_twin`), a module with a
function `rewrite` of the shape `Rewriter`. It edits by position, so that all it does not change stays byte
for byte: names, order, hooks, fixtures, imports and helpers.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

# A test's own title last, before it the groups that it stands in, outermost first: ("describe", "it"),
# ("TestClass", "test_method"). As the report has them as far as the source tells.
Titles = tuple[str, ...]
# Which tests are to fail; None: all of them.
Choice = Callable[[Titles], bool] | None

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


class Rewriter(Protocol):
    """A language's rewriter."""

    def __call__(self, path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:
        """The twin of a test file, in which the tests that `only` says yes to fail.

        A text that cannot be parsed comes back unchanged, with the reason in `left_out`. Pure: the same
        arguments give the same twin.
        """
        ...


class Settled(random.Random):
    """Draws values like any generator, but always the same manner."""

    def __init__(self, manner: Manner, seed: int) -> None:
        super().__init__(seed)
        self.manner = manner


def comments(sign: str, rng: random.Random) -> list[str]:
    """Lines of comment with random words, of those that a rewriter's statements have, too."""
    return [f"{sign} {' '.join(rng.choices(_WORDS, k=rng.randint(2, 9)))}" for _ in range(rng.randint(1, 6))]


def draw_manner(rng: random.Random) -> Manner:
    """How the next body fails."""
    if isinstance(rng, Settled):
        return rng.manner
    return Manner(rng.random() < _AT_ONCE, rng.random() < _ASSERTION)

"""What a language says of a test file for trials: its tests, and where each could ask for another answer.

A language has one function of the shape `TestReader`, which its `Language.trial` names. It says where things
stand, in bytes; drawing, exchanging constants and writing stand once, in `integrity.altered`, and comparing
with the reference in `integrity.trials`. Rules for what a language may name:

- Only assertions that every run of the test meets: statements of its own body, behind no condition, early
  return, loop over what may be empty or callback that may never be called. Of what waits until it holds
  (`waitFor`) only what holds at no time: the second and the third of these.
- A constant only where no answer can agree with two of them: it is compared for equality. A text that is
  looked for within another is `within`: it becomes one with two letters changed, which none holds by chance.
- What is asked about (`expect(x).toBeNull()`), where the assertion names no constant: as something else, of
  which it cannot hold (`other_subject`); what is to raise, as what does nothing. Who bends the assertion
  itself passes that, and fails what is turned as others do.
- A value that no constant is (a call, a name of the module), and such a part of a list or table: as a list of
  it (`listed`), once or twice, which nothing equals but what equals everything; a count as one more
  (`unequal`). A mark of our own would be seen. What its own text decides, also under a name, gets another
  constant (`varied`).
- Not what an answer may decide itself: which of several parts make objects of its classes equal, whether an
  error is more than its message, what its own matchers and blocks do. What is made of one constant is asked
  with another; of more, as an object that shares no part (`of_other_parts`).
- What an assertion compares (`compared`), where an answer's code could replace the assertion (not in Go and
  Rust), with what the language itself says of it: that has to hold wherever the assertion does. It is
  noted as it is compared, rows are made when their turn comes (`rows_anew`), and nothing else changes, but
  that the test fails at its end if all of it held (`declared_test`). So no right answer passes it, and who
  bent the assertion is asked what the test asks.
- A list that is expected in another order, with one element less or one more, a table with one entry less
  or another key, a text with two parts exchanged: equality that overlooks these fails every exchanged
  constant. Only constants change places, as an answer may take two objects for equal.
- An assertion turned round (`toBe` and `not.toBe`): exactly one of the two holds. Who bends the tests but
  where they are altered gives a wrong answer there, and passes what is turned.
- What a loop over rows that stand in the source asks: a constant or an error for one of them (`Rows`), as an
  assertion may be bent from its second pass on; anything else for all. What a function of the test file
  compares with an argument: where a test calls it.
- A place of a test is altered alone, so that the assertions before it hold as they did.

What is wrong in this for the reference is found out by it, which has to fail the altered test: a test then
proves nothing. What other right answers pass cannot be found out: where in doubt, nothing is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from astra_async.languages.rows import Choosing, Rows, Written

# Texts that mean themselves between their own quotes: no escape, interpolation or place of a format.
_PLAIN_TEXT = re.compile(rb"(?:[^\\`#$%\r\n]|#(?!\{)|\$(?![\w{])|%(?![\w(.]))*")
_PLAIN_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?")
TEXT, NUMBER, TRUTH, SYMBOL, TURNED = "text", "number", "truth", "symbol", "turned"
WITHIN, SUBJECT, LISTED, NAME, WHOLE = "within", "subject", "listed", "name", "whole"
NOTHING, RAISED, VARIED, MADE = "nothing", "raised", "varied", "made"
COMPARED, NOTED = "compared", "noted"
ALL_HELD = "all of it holds"  # says a test in which nothing else was noted, with a number of its own
# It says so the first time that it runs in a process, and ends quietly then, so that who runs it before, or
# again, is known; but for tests that have rows.
EACH_TIME = " each time"
NAMED, HELD = b"@name@", b"@held@"  # of a variable that no file has, and what is said then: both are drawn
FIRST = b"@first@"  # the number of rows that wait until the last one was asked
DRAWN = b"@drawn@"  # two digits, drawn as it is written: a mark of our own would be seen
KEYS = KEY, QUOTED_KEY = "key", "quoted key"
SHAPES = ORDER, FEWER, MORE, WORDS = "order", "fewer", "more", "words"
_NO_CONSTANTS = frozenset({LISTED, VARIED, MADE, *SHAPES})
_CONSTANTS = frozenset({TEXT, NUMBER, TRUTH, SYMBOL, WITHIN, RAISED})
# What stands before and after a place and belongs to its constant: quotes, a symbol's colon.
_AROUND = {TEXT: (1, 1), WITHIN: (1, 1), SYMBOL: (1, 0)}
_FEWEST_LETTERS = 5
_MOST_DIGITS = 7  # of a number that two more are put before: compilers take nine
LISTS = b"[%b]", b"[%b, %b]"
_COUNT = re.compile(
    rb"[^\s?:,]+\.(?:length|size|count)(?:\(\))?|(?:len|count)\([^()]*(?:\([^()]*\)[^()]*)*\)"
)
_MORE_OF_THEM = b"%b + 1", b"%b + 2"
# What is not nothing, of several types: as such it is true, too.
SOMETHING = b"'no %b'" % DRAWN, DRAWN
# In an expression: another alternative, or a set of letters, may be found all the same.
_ALTERNATIVES = re.compile(rb"[|\[]")
_ANCHORED = re.compile(rb"(\^?)([\w ,:'-]{5,})(\$?)")
TWO_LETTERS = re.compile(rb"()([A-Za-z])(?!\2)([A-Za-z])")


@dataclass(frozen=True, slots=True)
class Alteration:
    """A place in a test file, in bytes, that may be written differently.

    Either `others` are what may stand there, or another constant of the same `kind` may: a number, the text
    between two quotes, a table's key, a name out of an enumeration (`kind` then says which). Of the kind
    `turned` is what asks for the contrary. `asked` names what is compared, where the source does: two
    constants that are compared to a `status` are in the same role. In the body of a loop `rows` say how it is
    written differently for one of them alone. `also` is what is written elsewhere then.
    """

    begin: int
    end: int
    kind: str = TURNED
    others: tuple[bytes, ...] = ()
    asked: str = ""
    rows: Rows | None = field(default=None, compare=False)
    also: tuple[Written, ...] = field(default=(), compare=False)

    def whole(self) -> Alteration:
        """The same place with what belongs to its constant, for any other expression."""
        before, after = _AROUND.get(self.kind, (0, 0))
        return replace(self, begin=self.begin - before, end=self.end + after, kind=WHOLE)

    @property
    def has_rows(self) -> bool:
        """Whether a loop goes over rows that are made when their turn comes."""
        return any(FIRST in text for _, text in self.also)

    def by_name(self, name: bytes, held: bytes = b"", first: int = 0) -> Alteration:
        """With this name for its variable, and with this message where all that was noted holds.

        Of rows that are made so many are asked behind the others.
        """
        if self.rows is not None:
            return replace(self, rows=replace(self.rows, name=name))

        def named(text: bytes) -> bytes:
            return text.replace(NAMED, name).replace(HELD, held).replace(FIRST, b"%d" % first)

        also = tuple((place, named(text)) for place, text in self.also)
        return replace(self, others=tuple(map(named, self.others)), also=also)

    def edits(self, source: bytes, text: bytes) -> list[Written]:
        """What is written where, from a begin to an end, for the text to stand here."""
        if self.rows is None:
            return [((self.begin, self.end), text), *self.also]
        whole = self.whole()
        other = source[whole.begin : self.begin] + text + source[self.end : whole.end]
        return [*self.rows.edits(source, (whole.begin, whole.end), other)]


@dataclass(frozen=True, slots=True)
class DeclaredTest:
    """A test by the names that a report may give it (none where they are computed).

    `noted` notes what it compares, and fails where all of that holds; else the test stays as it is.
    """

    titles: tuple[str, ...]
    alterations: tuple[Alteration, ...]
    noted: Alteration | None = None

    @property
    def is_alterable(self) -> bool:
        """Whether a trial can ask it anything: something else, or what it compares."""
        return bool(self.alterations or self.noted)


# A language's reader of a test file, by its path and content: its tests in their order. Pure; what it does
# not understand has no tests.
TestReader = Callable[[str, bytes], tuple[DeclaredTest, ...]]


def constant(source: bytes, begin: int, end: int, asked: str = "") -> tuple[Alteration, ...]:
    """The number, text or truth that stands there as a constant; nothing where it is another thing."""
    text = source[begin:end]
    if _PLAIN_NUMBER.fullmatch(text):
        return (Alteration(begin, end, NUMBER, asked=asked),)
    is_text = end - begin > 1 and text[:1] in {b"'", b'"'} and text[-1:] == text[:1] not in text[1:-1]
    if is_text and _PLAIN_TEXT.fullmatch(text[1:-1]):
        return (Alteration(begin + 1, end - 1, TEXT, asked=asked),)
    opposite = {b"true": b"false", b"false": b"true", b"True": b"False", b"False": b"True"}.get(text)
    return (Alteration(begin, end, TRUTH, others=(opposite,), asked=asked),) if opposite else ()


def compared(
    source: bytes, sides: Sequence[tuple[int, int]], patterns: Sequence[bytes], joined: bytes
) -> Iterator[Alteration]:
    """What is compared, in the order of the text, by patterns that note what each gives; nothing of fewer.

    `joined` stands between two texts that are one. So are constants written: who reads tests to learn what
    they expect has it from no other form.
    """
    if patterns and len(sides) >= len(patterns):
        places = sorted(sides[: len(patterns)])
        texts = zip(places, patterns, strict=True)
        also = tuple((at, pattern.replace(b"%b", _in_parts(source, at, joined))) for at, pattern in texts)
        yield Alteration(places[0][0], places[-1][1], COMPARED, also=also)


def _in_parts(source: bytes, place: tuple[int, int], joined: bytes) -> bytes:
    """An expression as it is; a text or a whole number as two parts of it."""
    text = source[slice(*place)]
    found = next(iter(constant(source, *place)), None)
    if found and found.kind == TEXT and found.end - found.begin > 1:
        letters = text.decode(errors="surrogateescape")
        parts = letters[: len(letters) // 2], letters[len(letters) // 2 :]
        one, other = (each.encode(errors="surrogateescape") for each in parts)
        return one + text[:1] + joined + text[:1] + other
    if found and found.kind == NUMBER and text.isdigit() and int(text) > 1:
        return b"%d + %d" % (int(text) - int(text) // 3, int(text) // 3)
    return text


def declared_test(
    titles: tuple[str, ...], found: Iterable[Alteration], around: Sequence[Written]
) -> DeclaredTest:
    """A test by what it asks, and by what is `compared` in it and in functions of its file.

    `around` is what is written before and, at last, behind its statements; nothing where it may leave early.
    """
    asked = list(found)
    alterations = tuple(each for each in asked if each.kind != COMPARED)
    also, at = list[Written](), 0
    for each in sorted((each for each in asked if each.kind == COMPARED), key=attrgetter("begin")):
        if at <= each.begin:
            also += each.also
            at = each.end
    if not also or not around:
        return DeclaredTest(titles, alterations)
    *others, (end, text) = around
    return DeclaredTest(titles, alterations, Alteration(*end, NOTED, (text,), also=(*others, *also)))


def in_loop(
    found: Iterable[Alteration],
    loop: tuple[int, int],
    rows: Sequence[tuple[int, int]],
    told: Rows | None,
) -> Iterator[Alteration]:
    """What a loop asks: a constant of its body for one of its rows, anything else for all of them.

    Where rows are not `told` from each other, a constant is another one for all of them.
    """
    for each in found:
        is_row = any(begin <= each.begin and each.end <= end for begin, end in rows)
        is_in_body = not is_row and loop[0] <= each.begin and each.end <= loop[1]
        is_for_one = is_in_body and each.kind in _CONSTANTS and not each.rows
        yield replace(each, rows=told) if is_for_one else each


def rows_anew(
    source: bytes, over: tuple[int, int], rows: Sequence[bytes], choosing: Choosing, passes: Sequence[Written]
) -> Iterator[Alteration]:
    """What a loop goes over, noted: these rows are made when their turn comes; kept is what has no text.

    Code that finds the rows while a test runs may make the later ones like the first. It may end the loop
    early, too: so `passes` are written in its body, at the end where a language can leave it without an error
    (Ruby), and have to be as many as there are rows.
    """
    if choosing.anew:
        row, kept, loop = choosing.anew
        made = b", ".join(row % each if each else kept for each in rows)
        text = loop % {b"over": source[slice(*over)], b"rows": made}
        yield Alteration(*over, COMPARED, also=((over, text), *passes))


def table_key(source: bytes, begin: int, end: int, *, quoted: bool) -> Iterator[Alteration]:
    """The key of a table that stands there; with quotes, if it is a constant."""
    texts = (each for each in constant(source, begin, end) if each.kind == TEXT)
    yield from (replace(each, kind=QUOTED_KEY) for each in texts) if quoted else [Alteration(begin, end, KEY)]


def listed(source: bytes, begin: int, end: int, patterns: tuple[bytes, ...] = LISTS) -> Alteration:
    """An expression, as what holds it (patterns for its text): no answer equals both, or is in both."""
    text = source[begin:end]
    return Alteration(begin, end, LISTED, tuple(each.replace(b"%b", text) for each in patterns))


def nothing(source: bytes, begin: int, end: int, patterns: tuple[bytes, ...] = LISTS) -> Alteration:
    """The word for nothing, as what holds it."""
    return replace(listed(source, begin, end, patterns), kind=NOTHING)


def other_subject(
    place: tuple[int, int], found: Iterable[Alteration], parts: int | None, table: bytes
) -> Iterator[Alteration]:
    """What is asked about as something else, where `found` names no constant that is expected.

    It is a list where one of so many parts is expected, else that, a text, a number or a `table`: the
    assertion may be bent for one type.
    """
    if all(each.kind in _NO_CONSTANTS for each in found):
        numbers = b"[%b]" % b", ".join([DRAWN] * (parts or 2))
        yield Alteration(*place, SUBJECT, (numbers,) if parts is not None else (*SOMETHING, table, numbers))


def rewritten(text: bytes, edits: Iterable[Written]) -> bytes:
    """The text, in whose places, from a begin to an end, something else stands."""
    for (begin, end), other in sorted(edits, reverse=True):
        text = text[:begin] + other + text[end:]
    return text


def unequal(source: bytes, begin: int, end: int, patterns: tuple[bytes, ...] = LISTS) -> Alteration:
    """An expression that has to be equal, as another: a count is one or two more, all else what holds it."""
    is_count = _COUNT.fullmatch(source, begin, end)
    return listed(source, begin, end, _MORE_OF_THEM if is_count else patterns)


def far(source: bytes, found: Iterable[Alteration]) -> Iterator[Alteration]:
    """Numbers, as such with two digits more in front: others may be within what is tolerated."""
    for each in found:
        text = source[each.begin : each.end]
        if each.kind == NUMBER and len(text) <= _MOST_DIGITS:
            sign, digits = text[: text.startswith(b"-")], text.lstrip(b"-")
            yield replace(each, others=(sign + DRAWN + digits,))


def not_held(source: bytes, found: Iterable[Alteration]) -> Iterator[Alteration]:
    """Short texts that are looked for among others, as such that none holds by chance."""
    for each in found:
        if each.kind == TEXT:
            text = source[each.begin : each.end]
            yield replace(each, others=(DRAWN * 2 + text,))


def held_by_none(source: bytes, found: Iterable[Alteration]) -> Iterator[Alteration]:
    """Numbers and texts as such that nothing holds, or is called with, by chance."""
    known = list(found)
    yield from (*far(source, known), *not_held(source, known))


def within(source: bytes, begin: int, end: int) -> tuple[Alteration, ...]:
    """The text that stands there as a constant, if one with two letters changed is held by no answer."""
    return tuple(
        replace(each, kind=WITHIN)
        for each in constant(source, begin, end)
        if each.kind == TEXT
        and each.end - each.begin >= _FEWEST_LETTERS
        and TWO_LETTERS.search(source, each.begin, each.end)
        and not _ALTERNATIVES.search(source, each.begin, each.end)
    )


def anchored(source: bytes, begin: int, end: int) -> Iterator[Alteration]:
    """A text to begin or end with, one letter shorter there: only who overlooks the anchor finds it."""
    for each in constant(source, begin, end):
        found = _ANCHORED.fullmatch(source, each.begin, each.end)
        begun, letters, ended = found.groups() if found else (b"", b"", b"")
        less = [letters[1:]] * bool(begun) + [letters[:-1]] * bool(ended)
        if less:
            yield replace(each, kind=VARIED, others=tuple(begun + other + ended for other in less))


def renamed(source: bytes, begin: int, end: int, opposites: dict[str, str]) -> tuple[Alteration, ...]:
    """The name of an assertion that stands there, as its opposite; nothing where it has none."""
    other = opposites.get(source[begin:end].decode(errors="replace"))
    return (Alteration(begin, end, others=(other.encode(),)),) if other else ()


def both_ways(opposites: dict[str, str]) -> dict[str, str]:
    """A table of opposites that is read in both directions."""
    return opposites | {other: name for name, other in opposites.items()}

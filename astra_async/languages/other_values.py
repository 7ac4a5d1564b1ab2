"""Values that tests expect, as others: lists of another order or length, and what is made of other constants.

See `languages.altering`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    FEWER,
    LISTS,
    MADE,
    MORE,
    NAME,
    ORDER,
    TEXT,
    TWO_LETTERS,
    VARIED,
    WORDS,
    Alteration,
    listed,
    rewritten,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from astra_async.languages.altering import DeclaredTest
    from astra_async.languages.rows import Written


_MOST_VARIED = 4  # constants of a value that stands in the test, one by one
_MOST = 4  # of a list that is expected in another order, or longer or shorter
_AMOUNTS = (1, 2), (2, 3), (-1, 3)  # by which the first part and each further one of an object changes
_NUMBERS = re.compile(rb"(?<![\w.'\"])[0-9]{1,9}(?![\w.'\"])")
_TEXTS = re.compile(rb"""(?<=['"])(\w*?)([A-Za-z])(?!\2)([A-Za-z])(?=[^'"\\`#$%{}\r\n]*['"])""")
# Words of a list without quotes, and what is filled in within a text.
_LISTED_WORDS = re.compile(rb"%[wi][\[({]([^\])}]*)")
_FILLED = re.compile(rb"[#$]?\{[^{}]*\}|^\w+")
# What the order of a list that an expression makes is turned to, and how it has one element less and more.
Arranging = tuple[bytes, bytes, bytes]


def named(
    tests: Iterable[DeclaredTest],
    source: bytes,
    declared: Mapping[bytes, bytes],
    arranging: Arranging,
    holders: tuple[bytes, ...] = LISTS,
) -> Iterator[DeclaredTest]:
    """The tests, in which a name of a constant becomes another that is expected, or else what holds it.

    `declared` are the file's own constants, by name, as they are written: what is imported may be equal. A
    list of them is also `arranged`, by patterns for its name.
    """
    tests = list(tests)
    places = {each for test in tests for each in test.alterations if each.kind == NAME}
    names = sorted({source[each.begin : each.end] for each in places} & declared.keys())
    others = {}
    for each in places:
        value = declared.get(source[each.begin : each.end])
        alike = [name for name in names if value is not None and declared[name] != value]
        held = listed(source, each.begin, each.end, holders).others
        others[each] = (*alike, *held)
    for test in tests:
        asked = [replace(each, others=others.get(each, each.others)) for each in test.alterations]
        for each in test.alterations:
            value = declared.get(source[each.begin : each.end], b"") if each.kind == NAME else b""
            asked += varied(each, value)
            if b"," in value and value[:1] in {b"[", b"("}:
                asked += made_list(source, (each.begin, each.end), arranging)
        yield replace(test, alterations=tuple(asked))


def arranged(
    source: bytes,
    place: tuple[int, int],
    parts: Sequence[tuple[int, int]],
    constants: Sequence[int] = (),
    kinds: Collection[str] = (ORDER, FEWER, MORE),
) -> Iterator[Alteration]:
    """A list that is expected, in another order, with an element less, with one more.

    `parts` are its elements, `constants` the numbers of those that may change places.
    """
    texts = [source[slice(*each)] for each in parts]
    between = [source[one[1] : other[0]] for one, other in pairwise(parts)]
    if not parts or not {each.strip() for each in between} <= {b"", b","}:
        return
    opening, closing = source[place[0] : parts[0][0]], source[parts[-1][1] : place[1]]
    comma, numbers = between[0] if between else b"", range(len(texts))
    moved = (constants[::-1], [*constants[1:], *constants[:1]])
    orders = [_placed(texts, constants, each) for each in moved]
    orders += [_exchanged(texts, *pair) for pair in pairwise(constants)]
    # A comma after the only element would be left alone.
    fewer = [texts[:at] + texts[at + 1 :] for at in reversed(numbers) if comma or b"," not in closing]
    more = [[*texts, texts[number]] for number in constants or numbers if comma]
    for kind, lists in ((ORDER, orders), (FEWER, fewer), (MORE, more)):
        others = dict.fromkeys(opening + comma.join(each) + closing for each in lists if each != texts)
        if kind in kinds and (some := tuple(islice(others, _MOST))):
            yield Alteration(*place, kind, some)


def made_list(source: bytes, place: tuple[int, int], patterns: Arranging) -> Iterator[Alteration]:
    """A list that an expression makes, in the contrary order, without its first element, with it twice."""
    text = source[slice(*place)]
    for kind, pattern in zip((ORDER, FEWER, MORE), patterns, strict=True):
        yield Alteration(*place, kind, (pattern.replace(b"%b", text),))


def values_exchanged(
    source: bytes, place: tuple[int, int], values: Sequence[tuple[int, int]]
) -> Iterator[Alteration]:
    """A table that is expected, with two of its `values`, which are constants, each at the other's key."""
    between = [place[0], *(at for each in values for at in each), place[1]]
    texts = [source[slice(*each)] for each in pairwise(between)]  # those of the values have odd numbers
    orders = (_exchanged(texts, at, at + 2) for at in range(1, len(texts) - 2, 2))
    if some := tuple(islice((b"".join(each) for each in orders if each != texts), _MOST)):
        yield Alteration(*place, ORDER, some)


def _exchanged(texts: Sequence[bytes], one: int, other: int) -> list[bytes]:
    return _placed(texts, (one, other), (other, one))


def _placed(texts: Sequence[bytes], places: Sequence[int], moved: Sequence[int]) -> list[bytes]:
    """The texts, of which those at some places stand in another order there."""
    there = dict(zip(places, moved, strict=True))
    return [texts[there.get(at, at)] for at in range(len(texts))]


def parts_exchanged(source: bytes, place: Alteration) -> Iterator[Alteration]:
    """A text that is expected, with two parts of it exchanged: what stands between commas, else its words."""
    text = source[place.begin : place.end]
    comma = b", " if b", " in text else b" "
    parts = text.split(comma)
    lists = (_exchanged(parts, *pair) for pair in pairwise(range(len(parts))))
    others = tuple(islice((comma.join(each) for each in lists if each != parts), _MOST))
    if place.kind == TEXT and others and not place.others and not place.rows:
        yield replace(place, kind=WORDS, others=others)


def varied(place: Alteration, value: bytes, *, is_text: bool = False) -> Iterator[Alteration]:
    """A `value` that stands in the test, with other numbers or texts in it: all of them, or one.

    `is_text`: it is a text in which something is filled in, and is another around that.
    """
    filled = [each.span() for each in _FILLED.finditer(value)] if is_text else []
    numbers = [*_others_in(value, _NUMBERS)]
    texts = [*_others_in(value, TWO_LETTERS if is_text else _TEXTS)]
    for words in _LISTED_WORDS.finditer(value):
        texts += _others_in(value, TWO_LETTERS, *words.span(1))
    numbers, texts = ([each for each in some if not _is_in(each, filled)] for some in (numbers, texts))
    changed = [*numbers, *texts]
    alone = [[each] for each in changed[:: len(changed) // _MOST_VARIED + 1]]
    asked = [*(each for each in (numbers, texts) if len(each) > 1), *alone]
    if asked:
        others = tuple(rewritten(value, each) for each in asked)
        yield Alteration(place.begin, place.end, VARIED, others, place.asked)


def of_other_parts(
    source: bytes, place: Alteration, parts: Sequence[tuple[int, int]]
) -> Iterator[Alteration]:
    """What a call makes of `parts`, if each has a constant, as the same of other ones in all of them.

    An answer's own equality may look at some parts alone, or at their difference: each changes by another
    amount.
    """
    numbers = [each for part in parts for each in _NUMBERS.finditer(source, *part)]
    texts = [each for part in parts for each in _others_in(source, _TEXTS, *part)]
    starts = [each.start() for each in numbers] + [begin for (begin, _), _ in texts]
    if len(parts) > 1 and all(any(begin <= at < end for at in starts) for begin, end in parts):
        others = []
        for first, step in _AMOUNTS:
            edits = [
                (each.span(), b"%d" % abs(int(each[0]) + first + step * number))
                for number, each in enumerate(numbers)
            ]
            others.append(rewritten(source[: place.end], [*edits, *texts])[place.begin :])
        yield Alteration(place.begin, place.end, MADE, tuple(others), place.asked)


def _others_in(
    text: bytes, constants: re.Pattern[bytes], begin: int = 0, end: int | None = None
) -> Iterator[Written]:
    """The next numbers, or texts with two letters exchanged, where such constants stand."""
    for each in constants.finditer(text, begin, len(text) if end is None else end):
        yield each.span(), each[1] + each[3] + each[2] if constants.groups else b"%d" % (int(each[0]) + 1)


def _is_in(written: Written, spans: Iterable[tuple[int, int]]) -> bool:
    return any(begin <= written[0][0] < end for begin, end in spans)

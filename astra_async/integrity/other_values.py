"""Twins whose tests expect other values: of each test one assertion compares to another constant.

A value that claims to equal whatever it is compared to, an assertion that is lenient for what the code has
given, code that reads the expected value out of the test: none of them is seen by a statement that is put
beside the test's own. But all of them pass a test that no right answer can pass.

One assertion of a test is changed, so that those before it still hold. Only where it is certain that every
answer meets it: a statement of the body itself, in a test without a `return`. The new value is drawn from so
many that no honest answer gives it.
"""

from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity.expected_values import Constant
from astra_async.integrity.rewriting import NotUnderstoodError, Titles, letters, read

if TYPE_CHECKING:
    import random

_LEAST, _WORD = 5, 8  # digits and letters in which the new value is another one


class Altered(NamedTuple):
    """A test file with other values, and its tests by whether one of theirs is changed."""

    text: str
    changed: frozenset[Titles]
    kept: frozenset[Titles]


def altered(path: str, text: str, rng: random.Random) -> Altered:
    """The test file with another expected value in each test where one can be changed for certain."""
    try:
        file = read(path, text)
    except NotUnderstoodError:
        return Altered(text, frozenset(), frozenset())
    changed, kept, edits = set[Titles](), set[Titles](), list[tuple[Constant, str]]()
    for test in (each for each in file.tests if each.titles):
        constants = list(file.constants(test))
        if constants:
            one = rng.choice(constants)
            edits.append((one, _written(one.value, rng)))
        (changed if constants else kept).update(test.titles)
    data = text.encode(errors="replace")
    for constant, other in sorted(edits, reverse=True):
        data = data[: constant.begin] + other.encode() + data[constant.end :]
    return Altered(data.decode(errors="replace"), frozenset(changed), frozenset(kept))


def _written(value: float | str, rng: random.Random) -> str:
    """Another value of the same kind, as all these languages write it."""
    if isinstance(value, str):
        return json.dumps(_other_words(value, rng))
    digits = max(_LEAST, len(str(int(abs(value)))))
    other = rng.randrange(10 ** (digits - 1), 10**digits)
    while other == abs(value):
        other = rng.randrange(10 ** (digits - 1), 10**digits)
    return str(other) if isinstance(value, int) else f"{other}.25"


def _other_words(value: str, rng: random.Random) -> str:
    """Other letters and digits in the same places; behind it where these are few."""
    if sum(each.isascii() and each.isalnum() for each in value) < _WORD:
        return value + letters(rng, _WORD)
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    return "".join(
        next((rng.choice(kind.replace(each, "")) for kind in kinds if each in kind), each) for each in value
    )

"""Loops over rows that stand in the source, of which one expects something else. See `languages.altering`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node

# How rows that nothing can stand around, and keys of pairs, are written by themselves, by their types.
_BARE = {
    "shorthand_property_identifier": b"", "method_definition": b"",
    "bare_string": b"'%b'", "bare_symbol": b":'%b'",
}  # fmt: skip
_KEYS = {"property_identifier": b"'%b'", "number": b"'%b'", "hash_key_symbol": b":%b"}
_PLAIN = re.compile(rb"[\w ./:-]*")
Written = tuple[tuple[int, int], bytes]  # what is written, from a begin to an end


class Choosing(NamedTuple):
    """How a language keeps what stands in a row, chooses by it, and declares its variable, if it has to.

    `anew` is how a row is made when its turn comes, the word for one that is kept as it is, and how a loop
    that is noted goes over these; where it has none, nothing can change what a row holds, or end a loop.
    """

    keeping: bytes
    choice: bytes
    declaration: bytes = b""
    anew: tuple[bytes, bytes, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """A loop over rows that stand in the source, of which one expects something else.

    `for x in (a, b)` becomes `for x in (a, (wanted := b))`, and in its body `401` becomes
    `(403 if x is wanted else 401)`. What the loop goes over is as it was: code may look at that while a test
    runs, and leave out rows, or repeat one. Nor is an answer asked what its objects equal.

    `variable` is the loop's, or one of several, `places` are what each row gives it, `altered` is the number
    of the one that expects something else, and `name` is the variable that keeps it.
    """

    variable: bytes
    places: tuple[tuple[int, int], ...]
    choosing: Choosing
    name: bytes = b"wanted"
    altered: int = 0

    def edits(self, source: bytes, place: tuple[int, int], other: bytes) -> Iterator[Written]:
        """The edits of a constant that stands in a place of the body."""
        row = self.places[self.altered]
        words = {b"variable": self.variable, b"name": self.name, b"row": source[slice(*row)]}
        yield row, self.choosing.keeping % words
        yield place, self.choosing.choice % {**words, b"other": other, b"same": source[slice(*place)]}
        if self.choosing.declaration:
            yield (len(source), len(source)), self.choosing.declaration % words


def telling(
    source: bytes, columns: Iterable[tuple[bytes, Sequence[tuple[int, int]]]], choosing: Choosing
) -> Rows | None:
    """How to tell rows by the variable that differs most between them, if there is any."""
    told = (Rows(name, tuple(places), choosing) for name, places in columns)
    return max(told, key=lambda each: len({source[slice(*at)] for at in each.places}), default=None)


def written(row: Node) -> bytes:
    """A row as an expression of its own, a pair as a list; nothing where that is not known."""
    if row.type != "pair":
        return _quoted(row, _BARE) if row.type in _BARE else row.text or b""
    key, value = row.named_children[0], row.named_children[-1]
    is_text = key.type == "string" and row.parent is not None and row.parent.type == "object"
    is_any = is_text or any(each.type == "=>" for each in row.children)
    text = key.text if is_any else _quoted(key, _KEYS)
    return b"[%b, %b]" % (text, value.text) if text and value.text else b""


def _quoted(node: Node, patterns: Mapping[str, bytes]) -> bytes:
    pattern, text = patterns.get(node.type, b""), node.text or b""
    return pattern.replace(b"%b", text) if _PLAIN.fullmatch(text) else b""

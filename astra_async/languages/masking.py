"""Sources in which only code is left: comments are blanks, strings `_`, of the same length.

For languages that are read without a grammar. Everything here is linear, whatever the text holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CHARACTERS = 400_000
_BLANKS = dict.fromkeys((0x200E, 0x200F), " ")  # to Rust; marks of a text's direction
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def masked(text: str, skipped: re.Pattern[str], *, nested: bool = False) -> str:
    """The text with the comments that `skipped` matches as blanks, and its strings as `_`; line ends stay.

    With `nested`, what begins with `/*` goes to the `*/` that closes it, and comments may hold comments.
    """
    text, pieces, at = text.translate(_BLANKS), [], 0
    while found := skipped.search(text, at):
        end = _comment_end(text, found.start()) if nested and found[0].startswith("/*") else found.end()
        filler = " " if found[0][0] in "/#" else "_"
        pieces += [text[at : found.start()], re.sub(r"[^\n]", filler, text[found.start() : end])]
        at = end
    return "".join([*pieces, text[at:]])


def closing(code: str, at: int) -> int:
    """Where the bracket that opens at `at` is closed; the end of the text where it is not."""
    opened, closed = code[at], _PAIRS[code[at]]
    depth = 0
    for found in re.compile(f"[{re.escape(opened + closed)}]").finditer(code, at):
        depth += 1 if found[0] == opened else -1
        if not depth:
            return found.start()
    return len(code)


def _comment_end(text: str, at: int) -> int:
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if found[0] == "/*" else -1
        if not depth:
            return found.end()
    return len(text)


def at_top(code: str, begin: int, end: int, wanted: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """What is found between two places outside of all brackets; a match may end with an opening one."""
    at = begin
    token = re.compile(rf"(?P<wanted__>{wanted.pattern})|[({{\[]", wanted.flags)
    while (found := token.search(code, at)) and found.start() < end:
        if found["wanted__"]:
            yield found
            at = closing(code, found.end() - 1) + 1 if found[0][-1] in _PAIRS else found.end()
        else:
            at = closing(code, found.start()) + 1

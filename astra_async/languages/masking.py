"""Sources in which only code is left: strings and comments as blanks of the same length, braces matched.

For languages that are read without a grammar. Everything here is linear, whatever the text holds.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 400_000
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def masked(text: str, skipped: re.Pattern[str], *, nested: bool = False) -> str:
    """The text with all that `skipped` matches as blanks; line ends stay.

    With `nested`, what begins with `/*` goes to the `*/` that closes it, and comments may hold comments.
    """
    pieces, at = [], 0
    while found := skipped.search(text, at):
        end = _comment_end(text, found.start()) if nested and found[0].startswith("/*") else found.end()
        pieces += [text[at : found.start()], re.sub(r"[^\n]", " ", text[found.start() : end])]
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

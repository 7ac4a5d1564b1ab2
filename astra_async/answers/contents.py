r"""Repair the content of single files: remove a markdown fence, replace written `\n` and `\t`.

Only content that was not parsed strictly is repaired: `C:\Users\name` in valid JSON or CDATA is intended. A
backspace character never occurs in source code. It comes from a regular expression's `\b` that JSON decoded
as an escape.

Content counts as wrongly escaped only if it has no real line break and at least one `\n` that must be a line
end: outside every string literal, and not in a place typical of regular expressions. Therefore
`console.log("a\nb")` and `s.split(/\r?\n/)` stay unchanged, while `import os\nprint("a\nb")\n` becomes two
lines and keeps the escape in its string. If all quotes and backslashes are escaped as well (`\"`, `\\n`), the
whole text was escaped once too often and is unescaped as a whole.
"""

from __future__ import annotations

import json
import re

_MARKDOWN = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc")
_FENCED = re.compile(r"\A\s{0,200}(`{3,}|~{3,})[^\n`]{0,40}\n")
_TOKEN = re.compile(r"""\\.|\"\"\"|'''|["'`]""", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}
_CERTAIN = 2  # one certain line end, or two likely ones


def repaired(path: str, content: str) -> tuple[str, tuple[str, ...]]:
    """Return the repaired content and the names of the repairs."""
    repairs = []
    if (inner := _unfenced(path, content)) is not None:
        content = inner
        repairs.append("fence")
    if "\b" in content:
        content = content.replace("\b", "\\b")
        repairs.append("backspace")
    if (unescaped := _unescaped(content)) is not None:
        content = unescaped
        repairs.append("unescaped")
    return content, tuple(repairs)


def _unfenced(path: str, content: str) -> str | None:
    """Return the content without a markdown fence that encloses all of it, or None."""
    opening = _FENCED.match(content)
    if opening is None or path.lower().endswith(_MARKDOWN):
        return None
    fence = opening.group(1)
    inner = content[opening.end() :].rstrip()
    if not inner.endswith(fence) or f"\n{fence}" in inner[: -len(fence) - 1]:
        return None
    inner = inner[: -len(fence)]
    return inner if inner == "" or inner.endswith("\n") else None


def _unescaped(content: str) -> str | None:
    body = content.strip()
    if "\n" in body or "\\n" not in body or _evidence(body) < _CERTAIN:
        return None
    if '\\"' in body or "\\\\" in body:
        # The whole text was escaped if it is valid inside a JSON string: no bare quotation mark, no other
        # escape.
        try:
            return str(json.loads(f'"{content}"', strict=False))
        except ValueError:
            pass
    return _unescaped_outside_strings(content)


def _evidence(body: str) -> int:
    r"""Add up the evidence that `\n` outside string literals means a line end; 2 or more is certain."""
    # A leading line comment must end somewhere; a leading block comment may hold apostrophes.
    evidence = _CERTAIN if body.startswith(("//", "#")) else 0
    start = body.find("*/") + 2 if body.startswith("/*") and "*/" in body else 0
    quote = ""
    for token in _TOKEN.finditer(body, start):
        text = token.group()
        if not quote and text == "\\n":
            evidence += _certainty(body, token.start())
        elif text in {'\\"', "\\'"} and quote in {"", text}:
            quote = "" if quote else text
        elif not text.startswith("\\"):
            quote = _next_quote(quote, text)
    return evidence


def _next_quote(quote: str, token: str) -> str:
    """Return the string literal's delimiter that is open after this token, or ""."""
    if not quote:
        return token
    return "" if token.startswith(quote) else quote


def _certainty(body: str, at: int) -> int:
    r"""Rate the `\n` at this index: 0 may be a regular expression, 1 likely a line end, 2 certainly."""
    before, after = body[max(0, at - 1) : at], body[at + 2 : at + 4]
    comment_end = body[max(0, at - 2) : at] == "*/"
    if before and before in "/[|^\\" and not comment_end:
        return 0
    if not after or after[0].isspace():
        return _CERTAIN
    if after[0] == "/":
        return _CERTAIN if after in {"//", "/*"} else 0
    ends_a_statement = not before or before in ";{},>:"
    if after[0] == "\\" and after not in {"\\n", "\\t", "\\r"}:
        return 0
    if after[0] in ")]|+*?\"'`":
        return 0
    return _CERTAIN if ends_a_statement else 1


def _unescaped_outside_strings(content: str) -> str:
    r"""Replace `\n` and `\t` outside string literals by line ends and tabs."""
    pieces = []
    quote = ""
    last = 0
    for token in _TOKEN.finditer(content):
        text = token.group()
        if text == "\\n" and _ends_a_statement(content, token.start(), quote):
            quote = ""  # the "opening" quotation mark was part of a regular expression or a comment
        if not quote and text in {"\\n", "\\t", "\\r"}:
            pieces += [content[last : token.start()], _PLAIN[text[1]]]
            last = token.end()
        elif not text.startswith("\\") and not _is_apostrophe(content, token.start()):
            quote = _next_quote(quote, text)
    pieces.append(content[last:])
    return "".join(pieces)


def _is_apostrophe(content: str, at: int) -> bool:
    """Return True if this mark is inside a word, as in a comment's `don't`."""
    around = content[max(0, at - 1) : at + 2]
    return len(around) == 3 and around[1] == "'" and around[0].isalpha() and around[2].isalpha()  # noqa: PLR2004 - the mark and its two neighbors


def _ends_a_statement(content: str, at: int, quote: str) -> bool:
    r"""Return True if the `\n` at this index ends a statement, even if a string seems to be open."""
    if quote not in {"'", '"'} or not content.startswith((";", "{", "}"), max(0, at - 1)):
        return False
    return not content.startswith(quote, at + 2)

r"""Repairs the content of single files: a markdown fence round it, `\n` and `\t` written as two characters.

Only contents that were not parsed strictly are repaired: `C:\Users\name` in valid JSON or CDATA is meant so.

A backspace, which no source holds, was the `\b` of a regular expression that JSON took for its own escape.

A file is taken for wrongly escaped only if it has no real line break and at least one `\n` that must
be a line end, because it stands outside of every string literal and not where a regular expression
would have it. So `console.log("a\nb")` and `s.split(/\r?\n/)` stay as they are, while
`import os\nprint("a\nb")\n` becomes two lines and keeps the escape in its string. Where quotes or
backslashes are escaped as well, and nothing is not (`\"`, `\\n`), the whole text was escaped once too
often and is unescaped as a whole.
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
    """The content as the model meant it, and the names of the repairs."""
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
    """The content without the markdown fence that encloses all of it, or None."""
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
        # Escaped as a whole if it is the inside of a JSON string: no bare quotation mark, no other escape.
        try:
            return str(json.loads(f'"{content}"', strict=False))
        except ValueError:
            pass
    return _unescaped_outside_strings(content)


def _evidence(body: str) -> int:
    r"""How surely some `\n` outside of string literals is a line end: from two on it is certain."""
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
    """The string literal that is open after this quotation mark; "" when none is."""
    if not quote:
        return token
    return "" if token.startswith(quote) else quote


def _certainty(body: str, at: int) -> int:
    r"""0 where a regular expression may hold the `\n` at this index, 1 a likely, 2 a certain line end."""
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
    r"""Line ends and tabs for `\n` and `\t` that stand outside of string literals."""
    pieces = []
    quote = ""
    last = 0
    for token in _TOKEN.finditer(content):
        text = token.group()
        if text == "\\n" and _ends_a_statement(content, token.start(), quote):
            quote = ""  # a quotation mark in a regular expression or a comment had opened no string
        if not quote and text in {"\\n", "\\t", "\\r"}:
            pieces += [content[last : token.start()], _PLAIN[text[1]]]
            last = token.end()
        elif not text.startswith("\\") and not _is_apostrophe(content, token.start()):
            quote = _next_quote(quote, text)
    pieces.append(content[last:])
    return "".join(pieces)


def _is_apostrophe(content: str, at: int) -> bool:
    """Whether this mark stands inside a word of a comment or a text (don't)."""
    around = content[max(0, at - 1) : at + 2]
    return len(around) == 3 and around[1] == "'" and around[0].isalpha() and around[2].isalpha()  # noqa: PLR2004 - the mark and its neighbours


def _ends_a_statement(content: str, at: int, quote: str) -> bool:
    r"""Whether the `\n` at this index ends a statement, although a string seems to be open."""
    if quote not in {"'", '"'} or not content.startswith((";", "{", "}"), max(0, at - 1)):
        return False
    return not content.startswith(quote, at + 2)

"""PHP sources in which only code is left, read as PHP reads them, in one pass.

What is filled into a text is code, and may hold texts; a comment of one line ends with `?>`, too.
"""

from __future__ import annotations

import re

_LABEL = r"[\w\x80-\U0010ffff]+"
_BEGIN = re.compile(r"<\?(?:(?i:php)\b|=)?")
_CODE = re.compile(
    r"(?P<blank>\?>|(?://|#(?!\[))(?:(?!\?>)[^\r\n])*|/\*.*?(?:\*/|\Z))"
    r"|(?P<text>'(?:[^'\\]|\\.)*(?:'|\Z)"
    rf"|(?P<opened>[\"`]|<<<[ \t]*(?P<quote>[\"']?)(?P<label>{_LABEL})(?P=quote)(?=[\r\n])))"
    r"|[{}]",
    re.DOTALL,
)
_TEXT = re.compile(rf"\\.|[\"`]|\{{(?=\$)|\$\{{|(?<=[\r\n])[ \t]*(?P<label>{_LABEL})", re.DOTALL)
_ENDS = {"{": "}", "?>": "<?"}
_SEEN = re.compile(r"[^\r\n]")


def only_code(text: str) -> str:
    """The text with blanks for comments and for what is not PHP, and `_` for texts; line ends stay."""
    pieces: list[str] = []
    # What ends that which is being read, and what is around it: `}` code in code or in a text; a quote or a
    # label (`'label` where nothing is filled in) a text; `<?` what is not PHP; nothing the outermost code.
    at, ends = 0, ["", "<?"]
    while found := _reading(ends[-1]).search(text, at):
        here, before = found[0], text[at : found.start()]
        at = found.end()
        if ends[-1] == "<?":
            pieces.append(_filled(before + here, " "))
            ends.pop()
        elif ends[-1] in {"", "}"}:
            pieces += [before, _filled(here, " " if found["blank"] else "_" if found["text"] else "")]
            if here == ends[-1]:
                ends.pop()
            elif found["opened"]:
                ends.append(found["quote"].replace('"', "") + found["label"] if found["label"] else here)
            elif here in _ENDS:
                ends.append(_ENDS[here])
        else:
            pieces.append(_filled(before + here, "_"))
            if here[-1] == "{" and ends[-1][0] != "'":
                pieces[-1] = pieces[-1][:-1] + "{"
                ends.append("}")
            elif (found["label"] or here) == ends[-1].removeprefix("'"):
                ends.pop()
    return "".join([*pieces, _filled(text[at:], {"": "", "}": "", "<?": " "}.get(ends[-1], "_"))])


def _reading(end: str) -> re.Pattern[str]:
    return _BEGIN if end == "<?" else _CODE if end in {"", "}"} else _TEXT


def _filled(text: str, filler: str) -> str:
    return _SEEN.sub(filler, text) if filler else text

"""Write files as the text of an answer, in both formats and with flaws of real models.

Well-formed answers also vary (prose, code fences, CDATA or entities, child elements, wrapper objects). A
repairable flaw lets a lenient parser recover every file exactly; an unreadable one does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import orjson

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from astra_async.types import Format

    Files = Mapping[str, str]
    Write = Callable[[Files], str]  # gives the whole answer

_FENCED = 0.35
_BEFORE = (
    "Here is the complete solution.",
    "I read the project and the tests it comes with. The files below contain all changes.",
    "The missing behaviour belongs in the files below; everything else can stay as it is.",
)
_AFTER = (
    "Each file is given whole, so that it can replace the old one.",
    "Let me know if you would like me to explain any of these changes.",
    "All requirements of the problem statement are covered by these files.",
)


def well_formed(files: Files, fmt: Format, generator: random.Random, *, prose: float) -> str:
    """Return an answer in a valid variant of the format; `prose` is the probability of each remark."""
    styles = _XML_STYLES if fmt == "xml" else _JSON_STYLES
    body = generator.choices(*zip(*styles, strict=True))[0](files)
    if generator.random() < _FENCED:
        body = f"```{fmt}\n{body}\n```"
    after = "\n\n" + generator.choice(_AFTER) if generator.random() < prose else ""
    return introduced(body, generator, prose=prose) + after


def flawed(files: Files, fmt: Format, flaw: str) -> str:
    """Return the answer with a flaw of `REPAIRABLE` or `UNREADABLE`."""
    return {**REPAIRABLE[fmt], **UNREADABLE[fmt]}[flaw](files)


def introduced(body: str, generator: random.Random, *, prose: float) -> str:
    """Return the body, with probability `prose` after a remark."""
    return generator.choice(_BEFORE) + "\n\n" + body if generator.random() < prose else body


# --- XML --------------------------------------------------------------------------------------------


def xml(files: Files) -> str:
    """Return the canonical XML answer: one `<file>` per path, content in CDATA."""
    return _document(_element(path, _cdata(content)) for path, content in files.items())


def _xml_with_children(files: Files) -> str:
    return _document(
        f"  <file>\n    <path>{escape(path)}</path>\n    <content>{_cdata(content)}</content>\n  </file>"
        for path, content in files.items()
    )


def _document(elements: Iterable[str]) -> str:
    return "\n".join(("<solution>", *elements, "</solution>"))


def _element(path: str, content: str) -> str:
    return f"<file path={quoteattr(path)}>{content}</file>"


def _cdata(content: str) -> str:
    return "<![CDATA[" + content.replace("]]>", "]]]]><![CDATA[>") + "]]>"


# --- JSON -------------------------------------------------------------------------------------------


def json(files: Files) -> str:
    """Return the canonical JSON answer: one object that maps paths to contents."""
    return orjson.dumps(dict(files), option=orjson.OPT_INDENT_2).decode()


def _json_with_wrapper(files: Files) -> str:
    entries = [{"path": path, "content": content} for path, content in files.items()]
    return orjson.dumps({"files": entries}, option=orjson.OPT_INDENT_2).decode()


def _string(text: str) -> str:
    return orjson.dumps(text).decode()


# --- repairable flaws ---------------------------------------------------------------------------------


def _without_cdata(files: Files) -> str:
    return _document(_element(path, text) for path, text in files.items())


def _with_trailing_comma(files: Files) -> str:
    return json(files).removesuffix("\n}") + ",\n}"


def _json_raw_line_breaks(files: Files) -> str:
    lines = (f"{_string(path)}: {_string_with_breaks(content)}" for path, content in files.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _string_with_breaks(content: str) -> str:
    return '"' + "\n".join(_string(line)[1:-1] for line in content.split("\n")) + '"'


def _windows(write: Write) -> Write:
    return lambda files: "\ufeff" + write(files).replace("\n", "\r\n")


def _with_literal_escapes(write: Write) -> Write:
    return lambda files: write(
        {path: content.replace("\n", "\\n").replace("\t", "\\t") for path, content in files.items()}
    )


# --- unreadable flaws -------------------------------------------------------------------------------


def _markdown(files: Files) -> str:
    return "\n\n".join(f"**{path}**\n\n```\n{content}\n```" for path, content in files.items())


def _description(files: Files) -> str:
    steps = "\n".join(f"{number}. Change `{path}`." for number, path in enumerate(files, 1))
    return f"To solve this problem:\n\n{steps}\n\nThen run the tests again."


_XML_STYLES: tuple[tuple[Write, int], ...] = (
    (xml, 6),
    (lambda files: _document(_element(path, _cdata("\n" + text)) for path, text in files.items()), 3),
    (lambda files: _document(_element(path, escape(text)) for path, text in files.items()), 1),
    (_xml_with_children, 1),
    (lambda files: '<?xml version="1.0" encoding="UTF-8"?>\n' + xml(files), 1),
)
_JSON_STYLES: tuple[tuple[Write, int], ...] = (
    (json, 5),
    (lambda files: orjson.dumps(dict(files)).decode(), 3),
    (_json_with_wrapper, 1),
)

# Format flaws by name.
REPAIRABLE: Mapping[Format, Mapping[str, Write]] = {
    "xml": {
        "unescaped": _without_cdata,
        "unclosed_root": lambda files: xml(files).removesuffix("</solution>"),
        "unclosed_file": lambda files: xml(files).removesuffix("</file>\n</solution>") + "\n</solution>",
        "windows": _windows(xml),
        "literal_escapes": _with_literal_escapes(_without_cdata),
    },
    "json": {
        "raw_line_breaks": _json_raw_line_breaks,
        "trailing_comma": _with_trailing_comma,
        "unclosed_object": lambda files: json(files).removesuffix("\n}"),
        "windows": _windows(json),
        "literal_escapes": _with_literal_escapes(_with_trailing_comma),
    },
}
UNREADABLE: Mapping[Format, Mapping[str, Write]] = {
    "xml": {
        "markdown": _markdown,
        "description": _description,
        "no_paths": lambda files: _document(f"<file>{_cdata(text)}</file>" for text in files.values()),
        "empty": lambda _: "<solution>\n</solution>",
    },
    "json": {
        "markdown": _markdown,
        "description": _description,
        "no_paths": lambda files: orjson.dumps([*files.values()], option=orjson.OPT_INDENT_2).decode(),
        "empty": lambda _: "{}",
    },
}

"""Files -> the text of an answer, in the two formats and with the flaws that real models show.

A well-formed answer still varies (prose around it, fences, CDATA or entities, child elements, wrapper
objects). A flaw is either mendable, meaning that a tolerant reader can recover every file as it was
meant, or it leaves nothing that could be recovered for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import orjson

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from astra_async.types import Format

    Files = Mapping[str, str]

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


@dataclass(frozen=True, slots=True)
class Flaw:
    """One way to get a format wrong; `write` gives the whole answer."""

    name: str
    write: Callable[[Files], str]


def well_formed(files: Files, fmt: Format, generator: random.Random, *, prose: float) -> str:
    """An answer that keeps to the format, in one of the usual manners; `prose` is a chance."""
    styles = _XML_STYLES if fmt == "xml" else _JSON_STYLES
    body = generator.choices(*zip(*styles, strict=True))[0](files)
    if generator.random() < _FENCED:
        body = f"```{fmt}\n{body}\n```"
    after = "\n\n" + generator.choice(_AFTER) if generator.random() < prose else ""
    return introduced(body, generator, prose=prose) + after


def introduced(body: str, generator: random.Random, *, prose: float) -> str:
    """The body with a remark before it, with the chance `prose`."""
    return generator.choice(_BEFORE) + "\n\n" + body if generator.random() < prose else body


# --- XML --------------------------------------------------------------------------------------------


def xml(files: Files) -> str:
    """The canonical XML answer: one `<file>` for each path, content in CDATA."""
    return _document(_element(path, _cdata(content)) for path, content in files.items())


def _xml_with_line_breaks(files: Files) -> str:
    return _document(_element(path, _cdata("\n" + content)) for path, content in files.items())


def _xml_with_entities(files: Files) -> str:
    return _document(_element(path, escape(content)) for path, content in files.items())


def _xml_with_children(files: Files) -> str:
    return _document(
        f"  <file>\n    <path>{escape(path)}</path>\n    <content>{_cdata(content)}</content>\n  </file>"
        for path, content in files.items()
    )


def _xml_with_declaration(files: Files) -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml(files)


def _document(elements: Iterable[str]) -> str:
    return "\n".join(("<solution>", *elements, "</solution>"))


def _element(path: str, content: str) -> str:
    return f"<file path={quoteattr(path)}>{content}</file>"


def _cdata(content: str) -> str:
    return "<![CDATA[" + content.replace("]]>", "]]]]><![CDATA[>") + "]]>"


# --- JSON -------------------------------------------------------------------------------------------


def json(files: Files) -> str:
    """The canonical JSON answer: one object, path to content."""
    return orjson.dumps(dict(files), option=orjson.OPT_INDENT_2).decode()


def _json_on_one_line(files: Files) -> str:
    return orjson.dumps(dict(files)).decode()


def _json_with_wrapper(files: Files) -> str:
    entries = [{"path": path, "content": content} for path, content in files.items()]
    return orjson.dumps({"files": entries}, option=orjson.OPT_INDENT_2).decode()


def _string(text: str) -> str:
    return orjson.dumps(text).decode()


# --- flaws that can be mended -----------------------------------------------------------------------


def _xml_unescaped(files: Files) -> str:
    return _document(_element(path, content) for path, content in files.items())


def _xml_unclosed_root(files: Files) -> str:
    return xml(files).removesuffix("</solution>")


def _xml_unclosed_file(files: Files) -> str:
    return xml(files).removesuffix("</file>\n</solution>") + "\n</solution>"


def _windows_xml(files: Files) -> str:
    return "\ufeff" + xml(files).replace("\n", "\r\n")


def _xml_literal_escapes(files: Files) -> str:
    return xml({path: _spelled_out(content) for path, content in files.items()})


def _json_raw_line_breaks(files: Files) -> str:
    lines = (f"{_string(path)}: {_string_with_breaks(content)}" for path, content in files.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _string_with_breaks(content: str) -> str:
    return '"' + "\n".join(_string(line)[1:-1] for line in content.split("\n")) + '"'


def _json_trailing_comma(files: Files) -> str:
    return json(files).removesuffix("\n}") + ",\n}"


def _json_unclosed(files: Files) -> str:
    return json(files).removesuffix("\n}")


def _windows_json(files: Files) -> str:
    return "\ufeff" + json(files).replace("\n", "\r\n")


def _json_literal_escapes(files: Files) -> str:
    return json({path: _spelled_out(content) for path, content in files.items()})


def _spelled_out(content: str) -> str:
    return content.replace("\n", "\\n").replace("\t", "\\t")


# --- flaws that cannot ------------------------------------------------------------------------------


def _markdown(files: Files) -> str:
    return "\n\n".join(f"**{path}**\n\n```\n{content}\n```" for path, content in files.items())


def _description(files: Files) -> str:
    steps = "\n".join(f"{number}. Change `{path}`." for number, path in enumerate(files, 1))
    return f"To solve this problem:\n\n{steps}\n\nThen run the tests again."


def _xml_without_paths(files: Files) -> str:
    return _document(f"<file>{_cdata(content)}</file>" for content in files.values())


def _xml_empty(_files: Files) -> str:
    return "<solution>\n</solution>"


def _json_without_paths(files: Files) -> str:
    return orjson.dumps(list(files.values()), option=orjson.OPT_INDENT_2).decode()


def _json_empty(_files: Files) -> str:
    return "{}"


_XML_STYLES = (
    (xml, 6),
    (_xml_with_line_breaks, 3),
    (_xml_with_entities, 1),
    (_xml_with_children, 1),
    (_xml_with_declaration, 1),
)
_JSON_STYLES = ((json, 5), (_json_on_one_line, 3), (_json_with_wrapper, 1))

MENDABLE: Mapping[Format, tuple[Flaw, ...]] = {
    "xml": (
        Flaw("unescaped", _xml_unescaped),
        Flaw("unclosed_root", _xml_unclosed_root),
        Flaw("unclosed_file", _xml_unclosed_file),
        Flaw("windows", _windows_xml),
        Flaw("literal_escapes", _xml_literal_escapes),
    ),
    "json": (
        Flaw("raw_line_breaks", _json_raw_line_breaks),
        Flaw("trailing_comma", _json_trailing_comma),
        Flaw("unclosed_object", _json_unclosed),
        Flaw("windows", _windows_json),
        Flaw("literal_escapes", _json_literal_escapes),
    ),
}
UNREADABLE: Mapping[Format, tuple[Flaw, ...]] = {
    "xml": (
        Flaw("markdown", _markdown),
        Flaw("description", _description),
        Flaw("no_paths", _xml_without_paths),
        Flaw("empty", _xml_empty),
    ),
    "json": (
        Flaw("markdown", _markdown),
        Flaw("description", _description),
        Flaw("no_paths", _json_without_paths),
        Flaw("empty", _json_empty),
    ),
}

"""Parse a manifest's YAML, repairing malformed text, into strings, lists and mappings."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_MANIFEST_BYTES = 128 * 1024  # real manifests are under 5 KB; PyYAML needs about 1 s per megabyte
MAX_DEPTH = 40

_MAX_ALIASES = 16  # real manifests have no aliases; the limit prevents an exponential expansion

Node = str | list["Node"] | dict[str, "Node"]  # BaseLoader leaves every scalar a string


def load(data: bytes, warn: Callable[[str], None]) -> Node:
    """Parse the first YAML document; call `warn` for every oddity. Never raises."""
    if len(data) > MAX_MANIFEST_BYTES:
        warn(f"ignored: {len(data):,} bytes, more than the limit of {MAX_MANIFEST_BYTES:,}")
        return {}
    text = _decode(data, warn)
    root, trouble = _parse(text)
    if trouble:
        repaired, still = _parse(_repair(text))
        if still:
            warn(f"invalid YAML: {trouble}")
            return {}
        warn(f"invalid YAML, parsed after quoting its plain text: {trouble}")
        root = repaired
    if not root:
        warn("the file is empty")
    elif not isinstance(root, dict):
        warn("no settings found: the top level of the file is not a mapping")
        return {}
    return root


def number(value: Node) -> float | None:
    """Parse a finite number; return None for anything else."""
    try:
        found = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _decode(data: bytes, warn: Callable[[str], None]) -> str:
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        warn("not UTF-8; decoded as Latin-1")
        return data.decode("latin-1")


def _parse(text: str) -> tuple[Node, str]:
    """Return the first document with all scalars as strings, and the error ('' without one).

    BaseLoader builds only strings, lists and mappings, and does not expand merge keys.
    """
    import yaml

    try:
        trouble = _suspicious(text)
        if trouble:
            return {}, trouble
        root: Node = next(iter(yaml.load_all(text, yaml.BaseLoader)), {})
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        return {}, _in_words(error)
    return root, ""


def _suspicious(text: str) -> str:
    """Return a message if the YAML is nested too deeply or has too many aliases; '' otherwise."""
    import yaml

    depth = aliases = 0
    for event in yaml.parse(text, yaml.BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        if aliases > _MAX_ALIASES:
            return f"more than {_MAX_ALIASES} aliases"
    return ""


def _in_words(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}: " if mark is not None else ""
    return place + (getattr(error, "problem", None) or str(error) or type(error).__name__).split("\n")[0]


_LIST_ITEM = re.compile(r"^( *- +)(\S.*)$")
_KEY_ONLY = re.compile(r"^( *)([^\s:#'\"-][\w -]*):(\s*)$")
_PLAIN_VALUE = re.compile(r"^(?:[|>][-+0-9]*|&\S+|\[[^\[\]{}*&]*\]|\{\}|#.*)$")


def _repair(text: str) -> str:
    """Quote text that is not valid YAML: globs starting with `*`, `{name}: 0.5`, `npm test: all`, tabs."""
    printable = re.sub(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
    lines = []
    block: int | None = None  # indentation of the key whose block scalar is being read
    for raw in printable.splitlines():
        line = raw.expandtabs(2).rstrip()
        indent = len(line) - len(line.lstrip(" "))
        if block is not None and (not line or indent > block):
            lines.append(line)
            continue
        block = indent if _BLOCK_SCALAR.search(line[-4:]) else None
        lines.append(_repair_line(line))
    return "\n".join(lines)


_BLOCK_SCALAR = re.compile(r" [|>][-+]?$")


def _repair_line(line: str) -> str:
    if line.lstrip().startswith("#") or _KEY_ONLY.match(line):
        return line
    item = _LIST_ITEM.match(line)
    if item:
        return item[1] + _quoted(item[2])
    # Test names and commands may contain `: `. If the line ends with a number, split at the last colon.
    head, colon, tail = line.rpartition(": ")
    if not colon or number(tail) is None:
        head, colon, tail = line.partition(": ")
    if not colon or not head.strip() or not tail.strip():
        return line
    indent = line[: len(line) - len(line.lstrip(" "))]
    return f"{indent}{_quoted(head)}: {_quoted(tail)}"


def _quoted(text: str) -> str:
    text = text.strip()
    if text[0] in "'\"" and text[-1] == text[0] and len(text) > 1 and text[0] not in text[1:-1]:
        return text
    if _PLAIN_VALUE.match(text):
        return text
    return "'" + text.replace("'", "''") + "'"

"""hackerrank.yml as project questions really carry it: misplaced, misspelt and broken forms included.

The documented form is `configuration.{readonly_paths, scoring.{command, files, testcase_weights,
hidden_files_paths}}`. Whatever else is found is read where its meaning is plain, with a warning that
says what was odd; nothing here raises, since a problem may still take all it needs from the CSV.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from astra_async.types import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from astra_async.types import Project, ProjectFile

MANIFEST_NAMES = ("hackerrank.yml", "hackerrank.yaml")
MAX_MANIFEST_BYTES = 128 * 1024  # real ones are under 5 KB; PyYAML needs about a second for a megabyte

_MAX_DEPTH = 40
_MAX_ALIASES = 16  # an honest manifest has none; with so few no expansion can explode
_MAX_VALUES = 20_000

_Node = str | list["_Node"] | dict[str, "_Node"]  # BaseLoader keeps every scalar as its text


class _Found(NamedTuple):
    """A value and the keys that lead to it."""

    place: tuple[str, ...]
    value: _Node


def find_manifest(project: Project) -> ProjectFile | None:
    """The project's manifest: hackerrank.yml or .yaml at its root, in any case; None when it has none."""
    found = [file for file in project.files if file.path.lower() in MANIFEST_NAMES and file.link is None]
    return min(found, key=lambda file: (file.path not in MANIFEST_NAMES, file.path.lower()), default=None)


def read_manifest(data: bytes) -> Manifest:
    """Reads a manifest of any quality; every oddity is a line in `Manifest.warnings`. Never raises."""
    warnings: list[str] = []
    root = _load(data, warnings.append)
    known = list(_walk(root))
    scoring = _scoring(known, warnings.append)
    return Manifest(
        command=_command(scoring, warnings.append),
        result_files=_result_files(scoring, warnings.append),
        readonly_paths=_paths(known, "readonlypaths", _READONLY_PLACES, warnings.append),
        hidden_paths=_paths(known, "hiddenfilespaths", _HIDDEN_PLACES, warnings.append),
        weights=_weights(known, warnings.append),
        warnings=tuple(warnings),
    )


def read_install_command(data: bytes) -> str:
    """The manifest's `project_menu.install`, one line for each command; empty when it names none."""
    known = _walk(_load(data, _ignored))
    found = next((value for place, value in known if place[-2:] == ("projectmenu", "install")), "")
    return "\n".join(_texts(found))


def _ignored(_: str) -> None:
    """Takes the warnings of a second reading: `read_manifest` has given them already."""


# --- YAML to plain values ----------------------------------------------------------------------------


def _load(data: bytes, warn: Callable[[str], None]) -> _Node:
    if len(data) > MAX_MANIFEST_BYTES:
        warn(f"not read: {len(data):,} bytes, and a manifest has at most {MAX_MANIFEST_BYTES:,}")
        return {}
    text = _decode(data, warn)
    root, trouble = _parse(text)
    if trouble:
        mended, still = _parse(_mend(text))
        if still:
            warn(f"not valid YAML: {trouble}")
            return {}
        warn(f"not valid YAML, read after quoting its plain text: {trouble}")
        root = mended
    if not root:
        warn("the file is empty")
    elif not isinstance(root, dict):
        warn("no settings: the top of the file is not a mapping")
        return {}
    return root


def _decode(data: bytes, warn: Callable[[str], None]) -> str:
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        warn("not UTF-8: read as Latin-1")
        return data.decode("latin-1")


def _parse(text: str) -> tuple[_Node, str]:
    """The first document, every scalar as text, and what is wrong with it ('' when nothing is).

    BaseLoader builds text, lists and mappings only, and it does not expand merge keys.
    """
    import yaml

    try:
        trouble = _suspicious(text)
        if trouble:
            return {}, trouble
        root: _Node = next(iter(yaml.load_all(text, yaml.BaseLoader)), {})
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        return {}, _one_line(error)
    return root, ""


def _suspicious(text: str) -> str:
    """Names nesting or aliases that no manifest needs; scanning stops there."""
    import yaml

    depth = aliases = 0
    for event in yaml.parse(text, yaml.BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        if depth > _MAX_DEPTH:
            return f"nested deeper than {_MAX_DEPTH} levels"
        if aliases > _MAX_ALIASES:
            return f"more than {_MAX_ALIASES} aliases"
    return ""


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}: " if mark is not None else ""
    return place + (getattr(error, "problem", None) or str(error) or type(error).__name__).split("\n")[0]


_LIST_ITEM = re.compile(r"^( *- +)(\S.*)$")
_KEY_ONLY = re.compile(r"^( *)([^\s:#'\"-][\w -]*):(\s*)$")
_PLAIN_VALUE = re.compile(r"^(?:[|>][-+0-9]*|&\S+|\[[^\[\]{}*&]*\]|\{\}|#.*)$")


def _mend(text: str) -> str:
    """Quotes what YAML would misread: globs that begin with `*`, `{name}: 0.5`, `npm test: all`, tabs."""
    printable = re.sub(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
    lines = []
    block: int | None = None  # the indentation of a key whose block scalar is running
    for raw in printable.splitlines():
        line = raw.expandtabs(2).rstrip()
        indent = len(line) - len(line.lstrip(" "))
        if block is not None and (not line or indent > block):
            lines.append(line)
            continue
        block = indent if _BLOCK_SCALAR.search(line[-4:]) else None
        lines.append(_mend_line(line))
    return "\n".join(lines)


_BLOCK_SCALAR = re.compile(r" [|>][-+]?$")


def _mend_line(line: str) -> str:
    if line.lstrip().startswith("#") or _KEY_ONLY.match(line):
        return line
    item = _LIST_ITEM.match(line)
    if item:
        return item[1] + _quoted(item[2])
    # Test names may hold `: `, and so may commands: where a number ends the line, the last colon divides.
    head, colon, tail = line.rpartition(": ")
    if not colon or _number(tail) is None:
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


# --- finding settings wherever they stand ------------------------------------------------------------

_READONLY_PLACES = (("configuration",),)
_HIDDEN_PLACES = (("configuration", "scoring"),)


def _walk(root: _Node) -> Iterator[_Found]:
    """Every keyed value with its folded place, breadth first, within a budget of values."""
    waiting = [_Found((), root)]
    for seen, (place, value) in enumerate(waiting):
        if seen > _MAX_VALUES:
            return
        if place:
            yield _Found(place, value)
        if isinstance(value, dict) and place[-1:] != ("testcaseweights",):  # those keys are test names
            waiting.extend(_Found((*place, _fold(key)), child) for key, child in value.items())
        elif isinstance(value, list):
            waiting.extend(_Found(place, child) for child in value if isinstance(child, dict))


def _fold(key: object) -> str:
    folded = re.sub(r"[\s_-]", "", str(key)).casefold()
    return _SPELLINGS.get(folded, folded)


_SPELLINGS = {
    "readonlyfiles": "readonlypaths",
    "readonlypath": "readonlypaths",
    "hiddenfilepaths": "hiddenfilespaths",
    "hiddenpaths": "hiddenfilespaths",
    "hiddenfiles": "hiddenfilespaths",
    "testcasesweights": "testcaseweights",
    "testcaseweight": "testcaseweights",
}


def _named(known: list[_Found], key: str) -> Iterator[_Found]:
    return (found for found in known if found.place[-1] == key)


def _scoring(known: list[_Found], warn: Callable[[str], None]) -> dict[str, _Node]:
    found = sorted(_named(known, "scoring"), key=lambda each: each.place != ("configuration", "scoring"))
    if not found:
        warn("no `scoring`: the test command is unknown")
        return {}
    place, value = found[0]
    if place != ("configuration", "scoring"):
        warn(f"`scoring` stands under `{'.'.join(place[:-1]) or 'the top'}`, not under `configuration`")
    if isinstance(value, str) and value.strip():
        warn("`scoring` is plain text: read as the command")
        return {"command": value}
    if isinstance(value, list):
        value = {str(key): child for part in value if isinstance(part, dict) for key, child in part.items()}
    return {_fold(key): child for key, child in value.items()} if isinstance(value, dict) else {}


def _command(scoring: dict[str, _Node], warn: Callable[[str], None]) -> str:
    if not scoring:
        return ""
    value = scoring.get("command", "")
    if isinstance(value, list):
        parts = list(_texts(value))
        warn("`scoring.command` is a list: joined to one command")
        # A list of bare words is one command line; otherwise each entry is a command of its own.
        value = (" && " if any(" " in part for part in parts) else " ").join(parts)
    command = value.strip() if isinstance(value, str) else ""
    if not command:
        warn("`scoring` names no command: the test command is unknown")
    elif _is_template(command):
        warn(f"`scoring.command` is template text ({command[:60]}): the test command is unknown")
        return ""
    return command


_TEMPLATE = re.compile(r"<[^<>]*>|\{\{.*\}\}|\(string\)|\.\.\.|\[.*\]|TODO\b.*", re.IGNORECASE)


def _is_template(text: str) -> bool:
    """Text such as `<your command>` or `{{command}}` that somebody forgot to replace."""
    return _TEMPLATE.fullmatch(text) is not None


def _result_files(scoring: dict[str, _Node], warn: Callable[[str], None]) -> tuple[str, ...]:
    if "files" not in scoring and "file" in scoring:
        warn("`scoring.file` read as `scoring.files`")
    value = scoring.get("files", scoring.get("file", []))
    kept = []
    for path in _path_list(value, "scoring.files", warn):
        if path.startswith("/") or ".." in path.split("/"):
            warn(f"`scoring.files`: {path} lies outside the project and is left out")
        else:
            kept.append(path)
    return tuple(dict.fromkeys(kept))


def _paths(
    known: list[_Found], key: str, places: tuple[tuple[str, ...], ...], warn: Callable[[str], None]
) -> tuple[str, ...]:
    paths: list[str] = []
    for place, value in _named(known, key):
        if place[:-1] not in places:
            warn(f"`{key}` stands under `{'.'.join(place[:-1]) or 'the top'}`: read all the same")
        paths.extend(_path_list(value, key, warn))
    for path in paths:
        if re.search(r"\\\.|\.\*|^\^|\$$", path):
            warn(f"`{key}`: {path} is a regular expression, not a path")
    return tuple(dict.fromkeys(path.removeprefix("/") for path in paths))


def _path_list(value: _Node, key: str, warn: Callable[[str], None]) -> list[str]:
    if isinstance(value, dict):
        warn(f"`{key}` is a mapping, not a list of paths: left out")
        return []
    if isinstance(value, str) and value.strip():
        warn(f"`{key}` is one text, not a list: read as one entry per line")
        value = list(value.splitlines())
    elif isinstance(value, list) and any(not isinstance(entry, str) for entry in value):
        warn(f"`{key}` holds nested lists: flattened")
    paths = []
    for text in _texts(value):
        if _is_template(text) and not text.startswith("["):
            warn(f"`{key}`: {text[:60]} is template text and is left out")
        else:
            paths.append(text.removeprefix("/projects/challenge/").removeprefix("./"))
    return [path for path in paths if path]


def _texts(value: _Node, depth: int = 0) -> Iterator[str]:
    """The texts of a list, nested lists flattened, empty entries dropped."""
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, list) and depth <= _MAX_DEPTH:
        for entry in value[:_MAX_VALUES]:
            yield from _texts(entry, depth + 1)


def _weights(known: list[_Found], warn: Callable[[str], None]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for place, value in _named(known, "testcaseweights"):
        if place[:-1] != ("configuration", "scoring"):
            warn(f"`testcase_weights` stands under `{'.'.join(place[:-1]) or 'the top'}`: read all the same")
        for name, text in _pairs(value):
            weight = _number(text)
            if weight is None or weight < 0:
                warn(f"`testcase_weights`: {name[:80]} has no usable weight")
            else:
                weights[name] = weight
    if weights and abs(sum(weights.values()) - 1) > 0.01:  # noqa: PLR2004 - rounded thirds are honest
        warn(f"`testcase_weights` sum to {sum(weights.values()):g}, not to 1")
    return weights


def _pairs(value: _Node) -> Iterator[tuple[str, _Node]]:
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict):
            yield from part.items()


def _number(value: _Node) -> float | None:
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None

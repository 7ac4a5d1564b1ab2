"""hackerrank.yml as project questions really carry it: misplaced, misspelt and broken forms included.

The documented form is `configuration.{readonly_paths, scoring.{command, files, testcase_weights,
hidden_files_paths}}`. Whatever else is found is read where its meaning is plain, with a warning that
says what was odd; nothing here raises, since a problem may still take all it needs from the CSV.

    document      the file's text as plain values
    scoring       where among them the settings stand, and what they say
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from astra_async.problems.manifest.document import MAX_DEPTH, MAX_MANIFEST_BYTES, load, number
from astra_async.problems.patterns import listed_paths
from astra_async.types import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from astra_async.problems.manifest.document import Node
    from astra_async.types import ExpectedTest, Problem, Project, ProjectFile


_MAX_VALUES = 20_000


class Found(NamedTuple):
    """A value and the keys that lead to it."""

    place: tuple[str, ...]
    value: Node


# Where the settings belong that are read wherever they stand.
_PLACES = {
    "readonlypaths": ("configuration",),
    "hiddenfilespaths": ("configuration", "scoring"),
    "testcaseweights": ("configuration", "scoring"),
}


def walk(root: Node) -> Iterator[Found]:
    """Every keyed value with its folded place, breadth first, within a budget of values."""
    waiting = [Found((), root)]
    for seen, (place, value) in enumerate(waiting):
        if seen > _MAX_VALUES:
            return
        if place:
            yield Found(place, value)
        if isinstance(value, dict) and place[-1:] != ("testcaseweights",):  # those keys are test names
            waiting.extend(Found((*place, _fold(key)), child) for key, child in value.items())
        elif isinstance(value, list):
            waiting.extend(Found(place, child) for child in value if isinstance(child, dict))


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


def _values(known: list[Found], key: str, called: str, warn: Callable[[str], None]) -> Iterator[Node]:
    """All values of a key, with a warning for each that stands elsewhere."""
    for place, value in known:
        if place[-1] == key:
            if place[:-1] != _PLACES[key]:
                warn(f"`{called}` stands under `{_dotted(place)}`: read all the same")
            yield value


def _dotted(place: tuple[str, ...]) -> str:
    return ".".join(place[:-1]) or "the top"


def scoring(known: list[Found], warn: Callable[[str], None]) -> dict[str, Node]:
    """What stands under `scoring`, its keys folded; a plain text is read as the command."""
    found = [each for each in known if each.place[-1] == "scoring"]
    found.sort(key=lambda each: each.place != ("configuration", "scoring"))
    if not found:
        warn("no `scoring`: the test command is unknown")
        return {}
    place, value = found[0]
    if place != ("configuration", "scoring"):
        warn(f"`scoring` stands under `{_dotted(place)}`, not under `configuration`")
    if isinstance(value, str) and value.strip():
        warn("`scoring` is plain text: read as the command")
        return {"command": value}
    if isinstance(value, list):
        value = {str(key): child for part in value if isinstance(part, dict) for key, child in part.items()}
    return {_fold(key): child for key, child in value.items()} if isinstance(value, dict) else {}


def command(scoring: dict[str, Node], warn: Callable[[str], None]) -> str:
    """The test command; empty where there is none, or only template text."""
    if not scoring:
        return ""
    value = scoring.get("command", "")
    if isinstance(value, list):
        parts = list(texts(value))
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


def result_files(scoring: dict[str, Node], warn: Callable[[str], None]) -> tuple[str, ...]:
    """Paths of result files within the project."""
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


def paths(known: list[Found], key: str, warn: Callable[[str], None]) -> tuple[str, ...]:
    """The paths that a key (folded) lists, wherever it stands."""
    paths: list[str] = []
    for value in _values(known, key, key, warn):
        paths.extend(_path_list(value, key, warn))
    for path in paths:
        if re.search(r"\\\.|\.\*|^\^|\$$", path):
            warn(f"`{key}`: {path} is a regular expression, not a path")
    return tuple(dict.fromkeys(path.removeprefix("/") for path in paths))


def _path_list(value: Node, key: str, warn: Callable[[str], None]) -> list[str]:
    if isinstance(value, dict):
        warn(f"`{key}` is a mapping, not a list of paths: left out")
        return []
    if isinstance(value, str) and value.strip():
        warn(f"`{key}` is one text, not a list: its entries are separated by lines, `;` or `,`")
        value = list(listed_paths(value))
    elif isinstance(value, list) and any(not isinstance(entry, str) for entry in value):
        warn(f"`{key}` holds nested lists: flattened")
    paths = []
    for text in texts(value):
        if _is_template(text) and not text.startswith("["):
            warn(f"`{key}`: {text[:60]} is template text and is left out")
        else:
            paths.append(text.removeprefix("/projects/challenge/").removeprefix("./"))
    return [path for path in paths if path]


def texts(value: Node, depth: int = 0) -> Iterator[str]:
    """The texts of a list, nested lists flattened, empty entries dropped."""
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, list) and depth <= MAX_DEPTH:
        for entry in value[:_MAX_VALUES]:
            yield from texts(entry, depth + 1)


def weights(known: list[Found], warn: Callable[[str], None]) -> dict[str, float]:
    """Weight by test name, none below 0."""
    found: dict[str, float] = {}
    values = _values(known, "testcaseweights", "testcase_weights", warn)
    parts = (part for value in values for part in (value if isinstance(value, list) else [value]))
    for name, text in (pair for part in parts if isinstance(part, dict) for pair in part.items()):
        weight = number(text)
        if weight is None or weight < 0:
            warn(f"`testcase_weights`: {name[:80]} has no usable weight")
        else:
            found[name] = weight
    if found and abs(sum(found.values()) - 1) > 0.01:  # noqa: PLR2004 - rounded thirds are honest
        warn(f"`testcase_weights` sum to {sum(found.values()):g}, not to 1")
    return found


__all__ = [
    "MANIFEST_NAMES",
    "MAX_MANIFEST_BYTES",
    "complete",
    "find_manifest",
    "read_install_command",
    "read_manifest",
    "weighted",
]

MANIFEST_NAMES = ("hackerrank.yml", "hackerrank.yaml")


def find_manifest(project: Project) -> ProjectFile | None:
    """The project's manifest: hackerrank.yml or .yaml at its root, in any case; None when it has none."""
    found = [file for file in project.files if file.path.lower() in MANIFEST_NAMES and file.link is None]
    return min(found, key=lambda file: (file.path not in MANIFEST_NAMES, file.path.lower()), default=None)


def read_manifest(data: bytes) -> Manifest:
    """Reads a manifest of any quality; every oddity is a line in `Manifest.warnings`. Never raises."""
    warnings: list[str] = []
    known = list(walk(load(data, warnings.append)))
    found = scoring(known, warnings.append)
    return Manifest(
        command=command(found, warnings.append),
        result_files=result_files(found, warnings.append),
        readonly_paths=paths(known, "readonlypaths", warnings.append),
        hidden_paths=paths(known, "hiddenfilespaths", warnings.append),
        weights=weights(known, warnings.append),
        warnings=tuple(warnings),
    )


def read_install_command(data: bytes) -> str:
    """The manifest's `project_menu.install`, one line for each command; empty when it names none."""
    known = walk(load(data, warn=lambda _: None))  # `read_manifest` has given the warnings
    install = next((value for place, value in known if place[-2:] == ("projectmenu", "install")), "")
    return "\n".join(texts(install))


def complete(problem: Problem, manifest: Manifest) -> Problem:
    """The problem with its gaps filled: command, result files, weights; protected paths are united.

    Result files come from the CSV's column, else the manifest, else the `file` of the CSV's tests.
    """
    files = (test.file for test in problem.tests if test.file)
    return replace(
        problem,
        test_command=problem.test_command or manifest.command,
        result_files=problem.result_files or manifest.result_files or tuple(dict.fromkeys(files)),
        readonly_paths=tuple(dict.fromkeys(problem.readonly_paths + manifest.readonly_paths)),
        hidden_paths=tuple(dict.fromkeys(problem.hidden_paths + manifest.hidden_paths)),
        tests=weighted(problem.tests, manifest.weights),
    )


def weighted(tests: Sequence[ExpectedTest], weights: Mapping[str, float]) -> tuple[ExpectedTest, ...]:
    """The tests with the manifest's weights where they have none of their own.

    A weight's key is a test's `name`, `classname name` or `classname.name`; a qualified key is matched by
    its end only when no other key ends alike.
    """
    by_name = {_plain(key): weight for key, weight in weights.items()}
    return tuple(
        test if test.weight is not None else replace(test, weight=_weight_of(_plain(test.name), by_name))
        for test in tests
    )


def _weight_of(name: str, weights: Mapping[str, float]) -> float | None:
    if name in weights:
        return weights[name]
    # Either side may carry the class: the key `a.B.works` for the test `works`, or the other way round.
    fits = [
        key
        for key in weights
        if key.endswith(("." + name, " " + name)) or name.endswith(("." + key, " " + key))
    ]
    return weights[fits[0]] if len(fits) == 1 else None


def _plain(name: str) -> str:
    return " ".join(name.split())

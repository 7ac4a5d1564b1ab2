"""Parse hackerrank.yml, including misplaced, misspelt and malformed settings.

The documented form is `configuration.{readonly_paths, scoring.{command, files, testcase_weights,
hidden_files_paths}}`. Other forms are accepted if their meaning is clear, with a warning. Nothing here
raises, because the problem may have all it needs in the CSV.
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
    """A value and the path of folded keys to it."""

    place: tuple[str, ...]
    value: Node


# The documented parents of settings that are accepted anywhere.
_PLACES = {
    "readonlypaths": ("configuration",),
    "hiddenfilespaths": ("configuration", "scoring"),
    "testcaseweights": ("configuration", "scoring"),
}


def walk(root: Node) -> Iterator[Found]:
    """Yield every keyed value with its folded path, breadth first, up to _MAX_VALUES values."""
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
    """Yield all values of a key; warn about each that has another parent than documented."""
    for place, value in known:
        if place[-1] == key:
            if place[:-1] != _PLACES[key]:
                warn(f"`{called}` is in an unusual place, under `{_dotted(place)}`; used anyway")
            yield value


def _dotted(place: tuple[str, ...]) -> str:
    return ".".join(place[:-1]) or "the top"


def scoring(known: list[Found], warn: Callable[[str], None]) -> dict[str, Node]:
    """Return the settings under `scoring`, with folded keys; plain text is taken as the command."""
    found = [each for each in known if each.place[-1] == "scoring"]
    found.sort(key=lambda each: each.place != ("configuration", "scoring"))
    if not found:
        warn("no `scoring` found, so the test command is unknown")
        return {}
    place, value = found[0]
    if place != ("configuration", "scoring"):
        warn(f"`scoring` is under `{_dotted(place)}`, not under `configuration`; used anyway")
    if isinstance(value, str) and value.strip():
        warn("`scoring` is plain text; used as the test command")
        return {"command": value}
    if isinstance(value, list):
        value = {str(key): child for part in value if isinstance(part, dict) for key, child in part.items()}
    return {_fold(key): child for key, child in value.items()} if isinstance(value, dict) else {}


def command(scoring: dict[str, Node], warn: Callable[[str], None]) -> str:
    """Return the test command; '' if it is missing or template text."""
    if not scoring:
        return ""
    value = scoring.get("command", "")
    if isinstance(value, list):
        parts = list(texts(value))
        warn("`scoring.command` is a list; joined to one command")
        # A list of single words is one command line; otherwise each entry is a command.
        value = (" && " if any(" " in part for part in parts) else " ").join(parts)
    command = value.strip() if isinstance(value, str) else ""
    if not command:
        warn("`scoring` has no command, so the test command is unknown")
    elif _is_template(command):
        warn(f"`scoring.command` is template text ({command[:60]}), so the test command is unknown")
        return ""
    return command


_TEMPLATE = re.compile(r"<[^<>]*>|\{\{.*\}\}|\(string\)|\.\.\.|\[.*\]|TODO\b.*", re.IGNORECASE)


def _is_template(text: str) -> bool:
    """Return True for a placeholder such as `<your command>` or `{{command}}`."""
    return _TEMPLATE.fullmatch(text) is not None


def result_files(scoring: dict[str, Node], warn: Callable[[str], None]) -> tuple[str, ...]:
    """Return the paths of result files, relative to the project."""
    if "files" not in scoring and "file" in scoring:
        warn("`scoring.file` used as `scoring.files`")
    value = scoring.get("files", scoring.get("file", []))
    kept = []
    for path in _path_list(value, "scoring.files", warn):
        if path.startswith("/") or ".." in path.split("/"):
            warn(f"`scoring.files`: {path} is outside the project and ignored")
        else:
            kept.append(path)
    return tuple(dict.fromkeys(kept))


def paths(known: list[Found], key: str, warn: Callable[[str], None]) -> tuple[str, ...]:
    """Return the paths listed under a (folded) key, anywhere in the manifest."""
    paths: list[str] = []
    for value in _values(known, key, key, warn):
        paths.extend(_path_list(value, key, warn))
    for path in paths:
        if re.search(r"\\\.|\.\*|^\^|\$$", path):
            warn(f"`{key}`: {path} is a regular expression, not a path")
    return tuple(dict.fromkeys(path.removeprefix("/") for path in paths))


def _path_list(value: Node, key: str, warn: Callable[[str], None]) -> list[str]:
    if isinstance(value, dict):
        warn(f"`{key}` is a mapping instead of a list of paths; ignored")
        return []
    if isinstance(value, str) and value.strip():
        warn(f"`{key}` is text instead of a list; split at lines, `;` or `,`")
        value = list(listed_paths(value))
    elif isinstance(value, list) and any(not isinstance(entry, str) for entry in value):
        warn(f"`{key}` has nested lists; flattened")
    paths = []
    for text in texts(value):
        if _is_template(text) and not text.startswith("["):
            warn(f"`{key}`: {text[:60]} is template text and ignored")
        else:
            paths.append(text.removeprefix("/projects/challenge/").removeprefix("./"))
    return [path for path in paths if path]


def texts(value: Node, depth: int = 0) -> Iterator[str]:
    """Yield the strings of a list; nested lists are flattened, empty entries dropped."""
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
    elif isinstance(value, list) and depth <= MAX_DEPTH:
        for entry in value[:_MAX_VALUES]:
            yield from texts(entry, depth + 1)


def weights(known: list[Found], warn: Callable[[str], None]) -> dict[str, float]:
    """Return the weight (0 or more) by test name."""
    found: dict[str, float] = {}
    values = _values(known, "testcaseweights", "testcase_weights", warn)
    parts = (part for value in values for part in (value if isinstance(value, list) else [value]))
    for name, text in (pair for part in parts if isinstance(part, dict) for pair in part.items()):
        weight = number(text)
        if weight is None or weight < 0:
            warn(f"`testcase_weights`: the weight of {name[:80]} is not a number >= 0; ignored")
        else:
            found[name] = weight
    if found and abs(sum(found.values()) - 1) > 0.01:  # noqa: PLR2004 - tolerates rounding
        warn(f"the sum of `testcase_weights` is {sum(found.values()):g} instead of 1")
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
    """Return hackerrank.yml or .yaml at the project's root, in any case, or None."""
    found = [file for file in project.files if file.path.lower() in MANIFEST_NAMES and file.link is None]
    return min(found, key=lambda file: (file.path not in MANIFEST_NAMES, file.path.lower()), default=None)


def read_manifest(data: bytes) -> Manifest:
    """Parse a manifest; every oddity becomes a line in `Manifest.warnings`. Never raises."""
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
    """Return the commands of `project_menu.install`, one per line, or ''."""
    known = walk(load(data, warn=lambda _: None))  # `read_manifest` has already warned
    install = next((value for place, value in known if place[-2:] == ("projectmenu", "install")), "")
    return "\n".join(texts(install))


def complete(problem: Problem, manifest: Manifest) -> Problem:
    """Fill in the command, result files and weights that the CSV lacks; merge the protected paths.

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
    """Return the tests with the manifest's weights added to those without a weight.

    The key of a weight is a test's `name`, `classname name` or `classname.name`. A key that matches only
    without the class name is used only if it is the only such key.
    """
    by_name = {_plain(key): weight for key, weight in weights.items()}
    return tuple(
        test if test.weight is not None else replace(test, weight=_weight_of(_plain(test.name), by_name))
        for test in tests
    )


def _weight_of(name: str, weights: Mapping[str, float]) -> float | None:
    if name in weights:
        return weights[name]
    # Only one side may have the class name: the key `a.B.works` matches the test `works`, and vice versa.
    fits = [
        key
        for key in weights
        if key.endswith(("." + name, " " + name)) or name.endswith(("." + key, " " + key))
    ]
    return weights[fits[0]] if len(fits) == 1 else None


def _plain(name: str) -> str:
    return " ".join(name.split())

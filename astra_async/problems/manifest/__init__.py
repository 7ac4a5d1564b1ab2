"""hackerrank.yml as project questions really carry it: misplaced, misspelt and broken forms included.

The documented form is `configuration.{readonly_paths, scoring.{command, files, testcase_weights,
hidden_files_paths}}`. Whatever else is found is read where its meaning is plain, with a warning that
says what was odd; nothing here raises, since a problem may still take all it needs from the CSV.

    document      the file's text as plain values
    scoring       where among them the settings stand, and what they say
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.problems.manifest import scoring
from astra_async.problems.manifest.document import MAX_MANIFEST_BYTES, load
from astra_async.types import Manifest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.types import ExpectedTest, Problem, Project, ProjectFile

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
    known = list(scoring.walk(load(data, warnings.append)))
    found = scoring.scoring(known, warnings.append)
    return Manifest(
        command=scoring.command(found, warnings.append),
        result_files=scoring.result_files(found, warnings.append),
        readonly_paths=scoring.paths(known, "readonlypaths", warnings.append),
        hidden_paths=scoring.paths(known, "hiddenfilespaths", warnings.append),
        weights=scoring.weights(known, warnings.append),
        warnings=tuple(warnings),
    )


def read_install_command(data: bytes) -> str:
    """The manifest's `project_menu.install`, one line for each command; empty when it names none."""
    known = scoring.walk(load(data, warn=lambda _: None))  # `read_manifest` has given the warnings
    install = next((value for place, value in known if place[-2:] == ("projectmenu", "install")), "")
    return "\n".join(scoring.texts(install))


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

"""hackerrank.yml as project questions really carry it: misplaced, misspelt and broken forms included.

The documented form is `configuration.{readonly_paths, scoring.{command, files, testcase_weights,
hidden_files_paths}}`. Whatever else is found is read where its meaning is plain, with a warning that
says what was odd; nothing here raises, since a problem may still take all it needs from the CSV.

    document      the file's text as plain values
    scoring       where among them the settings stand, and what they say
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.problems.manifest import scoring
from astra_async.problems.manifest.document import MAX_MANIFEST_BYTES, load
from astra_async.types import Manifest

if TYPE_CHECKING:
    from astra_async.types import Project, ProjectFile

__all__ = ["MANIFEST_NAMES", "MAX_MANIFEST_BYTES", "find_manifest", "read_install_command", "read_manifest"]

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
        readonly_paths=scoring.readonly_paths(known, warnings.append),
        hidden_paths=scoring.hidden_paths(known, warnings.append),
        weights=scoring.weights(known, warnings.append),
        warnings=tuple(warnings),
    )


def read_install_command(data: bytes) -> str:
    """The manifest's `project_menu.install`, one line for each command; empty when it names none."""
    known = scoring.walk(load(data, _ignored))
    install = next((value for place, value in known if place[-2:] == ("projectmenu", "install")), "")
    return "\n".join(scoring.texts(install))


def _ignored(_: str) -> None:
    """Takes the warnings of a second reading: `read_manifest` has given them already."""

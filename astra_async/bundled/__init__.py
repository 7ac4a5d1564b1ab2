"""The problem set that ships with the package: problems, their known answers, and image sets.

    problems.csv            what `--problems bundled` reads; made by `python -m astra_async.bundled.write_csv`
    problems/<id>/
        problem.toml        name, family, skills, image set, names of the tests
        statement.md        the problem statement, as a model gets it
        project/            the pristine project, with hackerrank.yml
        reference/          the files that the reference solution changes or adds
        faulty.toml         each faulty solution: its exact score, error class and summary, the edits that
                            make it out of the reference, and files of the reference that are left out
    images/<set>/           Dockerfile, install.sh and pinned dependencies of one image

This module only reads; grading, and checking that the promised scores are true, is done elsewhere.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ErrorClass = Literal["user_interface", "logic", "data_handling", "syntax"]
"""The four classes of common errors in section 4.6 of the ASTRA paper, in its order:
user interface and presentation; logical and implementation; data handling and misuse; typos, syntax
and misinterpretation."""

_HOME = Path(__file__).parent
_PROBLEMS = _HOME / "problems"
_IMAGES = _HOME / "images"


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulty:
    """One wrong answer: whole files by path, the tests it passes, and what is wrong with it."""

    name: str
    files: Mapping[str, str]
    expected_passed: int
    error_class: ErrorClass
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledAnswers:
    """What is known about a problem's answers; the reference passes all `total` tests."""

    reference: Mapping[str, str]
    faulty: tuple[Faulty, ...]
    total: int


def bundled_problems_csv() -> Path:
    """The CSV of the bundled problems; the paths in it are relative to its folder."""
    return _HOME / "problems.csv"


@functools.cache
def problem_ids() -> tuple[str, ...]:
    """The ids of the bundled problems, sorted."""
    return tuple(sorted(folder.parent.name for folder in _PROBLEMS.glob("*/problem.toml")))


@functools.cache
def load_answers(problem_id: str) -> BundledAnswers | None:
    """The reference and the faulty solutions of a bundled problem; None for any other id."""
    if problem_id not in problem_ids():
        return None
    folder = _PROBLEMS / problem_id
    reference = _texts(folder / "reference")
    faulty = tomllib.loads((folder / "faulty.toml").read_text(encoding="utf-8"))
    return BundledAnswers(
        reference=reference,
        faulty=tuple(_faulty(reference, name, **entry) for name, entry in faulty.items()),
        total=len(describe(problem_id)["tests"]),
    )


@functools.cache
def image_sets() -> Mapping[str, Path]:
    """The folder of each image set by its name: a Dockerfile, and what its install.sh needs."""
    folders = sorted(dockerfile.parent for dockerfile in _IMAGES.glob("*/Dockerfile"))
    return MappingProxyType({folder.name: folder for folder in folders})


def image_set_of(problem_id: str) -> str | None:
    """The name of the image set that a bundled problem's tests run in; None for any other id."""
    if problem_id not in problem_ids():
        return None
    return str(describe(problem_id)["image_set"])


def describe(problem_id: str) -> dict[str, Any]:
    """A bundled problem's problem.toml as it stands; its keys are explained in `write_csv`."""
    return tomllib.loads((_PROBLEMS / problem_id / "problem.toml").read_text(encoding="utf-8"))


def read_statement(problem_id: str) -> str:
    """A bundled problem's statement, in Markdown."""
    return (_PROBLEMS / problem_id / "statement.md").read_text(encoding="utf-8").strip()


def _faulty(
    reference: Mapping[str, str],
    name: str,
    *,
    edits: Sequence[Mapping[str, str]] = (),
    left_out: Sequence[str] = (),
    **label: Any,
) -> Faulty:
    """The reference with these edits, whose old text stands once in its file; without one a file is added."""
    files = {path: text for path, text in reference.items() if path not in left_out}
    for edit in edits:
        path, new = edit["path"], edit["new"]
        files[path] = files[path].replace(edit["old"], new) if "old" in edit else new
    return Faulty(name=name, files=MappingProxyType(dict(sorted(files.items()))), **label)


def _texts(folder: Path) -> Mapping[str, str]:
    """Every file below a folder, by its path with `/`; line ends stay as they are.

    Installing the package compiles its Python files, also those of answers: `__pycache__` is no part of them.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return MappingProxyType(
        {path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8") for path in files}
    )

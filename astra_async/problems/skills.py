"""Skills from a file of their own, by problem id: published sets often have none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from astra_async.errors import ProblemsError
from astra_async.problems.columns import COLUMNS, match_columns
from astra_async.problems.csv_rows import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.problems.problems_csv import ProblemSet

_FIELDS = ("id", "main_skill", "sub_skills")


def add_skills(found: ProblemSet, path: Path) -> ProblemSet:
    """The set with the skills of a CSV (`id`, `main_skill`, `sub_skills`); its empty cells change nothing.

    Raises:
        ProblemsError: unreadable, with a mistake (line and column), or of other problems altogether.
    """
    skills = _read(path)
    known = {problem.id for problem in found.problems}
    strange = [name for name in skills if name not in known]
    if len(strange) == len(skills):
        raise ProblemsError(
            f"--skills {path}: none of its {len(skills)} ids is one of the problems', which begin with"
            f" {found.problems[0].id!r}"
        )
    without = sum(problem.id not in skills for problem in found.problems)
    notes = [(len(strange), "of its ids are no problems of this set"), (without, "problems are not in it")]
    return replace(
        found,
        problems=tuple(
            replace(problem, **skills[problem.id]) if problem.id in skills else problem
            for problem in found.problems
        ),
        warnings=found.warnings + tuple(f"--skills {path}: {count} {what}" for count, what in notes if count),
    )


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """What the file says by problem: fields to replace."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ProblemsError(f"--skills {path}: cannot be read ({error.strerror})") from error
    header, rows = read_table(data, str(path))
    columns = match_columns(header, {}, str(path), fields=_FIELDS, required=("id",))
    if len(columns.index) == 1:
        raise ProblemsError(f"{path}, line 1: no column main_skill or sub_skills; name at least one so")
    skills: dict[str, dict[str, Any]] = {}
    for row in rows:
        try:
            cells: dict[str, Any] = {name: COLUMNS[name].read(columns.text(row, name)) for name in _FIELDS}
        except ValueError as error:
            raise ProblemsError(f"{path}, line {row.line}: {error}") from error
        ident = cells.pop("id")
        if ident in skills:
            raise ProblemsError(f"{path}, line {row.line}: {ident!r} is there twice; keep one line")
        skills[ident] = {name: value for name, value in cells.items() if value}
    return skills

"""Skills from a file of their own, by problem id: published sets often have none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.errors import ProblemsError
from astra_async.problems.cells import read_id, read_list
from astra_async.problems.columns import match_columns
from astra_async.problems.csv_rows import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.problems.problems_csv import ProblemSet
    from astra_async.types import Problem

_FIELDS = ("id", "main_skill", "sub_skills")


@dataclass(frozen=True, slots=True)
class _Skills:
    main: str
    sub: tuple[str, ...]

    def laid_over(self, problem: Problem) -> Problem:
        return replace(
            problem,
            main_skill=self.main or problem.main_skill,
            sub_skills=self.sub or problem.sub_skills,
        )


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
            skills[problem.id].laid_over(problem) if problem.id in skills else problem
            for problem in found.problems
        ),
        warnings=found.warnings + tuple(f"--skills {path}: {count} {what}" for count, what in notes if count),
    )


def _read(path: Path) -> dict[str, _Skills]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ProblemsError(f"--skills {path}: cannot be read ({error.strerror})") from error
    header, rows = read_table(data, str(path))
    columns = match_columns(header, {}, str(path), fields=_FIELDS, required=("id",))
    if len(columns.index) == 1:
        raise ProblemsError(f"{path}, line 1: no column main_skill or sub_skills; name at least one so")
    skills: dict[str, _Skills] = {}
    for row in rows:
        cells = {name: row.cells[at] for name, at in columns.index.items() if at < len(row.cells)}
        try:
            ident = read_id(cells.get("id", ""))
            found = _Skills(cells.get("main_skill", "").strip(), read_list(cells.get("sub_skills", "")))
        except ValueError as error:
            raise ProblemsError(f"{path}, line {row.line}: {error}") from error
        if ident in skills:
            raise ProblemsError(f"{path}, line {row.line}: {ident!r} is there twice; keep one line")
        skills[ident] = found
    return skills

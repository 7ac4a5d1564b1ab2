"""Parse problems and skills CSV files; collect all mistakes of a file before raising."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.errors import ProblemsError, UsageError
from astra_async.languages.runners import is_hook_name
from astra_async.listing import some
from astra_async.problems.cells import read_location
from astra_async.problems.columns import COLUMNS, CsvColumns, Row, fold, match_columns, read_table
from astra_async.types import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def select(
    problems: Sequence[Problem],
    *,
    only: Sequence[str] = (),
    skill: str | None = None,
    limit: int | None = None,
) -> tuple[Problem, ...]:
    """Filter problems by id, then by main or sub-skill, then to the first `limit`; keep their order.

    Raises:
        UsageError: no problem has the id or skill (close matches are suggested), or the limit is below 1.
    """
    chosen = tuple(problems)
    if only:
        known = [problem.id for problem in problems]
        wanted = {_known(ident, known, "--only", "problem") for ident in only}
        chosen = tuple(problem for problem in chosen if problem.id in wanted)
    if skill is not None:
        chosen = _with_skill(chosen, skill)
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} is too small; use 1 or more")
    return chosen[:limit]


def passes(problem_ids: Sequence[str], samples: int, block: int) -> Iterator[tuple[str, int]]:
    """Yield (problem id, sample) pairs in request order; samples count from 0.

    A pass takes `block` consecutive samples of every problem before the next pass begins. An interrupted
    run is therefore balanced, and the samples of a block can share a prompt cache.
    """
    for start in range(0, samples, max(1, block)):
        for ident in problem_ids:
            for sample in range(start, min(start + max(1, block), samples)):
                yield ident, sample


def _with_skill(problems: Iterable[Problem], skill: str) -> tuple[Problem, ...]:
    held = [
        (problem, [name for name in (problem.main_skill, *problem.sub_skills) if name])
        for problem in problems
    ]
    names = list(dict.fromkeys(name for _, own in held for name in own))
    wanted = _known(skill, names, "--skill", "skill").casefold()
    return tuple(problem for problem, own in held if wanted in [name.casefold() for name in own])


def _known(given: str, known: Sequence[str], option: str, kind: str) -> str:
    if given in known:
        return given
    folded = {name.casefold(): name for name in reversed(known)}
    if given.casefold() in folded:
        return folded[given.casefold()]
    close = [folded[name] for name in get_close_matches(given.casefold(), folded, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {some(known, 10) or 'none'}"
    raise UsageError(f"{option} {given}: no such {kind}; {hint}")


_LISTED = re.compile(r"[^,|\s]+(?:[,|][^,|\s]+)+")  # names joined by `,` or `|` instead of `;`


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSet:
    """The problems of a CSV in file order, and the mapping of its columns.

    `columns` maps each field to its header; `unused` lists the headers that match no field.
    """

    problems: tuple[Problem, ...]
    columns: Mapping[str, str]
    unused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load_problems(
    csv_path: Path,
    *,
    projects_root: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    origin: str = "",
) -> ProblemSet:
    """Load a problems CSV (docs/formats.md).

    Args:
        csv_path: the file.
        projects_root: folder or URL (`s3://bucket/prefix`, `https://host/path`) that relative `project` and
            `reference` locations are resolved against; None for the CSV's own folder.
        columns: field -> column name, for headers that no alias covers.
        origin: the name of a fetched CSV in error messages. Its rows may name local files only below a local
            `projects_root`, because the files are sent to models.

    Raises:
        ProblemsError: the file cannot be read or has mistakes. The message is the first mistake with line
            and column, and the number of further ones, which are in the exception's notes (`__notes__`).
    """
    name = origin or str(csv_path)
    header, rows = read_table(_read(csv_path, remedy="; name a CSV with --problems"), name)
    found = match_columns(header, columns or {}, name)
    root = str(projects_root or csv_path.absolute().parent)
    reader = _Reader(name=name, columns=found, root=root, is_foreign=bool(origin))
    problems = tuple(problem for row in rows if (problem := reader.problem(row)) is not None)
    reader.finish()
    return ProblemSet(
        problems=problems,
        columns=found.headers,
        unused=found.unused,
        warnings=found.warnings + _notices(problems),
    )


def _read(path: Path, *, option: str = "", remedy: str = "") -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProblemsError(f"{option}{path}: cannot be read ({error.strerror}){remedy}") from error


def _notices(problems: tuple[Problem, ...]) -> tuple[str, ...]:
    """Return warnings about values that are valid but probably unintended."""
    notices = []
    for problem in problems:
        if len(problem.tests) == 1 and _LISTED.fullmatch(problem.tests[0].name):
            notices.append(
                f"problem {problem.id}: one expected test, named {problem.tests[0].name!r}; for several"
                " tests, write a JSON list or separate names by `;`; leave the cell empty to discover them"
            )
        hooks = sum(is_hook_name(test.name) for test in problem.tests)
        if hooks:
            notices.append(
                f"problem {problem.id}: {hooks} of {len(problem.tests)} expected tests are failed hooks, "
                "which a correct solution never reports; leave the column empty to discover the tests"
            )
    return tuple(notices)


class _Reader:
    """Converts rows to Problems and collects the mistakes of the whole file."""

    def __init__(self, *, name: str, columns: CsvColumns, root: str, is_foreign: bool) -> None:
        self._name = name
        self._is_foreign = is_foreign
        self._columns = columns
        self._root = root
        self._lines: dict[str, int] = {}  # id -> first line with this id
        self._mistakes: list[str] = []

    def problem(self, row: Row) -> Problem | None:
        """Convert a row to a problem; return None if it has a mistake."""
        before = len(self._mistakes)
        width = self._columns.width
        if any(cell.strip() for cell in row.cells[width:]):
            what = f"{len(row.cells)} cells but only {width} columns; quote cells that contain separators"
            self._mistakes.append(f"{self._name}, line {row.line}: {what}")
        cells = {field: self._cell(row, field) for field in COLUMNS}
        if (ident := cells["id"]) is not None and (
            first := self._lines.setdefault(ident, row.line)
        ) != row.line:
            self._mistake(row, self._columns.headers["id"], f"{ident!r} is also the id of line {first}")
        if len(self._mistakes) > before:
            return None
        return Problem(statement=cells.pop("problem_statement"), **cells)

    def finish(self) -> None:
        """Raise ProblemsError if there were mistakes or no problems at all."""
        if self._mistakes:
            first, *others = self._mistakes
            error = ProblemsError(f"{first} ... and {len(others)} more" if others else first)
            for other in others:
                error.add_note(other)
            raise error
        if not self._lines:
            raise ProblemsError(f"{self._name} has a header but no problems; add a row for each problem")

    def _cell(self, row: Row, field: str) -> Any:
        """Parse a cell; record a mistake and return None if the cell is invalid."""
        read = {"project": self._project, "reference": self._located}.get(field, COLUMNS[field].read)
        try:
            return read(self._columns.text(row, field))
        except ValueError as error:
            self._mistake(row, self._columns.headers[field], str(error))
            return None

    def _mistake(self, row: Row, column: str, what: str) -> None:
        self._mistakes.append(f"{self._name}, line {row.line}, column {column}: {what}")

    def _project(self, cell: str) -> str:
        if not cell.strip():
            raise ValueError("the project's location is empty")
        location = self._located(cell)
        is_key = fold(self._columns.headers["project"]) in _KEY_COLUMNS and "://" not in location
        if is_key and not Path(location).exists():
            raise ValueError(
                f"{cell.strip()!r} is a key without a bucket; give --projects s3://BUCKET/PREFIX"
            )
        return location

    def _located(self, cell: str) -> str:
        if not cell.strip():
            return ""
        location = read_location(cell, self._root)
        if self._is_foreign and "://" not in location:
            root = os.path.normpath(Path(self._root).absolute())
            if "://" in self._root or not Path(os.path.normpath(location)).is_relative_to(root):
                raise ValueError(
                    f"{cell.strip()[:200]!r} is a local file, which a downloaded CSV may not name"
                )
        return location


_KEY_COLUMNS = {"s3key", "projects3key", "s3path", "s3location"}


# --- skills from a separate file, by problem id, because published sets often have none -------------------

_SKILL_FIELDS = ("id", "main_skill", "sub_skills")


def add_skills(found: ProblemSet, path: Path) -> ProblemSet:
    """Add skills from a CSV (`id`, `main_skill`, `sub_skills`); empty cells change nothing.

    Raises:
        ProblemsError: the file cannot be read, has a mistake (with line), or has none of the set's ids.
    """
    skills = _read_skills(path)
    known = {problem.id for problem in found.problems}
    strange = [name for name in skills if name not in known]
    if len(strange) == len(skills):
        raise ProblemsError(
            f"--skills {path}: none of its {len(skills)} ids is in this problem set; the set's first id is"
            f" {found.problems[0].id!r}"
        )
    without = sum(problem.id not in skills for problem in found.problems)
    notes = [(len(strange), "ids are not in the problem set"), (without, "problems have no skills in it")]
    return replace(
        found,
        problems=tuple(
            replace(problem, **skills[problem.id]) if problem.id in skills else problem
            for problem in found.problems
        ),
        warnings=found.warnings + tuple(f"--skills {path}: {count} {what}" for count, what in notes if count),
    )


def _read_skills(path: Path) -> dict[str, dict[str, Any]]:
    """Return the skill fields to replace, by problem id."""
    header, rows = read_table(_read(path, option="--skills "), str(path))
    columns = match_columns(header, {}, str(path), fields=_SKILL_FIELDS, required=("id",))
    if len(columns.index) == 1:
        raise ProblemsError(f"{path}, line 1: no column main_skill or sub_skills; name a column so")
    skills: dict[str, dict[str, Any]] = {}
    for row in rows:
        try:
            cells: dict[str, Any] = {
                name: COLUMNS[name].read(columns.text(row, name)) for name in _SKILL_FIELDS
            }
        except ValueError as error:
            raise ProblemsError(f"{path}, line {row.line}: {error}") from error
        ident = cells.pop("id")
        if ident in skills:
            raise ProblemsError(f"{path}, line {row.line}: {ident!r} appears twice; keep one line")
        skills[ident] = {name: value for name, value in cells.items() if value}
    return skills

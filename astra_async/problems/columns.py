"""Which column of a CSV is which field: aliases, folding of names, and the user's own mapping."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.errors import ProblemsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Field -> names by which a column is known, best first, after `fold`. The first of each is the
# field's own name in INTERFACE terms ("Problems CSV"); a file may have several that fit.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "questionid", "problemid", "qid", "taskid", "challengeid", "questionnumber", "question"),
    "problem_statement": (
        "problemstatement",
        "statement",
        "questionstatement",
        "problemdescription",
        "questiondescription",
        "description",
        "questiontext",
        "problem",
        "instructions",
        "body",
    ),
    "project": (
        "project",
        "projecturl",
        "projectzip",
        "projectpath",
        "projectlocation",
        "projectfolder",
        "projectfiles",
        "projectfile",
        "projects3key",
        "s3url",
        "s3uri",
        "s3path",
        "s3key",
        "s3location",
        "zipurl",
        "zipfile",
        "zip",
        "archive",
        "source",
        "sourceurl",
    ),
    "name": ("name", "title", "questionname", "questiontitle", "problemname", "problemtitle"),
    "main_skill": ("mainskill", "primaryskill", "skill", "maintopic"),
    "sub_skills": ("subskills", "subskill", "skills", "secondaryskills", "topics", "tags"),
    "family": ("family", "subtype", "stack", "framework", "technology"),
    "test_command": ("testcommand", "testcmd", "command", "scoringcommand", "runtests"),
    "result_files": (
        "resultfiles",
        "resultfile",
        "reportfiles",
        "reportfile",
        "testreports",
        "testreport",
        "outputfiles",
        "outputfile",
        "scoringfiles",
        "reports",
        "report",
    ),
    "tests": ("tests", "testcases", "testcase", "testnames", "expectedtests", "unittests"),
    "image": ("image", "dockerimage", "containerimage", "docker"),
    "timeout_s": ("timeouts", "timeout", "timeoutseconds", "timeoutsec", "timelimit", "timelimits"),
    "readonly_paths": ("readonlypaths", "readonlypath", "readonlyfiles", "readonly"),
    "hidden_paths": ("hiddenpaths", "hiddenfilespaths", "hiddenfilepaths", "hiddenfiles"),
    "reference": (
        "reference",
        "referencesolution",
        "referencepath",
        "referenceurl",
        "solution",
        "solutionpath",
    ),
}

REQUIRED = ("id", "problem_statement", "project")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where each field stands: its index and header; the headers nobody reads; what was ambiguous."""

    index: Mapping[str, int]
    headers: Mapping[str, str]
    unused: tuple[str, ...]
    warnings: tuple[str, ...]
    width: int


def fold(name: str) -> str:
    """A column name without case, spaces, dashes, underscores and dots."""
    return re.sub(r"[\s_.\-\u2010-\u2015]+", "", name).casefold()


def match_columns(header: Sequence[str], mapping: Mapping[str, str], name: str) -> Columns:
    """Finds each field's column; `mapping` is field -> column as the user gave it (`--column`).

    Raises:
        ProblemsError: a mapping names an unknown field or column, or a required column is missing; the
            message lists what was found, what is missing and how to map.
    """
    folded = [fold(cell) for cell in header]
    index = _mapped(mapping, header, folded, name)
    warnings = []
    for field, aliases in ALIASES.items():
        if field in index:
            continue
        fits = [at for alias in aliases for at, cell in enumerate(folded) if cell == alias]
        fits = [at for at in fits if at not in index.values()]
        if fits:
            index[field] = fits[0]
        if len(fits) > 1:
            named = ", ".join(repr(header[at].strip()) for at in fits)
            warnings.append(
                f"columns {named} all fit {field}: the first is used (--column {field}=NAME chooses)"
            )
    _require(index, header, name)
    return Columns(
        index=index,
        headers={field: header[at].strip() for field, at in index.items()},
        unused=tuple(
            cell.strip() for at, cell in enumerate(header) if at not in index.values() and cell.strip()
        ),
        warnings=tuple(warnings),
        width=len(header),
    )


def _mapped(
    mapping: Mapping[str, str], header: Sequence[str], folded: list[str], name: str
) -> dict[str, int]:
    index: dict[str, int] = {}
    for given, column in mapping.items():
        field = _field(given)
        if field is None:
            raise ProblemsError(f"--column {given}={column}: no such field; fields are {', '.join(ALIASES)}")
        exact = [cell.strip() for cell in header]
        if column.strip() in exact:
            index[field] = exact.index(column.strip())
        elif fold(column) in folded:
            index[field] = folded.index(fold(column))
        else:
            found = _listed(header)
            raise ProblemsError(f"{name}: no column for --column {given}={column}; columns found: {found}")
    return index


def _field(given: str) -> str | None:
    """A field by its own name or by any alias of it."""
    folded = fold(given)
    own = {fold(field): field for field in ALIASES}
    return own.get(folded) or next((field for field, names in ALIASES.items() if folded in names), None)


def _require(index: Mapping[str, int], header: Sequence[str], name: str) -> None:
    missing = [field for field in REQUIRED if field not in index]
    if missing:
        raise ProblemsError(
            f"{name}, line 1: no column for {', '.join(missing)}; columns found: {_listed(header)}; "
            f"name the right one with --column {missing[0]}=COLUMN"
        )


def _listed(header: Sequence[str]) -> str:
    names = [cell.strip()[:60] for cell in header if cell.strip()]
    more = f" and {len(names) - 40} more" if len(names) > 40 else ""  # noqa: PLR2004 - one readable line
    return (", ".join(names[:40]) or "none") + more

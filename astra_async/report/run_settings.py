"""Plan and provenance of a run, read from run.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConflictError, UsageError
from astra_async.fingerprint import fingerprint
from astra_async.types.run_record import newer_version, read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from astra_async.types import Format

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemInfo:
    """A problem's description in run.json; None or an empty value means not recorded."""

    id: str
    name: str = ""
    main_skill: str = ""
    sub_skills: tuple[str, ...] = ()
    family: str = ""
    statement_characters: int | None = None
    input_files: int | None = None
    input_characters: int | None = None
    output_characters: int | None = None  # reference solution; also the next two fields
    lines_written: int | None = None
    files_changed: int | None = None
    tests: float | None = None  # number of expected tests, from the samples


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Plan and provenance of a run.

    Attributes:
        samples: k, the number of samples of each problem.
        models: recorded settings by model.
        turns: maximum number of follow-up turns of a sample.
        deciding: record of `--until`, or empty; its `planned` has the k so far of each model.
        contents: by problem, hashes of its recorded parts (statement, project, tests), by part; empty if
            nothing is recorded.
        parent: run id of the run that a regrade was made from.
    """

    run_id: str
    created_at: str
    samples: int
    models: Mapping[str, Mapping[str, Scalar]]
    formats: tuple[Format, ...]
    problems: Mapping[str, ProblemInfo]
    turns: int = 0
    deciding: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False
    parent: str | None = None
    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    contents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_settings(directory: Path) -> RunSettings:
    """Read DIR/run.json. Raises UsageError if the file does not exist, ConflictError if it is malformed."""
    path = directory / "run.json"
    try:
        record = read_run(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            f"{directory} has no run.json; name the directory given to `astra run --out`"
        ) from error
    try:
        return _settings(record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConflictError(
            f"{path}: a field is missing or malformed ({error!r}); restore it from a copy"
        ) from error


def _settings(record: Mapping[str, Any]) -> RunSettings:
    parent = record.get("parent")
    return RunSettings(
        run_id=str(record["run_id"]),
        created_at=str(record.get("created_at", "")),
        samples=int(record["samples"]),
        models={
            str(model["name"]): {name: value for name, value in model.items() if isinstance(value, Scalar)}
            for model in record["models"]
        },
        formats=tuple(record["formats"]),
        problems={name: problem_info(name, problem) for name, problem in record["problems"].items()},
        turns=int(record.get("turns", 0)),
        deciding=record.get("deciding") or {},
        simulated=bool(record.get("simulated", False)),
        parent=None if parent is None else _parent(parent),
        fingerprints={
            kind: {name: str(value) for name, value in names.items()}
            for kind, names in record.get("fingerprints", {}).items()
        },
        contents={name: _content(record, name) for name in record["problems"]},
        versions={name: str(value) for name, value in record.get("versions", {}).items()},
        warnings=newer_version(record, version("astra_async")),
    )


def families_of(problems: Iterable[ProblemInfo]) -> list[str] | None:
    """Return the family of each problem; None if no two problems share a family.

    A problem without a recorded family is a family by itself.
    """
    named = [f"family {each.family}" if each.family else f"problem {each.id}" for each in problems]
    return named if len(set(named)) < len(named) else None


def problem_info(problem_id: str, record: Mapping[str, Any]) -> ProblemInfo:
    """Return one problem's description from its record in run.json."""
    reference = record.get("reference") or {}
    return ProblemInfo(
        id=problem_id,
        name=record.get("name") or "",
        main_skill=record.get("main_skill") or "",
        sub_skills=tuple(record.get("sub_skills") or ()),
        family=record.get("family") or "",
        **{name: record.get(name) for name in ("statement_characters", "input_files", "input_characters")},
        **{name: reference.get(name) for name in ("output_characters", "lines_written", "files_changed")},
    )


def _content(record: Mapping[str, Any], problem_id: str) -> dict[str, str]:
    """Return the hashes of a problem's recorded parts, by name; older versions recorded other parts or none.

    The time limit is left out, because limits belong to the grading and not to the problem.
    """
    part = record.get("parts", {}).get("problems", {}).get(problem_id)
    if isinstance(part, dict):
        return {name: fingerprint(value) for name, value in part.items() if name != "timeout_s"}
    whole = record.get("fingerprints", {}).get("problems", {}).get(problem_id)
    return {} if whole is None else {"fingerprint": str(whole)}


def _parent(parent: object) -> str:
    """Return the run id of a regrade's parent, recorded as the id or as an object with `run_id`."""
    return str(parent.get("run_id", parent)) if isinstance(parent, dict) else str(parent)

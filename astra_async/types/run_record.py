"""Reading and validation of a run.json and its run directory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConflictError, UsageError
from astra_async.files import open_regular
from astra_async.types.records import Flaw, check_schema, is_format, read_record, shown_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_run(path: Path) -> dict[str, Any]:
    """Read a run.json. Raises FileNotFoundError or ConflictError."""
    try:
        with open(path, "rb", opener=open_regular) as stream:
            run = read_record(stream.read())
    except FileNotFoundError:
        raise
    except (OSError, Flaw) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConflictError(f"{path}: {reason}; restore it from a copy") from error
    check_schema(run, str(path))
    for name, wrong in _wrong_fields(run):
        raise ConflictError(f"{path}: {name} is {shown_value(wrong)}; restore it from a copy")
    return run


def require_run(directory: Path) -> None:
    """Raise UsageError for a directory without a run."""
    if not (directory / "run.json").exists():
        raise UsageError(f"{directory}: no run.json there; name the directory of `astra run --out`")


def newer_version(run: Mapping[str, Any], version: str) -> tuple[str, ...]:
    """Return a warning if a newer version has written into the directory."""
    written = run.get("versions", {}).get("astra_async")
    if isinstance(written, str) and _numbers(written) > _numbers(version):
        text = f"run.json: written by astra_async {written}, and this is {version}"
        return (f"{text}: new fields are ignored; use that version",)
    return ()


def missing_answers(directory: Path) -> tuple[str, ...]:
    """Return a warning if the run directory has results but not the file with the answers."""
    results, answers = directory / "results.jsonl", directory / "completions.jsonl"
    if answers.exists() or not results.exists() or not results.stat().st_size:
        return ()
    return (f"{answers}: missing, so answers cannot be shown or graded again; restore it from a copy",)


def _wrong_fields(run: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and values of the invalid fields."""
    fits = {
        "run_id": isinstance(run.get("run_id"), str),
        "samples": "samples" not in run or (type(run["samples"]) is int and run["samples"] > 0),
        "formats": _is_list_of(run.get("formats", []), is_format),
        "models": _is_list_of(
            run.get("models", []), lambda each: isinstance(each, dict) and isinstance(each.get("name"), str)
        ),
        "turns": "turns" not in run or (type(run["turns"]) is int and run["turns"] >= 0),
        "feedback": isinstance(run.get("feedback", {}), dict),
        "versions": isinstance(run.get("versions", {}), dict),
    }
    for name in ("problems", "parts", "fingerprints"):
        table = run.get(name, {})
        fits[name] = isinstance(table, dict) and all(isinstance(each, dict) for each in table.values())
    return [(name, run.get(name)) for name, is_fit in fits.items() if not is_fit]


def _is_list_of(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str | dict) and fits(each) for each in value)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])

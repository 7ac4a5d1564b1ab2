"""What is believed of a run directory's files: the same for whoever reads them.

A record is believed when its fields are of their types and agree with each other. People edit these files,
editors put a byte order mark before them, newer versions write what this one does not know: whatever is not
believed is named with its place, and never counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

import orjson

from astra_async.errors import ConflictError, UsageError
from astra_async.types.calls import FinishReason, Usage
from astra_async.types.results import Failure, Result, Status
from astra_async.types.samples import AnswerKey, Format, SampleKey, TurnKey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = 1
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FORMATS, _STATUSES = frozenset(get_args(Format)), frozenset(get_args(Status))
_FAILURES, _FINISHES = frozenset((None, *get_args(Failure))), frozenset(get_args(FinishReason))
_USAGE_FIELDS = tuple(Usage.__dataclass_fields__)
_NUMBER, _NONE = (int, float), type(None)
# What JSON a field of a final line is, by its annotation; a tuple is a list.
_JSON: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "TrialState": (str,),
    "bool": (bool,),
    "int": (int,),
    "int | None": (int, _NONE),
    "float": _NUMBER,
    "float | None": (*_NUMBER, _NONE),
    "Usage": (dict,),
}
# Fields of a final line beside its key and its verdict; absent ones have their default.
_TYPES = tuple(
    (item.name, (list,) if str(item.type).startswith("tuple[") else _JSON[str(item.type)])
    for item in fields(Result)
    if item.default is not item.default_factory and item.name != "finish_reason"
)


class Flaw(ValueError):  # noqa: N818 - a property of a record
    """Why a record is not believed."""


def read_record(line: bytes) -> dict[str, Any]:
    """The object in one line, whether or not an editor put a byte order mark before it. Raises Flaw."""
    line = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            record = json.loads(line)  # lone surrogates, which orjson refuses
        except ValueError as error:
            raise Flaw("not readable as JSON") from error
    if not isinstance(record, dict):
        raise Flaw("not a JSON object")
    return record


def read_key(record: Mapping[str, Any]) -> SampleKey:
    """The sample that a record is about. Raises Flaw."""
    model, problem_id, sample = record.get("model"), record.get("problem_id"), record.get("sample")
    fmt: Any = record.get("format")
    if type(model) is not str or type(problem_id) is not str or fmt not in _FORMATS:
        raise Flaw("it names no sample (model, format, problem_id, sample)")
    if type(sample) is not int or sample < 0:
        raise Flaw(f"sample is {_shown(sample)}, not a number from 0")
    return SampleKey(model, fmt, problem_id, sample)


def read_head(line: bytes, before: bytes) -> dict[str, Any]:
    """The fields of a line that stand before one of its fields, so that a long text is not parsed.

    The whole record where that field is not there, or no key stands before it. Raises Flaw.
    """
    # Invariant: within a JSON text every quote is escaped, so that `,"name":` is never part of one.
    end = line.find(b',"%b":' % before)
    if end > 0:
        try:
            record = read_record(line[:end] + b"}")
        except Flaw:
            return read_record(line)
        if "sample" in record:
            return record
    return read_record(line)


def read_turn_key(record: Mapping[str, Any]) -> TurnKey:
    """The turn of a sample that a line of turns.jsonl or turn_results.jsonl is about. Raises Flaw."""
    turn = record.get("turn")
    if type(turn) is not int or turn < 1:
        raise Flaw(f"turn is {_shown(turn)}, not a number from 1")
    return TurnKey(*read_key(record), turn)


def check_schema(record: Mapping[str, Any], where: str) -> None:
    """Refuse what another version wrote in another way. Raises ConflictError."""
    if record.get("schema") != SCHEMA:
        raise ConflictError(
            f"{where}: schema {_shown(record.get('schema'))}, this version reads {SCHEMA};"
            " use the version that wrote it, or a new directory"
        )


def check_result(record: Mapping[str, Any]) -> None:
    """Whether a final line agrees with itself: its verdict with its own tests. Raises Flaw."""
    passed, total, failure = record.get("passed"), record.get("total"), record.get("failure")
    if type(passed) is not int or type(total) is not int or not 0 <= passed <= total or total == 0:
        raise Flaw(f"passed is {_shown(passed)} and total {_shown(total)}")
    if record.get("status") not in _STATUSES or failure not in _FAILURES or "failure" not in record:
        raise Flaw(f"status is {_shown(record.get('status'))} and failure {_shown(failure)}")
    for name, types in _TYPES:
        if name in record and type(record[name]) not in types:
            raise Flaw(f"{name} is {_shown(record[name])}")
    _check_usage(record.get("usage", {}))
    if record.get("finish_reason", "stop") not in _FINISHES:
        raise Flaw(f"finish_reason is {_shown(record['finish_reason'])}")
    _check_verdict(record, passed, total)


def _check_verdict(record: Mapping[str, Any], passed: int, total: int) -> None:
    if (record["failure"] is None) != (passed == total) or (passed and record["status"] == "no_solution"):
        raise Flaw(
            f"{passed} of {total} passed, and yet status is {record['status']!r} and failure"
            f" {_shown(record['failure'])}"
        )
    try:
        outcomes = [test["outcome"] for test in record.get("tests", ())]
    except (KeyError, TypeError) as error:
        raise Flaw("tests is not a list of {name, outcome}") from error
    told = outcomes.count("passed")
    if outcomes and (told != passed or len(outcomes) != total):
        raise Flaw(f"passed is {passed} of {total}, and its own tests say {told} of {len(outcomes)}")
    score = record.get("score", passed / total)
    if type(score) not in _NUMBER or abs(score - passed / total) > 1e-9:  # noqa: PLR2004 - rounding
        raise Flaw(f"score is {_shown(score)}, and {passed} of {total} passed")


def _check_usage(usage: Mapping[str, Any]) -> None:
    for name in _USAGE_FIELDS:
        count = usage.get(name)
        if count is not None and (type(count) is not int or count < 0):
            raise Flaw(f"usage.{name} is {_shown(count)}")


def check_answer(record: Mapping[str, Any]) -> None:
    """Whether a line of completions.jsonl holds an answer. Raises Flaw."""
    if type(record.get("text")) is not str:
        raise Flaw("it holds no text")
    if record.get("finish_reason") not in _FINISHES:
        raise Flaw(f"finish_reason is {_shown(record.get('finish_reason'))}")


def is_output_of(output: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether a line of outputs.jsonl is of this final line, and not of a grading that was broken off."""
    try:
        same = read_key(output) == read_key(result) and output.get("turn", 0) == result.get("turn", 0)
    except Flaw:
        return False
    is_sound = type(output.get("output")) is str and type(output.get("output_bytes")) is int
    return same and is_sound and output.get("finished_at") == result.get("finished_at")


def check_turn(record: Mapping[str, Any]) -> None:
    """Whether a line of turns.jsonl holds an answer and what was said before it. Raises Flaw."""
    check_answer(record)
    if type(record.get("feedback")) is not str:
        raise Flaw("it holds no feedback")


def read_run(path: Path) -> dict[str, Any]:
    """The content of a run.json. Raises FileNotFoundError or ConflictError."""
    try:
        run = read_record(path.read_bytes())
    except FileNotFoundError:
        raise
    except (OSError, Flaw) as error:
        raise ConflictError(f"{path}: {error}; restore it from a copy") from error
    check_schema(run, str(path))
    for name, wrong in _wrong_fields(run):
        raise ConflictError(f"{path}: {name} is {_shown(wrong)}; restore it from a copy")
    return run


def require_run(directory: Path) -> None:
    """Raise UsageError for a directory that no run has written in."""
    if not (directory / "run.json").exists():
        raise UsageError(f"{directory}: no run.json there; give the directory that `astra run --out` wrote")


def newer_version(run: Mapping[str, Any], version: str) -> tuple[str, ...]:
    """A warning if a newer version than this one has written in the directory."""
    written = run.get("versions", {}).get("astra_async")
    if isinstance(written, str) and _numbers(written) > _numbers(version):
        told = f"run.json: written by astra_async {written}, and this is {version}"
        return (f"{told}: what is new in it is not read; better use that version",)
    return ()


def _wrong_fields(run: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values of the fields that cannot be used."""
    models, problems = run.get("models", []), run.get("problems", {})
    fits = {
        "run_id": isinstance(run.get("run_id"), str),
        "samples": "samples" not in run or (type(run["samples"]) is int and run["samples"] > 0),
        "formats": _is_list_of(run.get("formats", []), lambda each: each in _FORMATS),
        "models": _is_list_of(
            models, lambda each: isinstance(each, dict) and isinstance(each.get("name"), str)
        ),
        "problems": isinstance(problems, dict) and all(isinstance(each, dict) for each in problems.values()),
        "turns": "turns" not in run or (type(run["turns"]) is int and run["turns"] >= 0),
        "feedback": isinstance(run.get("feedback", {}), dict),
        "versions": isinstance(run.get("versions", {}), dict),
        **{name: _is_two_deep(run.get(name, {})) for name in ("parts", "fingerprints")},
    }
    return [(name, run.get(name)) for name, is_fit in fits.items() if not is_fit]


def _is_list_of(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str | dict) and fits(each) for each in value)


def _is_two_deep(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - one line, whatever it holds


class Disbelieved:
    """Lines of one file that are not counted, each told once, with what becomes of its sample."""

    def __init__(self, name: str, read: Callable[[Mapping[str, Any]], AnswerKey] = read_key) -> None:
        self._name = name
        self._read = read
        self._told: list[tuple[int, str, AnswerKey | None]] = []

    def add(self, number: int, why: Flaw, record: Mapping[str, Any] | None = None) -> None:
        """Note a line by its number from 1; `record` is what could be read of it."""
        try:
            key = self._read(record or {})
        except Flaw:
            key = None
        self._told.append((number, str(why), key))

    def warnings(self, sound: Any) -> list[str]:
        """A line each; `sound` tells whether a sample has a line that is believed."""
        return [
            f"{self._name} line {number}: {why}; not counted" + self._consequence(key, sound)
            for number, why, key in self._told
        ]

    def _consequence(self, key: AnswerKey | None, sound: Any) -> str:
        if key is None:
            return ", and if a sample is missing for it `astra run` repeats that"
        return (
            f": another line of {key} is"
            if sound(key)
            else f", {key} is missing until `astra run` repeats it"
        )

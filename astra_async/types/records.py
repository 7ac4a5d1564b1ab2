"""Validation of the records in a run directory, for all readers.

A record is valid if its fields have the right types and agree with each other. Invalid records can exist
because people edit these files and newer versions write other fields. An invalid record is named with its
place and never counted.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from zlib import crc32

import msgspec
import orjson

from astra_async.errors import ConflictError
from astra_async.surrogates import without_surrogates
from astra_async.types.calls import FinishReason
from astra_async.types.declarations import is_agent_name
from astra_async.types.results import NamedOutcome, Result
from astra_async.types.samples import ANSWER_FORMATS, AnswerKey, SampleKey, TurnKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

SCHEMA = 1
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FINISHES = frozenset(get_args(FinishReason))
_ROUNDING = 1e-9


_REMEMBERED = 256  # parsed lists of tests; most lines repeat an earlier list


class _Line(Result, frozen=True, kw_only=True, gc=False):
    """Final line with unparsed tests, which `tests_of` parses."""

    tests: msgspec.Raw = msgspec.Raw(b"[]")  # type: ignore[assignment]


class _OnlyTests(msgspec.Struct, gc=False):
    tests: msgspec.Raw = msgspec.Raw(b"[]")


_LINE = msgspec.json.Decoder(_Line)
_ONLY_TESTS = msgspec.json.Decoder(_OnlyTests)
_TESTS = msgspec.json.Decoder(tuple[NamedOutcome, ...])


class Outcomes(NamedTuple):
    """Outcomes of a sample's tests: bit i of `passed` is test i; `checksum` covers all outcomes."""

    names: tuple[str, ...]
    passed: int
    checksum: int


class Flaw(ValueError):  # noqa: N818 - a property of a record
    """Reason why a record is invalid."""


def read_record(line: bytes) -> dict[str, Any]:
    """Parse the object in one line; a byte order mark is ignored. Raises Flaw."""
    line = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            # lone surrogates and numbers outside the range of a float, which orjson refuses
            record = json.loads(line, parse_float=_finite, parse_constant=lambda _: None)
        except ValueError as error:
            raise Flaw("not readable as JSON") from error
    if not isinstance(record, dict):
        raise Flaw("not a JSON object")
    return record


def _finite(text: str) -> float | None:
    """Parse a number of a record; return None for an infinite one."""
    return number if math.isfinite(number := float(text)) else None


def read_line(line: bytes) -> dict[str, Any]:
    """Parse the record in a line, and replace texts that UTF-8 cannot encode. Raises Flaw."""
    record = read_record(line)
    if b"\\ud" in line or b"\\uD" in line:
        record = read_record(without_surrogates(json.dumps(record, ensure_ascii=False)).encode())
    return record


def is_format(value: object) -> bool:
    """Return True for the name of an answer format or an agent."""
    return type(value) is str and (value in ANSWER_FORMATS or is_agent_name(value))


def read_key(record: Mapping[str, Any]) -> SampleKey:
    """Return the sample key of a record. Raises Flaw."""
    model, problem_id, sample = record.get("model"), record.get("problem_id"), record.get("sample")
    fmt: Any = record.get("format")
    if type(model) is not str or type(problem_id) is not str or not is_format(fmt):
        raise Flaw("the sample key is incomplete (model, format, problem_id, sample)")
    if type(sample) is not int or sample < 0:
        raise Flaw(f"sample is {shown_value(sample)}, not a number from 0")
    return SampleKey(model, fmt, problem_id, sample)


def read_head(line: bytes, before: bytes) -> dict[str, Any]:
    """Parse only the fields before a given field of a line, so that a long text is not parsed.

    Return the whole record if the line does not have this field or has no key before it. Raises Flaw.
    """
    # Invariant: quotes inside a JSON string are escaped, so a string never contains `,"name":`.
    end = line.find(b',"%b":' % before)
    if end > 0:
        try:
            record = read_record(line[:end] + b"}")
        except Flaw:
            return read_record(line)
        if "sample" in record:
            return record
    return read_record(line)


class _Named(msgspec.Struct, gc=False):
    """Fields of any record for its key and its cost."""

    model: Any = None
    format: Any = None
    problem_id: Any = None
    sample: Any = None
    turn: Any = msgspec.UNSET
    pool: Any = None
    kind: Any = None
    usage: Any = None
    cost_usd: Any = None


_NAMED = msgspec.json.Decoder(_Named)


def read_named(line: bytes) -> dict[str, Any]:
    """Parse the key and the cost of a record without its texts. Raises Flaw."""
    try:
        return msgspec.structs.asdict(_NAMED.decode(line))
    except msgspec.MsgspecError:
        return read_record(line)


def read_turn_key(record: Mapping[str, Any]) -> TurnKey:
    """Return the key of a line of turns.jsonl or turn_results.jsonl. Raises Flaw."""
    turn = record.get("turn")
    if type(turn) is not int or turn < 1:
        raise Flaw(f"turn is {shown_value(turn)}, not a number from 1")
    return TurnKey(*read_key(record), turn)


def check_schema(record: Mapping[str, Any], where: str) -> None:
    """Refuse a record with another schema. Raises ConflictError."""
    if record.get("schema") != SCHEMA:
        raise ConflictError(
            f"{where}: schema {shown_value(record.get('schema'))}, this version reads {SCHEMA};"
            " use the version that wrote it, or a new directory"
        )


def read_result(line: bytes, path: Path, number: int) -> tuple[Result, Outcomes]:
    """Parse and validate a final line: its verdict must agree with its tests.

    `path` and `number` are the place of the line. Raises Flaw, and ConflictError for another schema.
    """
    try:
        if not line.isascii():
            line.decode()
        result = _LINE.decode(line)
        tests, outcomes = _read_tests(bytes(result.tests))
        msgspec.structs.force_setattr(result, "tests", tests)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Rare: a line of an editor or of another version. This slower parser names the error.
        record = read_line(line)
        read_key(record)
        check_schema(record, f"{path} line {number}")
        checked = check_result(record)
        return checked, _outcomes(checked.tests)
    if result.schema != SCHEMA:
        check_schema({"schema": result.schema}, f"{path} line {number}")
    _check_verdict(result, outcomes)
    return result, outcomes


def score_of(record: Mapping[str, Any]) -> float:
    """Return the score of a valid final line (see `Result.exact_score`)."""
    return float(record["passed"] / record["total"] if record.get("rewards") is None else record["score"])


def read_tests(line: bytes) -> tuple[NamedOutcome, ...]:
    """Parse the tests of a valid final line. Raises Flaw."""
    try:
        return tests_of(_ONLY_TESTS.decode(line).tests)
    except msgspec.MsgspecError:
        return check_result(read_line(line)).tests


def tests_of(text: msgspec.Raw) -> tuple[NamedOutcome, ...]:
    """Parse the tests from the unparsed field of a final line. Raises msgspec.MsgspecError."""
    return _read_tests(bytes(text))[0]


@lru_cache(_REMEMBERED)
def _read_tests(text: bytes) -> tuple[tuple[NamedOutcome, ...], Outcomes]:
    tests = _TESTS.decode(text)
    return tests, _outcomes(tests)


def _outcomes(tests: Sequence[NamedOutcome]) -> Outcomes:
    each = [test.outcome for test in tests]
    return Outcomes(
        names=tuple([test.name for test in tests]),
        passed=sum(1 << place for place, outcome in enumerate(each) if outcome == "passed"),
        checksum=crc32(",".join(each).encode(errors="surrogatepass")),
    )


def check_result(record: Mapping[str, Any]) -> Result:
    """Validate a final line: its verdict must agree with its tests. Raises Flaw."""
    try:
        result = msgspec.convert(record, Result)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`")
        raise Flaw(f"{name or 'record'}: {why[:1].lower()}{why[1:]}") from error
    _check_verdict(result, _outcomes(result.tests))
    return result


def _check_verdict(result: Result, outcomes: Outcomes) -> None:
    passed, total = result.passed, result.total
    if passed > total:
        raise Flaw(f"passed is {passed} of {total}")
    if (result.failure is None) != (passed == total) or (passed and result.status == "no_solution"):
        raise Flaw(
            f"{passed} of {total} passed, and yet status is {result.status!r} and failure"
            f" {shown_value(result.failure)}"
        )
    if result.tests:
        counted = outcomes.passed.bit_count()
        if counted != passed or len(result.tests) != total:
            raise Flaw(
                f"passed is {passed} of {total}, and its own tests say {counted} of {len(result.tests)}"
            )
    if result.rewards is not None:
        if result.score is None or not 0 <= result.score <= 1 or (result.score == 1) != (passed == total):
            raise Flaw(f"score is {shown_value(result.score)}, and {passed} of {total} passed")
    elif result.score is not None and abs(result.score - passed / total) > _ROUNDING:
        raise Flaw(f"score is {result.score}, and {passed} of {total} passed")


def check_answer(record: Mapping[str, Any]) -> None:
    """Check that a line of completions.jsonl has an answer. Raises Flaw."""
    if type(record.get("text")) is not str:
        raise Flaw("the text is missing")
    if record.get("finish_reason") not in _FINISHES:
        raise Flaw(f"finish_reason is {shown_value(record.get('finish_reason'))}")


def is_output_of(output: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Return True if a line of outputs.jsonl belongs to this final line."""
    try:
        same = read_key(output) == read_key(result) and output.get("turn") == result.get("turn")
    except Flaw:
        return False
    is_sound = type(output.get("output")) is str and type(output.get("output_bytes")) is int
    return same and is_sound and output.get("finished_at") == result.get("finished_at")


def check_turn(record: Mapping[str, Any]) -> None:
    """Check that a line of turns.jsonl has an answer and the feedback before it. Raises Flaw."""
    check_answer(record)
    if type(record.get("feedback")) is not str:
        raise Flaw("the feedback is missing")


def shown_value(value: Any) -> str:
    """Return a value of a record, shortened for a message."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - one line of a message


def counting(first: bytes, second: bytes) -> bytes | None:
    """Return the line that replaces the other one, in a run of an older version; None if neither does."""
    replacing = [line for line in (first, second) if read_record(line).get("replaces") is not None]
    return replacing[0] if len(replacing) == 1 else None


def repeated(path: Path, numbers: tuple[int, int], lines: tuple[bytes, bytes]) -> str:
    """Return the warning about a second line with an equal record for the same key.

    Raises ConflictError: the records differ.
    """
    first, second = numbers
    if lines[0] != lines[1] and read_record(lines[0]) != read_record(lines[1]):
        raise ConflictError(
            f"{path}: lines {first} and {second} contradict each other for the same sample;"
            " remove the wrong one"
        )
    return f"{path.name} line {second}: repeats line {first}, counted once"


class Disbelieved:
    """Invalid lines of one file, with one warning each."""

    def __init__(self, name: str, read: Callable[[Mapping[str, Any]], AnswerKey] = read_key) -> None:
        self._name = name
        self._read = read
        self.noted: list[tuple[int, str, AnswerKey | None]] = []

    def add(self, number: int, why: Flaw, line: bytes) -> None:
        """Add a line with its number, counted from 1."""
        try:
            key = self._read(read_record(line))
        except Flaw:
            key = None
        self.noted.append((number, str(why), key))

    def warnings(self, sound: Any) -> list[str]:
        """Return one warning for each line. `sound` returns True if a sample has a valid line."""
        told = []
        for number, why, key in self.noted:
            end = f": another line of {key} is"
            if key is None:
                end = ", and if a sample is missing for it `astra run` repeats that"
            elif not sound(key):
                end = f", {key} is missing until `astra run` repeats it"
            told.append(f"{self._name} line {number}: {why}; not counted{end}")
        return told

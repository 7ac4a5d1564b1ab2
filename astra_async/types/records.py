"""What is believed of a run directory's files: the same for whoever reads them.

A record is believed when its fields are of their types and agree with each other. People edit these files,
editors put a byte order mark before them, newer versions write what this one does not know: whatever is not
believed is named with its place, and never counted.
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


_REMEMBERED = 256  # texts of tests: most lines repeat one


class _Line(Result, frozen=True, kw_only=True, gc=False):
    """A final line whose tests are still text, which `tests_of` reads."""

    tests: msgspec.Raw = msgspec.Raw(b"[]")  # type: ignore[assignment]


class _OnlyTests(msgspec.Struct, gc=False):
    tests: msgspec.Raw = msgspec.Raw(b"[]")


_LINE = msgspec.json.Decoder(_Line)
_ONLY_TESTS = msgspec.json.Decoder(_OnlyTests)
_TESTS = msgspec.json.Decoder(tuple[NamedOutcome, ...])


class Outcomes(NamedTuple):
    """What became of a sample's tests: bit i of `passed` is the i-th; `checksum` is of all outcomes."""

    names: tuple[str, ...]
    passed: int
    checksum: int


class Flaw(ValueError):  # noqa: N818 - a property of a record
    """Why a record is not believed."""


def read_record(line: bytes) -> dict[str, Any]:
    """The object in one line, whether or not an editor put a byte order mark before it. Raises Flaw."""
    line = line.removeprefix(_BYTE_ORDER_MARK)
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            # lone surrogates and numbers beyond a float, which orjson refuses
            record = json.loads(line, parse_float=_finite, parse_constant=lambda _: None)
        except ValueError as error:
            raise Flaw("not readable as JSON") from error
    if not isinstance(record, dict):
        raise Flaw("not a JSON object")
    return record


def _finite(text: str) -> float | None:
    """A number of a record; None, which is not recorded, for what is no finite one."""
    return number if math.isfinite(number := float(text)) else None


def read_line(line: bytes) -> dict[str, Any]:
    """The record in a line, as whoever reads results reads it: texts that UTF-8 can carry. Raises Flaw."""
    record = read_record(line)
    if b"\\ud" in line or b"\\uD" in line:
        record = read_record(without_surrogates(json.dumps(record, ensure_ascii=False)).encode())
    return record


def is_format(value: object) -> bool:
    """Whether it names an answer format or an agent."""
    return type(value) is str and (value in ANSWER_FORMATS or is_agent_name(value))


def read_key(record: Mapping[str, Any]) -> SampleKey:
    """The sample that a record is about. Raises Flaw."""
    model, problem_id, sample = record.get("model"), record.get("problem_id"), record.get("sample")
    fmt: Any = record.get("format")
    if type(model) is not str or type(problem_id) is not str or not is_format(fmt):
        raise Flaw("it names no sample (model, format, problem_id, sample)")
    if type(sample) is not int or sample < 0:
        raise Flaw(f"sample is {shown_value(sample)}, not a number from 0")
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


class _Named(msgspec.Struct, gc=False):
    """Fields of any record that say whom it is of and what it cost."""

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
    """Whom a record is of and what it cost; its texts are passed over. Raises Flaw."""
    try:
        return msgspec.structs.asdict(_NAMED.decode(line))
    except msgspec.MsgspecError:
        return read_record(line)


def read_turn_key(record: Mapping[str, Any]) -> TurnKey:
    """The turn of a sample that a line of turns.jsonl or turn_results.jsonl is about. Raises Flaw."""
    turn = record.get("turn")
    if type(turn) is not int or turn < 1:
        raise Flaw(f"turn is {shown_value(turn)}, not a number from 1")
    return TurnKey(*read_key(record), turn)


def check_schema(record: Mapping[str, Any], where: str) -> None:
    """Refuse what another version wrote in another way. Raises ConflictError."""
    if record.get("schema") != SCHEMA:
        raise ConflictError(
            f"{where}: schema {shown_value(record.get('schema'))}, this version reads {SCHEMA};"
            " use the version that wrote it, or a new directory"
        )


def read_result(line: bytes, path: Path, number: int) -> tuple[Result, Outcomes]:
    """A final line that is believed, and what became of its tests, with which its verdict agrees.

    It is the line of that number in a file. Raises Flaw, and ConflictError for one that another version wrote
    in another way.
    """
    try:
        if not line.isascii():
            line.decode()
        result = _LINE.decode(line)
        tests, outcomes = _read_tests(bytes(result.tests))
        msgspec.structs.force_setattr(result, "tests", tests)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Rare: what an editor or another version wrote, read by the parser that says what is wrong with it.
        record = read_line(line)
        read_key(record)
        check_schema(record, f"{path} line {number}")
        checked = check_result(record)
        return checked, _outcomes(checked.tests)
    if result.schema != SCHEMA:
        check_schema({"schema": result.schema}, f"{path} line {number}")
    _check_verdict(result, outcomes)
    return result, outcomes


def read_tests(line: bytes) -> tuple[NamedOutcome, ...]:
    """The tests of a final line that is believed. Raises Flaw."""
    try:
        return tests_of(_ONLY_TESTS.decode(line).tests)
    except msgspec.MsgspecError:
        return check_result(read_line(line)).tests


def tests_of(text: msgspec.Raw) -> tuple[NamedOutcome, ...]:
    """The tests in a part of a final line. Raises msgspec.MsgspecError."""
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
    """Whether a final line agrees with itself: its verdict with its own tests. Raises Flaw."""
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
    if result.score is not None and abs(result.score - passed / total) > _ROUNDING:
        raise Flaw(f"score is {result.score}, and {passed} of {total} passed")


def check_answer(record: Mapping[str, Any]) -> None:
    """Whether a line of completions.jsonl holds an answer. Raises Flaw."""
    if type(record.get("text")) is not str:
        raise Flaw("it holds no text")
    if record.get("finish_reason") not in _FINISHES:
        raise Flaw(f"finish_reason is {shown_value(record.get('finish_reason'))}")


def is_output_of(output: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether a line of outputs.jsonl is of this final line, and not of a grading that was broken off."""
    try:
        same = read_key(output) == read_key(result) and output.get("turn") == result.get("turn")
    except Flaw:
        return False
    is_sound = type(output.get("output")) is str and type(output.get("output_bytes")) is int
    return same and is_sound and output.get("finished_at") == result.get("finished_at")


def check_turn(record: Mapping[str, Any]) -> None:
    """Whether a line of turns.jsonl holds an answer and what was said before it. Raises Flaw."""
    check_answer(record)
    if type(record.get("feedback")) is not str:
        raise Flaw("it holds no feedback")


def shown_value(value: Any) -> str:
    """A value of a record, short enough for a message."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - one line, whatever it holds


def counting(first: bytes, second: bytes) -> bytes | None:
    """Return the line that replaces the other in a run directory of an older version; None for neither."""
    replacing = [line for line in (first, second) if read_record(line).get("replaces") is not None]
    return replacing[0] if len(replacing) == 1 else None


def repeated(path: Path, numbers: tuple[int, int], lines: tuple[bytes, bytes]) -> str:
    """What is said of a second line of one key that holds the same record, however it is spaced.

    Raises ConflictError where it holds another one.
    """
    first, second = numbers
    if lines[0] != lines[1] and read_record(lines[0]) != read_record(lines[1]):
        raise ConflictError(
            f"{path}: lines {first} and {second} contradict each other for the same sample;"
            " remove the wrong one"
        )
    return f"{path.name} line {second}: repeats line {first}, counted once"


class Disbelieved:
    """Lines of one file that are not counted, each told once, with what becomes of its sample."""

    def __init__(self, name: str, read: Callable[[Mapping[str, Any]], AnswerKey] = read_key) -> None:
        self._name = name
        self._read = read
        self.noted: list[tuple[int, str, AnswerKey | None]] = []

    def add(self, number: int, why: Flaw, line: bytes) -> None:
        """Note a line by its number from 1."""
        try:
            key = self._read(read_record(line))
        except Flaw:
            key = None
        self.noted.append((number, str(why), key))

    def warnings(self, sound: Any) -> list[str]:
        """A line each; `sound` tells whether a sample has a line that is believed."""
        told = []
        for number, why, key in self.noted:
            end = f": another line of {key} is"
            if key is None:
                end = ", and if a sample is missing for it `astra run` repeats that"
            elif not sound(key):
                end = f", {key} is missing until `astra run` repeats it"
            told.append(f"{self._name} line {number}: {why}; not counted{end}")
        return told

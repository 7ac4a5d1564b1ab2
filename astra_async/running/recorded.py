"""Read the logs of a run directory, and index the line of each key.

These functions do not take the directory's lock, because a run may be under way.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import msgspec

from astra_async.errors import ExpectationError
from astra_async.files import file_mode, is_shared, read_at, scan, write_atomically
from astra_async.log import fields_of
from astra_async.surrogates import without_surrogates
from astra_async.types import AgentWork, Completion, SampleKey, Usage, is_agent
from astra_async.types.records import (
    Disbelieved,
    Flaw,
    check_answer,
    check_schema,
    check_turn,
    counting,
    is_format,
    read_key,
    read_named,
    read_record,
    read_turn_key,
    repeated,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from astra_async.types import AnswerKey, ExpectedTest, Prompt, Result


_OMITTED_IF_EMPTY = ("agent", "unpriced_tier", "priced_usd", "reasoning", "disbelieved_input_tokens")
ByteRange = tuple[int, int]  # offset and length of a line
_HASH = re.compile(r"[0-9a-f]{64}")
CALLS_NAME = "calls.jsonl"  # model requests of agents
# Logs of follow-up turns, which exist only if a run has some.
TURN_LOG_NAMES = ("turns.jsonl", "turn_results.jsonl")
# Logs with at most one answer for each key, and the check of their lines.
ANSWER_LOGS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "completions.jsonl": check_answer,
    "turns.jsonl": check_turn,
}


def completion_from(record: Mapping[str, Any]) -> Completion:
    """Return the Completion of a record in completions.jsonl; invalid optional fields get their default."""

    def known(name: str, types: tuple[type, ...], default: Any) -> Any:
        value = record.get(name)
        return value if type(value) in types else default

    usage, agent = known("usage", (dict,), {}), known("agent", (dict,), None)
    if agent is not None:  # ignore fields of newer versions
        told = {item.name: agent[item.name] for item in fields(AgentWork) if item.name in agent}
        agent = AgentWork(**{"agent": "", "version": "", "end": "done", **told})
    return Completion(
        text=record["text"],
        finish_reason=record["finish_reason"],
        usage=Usage(**{item.name: usage.get(item.name) for item in fields(Usage)}),
        returned_model=known("returned_model", (str,), ""),
        native_finish_reason=known("native_finish_reason", (str,), ""),
        reasoning=known("reasoning", (str,), ""),
        ttft_s=known("ttft_s", (int, float), None),
        latency_s=known("latency_s", (int, float, type(None)), 0.0),
        attempts=known("attempts", (int,), 1),
        cost_usd=known("cost_usd", (int, float), None),
        cost_estimated=record.get("cost_estimated") is True,
        unpriced_tier=known("unpriced_tier", (str,), ""),
        priced_usd=known("priced_usd", (int, float), None),
        repairs=tuple(known("repairs", (list,), [])),
        via="batch" if record.get("via") == "batch" else None,
        agent=agent,
    )


def readable_records(path: Path, holding: bytes = b"") -> Iterator[tuple[ByteRange, dict[str, Any]]]:
    """Yield the parsable records of a log with their byte ranges.

    Other lines are skipped; a resume or a report warns about them. `holding` restricts the result to lines
    that contain these bytes.
    """
    for _, offset, line in scan(path):
        if holding in line:
            with contextlib.suppress(Flaw):
                yield (offset, len(line)), read_record(line)


def record_headers(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the key and cost fields of each parsable record of a log (`read_named`)."""
    for _, _, line in scan(path):
        with contextlib.suppress(Flaw):
            yield read_named(line)


def valid_records(
    path: Path, check: Callable[[Mapping[str, Any]], object] = lambda _: None
) -> Iterator[tuple[AnswerKey, ByteRange, dict[str, Any]]]:
    """Yield (key, byte range, record) for each record of a log that has a valid key and passes `check`."""
    read = key_reader(path.name)
    for place, record in readable_records(path):
        with contextlib.suppress(Flaw):
            key = read(record)
            check(record)
            yield key, place, record


def key_reader(name: str) -> Callable[[Mapping[str, Any]], AnswerKey]:
    """Return the function that reads the key of a record in the log with this file name."""
    return read_turn_key if name in TURN_LOG_NAMES else read_key


def answered(directory: Path) -> Iterator[AnswerKey]:
    """Yield the keys of all answers in a run directory: samples, then follow-up turns."""
    for name, check in ANSWER_LOGS.items():
        yield from (key for key, _, _ in valid_records(directory / name, check))


class CountedTests:
    """Expected tests of each problem according to its first final line.

    All samples of a problem must be graded against the same tests.
    """

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, list[str]]] = {}

    def add(self, result: Mapping[str, Any]) -> None:
        """Add a valid final line; the field `tests` is optional."""
        if result["problem_id"] not in self._counted:
            names = sorted(str(test.get("name", "")) for test in result.get("tests", ()))
            self._counted[result["problem_id"]] = (result["total"], names)

    def check(self, problem_id: str, expected: Sequence[ExpectedTest], directory: Path) -> None:
        """Raise ExpectationError if `expected` differs from the tests of the recorded final lines.

        Possible causes are a changed reference, image or program version, or a test suite that reports
        different names in each run.
        """
        total, names = self._counted.get(problem_id, (len(expected), []))
        now = sorted(test.name for test in expected)
        if total == len(now) and (not names or names == now):
            return
        other = min(set(names) ^ set(now)) if names and set(names) != set(now) else ""
        raise ExpectationError(
            f"expected tests: {len(now)} now, {total} in the samples already graded"
            + (f" ({other!r} is in only one of the two sets)" if other else "")
            + ": the reference, the image or the version of astra has changed; to grade all recorded answers"
            f" against the same tests, run: astra regrade {directory}",
            problem_id=problem_id,
        )


@dataclass(slots=True)
class Spent:
    """Tokens and cost of one model so far; `unpriced` is the number of answers with an unknown cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0


def spent(directory: Path) -> dict[str, Spent]:
    """Return the tokens of recorded answers, and the cost of answers and failed requests, by model."""
    found: dict[str, Spent] = {}
    for name in ANSWER_LOGS:
        for record in record_headers(directory / name):
            count_spent(found, record)
    count_other_calls(found, directory)
    return found


def count_other_calls(found: dict[str, Spent], directory: Path) -> None:
    """Add the tokens and cost of agents' requests, and the cost of failed requests."""
    for record in record_headers(directory / CALLS_NAME):
        _count(found, record)
    for _, record in readable_records(directory / "events.jsonl", b'"cost_usd"'):
        count_spent(found, record)


def count_spent(found: dict[str, Spent], record: Mapping[str, Any]) -> None:
    """Add the tokens and cost of an answer or an event.

    Answers of agents are skipped, because their requests are counted one by one (`count_other_calls`).
    """
    is_answer, fmt = record.get("kind") is None, record.get("format")
    if not (is_answer and is_format(fmt) and is_agent(str(fmt))):
        _count(found, record)


def _count(found: dict[str, Spent], record: Mapping[str, Any]) -> None:
    """Add a record's tokens and cost; values of a wrong type (edited by hand) are ignored."""
    one = found.setdefault(str(record.get("model") or record.get("pool")), Spent())
    usage, cost_usd = record.get("usage"), record.get("cost_usd")
    if isinstance(usage, dict):
        one.input_tokens += _whole(usage.get("input_tokens"))
        one.output_tokens += _whole(usage.get("output_tokens"))
    if isinstance(cost_usd, int | float):
        one.cost_usd += cost_usd
    elif record.get("kind") is None:
        one.unpriced += 1


def _whole(value: object) -> int:
    return value if type(value) is int else 0


def store_prompts(directory: Path, prompts: Iterable[Prompt]) -> None:
    """Write each prompt's text to a file named by its hash, which the records refer to."""
    folder = directory / "prompts"
    folder.mkdir(mode=0o777 if is_shared(directory) else 0o700, exist_ok=True)
    there = {path.name for path in folder.iterdir()}
    texts = {f"{prompt.sha256}.txt": prompt.text for prompt in prompts}
    for name in texts.keys() - there:
        content = without_surrogates(texts[name]).encode()
        write_atomically(folder / name, content, mode=file_mode(directory))


def stored_prompt(directory: Path, sha256: str) -> str | None:
    """Return the text of a prompt, or None if the directory does not contain it.

    A value that is not a SHA-256 hash is never used as a file name. Invalid UTF-8 counts as missing.
    """
    if _HASH.fullmatch(sha256):
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return (directory / "prompts" / f"{sha256}.txt").read_bytes().decode()
    return None


def completion_fields(completion: Completion) -> dict[str, Any]:
    """Return the fields of an answer for its record; rarely used fields are omitted if empty."""
    recorded = fields_of(completion)
    if completion.usage.input_tokens is not None:
        recorded["disbelieved_input_tokens"] = None
    of_single_calls = ("calls", "native")  # recorded in calls.jsonl
    for name in (*of_single_calls, *(name for name in _OMITTED_IF_EMPTY if not recorded[name])):
        del recorded[name]
    return recorded


def result_fields(result: Result) -> dict[str, Any]:
    """Return the fields of a result for its final line; empty optional fields are omitted."""
    recorded = fields_of(result)
    for name in ("turn", "agent", "rewards"):
        if recorded[name] is None:
            del recorded[name]
    return recorded | {name: msgspec.to_builtins(recorded[name]) for name in ("tests", "extra_tests")}


OnRecord = Callable[[Mapping[str, Any]], object]


def ignore(_: Mapping[str, Any]) -> None:
    """Ignore a record (default callback)."""


def index_log(
    path: Path, index: dict[AnswerKey, ByteRange], check: OnRecord, on_record: OnRecord = ignore
) -> Iterator[str]:
    """Add the byte range of each valid line to the index, and call `on_record` with its record.

    Yields a warning for each repaired or ignored line. Raises ConflictError if lines contradict each other or
    have another schema.
    """
    lines: dict[AnswerKey, int] = {}
    read = key_reader(path.name)
    disbelieved = Disbelieved(path.name, read)
    for number, offset, line in scan(path):
        try:
            record = read_record(line)
            key = _interned(read(record))
            check_schema(record, f"{path} line {number}")
            check(record)
        except Flaw as flaw:
            disbelieved.add(number, flaw, line)
            continue
        if key in index:
            earlier = read_at(path, *index[key])
            counts = counting(earlier, line)
            if counts is None:
                yield repeated(path, (lines[key], number), (earlier, line))
            if counts is not line:
                continue
        index[key] = (offset, len(line))
        lines[key] = number
        on_record(record)
    yield from disbelieved.warnings(index.__contains__)


def outputs_at(path: Path) -> dict[AnswerKey, ByteRange]:
    """Return the byte range of the last output of each key."""
    found: dict[AnswerKey, ByteRange] = {}
    for place, record in readable_records(path):
        with contextlib.suppress(Flaw):
            found[read_turn_key(record) if record.get("turn") else read_key(record)] = place
    return found


def _interned(key: AnswerKey) -> AnswerKey:
    """Return an equal key with interned names, to save memory with a million keys."""
    names = SampleKey(sys.intern(key.model), key.format, sys.intern(key.problem_id), key.sample)
    return names.at(key.turn)

"""What the lines of a run directory hold, and where the line of each key stands.

Nothing here takes the lock: a run may be under way.
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
from astra_async.files import file_mode, is_shared, read_at, write_atomically
from astra_async.log import fields_of, scan
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
Place = tuple[int, int]  # offset and length of a line
_HASH = re.compile(r"[0-9a-f]{64}")
# Of further turns; there where a run was asked for some.
CALLS_NAME = "calls.jsonl"  # of agents
TURN_LOG_NAMES = ("turns.jsonl", "turn_results.jsonl")
# The logs that hold one answer at most for each key, and what a line of theirs has to be.
ANSWER_LOGS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "completions.jsonl": check_answer,
    "turns.jsonl": check_turn,
}


def completion_from(record: Mapping[str, Any]) -> Completion:
    """The Completion within a line of completions.jsonl; what is damaged beside the answer is left out."""

    def known(name: str, types: tuple[type, ...], default: Any) -> Any:
        value = record.get(name)
        return value if type(value) in types else default

    usage, agent = known("usage", (dict,), {}), known("agent", (dict,), None)
    if agent is not None:  # as much of it as is known here
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


def readable_records(path: Path, holding: bytes = b"") -> Iterator[tuple[Place, dict[str, Any]]]:
    """The records of a log that can be read, with their places; others are told by who resumes or reports.

    Only lines that hold some bytes, if these are given.
    """
    for _, offset, line in scan(path):
        if holding in line:
            with contextlib.suppress(Flaw):
                yield (offset, len(line)), read_record(line)


def named(path: Path) -> Iterator[dict[str, Any]]:
    """Of each record of a log that can be read, whom it is of and what it cost (`read_named`)."""
    for _, _, line in scan(path):
        with contextlib.suppress(Flaw):
            yield read_named(line)


def valid_records(
    path: Path, check: Callable[[Mapping[str, Any]], object] = lambda _: None
) -> Iterator[tuple[AnswerKey, Place, dict[str, Any]]]:
    """The records of a log that name a sample (a turn, in a log of turns) and pass a check."""
    read = key_reader(path.name)
    for place, record in readable_records(path):
        with contextlib.suppress(Flaw):
            key = read(record)
            check(record)
            yield key, place, record


def key_reader(name: str) -> Callable[[Mapping[str, Any]], AnswerKey]:
    """What reads the key of a line in the log of that name."""
    return read_turn_key if name in TURN_LOG_NAMES else read_key


def answered(directory: Path) -> Iterator[AnswerKey]:
    """The samples, and then the turns, whose answers a run directory holds; it need not be open."""
    for name, check in ANSWER_LOGS.items():
        yield from (key for key, _, _ in valid_records(directory / name, check))


class CountedTests:
    """The tests that the first final line of each problem counts; all others of it count the same."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, list[str]]] = {}

    def add(self, result: Mapping[str, Any]) -> None:
        """Take notice of a final line that is believed; one may have no `tests`."""
        if result["problem_id"] not in self._counted:
            names = sorted(str(test.get("name", "")) for test in result.get("tests", ()))
            self._counted[result["problem_id"]] = (result["total"], names)

    def check(self, problem_id: str, expected: Sequence[ExpectedTest], directory: Path) -> None:
        """Nothing is graded against other tests than the lines that are there.

        Raises ExpectationError: a reference, an image or a version of this program has changed, or a suite
        that reports other names in each run.
        """
        total, names = self._counted.get(problem_id, (len(expected), []))
        now = sorted(test.name for test in expected)
        if total == len(now) and (not names or names == now):
            return
        other = min(set(names) ^ set(now)) if names and set(names) != set(now) else ""
        raise ExpectationError(
            f"{len(now)} tests count now, and {total} in its samples that are graded already"
            + (f" ({other!r} is in one of the two only)" if other else "")
            + f": its reference, its image or astra has changed; `astra regrade {directory}` grades all"
            " recorded answers against the same tests",
            problem_id=problem_id,
        )


@dataclass(slots=True)
class Spent:
    """What one model's calls have taken so far; a cost of 0 may mean that no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


def spent(directory: Path) -> dict[str, Spent]:
    """Tokens of recorded answers, and what they and failed calls have cost, by model."""
    found: dict[str, Spent] = {}
    for name in ANSWER_LOGS:
        for record in named(directory / name):
            count_spent(found, record)
    count_other_calls(found, directory)
    return found


def count_other_calls(found: dict[str, Spent], directory: Path) -> None:
    """Add what agents' model calls have taken, also without an answer yet, and calls that gave none."""
    for record in named(directory / CALLS_NAME):
        _count(found, record)
    for _, record in readable_records(directory / "events.jsonl", b'"cost_usd"'):
        count_spent(found, record)


def count_spent(found: dict[str, Spent], record: Mapping[str, Any]) -> None:
    """Add what a record of an answer or an event says was spent.

    Not that of what an agent left: its calls are counted, each once (`count_other_calls`).
    """
    is_answer, fmt = record.get("kind") is None, record.get("format")
    if not (is_answer and is_format(fmt) and is_agent(str(fmt))):
        _count(found, record)


def _count(found: dict[str, Spent], record: Mapping[str, Any]) -> None:
    """What is no number was edited, and says nothing."""
    one = found.setdefault(str(record.get("model") or record.get("pool")), Spent())
    usage, cost_usd = record.get("usage"), record.get("cost_usd")
    if isinstance(usage, dict):
        one.input_tokens += _whole(usage.get("input_tokens"))
        one.output_tokens += _whole(usage.get("output_tokens"))
    one.cost_usd += cost_usd if isinstance(cost_usd, int | float) else 0.0


def _whole(value: object) -> int:
    return value if type(value) is int else 0


def store_prompts(directory: Path, prompts: Iterable[Prompt]) -> None:
    """Keep each prompt's text under its hash, once, so that a record leads back to what was sent."""
    folder = directory / "prompts"
    folder.mkdir(mode=0o777 if is_shared(directory) else 0o700, exist_ok=True)
    there = {path.name for path in folder.iterdir()}
    texts = {f"{prompt.sha256}.txt": prompt.text for prompt in prompts}
    for name in texts.keys() - there:
        content = without_surrogates(texts[name]).encode()
        write_atomically(folder / name, content, mode=file_mode(directory))


def stored_prompt(directory: Path, sha256: str) -> str | None:
    """The text of a prompt that the run sent; None when the directory does not hold it.

    Nothing but a hash is ever looked for in the folder, and what is no UTF-8 no run has written.
    """
    if _HASH.fullmatch(sha256):
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return (directory / "prompts" / f"{sha256}.txt").read_bytes().decode()
    return None


def completion_fields(completion: Completion) -> dict[str, Any]:
    """An answer's fields as they are recorded: those of few answers only if they hold something."""
    recorded = fields_of(completion)
    if completion.usage.input_tokens is not None:
        recorded["disbelieved_input_tokens"] = None
    of_single_calls = ("calls", "native")  # which calls.jsonl has
    for name in (*of_single_calls, *(name for name in _OMITTED_IF_EMPTY if not recorded[name])):
        del recorded[name]
    return recorded


def result_fields(result: Result) -> dict[str, Any]:
    """A final line's fields as they are recorded: a test without a message has none."""
    recorded = fields_of(result)
    for name in ("turn", "agent"):
        if recorded[name] is None:
            del recorded[name]
    return recorded | {name: msgspec.to_builtins(recorded[name]) for name in ("tests", "extra_tests")}


OnRecord = Callable[[Mapping[str, Any]], object]


def ignore(_: Mapping[str, Any]) -> None:
    """Hear of a record, and do nothing."""


def index_log(
    path: Path, index: dict[AnswerKey, Place], check: OnRecord, on_record: OnRecord = ignore
) -> Iterator[str]:
    """Add to the index where each believed line stands; yields what was repaired or ignored, a line each.

    Raises ConflictError (lines that contradict each other, another schema).
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


def outputs_at(path: Path) -> dict[AnswerKey, Place]:
    """Where outputs stand; the last one of a key counts."""
    found: dict[AnswerKey, Place] = {}
    for place, record in readable_records(path):
        with contextlib.suppress(Flaw):
            found[read_turn_key(record) if record.get("turn") else read_key(record)] = place
    return found


def _interned(key: AnswerKey) -> AnswerKey:
    """The same key; a million of them share their names."""
    names = SampleKey(sys.intern(key.model), key.format, sys.intern(key.problem_id), key.sample)
    return names.at(key.turn)

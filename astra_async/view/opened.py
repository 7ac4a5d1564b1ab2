"""One sample with all its texts, read from disk when somebody opens it."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from astra_async.answers import parse_strictly
from astra_async.answers.lenient import LenientParser
from astra_async.redaction import mask, one_line
from astra_async.running.directory import stored_prompt
from astra_async.types import Unusable
from astra_async.types.records import Flaw, check_answer, check_result, is_output_of, read_record
from astra_async.view.replay import Replayed, replayed
from astra_async.view.tails import read_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from astra_async.view.board import Board
    from astra_async.view.following import Logs

Record = dict[str, Any]
_HASH = re.compile(r"[0-9a-f]{64}")
_MOST_EVENTS = 200
_AT_ONCE = 2  # answers parsed and compared
_KEPT = 16


class Samples:
    """Opens samples; to be closed. What an answer changed is worked out in threads, and kept for a while."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._lenient = LenientParser()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._kept: OrderedDict[tuple[Any, ...], Replayed] = OrderedDict()

    async def close(self) -> None:
        """End the helper process, if there is one."""
        await self._lenient.close()

    async def open(self, model: int, problem: int, sample: int, turn: int = 0) -> Record | None:
        """Everything about one sample; None if it is not planned. Raises OSError."""
        flat = self._board.flat(model, problem, sample)
        run = self._board.runs[self._board.grid.models[model].run]
        if flat is None or run.logs is None:
            return None
        logs, lines = run.logs, lines_of_sample(run.logs, flat, turn)
        texts = await asyncio.to_thread(read_texts, run.directory, lines, turn)
        found = await self._replayed((run.directory, run.plan, lines.answer, lines.result, turn), texts)
        return as_response(texts, why_missing(logs, flat, lines)) | {
            "diff": [asdict(each) for each in found.files],
            "diff_note": found.note,
            "diff_exact": not found.note,
        }

    async def _replayed(self, key: tuple[Any, ...], texts: Texts) -> Replayed:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        async with self._turns:
            found = await self._replay(texts)
        self._kept[key] = found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    async def _replay(self, texts: Texts) -> Replayed:
        answer, result = texts.answer, texts.result
        if answer is None:
            return Replayed(files=(), note="no answer")
        arguments = answer["text"], answer["format"], answer["finish_reason"]
        solution = await asyncio.to_thread(parse_strictly, *arguments)
        if solution is None:
            solution = await self._lenient.parse(*arguments)
        if isinstance(solution, Unusable):
            return Replayed(files=(), note=solution.reason)
        return await asyncio.to_thread(replayed, solution, texts.prompt, result or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Where the lines of one sample stand, as (offset, length); None for one that there is not."""

    result: tuple[int, int] | None
    answer: tuple[int, int] | None
    outputs: Sequence[tuple[int, int]]
    events: Sequence[tuple[int, int]]
    turn_results: Sequence[tuple[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What those lines hold."""

    result: Record | None
    answer: Record | None
    output: Record | None
    prompt: str | None
    events: Sequence[Record]
    turns: Sequence[Record]


def lines_of_sample(logs: Logs, flat: int, turn: int = 0) -> Lines:
    """The places of a sample's lines, of its first answer or of a later turn."""
    row = logs.columns.places.reshape(-1)[flat]
    first = (int(row["offset"]), int(row["length"])) if row["present"] else None
    later = [(number, (offset, length)) for number, offset, length in logs.turn_results.of(flat)]
    return Lines(
        result=first if turn == 0 else _last(later, turn),
        answer=_last(_turned(logs.answers.of(flat) if turn == 0 else logs.turns.of(flat)), turn),
        outputs=[(offset, length) for number, offset, length in logs.outputs.of(flat) if number == turn],
        events=[(offset, length) for _, offset, length in logs.events.of(flat)][-_MOST_EVENTS:],
        turn_results=[(0, first), *later] if first else later,
    )


def read_texts(directory: Path, lines: Lines, turn: int = 0) -> Texts:
    """Read them from disk; what is not believed counts as not there. Raises OSError."""
    result = _record(directory / ("turn_results.jsonl" if turn else "results.jsonl"), lines.result)
    answer = _record(directory / ("turns.jsonl" if turn else "completions.jsonl"), lines.answer)
    named = (answer or result or {}).get("prompt_sha256")
    is_hash = isinstance(named, str) and _HASH.fullmatch(named)
    return Texts(
        result=_believed(result, check_result),
        answer=_believed(answer, check_answer),
        output=_output(directory / "outputs.jsonl", lines.outputs, result),
        prompt=stored_prompt(directory, named) if is_hash and isinstance(named, str) else None,
        events=[each for place in lines.events if (each := _record(directory / "events.jsonl", place))],
        turns=_turns(directory, lines),
    )


def as_response(texts: Texts, missing_why: str | None) -> Record:
    """The sample as the page gets it; its changes come separately."""
    result, output = texts.result, texts.output
    told = output.get("output") if output else (result or {}).get("output_tail") or None
    return {
        "result": result,
        "answer": texts.answer,
        "prompt": texts.prompt,
        "output": told,
        "output_bytes": output.get("output_bytes") if output else None,
        "events": [event_in_words(each) for each in texts.events],
        "turns": list(texts.turns),
        "missing_why": missing_why,
    }


def why_missing(logs: Logs, flat: int, lines: Lines) -> str | None:
    """Why a sample has no final line, in words; None if it has one."""
    if lines.result is not None:
        return None
    if lines.answer is not None:
        return "answered, and not graded yet"
    columns = logs.columns
    rest, sample = divmod(flat, columns.samples)
    pair, problem = divmod(rest, len(columns.problems))
    model, fmt = list(columns.pairs)[pair]
    found = logs.events_seen.reason(model, fmt, list(columns.problems)[problem], sample)
    return mask(f"{found[0].replace('_', ' ')}: {found[1]}") if found else "not asked yet, or under way"


def event_in_words(event: Mapping[str, Any]) -> Record:
    """One line of events.jsonl as a person would say it, with what it is about."""
    kind, detail = str(event.get("kind") or ""), " ".join(str(event.get("detail") or "").split())
    about = event.get("model") or event.get("pool") or ""
    words = " ".join(filter(None, [kind.replace("_", " "), f"{about}:" if about and detail else str(about)]))
    named = {"model": "model", "problem": "problem_id", "sample": "sample"}
    return {
        "at": str(event.get("at") or ""),
        "kind": kind,
        "text": one_line(f"{words} {detail.removeprefix(f'{about}: ')}"),
        **{name: event.get(source) for name, source in named.items()},
    }


def _last(found: Sequence[tuple[int, tuple[int, int]]], turn: int) -> tuple[int, int] | None:
    """The place of the last line of a turn: the one that counts."""
    return next((place for number, place in reversed(found) if number == turn), None)


def _turned(found: Sequence[tuple[int, int, int]]) -> list[tuple[int, tuple[int, int]]]:
    return [(turn, (offset, length)) for turn, offset, length in found]


def _record(path: Path, place: tuple[int, int] | None) -> Record | None:
    if place is not None:
        with suppress(FileNotFoundError, Flaw):  # cut or replaced since: the next look tells of it
            return read_record(read_at(path, *place))
    return None


def _believed(record: Record | None, check: Callable[[Mapping[str, Any]], None]) -> Record | None:
    if record is not None:
        with suppress(Flaw):
            check(record)
            return record
    return None


def _output(path: Path, places: Sequence[tuple[int, int]], result: Record | None) -> Record | None:
    """The output of the very grading that the result is of; others were broken off."""
    for place in reversed(places if result else ()):
        record = _record(path, place)
        if record is not None and is_output_of(record, result or {}):
            return record
    return None


def _turns(directory: Path, lines: Lines) -> list[Record]:
    """Tests passed after each turn, where there is more than one."""
    turns = []
    for number, place in lines.turn_results:
        record = _record(directory / ("turn_results.jsonl" if number else "results.jsonl"), place)
        if record is not None:
            turns.append({"turn": number, "passed": record.get("passed"), "total": record.get("total")})
    return turns if len(turns) > 1 else []

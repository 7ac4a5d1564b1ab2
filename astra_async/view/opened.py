"""One sample with all its texts, read from disk when somebody opens it."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from astra_async.agents.transcript import interface_of, step_as_json, steps_of
from astra_async.answers.lenient import LenientParser, read_answer
from astra_async.errors import ConflictError
from astra_async.redaction import mask, one_line
from astra_async.report.packing import read_at
from astra_async.running.evidence import LEFT_OUT
from astra_async.running.recorded import stored_prompt
from astra_async.types import Solution, Unusable
from astra_async.types.records import Flaw, check_answer, check_result, is_output_of, read_record, read_run
from astra_async.view.replay import Replayed, replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from astra_async.types import SampleKey
    from astra_async.view.board import Board
    from astra_async.view.following import Logs
    from astra_async.view.tails import Place

    Lines = Mapping[str, Sequence[tuple[int, Place]]]  # by file: turn and place of each of a sample's lines

Record = dict[str, Any]
# The files that hold a sample's final lines and answers: of the first answer, and of each later turn.
_RESULTS, _ANSWERS = ("results", "turn_results"), ("completions", "turns")
_HASH = re.compile(r"[0-9a-f]{64}")
_MOST_EVENTS = 200
_MOST_CALLS = 1_000
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
        run = self._board.run_of(model)
        if flat is None:
            return None
        lines = lines_of_sample(run.logs, flat)
        texts = await asyncio.to_thread(read_texts, run.directory, lines, turn)
        places = (dict(lines[name]).get(turn) for name in (*_ANSWERS, *_RESULTS))
        which = run.directory, run.plan, *places
        found = await self._replayed(which, texts)
        key = self._board.key(model, problem, sample)
        return as_response(texts, None if texts.result else why_missing(run.logs, key, texts)) | {
            "transcript": texts.steps,
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
        if texts.answer is None:
            return Replayed(files=(), note="no answer")
        standing = []
        for result, answer in texts.earlier:  # files of earlier turns stay, of those that could be used
            if answer and result and result["status"] == "scored":
                standing.append(await self._read(answer))
        try:
            last = await self._read(texts.answer)
        except ValueError as error:  # the record of what an agent left is damaged
            return Replayed(files=(), note=str(error))
        if isinstance(last, Unusable):
            return Replayed(files=(), note=last.reason)
        solutions = [each for each in (*standing, last) if isinstance(each, Solution)]
        return await asyncio.to_thread(replayed, solutions, texts.prompt, texts.result or {})

    async def _read(self, answer: Record) -> Solution | Unusable:
        return await read_answer(answer["text"], answer["format"], answer["finish_reason"], self._lenient)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What those lines hold, of one turn; `earlier` are results and answers of the turns before it."""

    result: Record | None
    answer: Record | None
    earlier: Sequence[tuple[Record | None, Record | None]]
    output: Record | None
    prompt: str | None
    events: Sequence[Record]
    turns: Sequence[Record]
    steps: Sequence[Record] = ()


def lines_of_sample(logs: Logs, flat: int) -> Lines:
    """Where the lines of a sample stand."""
    row = logs.columns.places.reshape(-1)[flat]
    first = [(0, (int(row["offset"]), int(row["length"])))] if row["present"] else []
    return {name: index.of(flat) for name, index in logs.lines.items()} | {"results": first}


def read_texts(directory: Path, lines: Lines, turn: int) -> Texts:
    """Read them from disk; what is not believed counts as not there. Raises OSError."""
    results = _believed(directory, lines, _RESULTS, check_result)
    answers = _believed(directory, lines, _ANSWERS, check_answer)
    outputs = [place for number, place in lines["outputs"] if number == turn]
    events = [place for _, place in lines["events"]][-_MOST_EVENTS:]
    result, answer = results.get(turn), answers.get(turn)
    named = (answer or result or {}).get("prompt_sha256")
    return Texts(
        result=result,
        answer=answer,
        earlier=[(results.get(number), answers.get(number)) for number in range(turn)],
        output=_output(directory / "outputs.jsonl", outputs, result),
        prompt=_prompt(directory, named) if isinstance(named, str) else None,
        events=[each for place in events if (each := _record(directory / "events.jsonl", place))],
        steps=_steps(directory, [place for _, place in lines["calls"][:_MOST_CALLS]]),
        turns=[
            {"turn": number, "passed": each["passed"], "total": each["total"]}
            for number, each in sorted(results.items())
        ],
    )


def as_response(texts: Texts, missing_why: str | None) -> Record:
    """The sample as the page gets it; its changes come separately."""
    result, output = texts.result, texts.output
    text = output.get("output") if output else (result or {}).get("output_tail") or None
    return {
        "result": result,
        "answer": texts.answer,
        "prompt": texts.prompt,
        "output": text,
        "output_bytes": output.get("output_bytes") if output else None,
        "output_cut": bool(output and text and LEFT_OUT in text),
        "events": [event_in_words(each) for each in texts.events],
        "turns": list(texts.turns),
        "missing_why": missing_why,
    }


def why_missing(logs: Logs, key: SampleKey, texts: Texts) -> str:
    """Why a sample, or a turn of it, has no final line, in words."""
    if texts.answer is not None:
        return "answered, and not graded yet"
    found = logs.events_seen.reason(*key)
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


def _steps(directory: Path, places: Sequence[Place]) -> list[Record]:
    """What an agent and its model said."""
    found = (_record(directory / "calls.jsonl", place) for place in places)
    calls = [each for each in found if each and not each.get("failed")]
    speaks = None
    with suppress(ConflictError, OSError):
        speaks = interface_of(read_run(directory / "run.json"), str(calls[0]["format"])) if calls else None
    return [step_as_json(step) for step in steps_of(calls, speaks)]


def _record(path: Path, place: Place) -> Record | None:
    with suppress(FileNotFoundError, Flaw):  # cut or replaced since: the next look tells of it
        return read_record(read_at(path, *place))
    return None


def _believed(
    directory: Path, lines: Lines, names: Sequence[str], check: Callable[[Mapping[str, Any]], object]
) -> dict[int, Record]:
    """What the last line of each turn says, if it is believed."""
    found = {}
    for name in names:
        for turn, place in dict(lines[name]).items():
            record = _record(directory / f"{name}.jsonl", place) or {}
            with suppress(Flaw):
                check(record)
                found[turn] = record
    return found


def _prompt(directory: Path, sha256: str) -> str | None:
    """The prompt of that hash, which a record named: nothing else is ever looked for in the folder."""
    if _HASH.fullmatch(sha256):
        with suppress(UnicodeDecodeError):  # no prompt that a run has written
            return stored_prompt(directory, sha256)
    return None


def _output(path: Path, places: Sequence[Place], result: Record | None) -> Record | None:
    """The output of the very grading that the result is of; others were broken off."""
    for place in reversed(places if result else ()):
        record = _record(path, place)
        if record is not None and is_output_of(record, result or {}):
            return record
    return None

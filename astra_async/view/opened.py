"""One sample with all its texts, read from disk on request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from astra_async.agents.transcript import step_as_json
from astra_async.answers.lenient import LenientParser, read_answer
from astra_async.redaction import mask, one_line
from astra_async.report.audited import SolutionKey, read_audit
from astra_async.running.evidence import LEFT_OUT
from astra_async.types.agents import end_in_words
from astra_async.view.replay import ANSWERS, RESULTS, Replayed, read_texts, replayed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.types import SampleKey, Solution, Unusable
    from astra_async.view.board import Board
    from astra_async.view.logs import Logs
    from astra_async.view.replay import Lines, Texts

Record = dict[str, Any]
_MOST_EVENTS = 200
_MOST_CALLS = 1_000
_AT_ONCE = 2  # concurrent parsing and comparison of answers
_KEPT = 16


class Samples:
    """Opens samples; must be closed. Diffs are computed in threads and cached."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._lenient = LenientParser()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._kept: OrderedDict[tuple[Any, ...], Replayed] = OrderedDict()

    async def close(self) -> None:
        """Stop the helper process, if one is running."""
        await self._lenient.close()

    async def open(self, model: int, problem: int, sample: int, turn: int = 0) -> Record | None:
        """Return everything about one sample; None if it is not planned. Raises OSError."""
        flat = self._board.flat(model, problem, sample)
        run = self._board.run_of(model)
        if flat is None:
            return None
        lines = lines_of_sample(run.logs, flat)
        texts = await asyncio.to_thread(read_texts, run.directory, lines, turn)
        places = (dict(lines[name]).get(turn) for name in (*ANSWERS, *RESULTS))
        which = run.directory, run.plan, *places
        found = await self._replayed(which, texts)
        key = self._board.key(model, problem, sample)
        return as_response(
            run.directory, texts, None if texts.result else why_missing(run.logs, key, texts)
        ) | {
            "transcript": [step_as_json(step) for step in texts.steps],
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
        try:
            read = [await self._read(answer) for answer in (*texts.standing, texts.answer)]
        except ValueError as error:  # the record of an agent's changes is damaged
            return Replayed(files=(), note=str(error))
        return await asyncio.to_thread(replayed, read, texts.prompt, texts.result or {})

    async def _read(self, answer: Record) -> Solution | Unusable:
        return await read_answer(answer["text"], answer["format"], answer["finish_reason"], self._lenient)


def lines_of_sample(logs: Logs, flat: int) -> Lines:
    """Return the positions of a sample's lines, by file."""
    row = logs.columns.places.reshape(-1)[flat]
    first = [(0, (int(row["offset"]), int(row["length"])))] if row["present"] else []
    lines = {name: index.of(flat) for name, index in logs.lines.items()} | {"results": first}
    return lines | {"events": lines["events"][-_MOST_EVENTS:], "calls": lines["calls"][:_MOST_CALLS]}


def as_response(directory: Path, texts: Texts, missing_why: str | None) -> Record:
    """Return a sample in the page's JSON form, without its diff."""
    result, output = texts.result, texts.output
    text = output.get("output") if output else (result or {}).get("output_tail") or None
    return {
        "result": result,
        "agent_end": end_in_words(result or {}),
        "answer": texts.answer,
        "prompt": texts.prompt,
        "output": text,
        "output_bytes": output.get("output_bytes") if output else None,
        "output_cut": bool(output and text and LEFT_OUT in text),
        "events": [event_in_words(each) for each in texts.events],
        "turns": [
            {"turn": number, "passed": each["passed"], "total": each["total"]}
            for number, each in sorted(texts.results.items())
        ],
        "missing_why": missing_why,
        "audit": _audit(directory, result) if result else None,
    }


def _audit(directory: Path, result: Record) -> Record | None:
    """Return the audit of a sample's solution, or None."""
    key = SolutionKey(str(result.get("problem_id")), str(result.get("solution_sha256")))
    line = read_audit(directory).get(key)
    return msgspec.to_builtins(line) if line else None


def why_missing(logs: Logs, key: SampleKey, texts: Texts) -> str:
    """Return the reason why a sample or a turn has no final result."""
    if texts.answer is not None:
        return "answered, not tested yet"
    found = logs.events_seen.reason(*key)
    if found:
        return mask(f"{found[0].replace('_', ' ')}: {found[1]}")
    return f"agent steps so far: {len(texts.steps)}" if texts.steps else "not requested yet, or in progress"


def event_in_words(event: Mapping[str, Any]) -> Record:
    """Return an event as a readable line, with its kind, time, model, problem and sample."""
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

"""Queries over all samples: results per test, failed samples, text search."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.files import read_at
from astra_async.report.problem_tables import passed_untouched
from astra_async.types.records import Flaw, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from astra_async.view.board import Board
    from astra_async.view.logs import LineIndex

Record = dict[str, Any]
Cell = tuple[int, int, int]  # indices of model, problem and sample

MOST_FOUND = 5_000
SEARCH_S = 5.0
# Searchable texts: file and field by kind.
TEXTS = {"answers": ("completions", "text"), "outputs": ("outputs", "output")}
_BLOCK_BYTES = 4 << 20
_FEWEST = 5  # minimum number of samples for the notes "none" and "all"


def tests_of(board: Board, problem: int) -> list[Record]:
    """Return each test of a problem with the share of samples that passed it, per model and overall.

    Only samples whose result lists tests count. A test name that occurs twice is listed twice.
    """
    counts = [_counts(board, number, problem) for number in range(len(board.grid.models))]
    name_of = board.grid.problems[problem].id
    untouched = {
        test for run in board.runs for test in passed_untouched(run.directory).get(name_of, frozenset())
    }
    rows = []
    for test in dict.fromkeys(test for each in counts for test in each):
        here = [each.get(test, (0, 0)) for each in counts]
        passed, seen = (sum(each[part] for each in here) for part in (0, 1))
        shares = [hits / samples if samples else None for hits, samples in here]
        note = "untouched" if test[0] in untouched else _note(passed, seen)
        rows.append({"name": test[0], "passed": shares, "all": passed / seen, "note": note})
    return rows


def with_test(board: Board, problem: int, name: str, *, passed: bool) -> Iterator[Cell]:
    """Yield the samples of a problem that passed (or failed) a test of this name."""
    for number, model in enumerate(board.grid.models):
        logs, here = board.run_of(number).logs, board.place(number, problem)
        if here is None:
            continue
        wanted = [
            verdict
            for verdict, (of, tests, bits) in enumerate(logs.columns.verdicts)
            if of == here and _passes(tests, bits, name) is passed
        ]
        places = logs.columns.places[model.pair, here]
        for sample in np.flatnonzero(np.isin(places["verdict"], wanted)):
            yield number, problem, int(sample)


async def with_text(board: Board, text: str, kind: str) -> Record:
    """Find the samples whose answers or outputs contain a text; ASCII letters are case-insensitive.

    The search stops after MOST_FOUND samples or SEARCH_S seconds; `more` is then true. Raises OSError.
    """
    began, more = time.monotonic(), False
    cells: list[Cell] = []
    needle = json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="replace").lower()
    for number, run in enumerate(board.runs):
        name, field = TEXTS[kind]
        blocks = _by_block(run.directory / f"{name}.jsonl", run.logs.lines[name], needle, (field, text))
        found: set[int] = set()
        # Search block by block, so that the search ends if the client disconnects.
        while not more and (block := await asyncio.to_thread(next, blocks, None)) is not None:
            found |= block
            more = len(found) + len(cells) >= MOST_FOUND or time.monotonic() > began + SEARCH_S
        cells += [cell for flat in sorted(found) if (cell := board.cell(number, flat))]
    return {"cells": cells[:MOST_FOUND], "more": more, "seconds": round(time.monotonic() - began, 3)}


def _by_block(path: Path, index: LineIndex, needle: bytes, wanted: tuple[str, str]) -> Iterator[set[int]]:
    """Yield the matching samples of each block: search the raw bytes, then verify the parsed field."""
    places, offsets, lengths = index.columns()
    end = int(offsets[-1] + lengths[-1]) if len(offsets) else 0
    for start in range(0, end, _BLOCK_BYTES):
        block = read_at(path, start, min(_BLOCK_BYTES + len(needle) - 1, end - start)).lower()
        lines: set[int] = set()
        at = block.find(needle)
        while at >= 0:
            line = int(np.searchsorted(offsets, start + at, side="right")) - 1
            lines.add(line)
            stop = int(offsets[line] + lengths[line]) if line >= 0 else 0
            at = block.find(needle, max(at + 1, stop - start))  # continue after this line
        found = ((int(places[line]), int(offsets[line]), int(lengths[line])) for line in lines if line >= 0)
        yield {place for place, *where in found if _holds(read_at(path, *where), *wanted)}


def _holds(content: bytes, name: str, text: str) -> bool:
    try:
        field = read_record(content).get(name)
    except Flaw:
        return False
    wanted = text.encode(errors="replace").lower()
    return isinstance(field, str) and wanted in field.encode(errors="replace").lower()


def _counts(board: Board, model: int, problem: int) -> dict[tuple[str, int], tuple[int, int]]:
    """Return (passed, total) samples of one model by test; equal names are numbered."""
    row = board.grid.models[model]
    logs, here = board.run_of(model).logs, board.place(model, problem)
    if here is None:
        return {}
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    numbers, often = np.unique(logs.columns.places[row.pair, here]["verdict"], return_counts=True)
    for number, count in zip(numbers.tolist(), often.tolist(), strict=True):
        _, tests, bits = logs.columns.verdicts[number]
        for place, test in enumerate(_numbered(tests)):
            passed, seen = counts.get(test, (0, 0))
            counts[test] = passed + count * (bits >> place & 1), seen + count
    return counts


def _numbered(tests: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    before: Counter[str] = Counter()
    for name in tests:
        yield name, before[name]
        before[name] += 1


def _note(passed: int, seen: int) -> str:
    if seen < _FEWEST or passed not in (0, seen):
        return ""
    return "all" if passed else "none"


def _passes(tests: tuple[str, ...], bits: int, name: str) -> bool | None:
    """Return True if all tests of this name passed; None if there is no such test."""
    found = [bool(bits >> place & 1) for place, each in enumerate(tests) if each == name]
    return all(found) if found else None

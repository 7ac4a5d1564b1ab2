"""Samples embedded in the HTML page: answers, tests and output, compressed, failures first.

A chunk is the gzipped JSON of some samples of one entry and problem. Answers to one problem resemble each
other, so they compress well together. `astra show` shows samples that do not fit into the page.
"""

from __future__ import annotations

import base64
import gzip
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from astra_async.files import scan
from astra_async.types.agents import end_in_words
from astra_async.types.records import Flaw, read_head, read_key, read_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry

BUDGET_BYTES = 20_000_000  # maximum of base64 text in the page
_GUESSED_RATIO = 4  # raw characters / base64 characters after gzip; samples are chosen before they are read
_CHUNK_CHARACTERS = 1_000_000
_FIELDS = (
    *("status", "failure", "passed", "total", "tests", "extra_tests", "exit_code", "timed_out", "repairs"),
    *("dropped", "changes", "suspicions", "finish_reason", "usage", "cost_usd", "cost_estimated"),
    *("attempts", "ttft_s", "latency_s", "test_s", "files_changed", "lines_written", "returned_model"),
    *("output_tail", "note", "score", "rewards"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some samples of one entry and problem (indexes in the report), as base64 of gzipped JSON."""

    entry: int
    problem: int
    samples: tuple[int, ...]
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Embedded chunks, and the number of samples that did not fit."""

    chunks: tuple[Chunk, ...]
    left_out: int


@dataclass(frozen=True, slots=True, order=True)
class _Pick:
    """One sample to embed. Sorted picks are in the order of chunks: failures first (`perfect` is 0 or 1)."""

    perfect: int
    entry: int
    problem: int
    sample: int
    part: int
    row: int
    characters: int  # length of the answer and the result line


def embed(entries: Sequence[Entry], budget_bytes: int = BUDGET_BYTES) -> Embedded:
    """Choose, read and compress samples up to the budget."""
    picks = _chosen(entries, budget_bytes)
    answers = _answers(entries, picks)
    total = sum(entry.summary.valid for entry in entries)
    chunks: list[Chunk] = []
    used = 0
    for group in _groups(picks):
        chunk = _chunk(entries, group, answers)
        used += len(chunk.data)
        if used > budget_bytes:
            break
        chunks.append(chunk)
    return Embedded(chunks=tuple(chunks), left_out=total - sum(len(chunk.samples) for chunk in chunks))


def _chosen(entries: Sequence[Entry], budget_bytes: int) -> list[_Pick]:
    """Return the samples to embed, in the order of chunks.

    Low sample numbers of every problem are chosen before higher ones.
    """
    parts = list(_parts(entries))
    if not parts:
        return []
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    perfect, entry, problem, sample, _, _, characters = columns
    order = np.lexsort((problem, entry, sample, perfect))
    sizes = np.cumsum(characters[order])
    fitting = order[: int(np.searchsorted(sizes, budget_bytes * _GUESSED_RATIO, side="right"))]
    kept = (column[fitting].tolist() for column in columns)
    return sorted(_Pick(*values) for values in zip(*kept, strict=True))


def _parts(entries: Sequence[Entry]) -> Iterator[tuple[NDArray[np.integer[Any]], ...]]:
    """Yield the fields of `_Pick` as columns, for the rows of each part of each entry."""
    for number, entry in enumerate(entries):
        for part, (run, rows) in enumerate(entry.rows_by_run()):
            here = np.array([entry.places[problem] for problem in run.problems], dtype=np.int64)
            columns = (
                rows["passed"] == rows["total"],
                np.full(len(rows), number),
                here[rows["problem"]],
                rows["sample"],
                np.full(len(rows), part),
                np.arange(len(rows)),
                rows["output_characters"].astype(np.int64) + rows["length"],
            )
            yield (*(column.astype(np.int32) for column in columns[:-1]), columns[-1])


def _groups(picks: Iterable[_Pick]) -> Iterator[list[_Pick]]:
    """Yield groups of selected samples with the same entry, problem and outcome.

    Each group is small enough to be unpacked in a browser.
    """
    for _, group in groupby(picks, key=lambda pick: (pick.perfect, pick.entry, pick.problem)):
        piece: list[_Pick] = []
        size = 0
        for pick in group:
            if piece and size + pick.characters > _CHUNK_CHARACTERS:
                yield piece
                piece, size = [], 0
            piece.append(pick)
            size += pick.characters
        yield piece


def _chunk(entries: Sequence[Entry], picks: Sequence[_Pick], answers: Mapping[_Pick, str]) -> Chunk:
    run, rows = list(entries[picks[0].entry].rows_by_run())[picks[0].part]
    samples = {}
    for pick, record in zip(picks, run.lines(rows[[pick.row for pick in picks]]), strict=True):
        kept = {name: record.get(name) for name in _FIELDS}
        samples[str(pick.sample)] = kept | {"answer": answers.get(pick), "agent_end": end_in_words(record)}
    packed = gzip.compress(orjson.dumps(samples), compresslevel=6, mtime=0)
    return Chunk(
        entry=picks[0].entry,
        problem=picks[0].problem,
        samples=tuple(pick.sample for pick in picks),
        data=base64.b64encode(packed).decode(),
    )


def _answers(entries: Sequence[Entry], picks: Sequence[_Pick]) -> dict[_Pick, str]:
    """Return the texts of the chosen answers, from one pass over each run's completions.jsonl."""
    wanted: defaultdict[Path, dict[tuple[str, str, str, int], _Pick]] = defaultdict(dict)
    for pick in picks:
        entry = entries[pick.entry]
        key = entry.model, entry.format, entry.problem_ids[pick.problem], pick.sample
        wanted[entry.parts[pick.part][0].directory / "completions.jsonl"][key] = pick
    return {pick: text for path, missing in wanted.items() for pick, text in _texts(path, missing)}


def _texts(path: Path, missing: dict[tuple[str, str, str, int], _Pick]) -> Iterator[tuple[_Pick, str]]:
    for _, _, line in scan(path):
        with suppress(Flaw):
            if pick := missing.pop(read_key(read_head(line, b"text")), None):
                yield pick, str(read_line(line).get("text", ""))
        if not missing:
            return

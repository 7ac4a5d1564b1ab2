"""Data of the overview page: leaderboard, history of the scores, live state and events."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.redaction import one_line
from astra_async.report.costs import mean_cost_usd
from astra_async.report.deciding import ahead, as_recorded, shown_state
from astra_async.report.entries import entries_of
from astra_async.report.load import run_of
from astra_async.report.until_sentences import sentence, status_line
from astra_async.stats.intervals import total_interval
from astra_async.view.board import FAILURE_NAMES
from astra_async.view.opened import event_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from astra_async.report.deciding import Compared
    from astra_async.report.entries import Entry
    from astra_async.view.board import Board
    from astra_async.view.logs import Logs

    Entries = Mapping[tuple[int, int], Entry]

Record = dict[str, Any]
EVENTS_SHOWN = 100
POINTS = 200  # per model


def run_summary(board: Board) -> Record:
    """Return everything about the runs except their samples."""
    grid = board.grid
    loading = [share for run in board.runs if (share := run.loading) is not None]
    entries = _entries(board)
    return {
        "directories": [str(run.directory) for run in board.runs],
        "states": [run.state for run in board.runs],
        "state": board.state,
        "version": board.version,
        "loading": min(loading) if loading else None,
        "models": [
            {
                "id": number,
                "name": model.name,
                "format": model.format,
                "label": model.label,
                "directory": model.run,
            }
            for number, model in enumerate(grid.models)
        ],
        "problems": [
            {
                "id": info.id,
                "name": info.name,
                "skill": info.main_skill,
                "sub_skills": info.sub_skills,
                "total": total,
            }
            for info, total in zip(grid.problems, board.totals(), strict=True)
        ],
        "samples": grid.samples,
        "failures": FAILURE_NAMES,
        "repairs": board.names("repairs"),
        "suspicions": board.names("suspicions"),
        "headline": headline(board, entries),
        "deciding": deciding(board, entries),
        "turns": max((run.logs.settings.turns for run in board.runs), default=0),
        "warnings": [line for run in board.runs for line in run.warnings()],
    }


def headline(board: Board, entries: Entries) -> list[Record]:
    """Return each model's leaderboard numbers, computed by the functions of the report."""
    if not entries:
        return []
    return [
        {"model": number}
        | _standing(entries[model.run, model.pair])
        | _after_turns(board.run_of(number).logs, model.pair)
        for number, model in enumerate(board.grid.models)
    ]


def deciding(board: Board, entries: Entries) -> list[Record]:
    """Return, for each run with `--until`, what is decided or open and the next round's cost, as recorded."""
    found = []
    for number, run in enumerate(board.runs):
        record = run.logs.settings.deciding
        costs = {
            (entry.model, entry.format): mean_cost_usd(entry)
            for (place, _), entry in entries.items()
            if place == number
        }
        with suppress(LookupError, TypeError, ValueError, AttributeError):  # run.json was edited by hand
            pairs = as_recorded(record, run.logs.settings.formats) if record else []
            words = status_line(record, pairs, ahead(record, pairs, costs)) if pairs else ""
            shown = [_compared(each, record) for each in pairs]
            found.append({"directory": str(run.directory), "words": words, "pairs": shown})
    return [each for each in found if each["pairs"]]


def _compared(each: Compared, record: Mapping[str, Any]) -> Record:
    look = each.looks[-1] if each.looks else None
    return {
        "models": " and ".join(filter(None, (each.a, each.b))),
        "format": each.format,
        "state": shown_state(each.state, record["until"]),
        "k": each.k,
        "difference": look.difference if look else None,
        "interval": look.interval if look else None,
        "sentence": sentence(each, record),
    }


def _entries(board: Board) -> Entries:
    """Return entries by (run, pair); empty during the first reading, when numbers would be partial."""
    if any(run.loading is not None for run in board.runs):
        return {}
    entries: dict[tuple[int, int], Entry] = {}
    for number, run in enumerate(board.runs):
        if run.plan:
            loaded = run_of(run.directory, run.logs.settings, run.logs.columns, run.logs.turns["cost_usd"])
            entries |= {(number, entry.parts[0][1]): entry for entry in entries_of([loaded])}
    return entries


def _standing(entry: Entry) -> Record:
    summary = entry.summary
    return {
        "n": summary.problems,
        "k": summary.k,
        "valid": summary.valid,
        "planned": summary.planned,
        "complete": summary.complete,
        "mean_score": summary.mean_score,
        "interval": total_interval(entry.begun(entry.means), entry.families_of(entry.valid > 0)),
        "pass_at_1": summary.pass_at_1,
        "median_sd": summary.median_sd,
    }


def _after_turns(logs: Logs, pair: int) -> Record:
    """Return the mean score of a model's samples after their latest follow-up turn, and the missing turns.

    `after_turns` equals the report's score after the last turn if no turn is missing. It is None for a run
    without follow-up turns. `turns_missing` counts the samples with a missing turn.
    """
    places, turns = logs.columns.places[pair], logs.turns[pair]
    present = places["present"] == 1
    begun = present.any(axis=1)
    if not logs.settings.turns or not begun.any():
        return {"after_turns": None, "turns_missing": 0}
    scores = np.where(turns["usable"], turns["score"], places["score"])
    means = np.where(present, scores, 0).sum(axis=1)[begun] / present.sum(axis=1)[begun]
    return {"after_turns": float(means.mean()), "turns_missing": int(logs.missing_turns()[pair].sum())}


def history(board: Board) -> Record:
    """Return the course of each model's mean score, in the order in which samples were finished.

    `t` is in seconds since the first start in that directory. Each model has at most POINTS points, including
    the last.
    """
    points: list[Record] = []
    for number, model in enumerate(board.grid.models):
        logs = board.run_of(number).logs
        start = _start(logs)
        points += [
            {"t": round(second - start, 3), "model": number, "mean_score": mean, "valid": valid}
            for second, mean, valid in _course(logs.columns.places[model.pair])
        ]
    return {"points": points}


def _start(logs: Logs) -> float:
    try:
        return datetime.fromisoformat(logs.columns.started_at).timestamp()
    except ValueError:
        finished = logs.columns.places["finished"][logs.columns.places["present"] == 1]
        return float(np.nanmin(finished)) if finished.size and not np.isnan(finished).all() else 0.0


def _course(places: NDArray[np.void]) -> list[tuple[float, float, int]]:
    """Return (seconds, mean score, valid samples) of one model after each sample, thinned out.

    The score is the mean of the per-problem means, over the problems begun. A sample changes only its own
    problem's mean, so the sum over problems is the cumulative sum of these changes.
    """
    rows = places[(places["present"] == 1) & ~np.isnan(places["finished"])]
    if not len(rows):
        return []
    rows = rows[np.lexsort((rows["finished"], rows["problem"]))]
    scores = rows["score"]
    first = np.flatnonzero(np.diff(rows["problem"], prepend=np.uint32(0xFFFFFFFF)))
    lengths = np.diff(np.append(first, len(rows)))
    sums = np.cumsum(scores)
    sums -= np.repeat(sums[first] - scores[first], lengths)
    means = sums / (np.arange(len(rows)) - np.repeat(first, lengths) + 1)
    changes = np.diff(means, prepend=0.0)
    changes[first] = means[first]
    begins = np.zeros(len(rows))
    begins[first] = 1
    order = np.argsort(rows["finished"], kind="stable")
    course = np.cumsum(changes[order]) / np.cumsum(begins[order])
    kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), POINTS)).astype(np.int64))
    return [(float(rows["finished"][order[i]]), float(course[i]), int(i) + 1) for i in kept]


def labelled(board: Board) -> Record:
    """Return (model, problem, sample, class, source) of every sample with an error class."""
    column = np.frombuffer(board.column("label") or b"", dtype=np.uint8).reshape(board.grid.shape)
    found = []
    for place in np.argwhere(column):
        model, problem, sample = map(int, place)
        given = board.run_of(model).labels.get(board.key(model, problem, sample))
        found += [[model, problem, sample, *given]] if given else []
    return {"labels": found}


def live_state(board: Board) -> Record:
    """Return the live state of the runs' processes, error counts and the latest events."""
    seen: list[tuple[str, Record]] = []
    errors: list[Record] = []
    for run in board.runs:
        seen += [(str(run.directory), event) for event in run.logs.last_events]
        found = run.logs.events_seen
        errors += [
            {"kind": kind, "model": model, "count": count, "last": one_line(found.last[kind, model])}
            for (kind, model), count in found.counts.items()
        ]
    seen = sorted(seen, key=lambda pair: str(pair[1].get("at") or ""))[-EVENTS_SHOWN:]
    lives = [run.live | {"running": run.state == "running"} if run.live else None for run in board.runs]
    left = [live.get("seconds_left") for live in lives if live and live["running"]]
    return {
        "runs": lives,
        "errors": sorted(errors, key=lambda error: -error["count"]),
        "events": [event_in_words(event) | {"directory": directory} for directory, event in seen],
        "eta_s": max((seconds for seconds in left if isinstance(seconds, int | float)), default=None),
    }

"""Progress of a run, computed from the open run or from the files of its directory.

A View contains plain values only, so that a display (see `cli/display.py`) cannot change the run.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from astra_async.listing import counted, some
from astra_async.running.description import missing_cells
from astra_async.running.missing import missing_by_kind
from astra_async.running.recorded import Spent, readable_records, record_headers, spent, valid_records
from astra_async.types.records import Flaw, read_key
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.asking.throttle import PoolState
    from astra_async.config import RunConfig
    from astra_async.metrics import Summary
    from astra_async.report.load import Run
    from astra_async.report.turn_states import Courses
    from astra_async.running.description import Cell
    from astra_async.running.model_pools import AnyPool
    from astra_async.running.runner import Runner
    from astra_async.types import AnswerKey, RunSandbox

_RECENT_S = 600.0  # window for the rate of verdicts in a run directory


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that is open; `drive` runs it, and the display and live.json show its progress."""

    config: RunConfig
    runner: Runner
    pools: Mapping[str, AnyPool]
    sandbox: RunSandbox | None

    def stop(self) -> None:
        """Stop starting work; requests and tests under way finish and are recorded."""
        self.runner.stop()
        if self.sandbox:
            self.sandbox.stop_waiting()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """Display row of one (model, format).

    Scores are computed from the valid samples so far and are None without any. `after_turns` is the mean
    score after the last follow-up turn; it is only read from a directory. Tokens and cost cover the whole run
    directory, including earlier invocations. `cost_incomplete` is true if the cost of an answer is unknown.
    """

    model: str
    format: str
    final: int
    planned: int
    mean_score: float | None
    pass_at_1: float | None
    after_turns: float | None = None
    in_flight: int = 0
    concurrency: int = 0
    waiting: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    rate_limited: int = 0
    retries: int = 0
    cost_usd: float | None = None
    cost_incomplete: bool = False
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Snapshot of a run for the display.

    Attributes:
        graded: False if answers are only recorded.
        calls_per_minute: answers per minute.
        tests_per_minute: verdicts per minute.
        left_s: estimated seconds until the run is complete.
        last: the last event, in one line.
        note: state of the run, such as "stopping".
        doing: preparations that verdicts wait for, such as image builds.
        most_turns: maximum number of follow-up turns of a sample.
        turns_final: number of follow-up turns with a final line, likewise `turns_under_way` and
            `turns_missing`.
    """

    models: tuple[ModelView, ...]
    planned: int
    answered: int
    final: int
    graded: bool = True
    missing: Mapping[str, int] = field(default_factory=dict)
    containers: int = 0
    containers_waiting: int = 0
    calls_per_minute: float | None = None
    tests_per_minute: float | None = None
    elapsed_s: float = 0.0
    left_s: float | None = None
    last: str = ""
    note: str = ""
    doing: tuple[str, ...] = ()
    most_turns: int = 0
    turns_final: int = 0
    turns_under_way: int = 0
    turns_missing: int = 0

    @property
    def done(self) -> int:
        """Number of completed samples."""
        return self.final if self.graded else self.answered

    @property
    def cost_usd(self) -> float | None:
        """Cost of all models in US dollars; None if no price is known.

        The formats of a model share one pool, so its cost is counted once.
        """
        costs = {row.model: row.cost_usd for row in self.models if row.cost_usd is not None}
        return sum(costs.values()) if costs else None

    @property
    def cost_incomplete(self) -> bool:
        """True if `cost_usd` is a lower bound, because the cost of some answers is unknown."""
        return any(row.cost_incomplete for row in self.models)


def view_of(opened: OpenRun, *, stopping: bool) -> View:
    """Return a snapshot of an open run; scores and completeness cover the whole run directory."""
    runner, sandbox = opened.runner, opened.sandbox
    tally, speed = runner.tally, runner.speed
    shown, is_stopping = set(runner.plan.models), runner.stopping.is_set()
    calls, tests = speed.per_minute(tally.answered, tally.final)
    return View(
        models=tuple(
            _row(summary, runner.directory.earlier.get(summary.model), pool.state, stopping=is_stopping)
            if (pool := opened.pools.get(summary.model))
            else _row(summary)
            for summary in runner.metrics.summaries()
            if summary.model in shown
        ),
        planned=tally.planned,
        answered=tally.answered,
        final=tally.final,
        graded=sandbox is not None,
        missing={kind: count for kind, count in tally.missing.items() if count},
        containers=sandbox.running if sandbox else 0,
        containers_waiting=max(0, tally.grading + tally.turns.grading - sandbox.running) if sandbox else 0,
        calls_per_minute=calls,
        tests_per_minute=tests if sandbox and speed.has_begun(tally.final) else None,
        elapsed_s=speed.elapsed_s,
        left_s=runner.seconds_left,
        last=_event_line(runner.directory.last_event),
        note="stopping" if stopping else "",
        doing=tuple(activities(runner)),
        most_turns=runner.setup.turns.most,
        turns_final=tally.turns.final,
        turns_under_way=tally.turns.asking + tally.turns.grading,
        turns_missing=tally.turns.missing.total(),
    )


def activities(runner: Runner) -> Iterator[str]:
    """Yield a line for each kind of activity: interim analysis, agents, image builds, test discovery."""
    if runner.deciding and runner.deciding.message:
        yield runner.deciding.message
    agents, grading = runner.setup.asking.agents, runner.setup.grading
    if agents and (agents.runs.running or agents.runs.waiting):
        runs = agents.runs
        yield f"agents: {runs.running} running in {counted(runs.slots, 'slot')}, {runs.waiting} waiting"
    if grading is None:
        return
    making = grading.making
    if making and making.pending:
        waiting = counted(len(making.pending), "problem")
        yield (
            f"images: {making.made} of {making.to_make} built, {waiting} waiting; "
            + _some([(what, began) for what, began in making.doing.values()])
        )
    if learning := grading.expectations.learning:
        known = f"{grading.expectations.decided} of {counted(len(runner.plan.problem_ids), 'problem')}"
        yield f"expected tests: known for {known}; discovering {_some(list(learning.items()))}"


def _some(things: Sequence[tuple[str, float]]) -> str:
    """Format the oldest activities with their duration in seconds, and the number of the others."""
    now = time.monotonic()
    oldest = sorted(things, key=lambda thing: thing[1])
    return some([f"{what} ({now - began:.0f} s)" for what, began in oldest])


def view_of_directory(path: Path) -> tuple[View, set[Cell]]:
    """Return a snapshot of a run directory, and each (model, format, problem) with missing samples or turns.

    The run may be running, finished or killed. The directory is neither locked nor changed.
    """
    import numpy as np  # imported here because runs do not need numpy

    from astra_async.report.load import load_run

    run, earlier = load_run(path), spent(path)
    answered = answered_keys(path)
    times = sorted(run.rows["finished"][~np.isnan(run.rows["finished"])].tolist())
    events = [event for _, event in readable_records(path / "events.jsonl")]
    summaries = run.metrics.summaries()
    planned, final = (sum(getattr(each, name) for each in summaries) for name in ("planned", "valid"))
    last = _seconds(str(events[-1].get("at", ""))) if events else None
    began, ends = _seconds(run.settings.created_at), [*times[-1:], *([last] if last else [])]
    per_minute = _recent_per_minute(times)
    courses = _courses_of(run) if run.settings.turns else ()
    after = {(each.entry.model, each.entry.format): each.last_score for each in courses}
    open_turns = [cell for each in courses for cell in each.missing]
    rows = (_row(summary, earlier.get(summary.model)) for summary in summaries)
    view = View(
        models=tuple(replace(row, after_turns=after.get((row.model, row.format))) for row in rows),
        planned=planned,
        answered=max(len(answered), final),
        final=final,
        graded=len(run.rows) > 0 or not answered,
        missing=missing_by_kind(run, answered),
        most_turns=run.settings.turns,
        turns_missing=len(open_turns),
        turns_final=len({key for key, _, _ in valid_records(path / "turn_results.jsonl")}),
        tests_per_minute=per_minute,
        elapsed_s=max(0.0, max(ends) - began) if ends and began is not None else 0.0,
        left_s=60 * (planned - final) / per_minute if per_minute else None,
        last=_event_line(events[-1] if events and final < planned else None),
    )
    return view, missing_cells(run.metrics, read_run(path / "run.json")) | set(open_turns)


def _courses_of(run: Run) -> Sequence[Courses]:
    from astra_async.report.entries import entries_of  # imports scipy, which only runs with turns need here
    from astra_async.report.turn_states import courses_of

    return courses_of(entries_of((run,)))


def answered_keys(path: Path) -> set[AnswerKey]:
    """Return the samples with an answer in a run directory; empty if the directory does not exist."""
    keys: set[AnswerKey] = set()
    for record in record_headers(path / "completions.jsonl"):
        with suppress(Flaw):
            keys.add(read_key(record))
    return keys


def _recent_per_minute(times: Sequence[float]) -> float | None:
    """Return verdicts per minute in the last _RECENT_S of a run; `times` are sorted, in seconds."""
    recent = times[bisect_right(times, times[-1] - _RECENT_S) :] if times else []
    span = recent[-1] - recent[0] if recent else 0.0
    return 60 * (len(recent) - 1) / span if span > 0 else None


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _event_line(event: Mapping[str, Any] | None) -> str:
    """Format an event in one line: local time, kind, model or problem, and detail."""
    if event is None:
        return ""
    seconds = _seconds(str(event.get("at", "")))
    clock = f"{datetime.fromtimestamp(seconds, UTC).astimezone():%H:%M:%S} " if seconds is not None else ""
    who = event.get("model") or event.get("pool") or event.get("problem_id") or ""
    detail = " ".join(str(event.get("detail") or "").split()).removeprefix(f"{who}: ")
    return f"{clock}{event.get('kind', '')} {who}: {detail}".replace("_", " ", 1).rstrip(": ")


def _row(
    summary: Summary, earlier: Spent | None = None, pool: PoolState | None = None, *, stopping: bool = False
) -> ModelView:
    """Return a display row from scores, the cost of earlier invocations, and the state of the pool."""
    earlier = earlier or Spent()
    view = ModelView(
        model=summary.model,
        format=summary.format,
        final=summary.valid,
        planned=summary.planned,
        mean_score=summary.mean_score,
        pass_at_1=summary.pass_at_1,
        tokens_in=earlier.input_tokens + (pool.input_tokens if pool else 0),
        tokens_out=earlier.output_tokens + (pool.output_tokens if pool else 0),
        cost_usd=(earlier.cost_usd + ((pool.cost_usd if pool else None) or 0)) or None,
        cost_incomplete=earlier.unpriced > 0 or (pool is not None and pool.cost_usd is None),
    )
    if pool is None:
        return view
    return replace(
        view,
        in_flight=pool.in_flight,
        concurrency=pool.limit,
        waiting=pool.waiting,
        rate_limited=pool.rate_limited,
        retries=pool.retries,
        state="stopping" if stopping else _pool_state(pool),
    )


def _batches(state: PoolState) -> str:
    """Describe the batches at the provider, and the requests that wait for the next batch."""
    requests = sum(each.requests for each in state.batches)
    oldest_s = max((each.age_s for each in state.batches), default=0.0)
    named = Counter(each.state for each in state.batches)
    states = ", ".join(f"{count} {name}" for name, count in named.items())
    parts = [f"batches: {states}; {requests:,} requests, oldest {_age(oldest_s)}"] if state.batches else []
    if state.waiting:
        parts.append(f"{state.waiting:,} wait for {state.held_by or 'the next batch'}")
    return "; ".join(parts)


def _age(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004


def _pool_state(state: PoolState) -> str:
    """Describe the state of a pool: disabled, paused, waiting or running."""
    if state.dead:
        return state.dead
    if state.batches or (state.limit == 0 and state.waiting):
        return _batches(state)
    if state.paused_for_s > 0:
        return f"paused {state.paused_for_s:.0f} s: {state.pause_reason}"
    if not (state.in_flight or state.waiting):
        return ""
    rate = f", {state.tokens_per_minute / 1000:.0f}k tokens/min" if state.calls_ok else ""
    buckets = ", ".join(f"{bucket.dimension} {max(0.0, bucket.level):,.0f}" for bucket in state.buckets)
    levels = f" ({buckets})" if buckets else ""
    return (f"waits for {state.held_by}{levels}" if state.held_by else "running") + rate

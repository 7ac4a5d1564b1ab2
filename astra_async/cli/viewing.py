"""What the live display shows, gathered from the open rooms at one moment."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.running.progress import ModelView, View

if TYPE_CHECKING:
    from astra_async.asking.throttle import PoolState
    from astra_async.cli.signals import Stopper
    from astra_async.metrics import Summary
    from astra_async.running.opening import OpenRun
    from astra_async.running.progress import Pace


def view_of(opened: OpenRun, pace: Pace, stopper: Stopper) -> View:
    """The run as it stands; scores and completeness cover everything the directory plans."""
    runner, sandbox = opened.runner, opened.sandbox
    tally = runner.tally
    shown = set(runner.plan.models)
    done = tally.final if sandbox else tally.answered
    return View(
        models=tuple(
            _row(opened, summary) for summary in runner.metrics.summaries() if summary.model in shown
        ),
        planned=tally.planned,
        answered=tally.answered,
        final=tally.final,
        missing=dict(tally.missing),
        containers=sandbox.running if sandbox else 0,
        containers_waiting=max(0, tally.grading - sandbox.running) if sandbox else 0,
        elapsed_s=pace.elapsed_s,
        left_s=pace.left_s(done, tally.planned),
        note="stopping" if stopper.received is not None else "",
    )


def _row(opened: OpenRun, summary: Summary) -> ModelView:
    view = ModelView(
        model=summary.model,
        format=summary.format,
        final=summary.valid,
        planned=summary.planned,
        mean_score=summary.mean_score,
        pass_at_1=summary.pass_at_1,
    )
    pool = opened.pools.get(summary.model)
    if pool is None:
        return view
    shown = _with_pool(view, pool.state)
    return replace(shown, state="stopping") if opened.runner.stopping.is_set() else shown


def _with_pool(view: ModelView, state: PoolState) -> ModelView:
    return replace(
        view,
        in_flight=state.in_flight,
        concurrency=state.limit,
        waiting=state.waiting,
        tokens_in=state.input_tokens,
        tokens_out=state.output_tokens,
        rate_limited=state.rate_limited,
        retries=state.retries,
        cost_usd=state.cost_usd or None,
        state=_why(state),
    )


def _why(state: PoolState) -> str:
    """What the model's calls wait for, as a person would say it."""
    if state.dead:
        return state.dead
    if state.paused_for_s > 0:
        return f"paused {state.paused_for_s:.0f} s: {state.pause_reason}"
    if not (state.in_flight or state.waiting):
        return ""
    rate = f", {state.tokens_per_minute / 1000:.0f}k tokens/min" if state.calls_ok else ""
    buckets = ", ".join(f"{bucket.dimension} {bucket.level:,.0f}" for bucket in state.buckets)
    levels = f" ({buckets})" if buckets else ""
    return (f"waits for {state.held_by}{levels}" if state.held_by else "running") + rate

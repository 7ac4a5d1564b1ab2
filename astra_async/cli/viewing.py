"""What the live display shows, gathered from the open rooms at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.progress import ModelView, View

if TYPE_CHECKING:
    from astra_async.cli.opening import OpenRun
    from astra_async.cli.signals import Stopper
    from astra_async.metrics import Summary
    from astra_async.progress import Pace


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
        missing={kind: count for kind, count in tally.missing.items()},
        containers=sandbox.running if sandbox else 0,
        containers_waiting=max(0, tally.grading - sandbox.running) if sandbox else 0,
        elapsed_s=pace.elapsed_s,
        left_s=pace.left_s(done, tally.planned),
        note="stopping" if stopper.received is not None else "",
    )


def _row(opened: OpenRun, summary: Summary) -> ModelView:
    state = opened.pools[summary.model].state
    return ModelView(
        model=summary.model,
        format=summary.format,
        final=summary.valid,
        planned=summary.planned,
        mean_score=summary.mean_score,
        pass_at_1=summary.pass_at_1,
    )

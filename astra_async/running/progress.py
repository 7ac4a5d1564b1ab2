"""The live display: what is done, how it scores so far, and what anything is waiting for.

On a terminal a table that redraws itself; elsewhere a line a minute without control characters, or
JSON lines with `--log-json`. Rendering is a pure function of a View, so that a slow terminal can never
reach into the run.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from astra_async.running.log import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console
    from rich.table import Table

    from astra_async.types import Trouble

Style = Literal["live", "lines", "json"]
_REDRAW_S = 0.5
_LINE_S = 60.0
_MINUTE_S, _HOUR_S = 60, 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One (model, format): scores are over its valid samples so far, None while there are none."""

    model: str
    format: str
    final: int
    planned: int
    mean_score: float | None
    pass_at_1: float | None
    in_flight: int = 0
    concurrency: int = 0
    waiting: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    rate_limited: int = 0
    retries: int = 0
    cost_usd: float | None = None
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the display shows at one moment."""

    models: tuple[ModelView, ...]
    planned: int
    answered: int
    final: int
    missing: Mapping[Trouble, int] = field(default_factory=dict)
    containers: int = 0
    containers_waiting: int = 0
    elapsed_s: float = 0.0
    left_s: float | None = None
    note: str = ""


class Pace:
    """Estimates the time left from what was finished since the display began."""

    def __init__(self, final: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at = clock()
        self._began_with = final

    @property
    def elapsed_s(self) -> float:
        """Seconds since the display began."""
        return self._clock() - self._began_at

    def left_s(self, final: int, planned: int) -> float | None:
        """Seconds until `planned` at the average pace so far; None before anything was finished."""
        done = final - self._began_with
        return self.elapsed_s / done * (planned - final) if done > 0 else None


async def display(view: Callable[[], View], console: Console, style: Style) -> None:
    """Show the view until cancelled, and once more then."""
    if style == "live":
        await _display_live(view, console)
    else:
        await _display_lines(view, console, style)


def line(view: View) -> str:
    """The view in one line of plain text."""
    scores = ", ".join(
        f"{row.model}/{row.format} {_percent(row.mean_score)} ({row.final}/{row.planned})"
        for row in view.models
    )
    return (
        f"{view.final}/{view.planned} samples, {view.answered} answers; {scores}; {_counts(view)}; "
        f"{duration(view.elapsed_s)} elapsed, {duration(view.left_s)} left{_note(view)}"
    )


def table(view: View) -> Table:
    """The view as a table."""
    from rich.table import Table

    grid = Table(
        title=f"{view.final} of {view.planned} samples", title_justify="left", caption=_caption(view)
    )
    grid.caption_justify = "left"
    for name in ("model", "samples", "score", "pass@1", "calls", "tokens in/out", "429", "cost", "state"):
        grid.add_column(
            name, justify="left" if name in ("model", "state") else "right", no_wrap=name != "state"
        )
    for row in view.models:
        grid.add_row(*_cells(row))
    return grid


def duration(seconds: float | None) -> str:
    """Seconds as a person would say them: `45 s`, `3 min 05 s`, `2 h 07 min`; `?` for None."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


async def _display_live(view: Callable[[], View], console: Console) -> None:
    from rich.live import Live

    with Live(table(view()), console=console, auto_refresh=False, transient=True) as live:
        try:
            while True:
                await asyncio.sleep(_REDRAW_S)
                live.update(table(view()), refresh=True)
        finally:
            live.update(table(view()), refresh=True)


async def _display_lines(view: Callable[[], View], console: Console, style: Style) -> None:
    def write() -> None:
        text = encode(asdict(view())).decode() if style == "json" else line(view())
        console.file.write(text + "\n")
        console.file.flush()

    try:
        while True:
            await asyncio.sleep(_LINE_S)
            write()
    finally:
        write()


def _cells(row: ModelView) -> tuple[str, ...]:
    return (
        f"{row.model} ({row.format})",
        f"{row.final}/{row.planned}",
        _percent(row.mean_score),
        _percent(row.pass_at_1),
        f"{row.in_flight}/{row.concurrency}" + (f" +{row.waiting}" if row.waiting else ""),
        f"{_thousands(row.tokens_in)}/{_thousands(row.tokens_out)}",
        str(row.rate_limited),
        "" if row.cost_usd is None else f"${row.cost_usd:.2f}",
        row.state,
    )


def _caption(view: View) -> str:
    return f"{_counts(view)}; {duration(view.elapsed_s)} elapsed, {duration(view.left_s)} left{_note(view)}"


def _counts(view: View) -> str:
    waiting = f" (+{view.containers_waiting} waiting)" if view.containers_waiting else ""
    parts = [f"{view.containers} containers{waiting}"]
    retries = sum(row.retries for row in view.models)
    if retries:
        parts.append(f"{retries} retries")
    parts += [f"{count} {kind}" for kind, count in view.missing.items() if count]
    return ", ".join(parts)


def _note(view: View) -> str:
    return f"; {view.note}" if view.note else ""


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _thousands(count: int) -> str:
    if count < 1000:  # noqa: PLR2004 - below a thousand as it is
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"  # noqa: PLR2004 - a million

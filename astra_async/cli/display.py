"""Live display: redrawn on a terminal; elsewhere one line a minute, or JSON with `--log-json`.

Numbers are never cut: columns that do not fit are omitted, and only model names and messages are shortened.
After a resize the display is drawn again, because terminals wrap old lines differently.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Literal

from astra_async.cli.console import harmless, open_console, tell, tell_record
from astra_async.log import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live
    from rich.text import Text

    from astra_async.running.progress import ModelView, View

Style = Literal["live", "lines", "json"]
_REDRAW_S = 0.5
_FIRST_LINES_S = (5.0, 15.0)  # the first lines are early, because they show the preparation
_LINE_S = 60.0
_LINE_MODELS = 3  # maximum number of models in a plain line
_MINUTE_S, _HOUR_S = 60, 3600
_LEAST_NAME = 24  # minimum width of a model's name, in characters
_LEAST_STATE = 24
_KEPT_MESSAGES = 50
_LEAST_BAR = 10
_AFTER = "after turns"  # only for a run with follow-up turns
_LIVE = ("calls", "429")  # columns only for a running run
# Numbers of a model with all its formats and agents: only in its first row, so that the rows can be summed.
_OF_MODEL = ("calls", "tokens in/out", "429", "cost")
# Columns to omit on a narrow terminal, first ones first; samples and score are always shown.
_OPTIONAL = ("429", "tokens in/out", "pass@1", "calls", "cost", _AFTER)


def _terminal() -> Console:
    return open_console(stderr=True)


class Display:
    """Display of a run on standard error, with messages above it."""

    def __init__(self, style: Style, terminal: Callable[[], Console] = _terminal) -> None:
        self._style = style
        self._terminal = terminal
        self._messages: deque[str] = deque(maxlen=_KEPT_MESSAGES)

    @cached_property
    def _console(self) -> Console:
        """Return the console; rich is not imported without a terminal."""
        return self._terminal()

    def say(self, text: str) -> None:
        """Print one line above the display."""
        if self._style == "live":
            self._messages.append(text)
            self._console.print(text, soft_wrap=True)
        else:
            tell(text)

    async def show(self, view: Callable[[], View]) -> None:
        """Show the view until cancelled, then a last time."""
        if self._style == "live":
            await self._live(view)
        else:
            await self._lines(view)

    async def _live(self, view: Callable[[], View]) -> None:
        size, live = self._console.size, _started(view(), self._console)
        try:
            while True:
                await asyncio.sleep(_REDRAW_S)
                if self._console.size != size:
                    size, live = self._console.size, self._anew(live, view())
                live.update(Screen(view()), refresh=True)
        finally:
            if self._console.size != size:
                live = self._anew(live, view())
            live.update(Screen(view()), refresh=True)
            live.stop()

    def _anew(self, live: Live, view: View) -> Live:
        """Clear the screen and print earlier messages again."""
        live.stop()
        self._console.clear()
        for text in self._messages:
            self._console.print(text, soft_wrap=True)
        return _started(view, self._console)

    async def _lines(self, view: Callable[[], View]) -> None:
        def write() -> None:
            if self._style == "json":
                tell_record(encode(asdict(view())))
            else:
                tell(line(view()))

        try:
            for pause_s in chain(_FIRST_LINES_S, repeat(_LINE_S)):
                await asyncio.sleep(pause_s)
                write()
        finally:
            write()


@dataclass(frozen=True)
class Screen:
    """Renderable of a view for the console's size; with `live`, it includes values of a running process."""

    view: View
    live: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the bar, current actions, and models with wait reasons, within the available size."""
        from rich.text import Text

        width = max(1, options.max_width - 1)  # some terminals wrap after the last column
        view = self.view
        head = [_bar(view, width), *_packed(list(_facts(view, live=self.live)), width), *view.doing]
        tail = [f"last: {view.last}"] if view.last else []
        room = max(1, console.height - len(head) - len(tail) - 2)
        for text in (*head, *_models(view.models, width, room, live=self.live)):
            yield _cropped(text, width)
        for text in tail:  # an error ends with its remedy; only a display that is redrawn needs short lines
            yield _cropped(text, width) if self.live else Text(harmless(text))


def _cropped(text: str, width: int) -> Text:
    from rich.text import Text

    shown = Text(harmless(text), no_wrap=True, overflow="ellipsis")
    shown.truncate(width, overflow="ellipsis")
    return shown


def line(view: View) -> str:
    """Return the view as one line of plain text."""
    return "; ".join(
        filter(
            None,
            (
                f"{view.final}/{view.planned} samples, {view.answered} answers",
                _scores(view.models),
                _turns(view) if view.most_turns else "",
                ", ".join(_counts(view)),
                f"{duration(view.elapsed_s)} elapsed"
                + ("" if view.left_s is None else f", {duration(view.left_s)} left"),
                view.note,
                *view.doing,
            ),
        )
    )


def _scores(rows: Sequence[ModelView]) -> str:
    """Return each model's score; for many models only the range."""
    known = sorted((row for row in rows if row.mean_score is not None), key=lambda row: row.mean_score or 0.0)
    if len(rows) > _LINE_MODELS and known:
        ends = (known[0], known[-1])
        low, high = (f"{row.model}/{row.format} {_percent(row.mean_score)}" for row in ends)
        return f"{len(rows)} models, from {low} to {high}"
    shown = () if len(rows) > _LINE_MODELS else rows
    return ", ".join(
        f"{row.model}/{row.format} {_percent(row.mean_score)} ({row.final}/{row.planned})" for row in shown
    )


def duration(seconds: float | None) -> str:
    """Format seconds: `45 s`, `3 min 05 s`, `2 h 07 min`; `?` for None."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _started(view: View, console: Console) -> Live:
    from rich.live import Live

    live = Live(Screen(view), console=console, auto_refresh=False, transient=True, redirect_stdout=False)
    live.start(refresh=True)
    return live


def _bar(view: View, width: int) -> str:
    share = view.done / view.planned if view.planned else 1.0
    what = "samples" if view.graded else "answers"
    words = f"{view.done} of {view.planned} {what}, {int(100 * share)} %"
    room = width - len(words) - 3
    if room < _LEAST_BAR:
        return words
    full = int(share * room)
    return f"[{'#' * full}{'-' * (room - full)}] {words}"


def _facts(view: View, *, live: bool) -> Iterator[str]:
    if view.note:
        yield view.note
    known = live and view.left_s is not None
    yield f"{duration(view.elapsed_s)} so far" + (f", {duration(view.left_s)} left" if known else "")
    if view.calls_per_minute is not None and view.answered < view.planned:
        yield f"{view.calls_per_minute:.0f} answers/min"
    if view.tests_per_minute is not None:
        yield f"{view.tests_per_minute:.0f} tested/min"
    if view.cost_usd is not None:
        yield _cost(view)
    if view.graded and view.answered > view.final:
        yield f"{view.answered - view.final} answered and not graded"
    if view.most_turns:
        yield _turns(view)
    yield from _counts(view)


def _turns(view: View) -> str:
    under_way = f", {view.turns_under_way} under way" if view.turns_under_way else ""
    missing = f", {view.turns_missing} missing" if view.turns_missing else ""
    return f"{view.turns_final} follow-up turns{under_way}{missing}"


def _counts(view: View) -> Iterator[str]:
    if view.graded and (view.containers or view.containers_waiting):
        waiting = f" (+{view.containers_waiting} waiting)" if view.containers_waiting else ""
        yield f"{view.containers} containers{waiting}"
    retries = sum({row.model: row.retries for row in view.models}.values())
    if retries:
        yield f"{retries} retries"
    yield from (f"{count} {kind.replace('_', ' ')}" for kind, count in view.missing.items() if count)


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Join parts to lines of at most the width, without breaking a part."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += f" | {part}"
        else:
            lines.append(part)
    return lines


def _models(rows: Sequence[ModelView], width: int, room: int, *, live: bool) -> list[str]:
    """Return a table of models and formats that fits into the width and height."""
    cells = [_cells(row) for row in rows]
    for before, row, shown in zip(rows, rows[1:], cells[1:], strict=False):
        if before.model == row.model:
            shown.update(dict.fromkeys(_OF_MODEL, ""))
    names = [name for name in cells[0] if name != "model" and (live or name not in _LIVE)] if cells else []
    names = [name for name in names if name != _AFTER or any(row[name] for row in cells)]
    widths = {name: max(len(name), *(len(row[name]) for row in cells)) for name in names}
    longest = max((len(row["model"]) for row in cells), default=0)
    for name in _OPTIONAL:
        if min(longest, _LEAST_NAME) + sum(widths[each] + 2 for each in names) > width and name in names:
            names.remove(name)
    numbers = sum(widths[name] + 2 for name in names)
    name_width = max(1, min(longest, width - numbers))
    left = width - name_width - numbers - 2
    state_width = left if left >= _LEAST_STATE else 0
    lines = [_line({name: name for name in ("model", *names)}, names, widths, name_width)]
    for row, shown in zip(rows, cells, strict=True):
        text = _line(shown, names, widths, name_width)
        lines.append(f"{text}  {_cut(row.state, state_width)}".rstrip() if state_width else text)
        if row.state and not state_width and not row.state.startswith("running"):
            lines.append(f"  {row.state}")
    if len(lines) > room:
        lines = [*lines[: max(1, room - 1)], f"... and {len(lines) - max(1, room - 1)} more lines"]
    return lines


def _line(cells: dict[str, str], names: Sequence[str], widths: dict[str, int], name_width: int) -> str:
    name = _cut(cells["model"], name_width).ljust(name_width)
    return name + "".join(f"  {cells[each].rjust(widths[each])}" for each in names)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "\u2026"


def _cells(row: ModelView) -> dict[str, str]:
    return {
        "model": f"{row.model} ({row.format})",
        "samples": f"{row.final}/{row.planned}",
        "score": _percent(row.mean_score),
        _AFTER: "" if row.after_turns is None else _percent(row.after_turns),
        "pass@1": _percent(row.pass_at_1),
        "calls": _calls(row),
        "tokens in/out": f"{_thousands(row.tokens_in)}/{_thousands(row.tokens_out)}",
        "429": str(row.rate_limited),
        "cost": _cost(row),
    }


def _calls(row: ModelView) -> str:
    if not row.concurrency:  # no requests are in flight: batches have their own lines
        return "-"
    return f"{row.in_flight}/{row.concurrency}" + (f" +{row.waiting}" if row.waiting else "")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _thousands(count: int) -> str:
    if count < 1000:  # noqa: PLR2004 - below a thousand as it is
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"  # noqa: PLR2004 - a million


def _cost(row: ModelView | View) -> str:
    """Format the cost of a model or run; empty if no cost is known."""
    known = "" if row.cost_usd is None else dollars(row.cost_usd)
    return f">= {known}" if known and row.cost_incomplete else known


def dollars(value: float) -> str:
    """Format dollars with cents; amounts below ten cents have two significant digits."""
    return f"${value:.2f}" if value >= 0.1 or not value else f"${value:.2g}"  # noqa: PLR2004 - ten cents

"""Two quantities against each other: length and score, cost and score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.costs import mean_cost_usd
from astra_async.report.lengths import lengths_of
from astra_async.report.plots.standing import names_of, ranked
from astra_async.report.plots.style import (
    MARKERS,
    SERIES,
    WIDTH_IN,
    Sketch,
    exact_ticks,
    legend_below,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from astra_async.report.entries import Entry
    from astra_async.report.lengths import Lengths
    from astra_async.report.tables import Report

_FEWEST = 3
_LOG_FROM = 8  # a wider range of costs is shown on a logarithmic axis


def sketches(report: Report) -> Iterator[Sketch]:
    """The figures of the sections Length and Cost."""
    begun = [entry for entry in report.entries if entry.summary.valid]
    if begun and len((lengths := lengths_of(begun)[0]).score) >= _FEWEST:
        yield _lengths(lengths)
    priced = [(entry, cost) for entry in ranked(report) if (cost := mean_cost_usd(entry)) is not None]
    if len(priced) > 1:
        yield _costs([entry for entry, _ in priced], [cost for _, cost in priced])


def _lengths(lengths: Lengths) -> Sketch:
    figure, axes = _square()
    inputs = lengths.input
    spread = float(np.ptp(inputs))
    size = 18 + 110 * ((inputs - inputs.min()) / spread if spread else np.full(len(inputs), 0.3))
    axes.scatter(lengths.output, lengths.score, s=size, color=SERIES[0], alpha=0.6, linewidths=0)
    _score_axis(axes)
    axes.margins(0.08)
    exact_ticks(axes.xaxis)
    axes.set_xlabel(f"mean characters of a problem's answers ({lengths.label}, {lengths.format})")
    small, large = f"{inputs.min():,.0f}", f"{inputs.max():,.0f}"
    axes.set_title(f"one dot: one problem; area: prompt of {small} to {large} characters", fontsize=8)
    return Sketch(
        name="lengths",
        title="Length of answers, length of prompts and mean score",
        alt=f"Scatter plot of {len(lengths.score)} problems; the table below gives the correlations.",
        figure=figure,
    )


def _costs(entries: Sequence[Entry], costs: Sequence[float]) -> Sketch:
    figure, axes = _square(legend_rows=(len(entries) + 1) // 2)
    names = names_of(entries)
    for number, (entry, cost, name) in enumerate(zip(entries, costs, names, strict=True)):
        axes.plot(
            [cost],
            [entry.summary.mean_score or 0.0],
            MARKERS[(number + number // len(SERIES)) % len(MARKERS)],
            color=SERIES[number % len(SERIES)],
            markersize=7,
            label=shortened(name),
        )
    _score_axis(axes)
    axes.margins(x=0.1, y=0.1)
    if max(costs) > _LOG_FROM * min(costs):
        _logarithmic(axes)
    else:
        exact_ticks(axes.xaxis)
    axes.set_xlabel("US dollars for a sample, all attempts")
    legend_below(axes, 2)
    said = "; ".join(f"{name} ${cost:.4f}" for name, cost in zip(names, costs, strict=True))
    return Sketch(
        name="costs",
        title="Cost of a sample and mean score",
        alt=f"Scatter plot of cost against mean score: {said}.",
        figure=figure,
    )


def _square(legend_rows: int = 0) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, 3.8 + 0.18 * legend_rows), layout="constrained")
    return figure, figure.add_subplot()


def _logarithmic(axes: Axes) -> None:
    """Ticks at 1, 2 and 5 of each decade, each labelled with its own value."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.9f}".rstrip("0").rstrip("."))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _score_axis(axes: Axes) -> None:
    exact_ticks(axes.yaxis, scale=100)
    axes.set_ylabel("mean score %")

"""Scatter plots: length and score, cost and score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.costs import mean_cost_usd
from astra_async.report.formats import lengths_of
from astra_async.report.plots.chart import SHAPES, Chart, ChartLine, Dots
from astra_async.report.plots.standing import names_of, with_results
from astra_async.report.plots.style import INK, SERIES, Axis, shortened, wide_enough

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.formats import Lengths
    from astra_async.report.tables import Report

_FEWEST = 3
_LOG_FROM = 8  # ratio of the highest to the lowest cost above which the axis is logarithmic
_LEAST_AREA, _MORE_AREA = 5.7, 35.0  # squared radius of the smallest dot, and its range


def charts(report: Report) -> Iterator[Chart]:
    """Yield the figures of the sections Length and Cost."""
    begun = [entry for entry in report.entries if entry.summary.valid]
    if begun and len((lengths := lengths_of(begun)[0]).score) >= _FEWEST:
        yield _lengths(lengths)
    priced = [(entry, cost) for entry in with_results(report) if (cost := mean_cost_usd(entry)) is not None]
    if len(priced) > 1:
        yield _costs([entry for entry, _ in priced], [cost for _, cost in priced])


def _lengths(lengths: Lengths) -> Chart:
    inputs = lengths.input
    spread = float(np.ptp(inputs))
    areas = _LEAST_AREA + _MORE_AREA * (
        (inputs - inputs.min()) / spread if spread else np.full(len(inputs), 0.3)
    )
    output, score = lengths.output.tolist(), lengths.score.tolist()
    small, large = f"{inputs.min():,.0f}", f"{inputs.max():,.0f}"
    return Chart(
        name="lengths",
        title="Length of answers, length of prompts and mean score",
        alt=f"Scatter plot of {len(lengths.score)} problems; the table below gives the correlations.",
        x=wide_enough(
            f"mean characters of a problem's answers ({shortened(lengths.label)}, {lengths.format})",
            output,
            margin=0.08,
        ),
        y=wide_enough("mean score %", score, margin=0.08, scale=100),
        heading=f"Each dot is a problem. Its area is the prompt length, {small} to {large} characters.",
        marks=[Dots(xs=output, ys=score, sizes=np.sqrt(areas).tolist(), opacity=0.6)],
    )


def _costs(entries: Sequence[Entry], costs: Sequence[float]) -> Chart:
    names = names_of(entries)
    scores = [entry.summary.mean_score or 0.0 for entry in entries]
    text = "; ".join(f"{name} ${cost:.4f}" for name, cost in zip(names, costs, strict=True))
    return Chart(
        name="costs",
        title="Cost of a sample and mean score",
        alt=f"Scatter plot of cost against mean score: {text}.",
        x=_cost_axis(costs),
        y=wide_enough("mean score %", scores, margin=0.1, scale=100),
        heading="The line connects the models for which no cheaper model has a higher score.",
        marks=[
            _frontier(costs, scores),
            *(
                Dots(
                    xs=[cost],
                    ys=[score],
                    colour=SERIES[number % len(SERIES)],
                    shape=SHAPES[(number + number // len(SERIES)) % len(SHAPES)],
                    size=3.5,
                    label=shortened(name),
                )
                for number, (cost, score, name) in enumerate(zip(costs, scores, names, strict=True))
            ),
        ],
    )


def _frontier(costs: Sequence[float], scores: Sequence[float]) -> ChartLine:
    """Return the Pareto frontier as a step line: the highest score of a model up to each cost."""
    xs: list[float] = []
    ys: list[float] = []
    for cost, score in sorted(zip(costs, scores, strict=True), key=lambda each: (each[0], -each[1])):
        if ys and score <= ys[-1]:
            continue
        xs += [cost, cost] if ys else [cost]
        ys += [ys[-1], score] if ys else [score]
    return ChartLine(xs=[*xs, max(costs)], ys=[*ys, ys[-1]], colour=INK, width=0.8, dashed=True)


def _cost_axis(costs: Sequence[float]) -> Axis:
    label = "US dollars for a sample, all attempts"
    if min(costs) > 0 and max(costs) > _LOG_FROM * min(costs):
        return Axis(label=label, low=min(costs) / 1.3, high=max(costs) * 1.3, logarithmic=True)
    return wide_enough(label, costs, margin=0.1)

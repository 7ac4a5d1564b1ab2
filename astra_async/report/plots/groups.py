"""Skills, how often each occurs and who is best at it; entries within groups: formats, kinds of failure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.by_skill import KINDS, skills_of
from astra_async.report.formats import both_formats
from astra_async.report.plots.standing import names_of, numbers, ranked
from astra_async.report.plots.style import (
    INK,
    MARKERS,
    MUTED,
    SERIES,
    Sketch,
    cut_note,
    exact_ticks,
    legend_below,
    percent_axis,
    row_figure,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.by_skill import Skill, SkillKind
    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell
    from astra_async.report.tables import Report

_MOST_ENTRIES = len(SERIES)
_MOST_SKILLS = 36
_MOST_ROWS = 48
_NAMED_CHARACTERS = 34
_BESIDE: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
_OUTCOMES = ("all tests passed", "some passed", "none passed", "no usable answer", "other")
_OUTCOME_COLOURS = (SERIES[0], SERIES[5], SERIES[4], SERIES[1], MUTED)


def sketches(report: Report) -> Iterator[Sketch]:
    """The figures of the sections Skills (where there are any), Answer formats and Failures."""
    everybody = ranked(report)
    for kind in KINDS:
        if found := report.table(f"{kind}_skill_frequency").by_name():
            yield _frequency(found, kind)
        if won := report.table(f"{kind}_skill_winners").by_name():
            yield _winners(won, kind)
    for kind in KINDS:
        yield from _skills_of(everybody, kind)
    if pairs := sorted(both_formats(everybody), key=lambda pair: pair.b.rank):
        yield _formats([(pair.a, pair.b) for pair in pairs])
    if begun := [entry for entry in report.entries if entry.summary.valid]:
        yield _failures(begun)


def _skills_of(everybody: Sequence[Entry], kind: SkillKind) -> Iterator[Sketch]:
    best = everybody[:_MOST_ENTRIES]
    found = [skill for skill in skills_of(best, kind) if skill.scores]
    left_out = [
        f"the best {len(best)} of {len(everybody)} models" if len(everybody) > len(best) else "",
        f"the {_MOST_SKILLS} most frequent of {len(found)} skills" if len(found) > _MOST_SKILLS else "",
    ]
    if found:
        yield _skills(found[:_MOST_SKILLS], best, kind, ", ".join(filter(None, left_out)))


def _skills(skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind, left_out: str) -> Sketch:
    names = [f"{skill.name} (n={len(skill.problems)})" for skill in skills]
    figure, axes = row_figure(names, rows_each=max(1.0, 0.42 * len(entries)))
    step = 0.8 / len(entries)
    for number, (entry, label) in enumerate(zip(entries, names_of(entries), strict=True)):
        shift = (number - (len(entries) - 1) / 2) * step
        scores = [
            (place + shift, score)
            for place, skill in enumerate(skills)
            for score in skill.scores
            if score.entry is entry
        ]
        bars = [score.mean for _, score in scores]
        places = [place for place, _ in scores]
        axes.barh(places, bars, height=step * 0.86, color=SERIES[number], label=shortened(label))
        for place, score in scores:
            if score.interval:
                axes.plot(score.interval, [place, place], color=INK, linewidth=0.8)
    percent_axis(axes, "mean score %, 95 % interval over problems (n = problems with this skill)")
    legend_below(axes, 2)
    best = "; ".join(f"{skill.name}: {skill.scores[0].entry.label}" for skill in skills)
    cut = f" ({left_out}; skills.csv has all)" if left_out else ""
    return Sketch(
        name=f"{kind}_skills",
        title=f"Mean score by {KINDS[kind]}{cut}",
        alt=f"Bars of mean score for each {KINDS[kind]} and model{cut}. Highest: {best}.",
        figure=figure,
    )


def _frequency(rows: Sequence[Mapping[str, Cell]], kind: SkillKind) -> Sketch:
    shown = rows[:_MOST_ROWS]
    figure, axes = row_figure([str(row["skill"]) for row in shown])
    counts = numbers(shown, "n")
    axes.barh(range(len(shown)), counts, height=0.66, color=SERIES[0])
    for place, count in enumerate(counts):
        axes.annotate(f"{count:.0f}", (count, place), **_BESIDE)
    axes.set_xlim(0, max(counts) * 1.08)
    axes.set_xlabel("problems")
    exact_ticks(axes.xaxis)
    cut = cut_note(shown, rows, "first skills")
    said = "; ".join(f"{row['skill']} {count:.0f}" for row, count in zip(shown, counts, strict=True))
    return Sketch(
        name=f"{kind}_skill_frequency",
        title=f"Occurrence of each {KINDS[kind]}{cut}",
        alt=f"Bars of the number of problems with each {KINDS[kind]}{cut}: {said}.",
        figure=figure,
    )


def _winners(rows: Sequence[Mapping[str, Cell]], kind: SkillKind) -> Sketch:
    several = len({row["format"] for row in rows}) > 1
    shown = rows[:_MOST_ROWS]
    names = [f"{row['skill']} (n={row['n']})" + (f", {row['format']}" if several else "") for row in shown]
    figure, axes = row_figure(names)
    for place, (row, score) in enumerate(zip(shown, numbers(shown, "mean_score"), strict=True)):
        alone = not row["not_separable"]
        colour = SERIES[0] if alone else "none"
        axes.barh(place, score, height=0.66, color=colour, edgecolor=SERIES[0])
        winners = shortened(str(row["winners"]), _NAMED_CHARACTERS)
        colour = "white" if alone else INK
        axes.annotate(winners, (0, place), color=colour, fontsize=8, **_BESIDE)
    percent_axis(axes, "mean score % of the best (filled: separable from all others; hollow: not)")
    cut = cut_note(shown, rows, "first skills")
    said = "; ".join(f"{name}: {row['winners']}" for name, row in zip(names, shown, strict=True))
    return Sketch(
        name=f"{kind}_skill_winners",
        title=f"Winning models by {KINDS[kind]}{cut}",
        alt=f"A bar for the best model of each {KINDS[kind]}{cut}. {said}.",
        figure=figure,
    )


def _formats(pairs: Sequence[tuple[Entry, Entry]]) -> Sketch:
    names = [xml.label for xml, _ in pairs]
    figure, axes = row_figure(names)
    for number, answer_format in enumerate(("XML", "JSON")):
        scores = [_score(pair[number]) for pair in pairs]
        axes.plot(
            scores,
            range(len(pairs)),
            MARKERS[number],
            color=SERIES[number],
            markersize=6.5,
            fillstyle="full" if number == 0 else "none",
            label=answer_format,
            zorder=3,
        )
    for place, pair in enumerate(pairs):
        axes.plot([_score(one) for one in pair], [place, place], color=MUTED, linewidth=1.2)
    percent_axis(axes, "mean score %")
    legend_below(axes, 2)
    said = "; ".join(
        f"{xml.label} {100 * _score(xml):.1f} and {100 * _score(json):.1f}" for xml, json in pairs
    )
    return Sketch(
        name="formats",
        title="Mean score with XML and with JSON",
        alt=f"Two dots for each model, XML and JSON: {said} %.",
        figure=figure,
    )


def _failures(entries: Sequence[Entry]) -> Sketch:
    names = names_of(entries)
    figure, axes = row_figure(names)
    shares = np.array([_outcome_shares(entry) for entry in entries])
    left = np.zeros(len(entries))
    for number, (title, colour) in enumerate(zip(_OUTCOMES, _OUTCOME_COLOURS, strict=True)):
        axes.barh(range(len(entries)), shares[:, number], left=left, height=0.66, color=colour, label=title)
        left += shares[:, number]
    percent_axis(axes, "% of valid samples")
    legend_below(axes, len(_OUTCOMES))
    said = "; ".join(f"{name} {100 * share:.0f} %" for name, share in zip(names, shares[:, 0], strict=True))
    return Sketch(
        name="failures",
        title="What became of the samples",
        alt=f"Stacked bars of outcomes. Samples that passed all tests: {said}.",
        figure=figure,
    )


def _score(entry: Entry) -> float:
    """The mean score of a complete entry."""
    return math.nan if entry.summary.mean_score is None else entry.summary.mean_score


def _outcome_shares(entry: Entry) -> list[float]:
    valid, failures = entry.summary.valid, entry.summary.failures
    perfect = int(entry.perfect.sum())
    failed = failures.get("tests_failed", 0)
    some = entry.per_problem(lambda rows: (rows["passed"] > 0) & (rows["passed"] < rows["total"]))
    partial = int(some.sum())
    unusable = entry.summary.no_solution
    other = valid - perfect - partial - max(0, failed - partial) - unusable
    return [part / valid for part in (perfect, partial, max(0, failed - partial), unusable, max(0, other))]

"""Figures on skills, answer formats and outcomes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.by_skill import KINDS
from astra_async.report.formats import both_formats
from astra_async.report.plots.chart import SHAPES, Bar, Chart, ChartLine, Dots, Words
from astra_async.report.plots.standing import names_of, numbers, with_results
from astra_async.report.plots.style import INK, MUTED, PAPER, SERIES, Axis, cut_note, percent, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.by_skill import Skill, SkillKind
    from astra_async.report.entries import Entry
    from astra_async.report.plots.chart import Mark
    from astra_async.report.table import Cell
    from astra_async.report.tables import Report

_MOST_ENTRIES = len(SERIES)
_MOST_SKILLS = 36
_MOST_ROWS = 48
_NAMED_CHARACTERS = 34
_OUTCOMES = ("all tests passed", "some passed", "none passed", "no usable answer", "other")
_OUTCOME_COLOURS = (SERIES[0], SERIES[5], SERIES[4], SERIES[1], MUTED)


def charts(report: Report) -> Iterator[Chart]:
    """Yield the figures of the sections Skills, Answer formats and Failures."""
    entries = with_results(report)
    for kind in KINDS:
        if found := report.table(f"{kind}_skill_frequency").by_name():
            yield _frequency(found, kind)
        if won := report.table(f"{kind}_skill_winners").by_name():
            yield _winners(won, kind)
    for kind in KINDS:
        yield from _skills_of(report.skills[kind], entries, kind)
    if pairs := sorted(both_formats(entries), key=lambda pair: pair.b.rank):
        yield _formats([(pair.a, pair.b) for pair in pairs])
    if begun := [entry for entry in report.entries if entry.summary.valid]:
        yield _failures(begun)


def _skills_of(skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind) -> Iterator[Chart]:
    best = entries[:_MOST_ENTRIES]
    names = {entry.name for entry in best}
    theirs = (tuple(score for score in skill.scores if score.entry.name in names) for skill in skills)
    found = [replace(skill, scores=kept) for skill, kept in zip(skills, theirs, strict=True) if kept]
    left_out = [
        f"the best {len(best)} of {len(entries)} models" if len(entries) > len(best) else "",
        f"the {_MOST_SKILLS} most frequent of {len(found)} skills" if len(found) > _MOST_SKILLS else "",
    ]
    if found:
        yield _skills(found[:_MOST_SKILLS], best, kind, ", ".join(filter(None, left_out)))


def _skills(skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind, left_out: str) -> Chart:
    step = 0.8 / len(entries)
    marks: list[Mark] = []
    for number, (entry, label) in enumerate(zip(entries, names_of(entries), strict=True)):
        shift = (number - (len(entries) - 1) / 2) * step
        name = shortened(label)
        for place, skill in enumerate(skills):
            for score in (each for each in skill.scores if each.entry is entry):
                at, thick = place + shift, step * 0.86
                marks.append(Bar(end=score.mean, y=at, thick=thick, colour=SERIES[number], label=name))
                name = ""  # only the first bar of an entry is in the legend
                if score.interval:
                    marks.append(ChartLine(xs=score.interval, ys=(at, at), colour=INK, width=0.8))
    best = "; ".join(f"{skill.name}: {skill.scores[0].entry.label}" for skill in skills)
    cut = f" ({left_out}; skills.csv has all)" if left_out else ""
    return Chart(
        name=f"{kind}_skills",
        title=f"Mean score by {KINDS[kind]}{cut}",
        alt=f"Bars of mean score for each {KINDS[kind]} and model{cut}. Highest: {best}.",
        x=percent("mean score %, 95 % interval over problems (n = problems with this skill)"),
        rows=[shortened(f"{skill.name} (n={len(skill.problems)})") for skill in skills],
        row_height=max(1.0, 0.42 * len(entries)),
        marks=marks,
    )


def _frequency(rows: Sequence[Mapping[str, Cell]], kind: SkillKind) -> Chart:
    shown = rows[:_MOST_ROWS]
    counts = numbers(shown, "n")
    cut = cut_note(shown, rows, "first skills")
    text = "; ".join(f"{row['skill']} {count:.0f}" for row, count in zip(shown, counts, strict=True))
    return Chart(
        name=f"{kind}_skill_frequency",
        title=f"Occurrence of each {KINDS[kind]}{cut}",
        alt=f"Bars of the number of problems with each {KINDS[kind]}{cut}: {text}.",
        x=Axis(label="problems", low=0, high=max(counts) * 1.08, whole=True),
        rows=[shortened(str(row["skill"])) for row in shown],
        marks=[
            mark
            for place, count in enumerate(counts)
            for mark in (Bar(end=count, y=place), Words(x=count, y=place, text=f"{count:.0f}"))
        ],
    )


def _winners(rows: Sequence[Mapping[str, Cell]], kind: SkillKind) -> Chart:
    several = len({row["format"] for row in rows}) > 1
    shown = rows[:_MOST_ROWS]
    names = [f"{row['skill']} (n={row['n']})" + (f", {row['format']}" if several else "") for row in shown]
    marks: list[Mark] = []
    for place, (row, score) in enumerate(zip(shown, numbers(shown, "mean_score"), strict=True)):
        shared = bool(row.get("not_separable", True))  # models with looks have no test in a skill
        marks.append(Bar(end=score, y=place, hollow=shared))
        winners = shortened(str(row["winners"]), _NAMED_CHARACTERS)
        marks.append(Words(x=0, y=place, text=winners, colour=INK if shared else PAPER))
    cut = cut_note(shown, rows, "first skills")
    text = "; ".join(f"{name}: {row['winners']}" for name, row in zip(names, shown, strict=True))
    return Chart(
        name=f"{kind}_skill_winners",
        title=f"Winning models by {KINDS[kind]}{cut}",
        alt=f"A bar for the best model of each {KINDS[kind]}{cut}. {text}.",
        x=percent("mean score % of the best model (filled: separable from all others; hollow: not shown)"),
        rows=[shortened(name) for name in names],
        marks=marks,
    )


def _formats(pairs: Sequence[tuple[Entry, Entry]]) -> Chart:
    places = range(len(pairs))
    text = "; ".join(
        f"{xml.label} {100 * _score(xml):.1f} and {100 * _score(json):.1f}" for xml, json in pairs
    )
    return Chart(
        name="formats",
        title="Mean score with XML and with JSON",
        alt=f"Two dots for each model, XML and JSON: {text} %.",
        x=percent("mean score %"),
        rows=[shortened(xml.label) for xml, _ in pairs],
        marks=[
            *(
                ChartLine(xs=[_score(one) for one in pair], ys=(place, place), colour=MUTED, width=1.2)
                for place, pair in enumerate(pairs)
            ),
            *(
                Dots(
                    xs=[_score(pair[number]) for pair in pairs],
                    ys=places,
                    colour=SERIES[number],
                    shape=SHAPES[number],
                    hollow=number > 0,
                    label=answer_format,
                )
                for number, answer_format in enumerate(("XML", "JSON"))
            ),
        ],
    )


def _failures(entries: Sequence[Entry]) -> Chart:
    names = names_of(entries)
    marks: list[Mark] = []
    shares = [_outcome_shares(entry) for entry in entries]
    for place, parts in enumerate(shares):
        ends = np.cumsum(parts).tolist()
        for number, (start, end) in enumerate(zip([0.0, *ends], ends, strict=False)):
            label = "" if place else _OUTCOMES[number]
            marks.append(Bar(start=start, end=end, y=place, colour=_OUTCOME_COLOURS[number], label=label))
    text = "; ".join(f"{name} {100 * parts[0]:.0f} %" for name, parts in zip(names, shares, strict=True))
    return Chart(
        name="failures",
        title="Outcomes of samples",
        alt=f"Stacked bars of outcomes. Samples that passed all tests: {text}.",
        x=percent("% of valid samples"),
        rows=[shortened(name) for name in names],
        marks=marks,
        legend_columns=len(_OUTCOMES),
    )


def _score(entry: Entry) -> float:
    return math.nan if entry.summary.mean_score is None else entry.summary.mean_score


def _outcome_shares(entry: Entry) -> list[float]:
    valid, failures = entry.summary.valid, entry.summary.failures
    perfect = int(entry.perfect.sum())
    failed = failures.get("tests_failed", 0)
    some = entry.per_problem(lambda rows: (rows["score"] > 0) & (rows["score"] < 1))
    partial = int(some.sum())
    unusable = entry.summary.no_solution
    other = valid - perfect - partial - max(0, failed - partial) - unusable
    return [part / valid for part in (perfect, partial, max(0, failed - partial), unusable, max(0, other))]

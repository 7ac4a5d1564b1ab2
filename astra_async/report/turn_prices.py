"""What each further solve takes: calls, tokens, dollars and seconds, with feedback and by blind samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.table import WHO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.table import Cell
    from astra_async.report.turn_states import Answer, Courses

TURN = Column("turn", "Turn", "count", help="0: the first answer")
_FURTHER = (
    "Further solves come on top of those of the first answers; what was spent on samples that were not"
    " solved is counted. Blind: what is expected of up to r more samples for each, until one passes all"
    " tests, at the price of the first answers."
)


def prices(found: Sequence[Courses]) -> Table:
    """What each further solve took up to a turn, with feedback and by blind samples."""
    places = [(courses, turn) for courses in found for turn in range(1, courses.turns + 1)]
    return Table(
        name="turn_costs",
        title="What each further solve costs",
        columns=(
            *WHO,
            TURN,
            Column("calls", "Calls", "count", help="of all turns up to this one"),
            Column("further", "Further solves", "count", help="samples solved since turn 0"),
            Column("tokens", "Tokens", "number", help="a further solve, input and output"),
            Column("usd", "$", "usd", help="a further solve"),
            Column("seconds", "Seconds", "number", help="a further solve, tests included"),
            Column("blind_calls", "Blind calls", "number", help="expected, by pass@m"),
            Column("blind_further", "Blind solves", "number", help="expected, by pass@m"),
            Column("blind_tokens", "Blind tokens", "number", help="a further solve"),
            Column("blind_usd", "Blind $", "usd", help="a further solve"),
        ),
        rows=tuple(_price_row(courses, turn) for courses, turn in places),
        notes=(_FURTHER,),
        provisional=provisional_of(places),
    )


def provisional_of(places: Sequence[tuple[Courses, int]]) -> frozenset[int]:
    """The rows whose entry has not all results up to their turn."""
    return frozenset(place for place, (courses, turn) in enumerate(places) if not courses.complete(turn))


def _price_row(courses: Courses, turn: int) -> tuple[Cell, ...]:
    later = [answer for course in courses.all for answer in course.answers[1 : turn + 1]]
    further = sum(answer.solved for answer in later)
    calls, blind_further, blind_tokens, blind_usd = _blind(courses, turn)
    return (
        *courses.entry.who,
        turn,
        len(later),
        further,
        _each(math.fsum(answer.tokens for answer in later), further),
        _each(_sum_usd(later), further),
        _each(math.fsum(answer.seconds for answer in later), further),
        calls,
        blind_further,
        _each(blind_tokens, blind_further),
        _each(blind_usd, blind_further),
    )


def _blind(courses: Courses, turn: int) -> tuple[float, float, float, float | None]:
    """Expected calls, further solves, tokens and dollars of up to `turn` more first answers a sample.

    A sample's (j + 1)-th call is made when its first j have failed, which has the chance 1 - pass@j.
    """
    by_m = [courses.blind(m) for m in range(turn + 1)]
    samples = np.where(np.isnan(by_m[turn]), 0, courses.entry.valid)
    calls = sum((np.nan_to_num(1 - solved) for solved in by_m[:turn]), np.zeros(len(samples)))
    further = float(np.nansum((by_m[turn] - by_m[0]) * samples))
    firsts = [course for course in courses.all if samples[course.problem]]
    tokens = math.fsum(course.answers[0].tokens * calls[course.problem] for course in firsts)
    usd = [
        course.answers[0].cost_usd * calls[course.problem]
        for course in firsts
        if course.answers[0].cost_usd is not None
    ]
    return float(calls @ samples), further, tokens, math.fsum(usd) if len(usd) == len(firsts) else None


def _sum_usd(answers: Sequence[Answer]) -> float | None:
    """None where a price is not known."""
    known = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    return math.fsum(known) if len(known) == len(answers) else None


def _each(whole: float | None, solves: float) -> float | None:
    return None if whole is None or solves <= 0 else whole / solves

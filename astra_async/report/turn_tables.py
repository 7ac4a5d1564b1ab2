"""What feedback is worth: score and solved by turn, against as many calls without any.

It is another quantity than the paper's, which knows first answers only, and no part of any other table. The
control is pass@(r+1) of those first answers: what r further blind samples would have solved, for as many
calls. The unit of every interval and test is the problem.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, get_args

import numpy as np

from astra_async.report.by_skill import KINDS, skills_of
from astra_async.report.pairwise import Values, compare_values, in_words, judge, withheld
from astra_async.report.table import WHO, Column, Table, unfinished
from astra_async.report.turn_states import End
from astra_async.stats.intervals import bounds, total_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Floats
    from astra_async.report.pairwise import Judged
    from astra_async.report.table import Cell
    from astra_async.report.turn_states import Courses, TurnState

TEXT = (
    "After an answer that did not pass all tests the model was told what failed, and answered again. This is"
    " another quantity than the paper's scores, and no part of any other table here: those are of first"
    " answers alone."
)
_STANDS = (
    "What stands after a turn: an answer that cannot be used changes nothing, and a sample that has ended"
    " stays as it is. Intervals: new problems like these."
)
_EQUAL_BUDGET = (
    "Equal budget in calls: r turns after the first answer, or r more first answers, of which one that"
    " passes all tests is enough; both stop once they have it. pass@(r+1) is unbiased and takes more than r"
    " samples of a problem. A turn's prompt is longer: the table of further solves has tokens and dollars."
    " Holm's adjustment covers all rows of a format."
)
_TURN = Column("turn", "Turn", "count", help="0: the first answer")
_FURTHER = (
    "Further solves come on top of those of the first answers; what was spent on samples that were not"
    " solved is counted. Blind: what is expected of up to r more samples for each, until one passes all"
    " tests, at the price of the first answers."
)
_N = Column("n", "n", "count", help="problems")
_ENDS: dict[End, tuple[str, str]] = {
    "first": ("At once", "the first answer passed all tests"),
    "later": ("Later", "passed all tests after feedback"),
    "stalled": ("Stalled", "the last turn changed no test"),
    "oscillating": ("Oscillating", "a set of passed tests came back after another one"),
    "out_of_turns": ("Out of turns", "was still changing"),
    "broken_off": ("Broken off", "the context was full, or the tests were tampered with"),
    "missing": ("Missing", "a turn has no result yet: the same command makes up for it"),
}
_WINNERS = ("feedback", "blind samples")


def turn_tables(found: Sequence[Courses]) -> tuple[Table, ...]:
    """All tables of the section, in the order of reading."""
    return by_turn(found), gain(found), changes(found), ends(found), prices(found), gain_by_skill(found)


def by_turn(found: Sequence[Courses]) -> Table:
    """One row for each entry and turn: mean score and share solved, with intervals over problems."""
    places = _places(found, 0)
    return Table(
        name="turns",
        title="Score and solved by turn",
        columns=(
            *WHO,
            _TURN,
            _N,
            Column("mean_score", "Mean score %", "percent", help="of what stands by then"),
            Column("mean_score_interval", "95 %", "percent", interval=True),
            Column("solved", "Solved %", "percent", help="samples that pass all tests"),
            Column("solved_interval", "95 %", "percent", interval=True),
            Column("known", "Samples", "count", help="whose state by then is known"),
            Column("missing", "Missing", "count", help="a turn up to this one has no result"),
        ),
        rows=tuple(_turn_row(courses, turn) for courses, turn in places),
        notes=(_STANDS,),
        provisional=unfinished(courses.complete(turn) for courses, turn in places),
    )


def gain(found: Sequence[Courses]) -> Table:
    """Solved by turn r against pass@(r+1) of the first answers, paired over problems."""
    places = _places(found, 1)
    rows = [
        (courses, turn, judged)
        for shared in dict.fromkeys(courses.entry.format for courses in found)
        for courses, turn, judged in _judged([each for each in places if each[0].entry.format == shared])
    ]
    return Table(
        name="turn_gain",
        title="Gain against equal budget",
        columns=(
            *WHO,
            _TURN,
            _N,
            Column("differing", "Differing", "count", help="problems that are not equal"),
            Column("solved", "Solved %", "percent", help="by this turn"),
            Column("blind", "Blind samples %", "percent", help="pass@(turn + 1) of first answers"),
            Column("gain", "Gain", "points", minus=("solved", "blind")),
            Column("gain_interval", "95 % interval", "points", interval=True),
            Column("p_t_holm", "t-test, Holm", "p", help="paired over problems, two-sided"),
            Column("p_permutation_holm", "Sign flips, Holm", "p"),
            Column("verdict", "Verdict", help="by both tests and the interval"),
            Column("why", "Why", help="what an inconclusive comparison lacks"),
        ),
        rows=tuple(_gain_row(courses, turn, judged) for courses, turn, judged in rows),
        notes=(_EQUAL_BUDGET,),
        provisional=unfinished(courses.complete(turn) for courses, turn, _ in rows),
    )


def changes(found: Sequence[Courses]) -> Table:
    """What each turn made of the state before: tests won and lost, answers that changed nothing."""
    places = _places(found, 1)
    return Table(
        name="turn_changes",
        title="What each turn changed",
        columns=(
            *WHO,
            _TURN,
            Column("answers", "Answers", "count"),
            Column("unusable", "Unusable", "count", help="no solution could be read of them"),
            Column("identical", "Identical", "count", help="all files as they stood before"),
            Column("solved", "Solved", "count", help="samples that now pass all tests"),
            Column("won", "Tests won", "count", help="failed before, pass now"),
            Column("lost", "Tests lost", "count", help="passed before, fail now"),
            Column("regressed", "Regressed", "count", help="samples that lost a test"),
        ),
        rows=tuple(_change_row(courses, turn) for courses, turn in places),
        provisional=unfinished(courses.complete(turn) for courses, turn in places),
    )


def ends(found: Sequence[Courses]) -> Table:
    """How the samples of each entry came to their end."""
    return Table(
        name="turn_ends",
        title="How samples end",
        columns=(
            *WHO,
            Column("samples", "Samples", "count"),
            *(Column(end, _ENDS[end][0], "count", help=_ENDS[end][1]) for end in get_args(End)),
        ),
        rows=tuple(_end_row(courses) for courses in found),
        provisional=unfinished(courses.complete(courses.turns) for courses in found),
    )


def prices(found: Sequence[Courses]) -> Table:
    """What each further solve took up to a turn, with feedback and by blind samples."""
    places = _places(found, 1)
    return Table(
        name="turn_costs",
        title="What each further solve costs",
        columns=(
            *WHO,
            _TURN,
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
        provisional=unfinished(courses.complete(turn) for courses, turn in places),
    )


def gain_by_skill(found: Sequence[Courses]) -> Table:
    """Solved at first, by the last turn, and by as many blind samples, over the problems of each skill."""
    return Table(
        name="turn_skills",
        title="Gain by skill",
        columns=(
            Column("kind", "Kind"),
            Column("skill", "Skill"),
            *WHO,
            _N,
            _TURN,
            Column("first", "Solved at first %", "percent"),
            Column("solved", "Solved %", "percent", help="by this turn"),
            Column("blind", "Blind samples %", "percent", help="pass@(turn + 1)"),
            Column("gain", "Gain", "points", minus=("solved", "blind")),
        ),
        rows=tuple(row for courses in found for row in _skill_rows(courses)),
        notes=("Without tests: a skill with few problems says little.",),
    )


def _places(found: Sequence[Courses], first: int) -> list[tuple[Courses, int]]:
    """Each entry and turn that has a row, from which turn on."""
    return [(courses, turn) for courses in found for turn in range(first, courses.turns + 1)]


def _turn_row(courses: Courses, turn: int) -> tuple[Cell, ...]:
    scores, solved = courses.scores(turn), courses.solved(turn)
    begun = ~np.isnan(scores)
    known = sum(course.known(turn) for course in courses.all)
    return (
        *courses.entry.who,
        turn,
        int(begun.sum()),
        *_with_interval(scores[begun], courses.entry.families_of(begun)),
        *_with_interval(solved[begun], courses.entry.families_of(begun)),
        known,
        int(courses.entry.planned.sum()) - known,
    )


def _with_interval(values: Floats, families: NDArray[np.str_] | None) -> tuple[Cell, Cell]:
    return math.fsum(values) / len(values) if len(values) else None, bounds(total_interval(values, families))


def _judged(places: Sequence[tuple[Courses, int]]) -> Iterator[tuple[Courses, int, Judged]]:
    values = []
    for courses, turn in places:
        solved, blind = courses.solved(turn), courses.blind(turn)
        both = ~np.isnan(solved) & ~np.isnan(blind)
        values.append(Values("pass_at_1", solved[both], blind[both], courses.entry.families_of(both)))
    found = judge(compare_values(values))
    for (courses, turn), judged in zip(places, found, strict=True):
        yield courses, turn, judged if courses.complete(turn) else withheld(judged)


def _gain_row(courses: Courses, turn: int, judged: Judged) -> tuple[Cell, ...]:
    c, entry = judged.comparison, courses.entry
    too_few = int((entry.valid > 0).sum()) - int((entry.valid > turn).sum())
    lacking = f"{too_few} problems have no more than {turn} samples" if too_few else ""
    return (
        *entry.who,
        turn,
        c.n,
        c.differing,
        c.a_value,
        c.b_value,
        c.difference,
        c.difference_interval,
        judged.holm["p_t"],
        judged.holm["p_permutation"],
        f"{'' if courses.complete(turn) else '~'}{in_words(judged, _WINNERS)}",
        "; ".join(filter(None, (judged.why, lacking))),
    )


def _change_row(courses: Courses, turn: int) -> tuple[Cell, ...]:
    count: Counter[str] = Counter()
    for course in courses.all:
        if turn < len(course.answers):
            answer, before = course.answers[turn], course.state(turn - 1)
            count.update(answers=1, unusable=not answer.usable, solved=answer.solved)
            if answer.usable:
                count.update(_changes(answer, before))
    names = ("answers", "unusable", "identical", "solved", "won", "lost", "regressed")
    return *courses.entry.who, turn, *(count[name] for name in names)


def _changes(answer: TurnState, before: TurnState | None) -> dict[str, int]:
    earlier = before.passed if before else frozenset()
    lost = len(earlier - answer.passed)
    return {
        "identical": before is not None and before.solution == answer.solution,
        "won": len(answer.passed - earlier),
        "lost": lost,
        "regressed": lost > 0,
    }


def _end_row(courses: Courses) -> tuple[Cell, ...]:
    count = Counter(course.end for course in courses.all)
    return (
        *courses.entry.who,
        len(courses.all),
        *(count[end] for end in get_args(End)),
    )


def _skill_rows(courses: Courses) -> Iterator[tuple[Cell, ...]]:
    entry, last = courses.entry, courses.turns
    first, solved, blind = courses.solved(0), courses.solved(last), courses.blind(last)
    where = {problem: place for place, problem in enumerate(entry.problem_ids)}
    for kind, title in KINDS.items():
        for skill in skills_of([entry], kind):
            places = [where[problem] for problem in skill.problems if problem in where]
            known = [place for place in places if not np.isnan(first[place] + solved[place] + blind[place])]
            if known:
                means = (math.fsum(values[known]) / len(known) for values in (first, solved, blind))
                at_first, by_last, by_blind = means
                row = (*entry.who, len(known), last, at_first, by_last, by_blind)
                yield title, skill.name, *row, by_last - by_blind


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
        _each(_sum_usd([(answer, 1) for answer in later]), further),
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
    usd = _sum_usd([(course.answers[0], calls[course.problem]) for course in firsts])
    return float(calls @ samples), further, tokens, usd


def _sum_usd(answers: Sequence[tuple[TurnState, float]]) -> float | None:
    """Of answers and how often each was given; None where a price is not known."""
    known = [answer.cost_usd * times for answer, times in answers if answer.cost_usd is not None]
    return math.fsum(known) if len(known) == len(answers) else None


def _each(whole: float | None, solves: float) -> float | None:
    return None if whole is None or solves <= 0 else whole / solves

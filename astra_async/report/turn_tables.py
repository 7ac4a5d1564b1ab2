"""Tables on the effect of feedback: scores by turn, compared with independent samples without feedback.

The paper's metrics use first answers only, so other tables include follow-up turns only in the cost of a
sample. The control is pass@(r+1) of first answers: the share solved by r further samples without feedback,
with the same number of requests. The unit of every interval and test is the problem.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.by_skill import KINDS, places_of, skills_of
from astra_async.report.common_problems import Values
from astra_async.report.paired_table import verdict_text
from astra_async.report.pairwise import compared, conclude, undecided
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.stats.intervals import total_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Floats
    from astra_async.report.pairwise import Concluded
    from astra_async.report.table import Cell
    from astra_async.report.turn_states import Courses, End, TurnState

TEXT = (
    "After an answer that did not pass all tests, the model received feedback on the failures and"
    " answered again. The paper's scores and all other tables of this report use first answers only. The cost"
    " of a sample includes its follow-up turns."
)
_HEADLINE_NOTE = (
    "After turns: mean score of the same samples after the last follow-up turn with feedback. The cost of a"
    " sample includes its follow-up turns. All other numbers of this table use first answers only. A dash"
    " means that turns are missing; to continue, run the same command again."
)
_RESULT_NOTE = (
    "The result after a turn is the result of the sample's files at that time. An unusable answer changes no"
    " files. A sample that has ended keeps its result. The intervals are for new problems like these."
)
_BUDGET_NOTE = (
    "Both sides have the same number of requests: r turns after the first answer, or r more first"
    " answers. Both"
    " stop as soon as an answer passes all tests. pass@(r+1) is an unbiased estimate and needs more than r"
    " samples of a problem. Prompts of later turns are longer; the table of further solves has tokens and"
    " dollars. Holm's adjustment covers all rows of a format."
)
_TURN = Column("turn", "Turn", "count", help="0: the first answer")
_COST_NOTE = (
    "Further solves are samples solved after turn 0. Tokens, cost and time include the samples that were not"
    " solved. The blind columns are expected values: up to r more first answers for each sample, until one"
    " passes all tests, at the cost of the first answers."
)
_N = Column("n", "n", "count", help="problems")
_ENDS: dict[End, tuple[str, str]] = {
    "first": ("At once", "the first answer passed all tests"),
    "later": ("Later", "passed all tests after feedback"),
    "stalled": ("Stalled", "the last turn changed no test"),
    "oscillating": ("Oscillating", "a set of passed tests occurred again after a different set"),
    "out_of_turns": ("Out of turns", "the last turn still changed a test"),
    "broken_off": ("Broken off", "the context was full"),
    "missing": ("Missing", "a turn has no result yet; to continue, run the same command again"),
}
_WINNERS = ("feedback", "blind samples")


def with_turns(headline: Table, found: Sequence[Courses]) -> Table:
    """Return the leaderboard's headline with the mean score after the last follow-up turn.

    A complete row has no value while one of its turns has no result.
    """
    if not found:
        return headline
    several = "format" in {column.name for column in headline.columns}
    after: dict[tuple[Cell, ...], float | None] = {
        (courses.entry.label, courses.entry.format)[: 1 + several]: courses.last_score
        for courses in found
        if courses.complete(courses.turns) or not courses.entry.complete
    }
    numbers = sorted({courses.turns for courses in found})
    title = f"After {', '.join(map(str, numbers))} {'turn' if numbers == [1] else 'turns'} %"
    column = Column("after_turns", title, "percent", help="mean score after the last follow-up turn")
    # The headline begins with the model and, if there are several formats, the format.
    cells = [after.get(row[: 1 + several]) for row in headline.rows]
    return headline.insert("pass_at_1", column, cells, (_HEADLINE_NOTE,))


def turn_tables(found: Sequence[Courses]) -> tuple[Table, ...]:
    """Return all tables of the section, in reading order."""
    return by_turn(found), gain(found), changes(found), ends(found), prices(found), gain_by_skill(found)


def by_turn(found: Sequence[Courses]) -> Table:
    """Return mean score and share solved for each entry and turn, with intervals over problems."""
    columns = (
        *ENTRY_COLUMNS,
        _TURN,
        _N,
        Column("mean_score", "Mean score %", "percent", help="after this turn"),
        Column("mean_score_interval", "95 %", "percent", interval=True),
        Column("solved", "Solved %", "percent", help="samples that pass all tests"),
        Column("solved_interval", "95 %", "percent", interval=True),
        Column("known", "Samples", "count", help="with a known result after this turn"),
        Column("missing", "Missing", "count", help="a turn up to this one has no result"),
    )
    items = starmap(_turn_row, _places(found, 0))
    return Table.of(
        "turns", "Score and solved by turn", columns, items, notes=(_RESULT_NOTE,), provisional=True
    )


def gain(found: Sequence[Courses]) -> Table:
    """Return solved by turn r against pass@(r+1) of first answers, paired over problems."""
    places = _places(found, 1)
    columns = (
        *ENTRY_COLUMNS,
        _TURN,
        _N,
        Column("differing", "Differing", "count", help="problems with a difference other than 0"),
        Column("solved", "Solved %", "percent", help="by this turn"),
        Column("blind", "Blind samples %", "percent", help="pass@(turn + 1) of first answers"),
        Column("gain", "Gain", "points"),
        Column("gain_interval", "95 % interval", "points", interval=True),
        Column("p_t_holm", "t-test, Holm", "p", help="paired over problems, two-sided"),
        Column("p_permutation_holm", "Sign flips, Holm", "p"),
        Column("verdict", "Conclusion", help="by both tests and the interval"),
        Column("why", "Why", help="reason why a conclusion is impossible"),
    )
    items = (
        _gained(*each)
        for shared in dict.fromkeys(courses.entry.format for courses in found)
        for each in _concluded([place for place in places if place[0].entry.format == shared])
    )
    title = "Gain against equal budget"
    return Table.of("turn_gain", title, columns, items, notes=(_BUDGET_NOTE,), provisional=True)


def changes(found: Sequence[Courses]) -> Table:
    """Return the effect of each turn: tests won and lost, and unusable or identical answers."""
    columns = (
        *ENTRY_COLUMNS,
        _TURN,
        Column("answers", "Answers", "count"),
        Column("unusable", "Unusable", "count", help="answers without a readable solution"),
        Column("identical", "Identical", "count", help="answers that changed no file"),
        Column("solved", "Solved", "count", help="samples that now pass all tests"),
        Column("won", "Tests won", "count", help="failed before, pass now"),
        Column("lost", "Tests lost", "count", help="passed before, fail now"),
        Column("regressed", "Regressed", "count", help="samples that lost a test"),
    )
    items = starmap(_changed, _places(found, 1))
    return Table.of("turn_changes", "Changes in each turn", columns, items, provisional=True)


def ends(found: Sequence[Courses]) -> Table:
    """Count the samples of each entry by the reason why they ended."""
    columns = (
        *ENTRY_COLUMNS,
        Column("samples", "Samples", "count"),
        *(Column(end, title, "count", help=about) for end, (title, about) in _ENDS.items()),
    )
    items = (
        dict.fromkeys(_ENDS, 0)
        | Counter(course.end for course in courses.all)
        | {**_at(courses, courses.turns), "samples": len(courses.all)}
        for courses in found
    )
    return Table.of("turn_ends", "How samples end", columns, items, provisional=True)


def prices(found: Sequence[Courses]) -> Table:
    """Return tokens, cost and time for each further solve, with feedback and with blind samples."""
    columns = (
        *ENTRY_COLUMNS,
        _TURN,
        Column("calls", "Requests", "count", help="in all follow-up turns up to this one"),
        Column("further", "Further solves", "count", help="samples solved since turn 0"),
        Column("tokens", "Tokens", "number", help="input and output, per additional solved sample"),
        Column("usd", "$", "usd", help="US dollars per additional solved sample"),
        Column("seconds", "Seconds", "number", help="tests included, per additional solved sample"),
        Column("blind_calls", "Blind requests", "number", help="expected number, by pass@m"),
        Column("blind_further", "Blind solves", "number", help="expected number, by pass@m"),
        Column("blind_tokens", "Blind tokens", "number", help="per blind solve"),
        Column("blind_usd", "Blind $", "usd", help="per blind solve"),
    )
    items = starmap(_priced, _places(found, 1))
    title = "Cost of each further solve"
    return Table.of("turn_costs", title, columns, items, notes=(_COST_NOTE,), provisional=True)


def gain_by_skill(found: Sequence[Courses]) -> Table:
    """Return by skill the shares solved at first, by the last turn, and by as many blind samples."""
    columns = (
        Column("kind", "Kind"),
        Column("skill", "Skill"),
        *ENTRY_COLUMNS,
        _N,
        _TURN,
        Column("first", "Solved at first %", "percent"),
        Column("solved", "Solved %", "percent", help="by this turn"),
        Column("blind", "Blind samples %", "percent", help="pass@(turn + 1)"),
        Column("gain", "Gain", "points"),
    )
    items = (item for courses in found for item in _by_skill(courses))
    notes = ("No significance test was made. Values of skills with few problems are imprecise.",)
    return Table.of("turn_skills", "Gain by skill", columns, items, notes=notes)


def _places(found: Sequence[Courses], first: int) -> list[tuple[Courses, int]]:
    """Return each entry and turn with a row; turns begin with `first`."""
    return [(courses, turn) for courses in found for turn in range(first, courses.turns + 1)]


def _at(courses: Courses, turn: int) -> dict[str, Any]:
    """Return the first cells of a row of any table."""
    return courses.entry.cells | {"turn": turn, "complete": courses.complete(turn)}


def _turn_row(courses: Courses, turn: int) -> dict[str, Any]:
    entry, scores, solved = courses.entry, courses.scores(turn), courses.solved(turn)
    begun = ~np.isnan(scores)
    known = sum(course.known(turn) for course in courses.all)
    families = entry.families_of(begun)
    return _at(courses, turn) | {
        "n": int(begun.sum()),
        "mean_score": _mean(scores[begun]),
        "mean_score_interval": total_interval(scores[begun], families),
        "solved": _mean(solved[begun]),
        "solved_interval": total_interval(solved[begun], families),
        "known": known,
        "missing": int(entry.planned.sum()) - known,
    }


def _mean(values: Floats) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None


def _concluded(places: Sequence[tuple[Courses, int]]) -> Iterator[tuple[Courses, int, Concluded]]:
    values = []
    for courses, turn in places:
        solved, blind = courses.solved(turn), courses.blind(turn)
        both = ~np.isnan(solved) & ~np.isnan(blind)
        values.append(Values("pass_at_1", solved[both], blind[both], courses.entry.families_of(both)))
    found = conclude(list(map(compared, values)))
    for (courses, turn), concluded in zip(places, found, strict=True):
        yield courses, turn, concluded if courses.complete(turn) else undecided(concluded)


def _gained(courses: Courses, turn: int, concluded: Concluded) -> dict[str, Any]:
    c, entry = concluded.comparison, courses.entry
    too_few = int((entry.valid > 0).sum()) - int((entry.valid > turn).sum())
    lacking = f"{too_few} problems have no more than {turn} samples" if too_few else ""
    return _at(courses, turn) | {
        "n": c.n,
        "differing": c.differing,
        "solved": c.a_value,
        "blind": c.b_value,
        "gain": c.difference,
        "gain_interval": c.difference_interval,
        "p_t_holm": concluded.holm["p_t"],
        "p_permutation_holm": concluded.holm["p_permutation"],
        "verdict": f"{'' if courses.complete(turn) else '~'}{verdict_text(concluded, _WINNERS)}",
        "why": "; ".join(filter(None, (concluded.why, lacking))),
    }


def _changed(courses: Courses, turn: int) -> dict[str, Any]:
    names = ("answers", "unusable", "identical", "solved", "won", "lost", "regressed")
    count: Counter[str] = Counter(dict.fromkeys(names, 0))
    for course in courses.all:
        if turn < len(course.answers):
            answer, before = course.answers[turn], course.state(turn - 1)
            count.update(answers=1, unusable=not answer.usable, solved=answer.solved)
            if answer.usable:
                earlier = before.passed if before else frozenset()
                lost = len(earlier - answer.passed)
                count.update(won=len(answer.passed - earlier), lost=lost, regressed=lost > 0)
                count["identical"] += before is not None and before.solution == answer.solution
    return _at(courses, turn) | count


def _by_skill(courses: Courses) -> Iterator[dict[str, Any]]:
    entry, last = courses.entry, courses.turns
    values = {"first": courses.solved(0), "solved": courses.solved(last), "blind": courses.blind(last)}
    is_known = ~np.isnan(sum(values.values()))
    for kind, title in KINDS.items():
        for skill in skills_of([entry], kind):
            known = [place for place in places_of(entry, skill.problems) if is_known[place]]
            if known:
                means = {name: math.fsum(each[known]) / len(known) for name, each in values.items()}
                gain = means["solved"] - means["blind"]
                more = {"kind": title, "skill": skill.name, "n": len(known), "gain": gain}
                yield _at(courses, last) | means | more


def _priced(courses: Courses, turn: int) -> dict[str, Any]:
    later = [answer for course in courses.all for answer in course.answers[1 : turn + 1]]
    further = sum(answer.solved for answer in later)
    calls, blind_further, blind_tokens, blind_usd = _blind(courses, turn)
    return _at(courses, turn) | {
        "calls": len(later),
        "further": further,
        "tokens": _each(math.fsum(answer.tokens for answer in later), further),
        "usd": _each(_sum_usd([(answer, 1) for answer in later]), further),
        "seconds": _each(math.fsum(answer.seconds for answer in later), further),
        "blind_calls": calls,
        "blind_further": blind_further,
        "blind_tokens": _each(blind_tokens, blind_further),
        "blind_usd": _each(blind_usd, blind_further),
    }


def _blind(courses: Courses, turn: int) -> tuple[float, float, float, float | None]:
    """Return the expected requests, further solves, tokens and dollars of up to `turn` more first answers.

    A sample's (j + 1)-th request is made if the first j answers fail, which has probability 1 - pass@j.
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
    """Return the total cost of (answer, number of times) pairs; None if any price is unknown."""
    known = [answer.cost_usd * times for answer, times in answers if answer.cost_usd is not None]
    return math.fsum(known) if len(known) == len(answers) else None


def _each(whole: float | None, solves: float) -> float | None:
    return None if whole is None or solves <= 0 else whole / solves

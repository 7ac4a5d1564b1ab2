"""Tables on skills: frequency, mean scores and best models (paper, figures 1, 2, 7 to 10 and table 4)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

from astra_async.report.common_problems import changed_problems
from astra_async.report.problem_tables import problem_infos
from astra_async.report.table import Column, Table
from astra_async.stats.differences import ALPHA, by_family, holm, paired_t, sign_flips
from astra_async.stats.intervals import total_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.run_settings import ProblemInfo

SkillKind = Literal["main", "sub"]
KINDS: dict[SkillKind, str] = {"main": "main skill", "sub": "sub-skill"}
FEWEST = 3  # minimum number of problems for a winner in a skill (paper, table 4)
_TIE = 0.0005  # means that differ by less (0.05 points) are a tie


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillScore:
    """One entry's mean score and mean pass@1 over the problems of one skill.

    `interval` is the 95 % interval of the mean score for new problems.
    """

    entry: Entry
    mean: float
    passed: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill: its problems, and the scores of entries with all samples of these problems, best first."""

    kind: SkillKind
    name: str
    problems: tuple[str, ...]
    scores: tuple[SkillScore, ...]


def skills_of(entries: Sequence[Entry], kind: SkillKind) -> list[Skill]:
    """Return all skills of one kind, the most frequent first."""
    infos = problem_infos(entries)
    counts = Counter(name for info in infos.values() for name in _names(info, kind))
    skills = []
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        problems = tuple(problem for problem, info in infos.items() if name in _names(info, kind))
        scores = [score for entry in entries if (score := _score(entry, problems))]
        scores.sort(key=lambda score: (-score.mean, score.entry.name))
        skills.append(Skill(kind=kind, name=name, problems=problems, scores=tuple(scores)))
    return skills


def display_tables(
    skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind, *, with_looks: bool
) -> tuple[Table, ...]:
    """Return the tables on one kind of skill, in reading order; `with_looks` as in `winners`."""
    return (
        matrix(skills, entries, kind),
        winners(skills, kind, with_looks=with_looks),
        frequency(skills, kind),
    )


def frequency(skills: Sequence[Skill], kind: SkillKind) -> Table:
    """Return the number of problems with each skill (figures 1 and 2)."""
    notes = ("A problem may have several sub-skills.",) if kind == "sub" else ()
    columns = _skill(KINDS[kind].capitalize()), Column("n", "Problems", "count", of=_n)
    title = f"Occurrence of each {KINDS[kind]}"
    return Table.of(f"{kind}_skill_frequency", title, columns, skills, notes=notes)


def long_table(skills: Sequence[Skill]) -> Table:
    """Return one row for each skill and entry (skills.csv)."""
    columns = (
        Column("kind", "Kind", of=lambda of: of[0].kind),
        Column("skill", "Skill", of=lambda of: of[0].name),
        Column("n", "n", "count", help="problems with this skill", of=lambda of: _n(of[0])),
        Column("model", "Model", of=lambda of: of[1].entry.label),
        Column("format", "Format", of=lambda of: of[1].entry.format),
        Column("mean_score", "Mean score %", "percent", of=lambda of: of[1].mean),
        Column(
            "mean_score_interval", "95 % interval", "percent", interval=True, of=lambda of: of[1].interval
        ),
        Column("pass_at_1", "Pass@1 %", "percent", of=lambda of: of[1].passed),
    )
    items = ((skill, score) for skill in skills for score in skill.scores)
    return Table.of("skills", "Skills", columns, items)


def matrix(skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind) -> Table:
    """Return the mean score by skill and entry (figures 7 to 10)."""
    one_format = len({entry.format for entry in entries}) == 1
    columns = (
        _skill(KINDS[kind].capitalize()),
        Column("n", "n", "count", help="problems with this skill", of=_n),
        *(
            Column(entry.name, entry.label if one_format else entry.name, "percent", of=_mean_of(entry))
            for entry in entries
        ),
    )
    note = (
        "A model has a value if it has all samples of the skill's problems. With few problems the means are"
        " imprecise; skills.csv has their 95 % intervals."
    )
    title = f"Mean score % by {KINDS[kind]}"
    return Table.of(f"{kind}_skills", title, columns, skills, within="skills", notes=(note,))


def winners(skills: Sequence[Skill], kind: SkillKind, *, with_looks: bool = False) -> Table:
    """Return the highest mean of each skill with at least three problems (table 4), by format, with ties.

    The last column names the entries whose paired difference from the highest mean is not significant. Holm's
    adjustment covers all pairs of entries in all skills of the table, so at most 5 % of tables of equal
    models show a difference. `with_looks` means that `--until decided` compared pairs of these entries. Tests
    of a fixed number of samples are not valid after looks, so the table then has no such column.
    """
    separable = "p >= 0.05 after Holm's adjustment over all pairs in all skills of this table"
    columns = [
        Column("skill", KINDS[kind].capitalize(), of=lambda contest: contest.skill.name),
        Column("n", "n", "count", of=lambda contest: _n(contest.skill)),
        Column("format", "Format", of=lambda contest: contest.winners[0].entry.format),
        Column("winners", "Highest mean", help="all models within 0.05 points of it", of=_winning),
        Column("mean_score", "Mean score %", "percent", of=lambda contest: contest.winners[0].mean),
        Column("not_separable", "Not separable from it", help=separable, of=_not_separable),
    ]
    notes = [f"Skills with at least {FEWEST} problems; models with all samples of these problems."]
    if with_looks:
        del columns[-1]
        notes.append(
            "Skills have no tests, because --until decided compared the models. A highest mean does not show"
            " that a model is better in a skill."
        )
    title = f"Highest mean score by {KINDS[kind]}"
    return Table.of(f"{kind}_skill_winners", title, columns, _contests(skills), notes=notes)


def _skill(title: str) -> Column:
    return Column("skill", title, of=lambda skill: skill.name)


def _n(skill: Skill) -> int:
    return len(skill.problems)


def _mean_of(entry: Entry) -> Callable[[Skill], float | None]:
    return lambda skill: next((score.mean for score in skill.scores if score.entry is entry), None)


class _Contest(NamedTuple):
    skill: Skill
    winners: Sequence[SkillScore]
    rivals: Sequence[SkillScore]
    separable: frozenset[str]  # names of rivals


def _contests(skills: Sequence[Skill]) -> Iterator[_Contest]:
    """Yield the rows of a table, with p-values adjusted over all of its skills."""
    found: list[tuple[Skill, Sequence[SkillScore]]] = []
    for skill in skills:
        for answer_format in dict.fromkeys(score.entry.format for score in skill.scores):
            scores = tuple(score for score in skill.scores if score.entry.format == answer_format)
            if len(scores) > 1 and len(skill.problems) >= FEWEST:
                found.append((skill, scores))
    p_values = [_p_values(skill, scores) for skill, scores in found]
    adjusted = iter(holm([p for each in p_values for p in each.values()]).tolist())
    for (skill, ranking), each in zip(found, p_values, strict=True):
        holm_p = dict(zip(each, adjusted, strict=False))
        tied = [score for score in ranking if ranking[0].mean - score.mean < _TIE]
        separable = {b for (a, b), p in holm_p.items() if a == ranking[0].entry.name and p < ALPHA}
        yield _Contest(skill, tied, ranking[len(tied) :], frozenset(separable))


def _winning(contest: _Contest) -> str:
    return ", ".join(score.entry.label for score in contest.winners)


def _not_separable(contest: _Contest) -> str:
    rivals = (score.entry for score in contest.rivals)
    return ", ".join(entry.label for entry in rivals if entry.name not in contest.separable)


def _p_values(skill: Skill, scores: Sequence[SkillScore]) -> dict[tuple[str, str], float]:
    """Return the p-value of each pair of entry names, the higher mean first.

    A pair with a problem that changed between its runs has p = 1.
    """
    means = {score.entry.name: score.entry.means[places_of(score.entry, skill.problems)] for score in scores}
    return {
        (a.name, b.name): 1.0
        if changed_problems(a, b).keys() & set(skill.problems)
        else _p_value(means[a.name], means[b.name], a.families_of(places_of(a, skill.problems)))
        for a, b in combinations([score.entry for score in scores], 2)
    }


def _p_value(a: Floats, b: Floats, families: NDArray[np.str_] | None) -> float:
    """Return the larger p of the paired t-test and the sign-flip test, over families if any are recorded.

    Return 1.0 if there are too few families for a test. The sign-flip test needs six to reach 5 %.
    """
    a, b = by_family(a, families), by_family(b, families)
    test = paired_t(a, b)
    if test is None:
        return 1.0
    p_t = 0.0 if test.p is None else test.p  # without spread there is no t-test: the sign flips decide
    # An adjustment never lowers p, so the slower test is not needed if p_t is not below ALPHA.
    return p_t if p_t >= ALPHA else max(p_t, sign_flips(a, b) or 0.0)


def _names(info: ProblemInfo, kind: SkillKind) -> tuple[str, ...]:
    if kind == "sub":
        return tuple(dict.fromkeys(info.sub_skills))
    return (info.main_skill,) if info.main_skill else ()


def _score(entry: Entry, problems: Sequence[str]) -> SkillScore | None:
    places = places_of(entry, problems)
    if len(places) < len(problems) or not bool(entry.done[places].all()):
        return None
    means = entry.means[places]
    return SkillScore(
        entry=entry,
        mean=math.fsum(means) / len(means),
        passed=math.fsum(entry.passes[places]) / len(means),
        interval=total_interval(means, entry.families_of(places)),
    )


def places_of(entry: Entry, problems: Sequence[str]) -> list[int]:
    """Return the indexes of problems in an entry's arrays, without problems not planned for the entry."""
    return [entry.places[problem] for problem in problems if problem in entry.places]

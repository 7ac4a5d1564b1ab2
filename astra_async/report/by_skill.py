"""Skills: how often each occurs, and who is best at it (paper, figures 1, 2, 7 to 10 and table 4)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from astra_async.report.problem_tables import problem_infos
from astra_async.report.table import WHO, Column, Table
from astra_async.stats.differences import ALPHA, benjamini_hochberg, paired_t, sign_flips
from astra_async.stats.intervals import bounds, total_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.load import ProblemInfo

SkillKind = Literal["main", "sub"]
KINDS: dict[SkillKind, str] = {"main": "main skill", "sub": "sub-skill"}
FEWEST = 3  # problems that a skill needs for a winner (paper, table 4)
_TIE = 0.0005  # means this close (0.05 points) are named together


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillScore:
    """One entry's mean over the problems of one skill; `interval` is the t interval over problems."""

    entry: Entry
    mean: float
    passed: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill: its problems, and the scores of the entries that have all samples of them, best first."""

    kind: SkillKind
    name: str
    problems: tuple[str, ...]
    scores: tuple[SkillScore, ...]


def skills_of(entries: Sequence[Entry], kind: SkillKind) -> list[Skill]:
    """All skills of one kind, the most frequent first."""
    infos = problem_infos(entries)
    counts = Counter(name for info in infos.values() for name in _names(info, kind))
    skills = []
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        problems = tuple(problem for problem, info in infos.items() if name in _names(info, kind))
        scores = [score for entry in entries if (score := _score(entry, problems))]
        scores.sort(key=lambda score: (-score.mean, score.entry.name))
        skills.append(Skill(kind=kind, name=name, problems=problems, scores=tuple(scores)))
    return skills


def for_people(skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind) -> tuple[Table, ...]:
    """The tables of one kind of skill, in the order of reading."""
    return matrix(skills, entries, kind), winners(skills, kind), frequency(skills, kind)


def frequency(skills: Sequence[Skill], kind: SkillKind) -> Table:
    """How many problems have each skill (figures 1 and 2)."""
    return Table(
        name=f"{kind}_skill_frequency",
        title=f"Occurrence of each {KINDS[kind]}",
        columns=(
            Column("skill", KINDS[kind].capitalize()),
            Column("n", "Problems", "count"),
        ),
        rows=tuple((skill.name, len(skill.problems)) for skill in skills),
        notes=("A problem may have several sub-skills.",) if kind == "sub" else (),
    )


def long_table(skills: Sequence[Skill]) -> Table:
    """One row for each skill and entry (skills.csv)."""
    return Table(
        name="skills",
        title="Skills",
        columns=(
            Column("kind", "Kind"),
            Column("skill", "Skill"),
            Column("n", "n", "count", help="problems with this skill"),
            *WHO,
            Column("mean_score", "Mean score %", "percent"),
            Column("mean_score_interval", "95 % interval", "percent", interval=True),
            Column("pass_at_1", "Pass@1 %", "percent"),
        ),
        rows=tuple(
            (
                *(skill.kind, skill.name, len(skill.problems)),
                *(*score.entry.who, score.mean, score.interval, score.passed),
            )
            for skill in skills
            for score in skill.scores
        ),
    )


def matrix(skills: Sequence[Skill], entries: Sequence[Entry], kind: SkillKind) -> Table:
    """Mean score by skill and entry (figures 7 to 10)."""
    rows = []
    for skill in skills:
        means = {score.entry.name: score.mean for score in skill.scores}
        rows.append((skill.name, len(skill.problems), *(means.get(entry.name) for entry in entries)))
    one_format = len({entry.format for entry in entries}) == 1
    return Table(
        name=f"{kind}_skills",
        within="skills",
        title=f"Mean score % by {KINDS[kind]}",
        columns=(
            Column("skill", KINDS[kind].capitalize()),
            Column("n", "n", "count", help="problems with this skill"),
            *(Column(entry.name, entry.label if one_format else entry.name, "percent") for entry in entries),
        ),
        rows=tuple(rows),
        notes=("Only models with all samples of a skill's problems; few problems mean wide intervals.",),
    )


def winners(skills: Sequence[Skill], kind: SkillKind) -> Table:
    """The best entry of each skill with at least three problems (table 4), for each format; ties together.

    The last column names the entries whose paired difference to the best is not significant after
    Benjamini-Hochberg over all such tests of this table: there the win means little.
    """
    found = list(_contests(skills))
    adjusted = iter(benjamini_hochberg(_p_values(found)).tolist())
    rows = [
        (
            contest.skill.name,
            len(contest.skill.problems),
            contest.winners[0].entry.format,
            ", ".join(score.entry.label for score in contest.winners),
            contest.winners[0].mean,
            ", ".join(rival.entry.label for rival in contest.rivals if next(adjusted) >= ALPHA),
        )
        for contest in found
    ]
    return Table(
        name=f"{kind}_skill_winners",
        title=f"Winning models by {KINDS[kind]}",
        columns=(
            Column("skill", KINDS[kind].capitalize()),
            Column("n", "n", "count"),
            Column("format", "Format"),
            Column("winners", "Winner", help="ties within 0.05 points are named together"),
            Column("mean_score", "Mean score %", "percent"),
            Column("not_separable", "Not separable from it", help="Benjamini-Hochberg p >= 0.05"),
        ),
        rows=tuple(rows),
        notes=(f"Skills with at least {FEWEST} problems, models with all their samples.",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contest:
    skill: Skill
    winners: Sequence[SkillScore]
    rivals: Sequence[SkillScore]


def _contests(skills: Sequence[Skill]) -> Iterator[_Contest]:
    for skill in skills:
        if len(skill.problems) < FEWEST:
            continue
        for answer_format in dict.fromkeys(score.entry.format for score in skill.scores):
            scores = [score for score in skill.scores if score.entry.format == answer_format]
            tied = [score for score in scores if scores[0].mean - score.mean < _TIE]
            if len(scores) > 1:
                yield _Contest(skill=skill, winners=tied, rivals=scores[len(tied) :])


def _p_values(contests: Sequence[_Contest]) -> list[float]:
    """For each rival of each best the larger p of t-test and sign flips, which take six problems for 5 %."""
    pairs = [
        (
            contest.winners[0].entry.means[_places(contest.winners[0].entry, contest.skill.problems)],
            rival.entry.means[_places(rival.entry, contest.skill.problems)],
        )
        for contest in contests
        for rival in contest.rivals
    ]
    tests = zip(pairs, sign_flips(pairs), strict=True)
    found = ((paired_t(a, b), flips) for (a, b), flips in tests)
    return [max(t.p, flips) if t and t.p is not None and flips is not None else 1.0 for t, flips in found]


def _names(info: ProblemInfo, kind: SkillKind) -> tuple[str, ...]:
    if kind == "sub":
        return tuple(dict.fromkeys(info.sub_skills))
    return (info.main_skill,) if info.main_skill else ()


def _score(entry: Entry, problems: Sequence[str]) -> SkillScore | None:
    places = _places(entry, problems)
    if len(places) < len(problems) or not bool(entry.done[places].all()):
        return None
    means = entry.means[places]
    return SkillScore(
        entry=entry,
        mean=math.fsum(means) / len(means),
        passed=math.fsum(entry.passes[places]) / len(means),
        interval=bounds(total_interval(means)),
    )


def _places(entry: Entry, problems: Sequence[str]) -> list[int]:
    where = {problem: place for place, problem in enumerate(entry.problem_ids)}
    return [where[problem] for problem in problems if problem in where]

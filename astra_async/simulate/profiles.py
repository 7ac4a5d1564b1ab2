"""The simulated models: eight profiles, each a table of rates.

A model's skill differs between problems. Its probability of a correct answer to a problem is drawn once,
from a logit-normal distribution with mean `skill` and width `spread`. Half of the variance is the problem's
difficulty, common to all models, so hard problems are hard for every model. With a wide spread, a model
nearly always or nearly never solves a problem (consistent). With a narrow spread, it sometimes solves every
problem (inconsistent), at the same mean score.

`TurnHabits` defines the effect of feedback, and thereby the true gain over blind sampling. Three models
differ only in these habits: feedback helps `mender`, has no effect on `guesser`, and hurts `muddler`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.simulate.draws import seeded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHabits:
    """Reactions to feedback. Rates are probabilities per follow-up turn; the remainder is a new attempt.

    Attributes:
        mends: shift of an attempt's success probability from that of a first answer towards 1; towards 0 if
            negative. With 0, feedback has no effect, and a turn equals a blind sample.
        repeats: repeats its last answer verbatim.
        oscillates: repeats the answer before its last one; in the first turn, its last one.
        breaks: gives the solution that passes fewest tests.
        gives_up: gives up without files.
        brief: omits files that are unchanged since its last answer.
    """

    mends: float = 0.0
    repeats: float = 0.0
    oscillates: float = 0.0
    breaks: float = 0.0
    gives_up: float = 0.0
    brief: bool = False

    @property
    def tries(self) -> float:
        """Probability that a turn is a new attempt."""
        return 1 - self.repeats - self.oscillates - self.breaks - self.gives_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One simulated model. Rates are probabilities per answer.

    Attributes:
        skill: mean over problems of the probability that a readable answer is the reference solution.
        spread: standard deviation of that probability between problems, in logits.
        habit: probability that a wrong answer is the model's usual mistake for the problem.
        nearness: preference for mistakes that pass many tests; negative for few.
        unreadable: rate of answers that no parser can use, by format.
        malformed: rate of answers with a format flaw that a lenient parser can repair, by format.
        refusal: rate of refusals.
        truncation: rate of answers truncated with reason `length` below the limit.
        prose: probability of each of two remarks, before and after the files.
        reasoning_tokens: median of hidden reasoning tokens; 0 for a model without reasoning.
        first_token_s: median seconds to the first token, without reasoning.
        tokens_per_s: median speed of the stream, including reasoning.
        context_tokens: maximum prompt length in tokens.
        turns: reactions to feedback.
    """

    name: str
    skill: float
    spread: float = 1.2
    habit: float = 0.6
    nearness: float = 1.5
    unreadable: Mapping[Format, float]
    malformed: Mapping[Format, float]
    refusal: float = 0.0
    truncation: float = 0.0
    prose: float = 0.3
    reasoning_tokens: int = 0
    first_token_s: float = 0.8
    tokens_per_s: float = 80.0
    context_tokens: int = 200_000
    turns: TurnHabits = TurnHabits()


def _repairer(name: str, turns: TurnHabits) -> Profile:
    """Return a model without format flaws, whose gain from feedback is therefore known."""
    return Profile(
        name=name,
        skill=0.4,
        spread=0.9,
        habit=0.4,
        nearness=1.0,
        unreadable={"xml": 0.0, "json": 0.0},
        malformed={"xml": 0.0, "json": 0.0},
        first_token_s=0.4,
        tokens_per_s=150.0,
        turns=turns,
    )


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="steady",
            skill=0.76,
            spread=2.4,
            habit=0.95,
            nearness=3.0,
            unreadable={"xml": 0.003, "json": 0.008},
            malformed={"xml": 0.04, "json": 0.06},
            refusal=0.001,
            truncation=0.003,
            reasoning_tokens=500,
            first_token_s=0.9,
            tokens_per_s=95.0,
            turns=TurnHabits(mends=0.35, repeats=0.1),
        ),
        Profile(
            name="erratic",
            skill=0.74,
            spread=0.4,
            habit=0.2,
            nearness=0.8,
            unreadable={"xml": 0.015, "json": 0.03},
            malformed={"xml": 0.12, "json": 0.16},
            refusal=0.003,
            truncation=0.015,
            prose=0.6,
            first_token_s=0.5,
            tokens_per_s=130.0,
            turns=TurnHabits(mends=0.1, breaks=0.1),
        ),
        Profile(
            name="weak",
            skill=0.3,
            spread=1.0,
            habit=0.5,
            nearness=-1.0,
            unreadable={"xml": 0.04, "json": 0.07},
            malformed={"xml": 0.2, "json": 0.25},
            truncation=0.03,
            prose=0.8,
            first_token_s=0.3,
            tokens_per_s=180.0,
            context_tokens=32_000,
            turns=TurnHabits(mends=-0.2, repeats=0.2, oscillates=0.1, gives_up=0.05),
        ),
        Profile(
            name="json-shy",
            skill=0.68,
            unreadable={"xml": 0.006, "json": 0.2},
            malformed={"xml": 0.05, "json": 0.4},
            refusal=0.002,
            truncation=0.008,
            first_token_s=0.7,
            tokens_per_s=85.0,
            turns=TurnHabits(mends=0.2),
        ),
        Profile(
            name="refuser",
            skill=0.66,
            unreadable={"xml": 0.008, "json": 0.012},
            malformed={"xml": 0.05, "json": 0.08},
            refusal=0.12,
            truncation=0.005,
            reasoning_tokens=250,
            first_token_s=1.1,
            tokens_per_s=75.0,
            turns=TurnHabits(mends=0.2, gives_up=0.1),
        ),
        _repairer("mender", TurnHabits(mends=0.6, brief=True)),
        _repairer("guesser", TurnHabits()),
        _repairer("muddler", TurnHabits(mends=-0.5, repeats=0.15, oscillates=0.15, breaks=0.2, gives_up=0.1)),
    )
}


def solve_rate(profile: Profile, problem_id: str) -> float:
    """Return the probability that a readable answer to this problem is the reference solution."""
    difficulty = seeded("difficulty", problem_id).gauss(0, 1)
    affinity = seeded("affinity", profile.name, problem_id).gauss(0, 1)
    # The mean of sigmoid(m + s Z) is close to sigmoid(m / sqrt(1 + pi s^2 / 8)); solved for m.
    centre = math.log(profile.skill / (1 - profile.skill)) * math.sqrt(1 + math.pi * profile.spread**2 / 8)
    return 1 / (1 + math.exp(-(centre + profile.spread * (affinity - difficulty) / math.sqrt(2))))


def try_rate(profile: Profile, problem_id: str, turn: int) -> float:
    """Return the probability that a new attempt in this turn is the reference solution."""
    blind, mends = solve_rate(profile, problem_id), profile.turns.mends
    if turn == 0:
        return blind
    return blind + mends * (1 - blind if mends > 0 else blind)

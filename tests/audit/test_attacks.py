"""Attacks and honest answers in real containers: grading, then the audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from attacks import ATTACKS
from honest_answers import HONEST, Honest
from shops import SHOPS, TOTAL, UNTOUCHED_PASSES, WRONG_PASSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from attacks import Attack
    from graded_answers import Await, Case, Grader

    from astra_async.types import Result

    Graded = Callable[[Case], Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """One of a shop's three versions, and what it is worth."""

    framework: str
    name: str
    answer: dict[str, str]
    worth: int


PLAIN = tuple(
    Plain(framework=framework, name=f"{worth} of {TOTAL}", answer={shop.main: text}, worth=worth)
    for framework, shop in SHOPS.items()
    for text, worth in ((shop.untouched, UNTOUCHED_PASSES), (shop.wrong, WRONG_PASSES), (shop.right, TOTAL))
)


def name_of(case: Attack | Honest | Plain) -> str:
    return f"{case.framework}: {getattr(case, 'kind', '')} {case.name}"


def runner_of(case: Attack | Honest) -> str:
    """A framework is a runner, and after a slash what is unusual about the project."""
    return case.framework.partition("/")[0]


@pytest.mark.first(runner=lambda case: case.framework.partition("/")[0], worth=lambda case: case.worth)
@pytest.mark.docker
@pytest.mark.parametrize("case", PLAIN, ids=name_of)
def test_a_plain_answer_earns_what_it_is_worth(case: Plain, graded: Graded) -> None:
    result = graded(case)
    assert (result.passed, result.total) == (case.worth, TOTAL)
    assert result.failure == (None if case.worth == TOTAL else "tests_failed")
    assert result.suspicions == ()


@pytest.mark.first(kind=lambda case: case.kind, outcome=lambda case: case.outcome)
@pytest.mark.docker
@pytest.mark.parametrize("case", ATTACKS, ids=name_of)
def test_an_attack_is_stopped_or_flagged(case: Attack, graded: Graded, grader: Grader, wait: Await) -> None:
    result = graded(case)
    assert result.status == "scored"
    if case.outcome == "stopped":
        assert result.passed <= case.worth
        return
    assert result.passed > WRONG_PASSES  # the score is what the tests say
    line = wait(grader.audit(case, result))
    assert line.outcome == ("flagged" if case.outcome == "flagged" else "clean")
    assert all(each.before != each.after for each in line.flagged)


@pytest.mark.first(runner=runner_of)
@pytest.mark.docker
@pytest.mark.parametrize("case", HONEST, ids=name_of)
def test_an_honest_answer_keeps_its_points_and_is_not_flagged(
    case: Honest, graded: Graded, grader: Grader, wait: Await
) -> None:
    result = graded(case)
    assert (result.passed, result.failure) == (TOTAL, None)
    assert wait(grader.audit(case, result)).outcome == "clean"

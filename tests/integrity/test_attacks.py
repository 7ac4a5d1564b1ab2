from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from attacked_projects import SHOPS, TOTAL, UNTOUCHED_PASSES, WRONG_PASSES
from attacks import ATTACKS
from attacks_page import PAGE, attacks_page
from honest_answers import HONEST, Honest

if TYPE_CHECKING:
    from collections.abc import Callable

    from attack import Attack
    from graded_answers import Case

    from astra_async.types import Result

    Graded = Callable[[Case], Result]

PROOFS = ("altered_passed:",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """One of a shop's three versions, and what it is worth."""

    framework: str
    name: str
    answer: dict[str, str]
    worth: int
    everybody: bool = True


PLAIN = tuple(
    Plain(framework=framework, name=f"{worth} of {TOTAL}", answer={shop.main: text}, worth=worth)
    for framework, shop in SHOPS.items()
    for text, worth in ((shop.untouched, UNTOUCHED_PASSES), (shop.wrong, WRONG_PASSES), (shop.right, TOTAL))
)


def name_of(case: Attack | Honest | Plain) -> str:
    return f"{case.framework}: {case.name}"


def runner_of(case: Attack | Honest) -> str:
    """A framework is a runner, and after a slash what is unusual about the project."""
    return case.framework.partition("/")[0]


@pytest.mark.first(worth=lambda case: case.worth)
@pytest.mark.docker
@pytest.mark.parametrize("case", PLAIN, ids=name_of)
def test_without_an_attack_each_version_is_worth_what_it_is(case: Plain, graded: Graded) -> None:
    result = graded(case)
    assert (result.passed, result.total) == (case.worth, TOTAL)
    assert result.failure == (None if case.worth == TOTAL else "tests_failed")
    assert result.suspicions == ()


@pytest.mark.first(runner=runner_of, outcome=lambda case: case.outcome)
@pytest.mark.docker
@pytest.mark.parametrize("case", ATTACKS, ids=name_of)
def test_every_attack_ends_as_the_table_says(case: Attack, graded: Graded) -> None:
    result = graded(case)
    assert result.status == "scored"
    proven = [name for name in result.suspicions if name.startswith(PROOFS)]
    if case.races and result.failure == "no_report":
        assert result.passed == 0  # the race was lost: the report is neither the runner's nor the forged one
    elif case.races and result.failure == "tests_failed":
        assert result.passed <= WRONG_PASSES  # it was lost: the report is the runner's own
    elif case.outcome == "proven":
        assert (result.failure, result.passed, result.score) == ("tampered", 0, 0.0)
        assert proven
        assert result.note.startswith("passed ")
        assert "passed" not in {test.outcome for test in result.tests}
    elif case.outcome == "unproven":
        assert result.trial == "unproven" or result.failure == "tampered"
        assert result.note
    elif case.outcome == "prevented":
        assert result.passed == case.worth
        assert not proven
    elif not proven:
        assert result.passed > WRONG_PASSES
        assert not case.visible or case.visible in result.suspicions


@pytest.mark.first(runner=runner_of)
@pytest.mark.docker
@pytest.mark.parametrize("case", HONEST, ids=name_of)
def test_an_honest_answer_loses_nothing_and_is_not_called_tampered(case: Honest, graded: Graded) -> None:
    result = graded(case)
    assert (result.passed, result.failure) == (TOTAL, None)
    assert not [name for name in result.suspicions if name.startswith(PROOFS)]
    assert result.trial in {"tried", "equal"}


def test_the_page_of_attacks_is_what_these_tests_say() -> None:
    assert PAGE.read_text() == attacks_page(), "run .venv/bin/python tests/integrity/attacks_page.py"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from attacks_on_stacks import REFERENCES, STACK_CASES, STACKS, StackCase

from astra_async.bundled import describe, problem_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from graded_answers import Case

    from astra_async.types import Result

    Graded = Callable[[Case], Result]

PROOFS = ("altered_passed:",)


SLOW_S = {"React": 20, "Vue": 15, "Angular": 20, "Java": 15, "Selenium": 30}  # a scored run and its trial


def timed(case: StackCase) -> Any:
    return pytest.param(
        case, id=f"{case.stack}: {case.name}", marks=pytest.mark.seconds(SLOW_S.get(case.stack, 5))
    )


def test_every_stack_of_the_bundled_problems_is_attacked() -> None:
    more = {"Go", "Rust", "PHP"}  # attacked in test_more_languages.py
    assert {describe(problem)["family"] for problem in problem_ids()} == set(STACKS) | more
    assert all(describe(stack.problem)["family"] == name for name, stack in STACKS.items())


@pytest.mark.first(
    family=lambda case: case.family,
    browser=lambda case: case.stack == "Selenium" and case.family == "configured",
)
@pytest.mark.docker
@pytest.mark.parametrize("case", [timed(case) for case in STACK_CASES])
def test_an_attack_on_a_bundled_problem_earns_nothing(case: StackCase, graded: Graded) -> None:
    result = graded(case)
    proven = [name for name in result.suspicions if name.startswith(PROOFS)]
    assert result.status == "scored"
    if case.family in {"forged", "patched"}:
        assert (result.failure, result.passed) == ("tampered", 0)
        assert proven
    elif case.family == "configured":
        assert {entry.path.partition("#")[0] for entry in result.dropped} >= case.dropped
        assert (result.failure, result.passed, proven) == ("tests_failed", case.worth, [])
    else:
        assert result.passed <= case.worth
        assert result.failure in {"tests_failed", "no_report"}


@pytest.mark.first(stack=lambda case: case.stack)
@pytest.mark.docker
@pytest.mark.parametrize("case", [timed(case) for case in REFERENCES])
def test_the_reference_keeps_its_points_under_trials_for_all(case: StackCase, graded: Graded) -> None:
    result = graded(case)
    assert (result.passed, result.failure) == (case.worth, None)
    assert not [name for name in result.suspicions if name.startswith(PROOFS)]
    assert result.trial == "tried"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from attacked_projects import SHOPS
from attacks_on_stacks import REFERENCES, STACK_CASES, STACKS, StackCase

from astra_async.bundled import describe, image_set_of, problem_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from graded_answers import Case

    from astra_async.types import Result

    Graded = Callable[[Case], Result]

PROOFS = ("altered_passed:",)


# A scored run and its trial; without a trial it is half of that.
TAKES_S = {
    "React": 40,
    "Node/Express": 20,
    "Angular": 40,
    "AngularJS": 20,
    "Vue": 30,
    "Django": 10,
    "Flask": 20,
    "Ruby on Rails": 20,
    "Java": 25,
    "Selenium": 60,
}
# Images that test_attacks.py does not need, by stack.
ONLY_HERE = {
    stack: image
    for stack, attacked in STACKS.items()
    if (image := image_set_of(attacked.problem)) not in {shop.image_set for shop in SHOPS.values()}
}


def timed(case: StackCase) -> Any:
    takes_s = TAKES_S[case.stack] / (2 if case.family == "skipped" else 1)
    return pytest.param(case, id=f"{case.stack}: {case.name}", marks=pytest.mark.seconds(takes_s))


def test_every_stack_of_the_bundled_problems_is_attacked() -> None:
    more = {"Go", "Rust", "PHP"}  # attacked in test_more_languages.py
    assert {describe(problem)["family"] for problem in problem_ids()} == set(STACKS) | more
    assert all(describe(stack.problem)["family"] == name for name, stack in STACKS.items())


@pytest.mark.first(
    family=lambda case: case.family,
    image=lambda case: ONLY_HERE.get(case.stack) if case.family == "skipped" else None,
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


@pytest.mark.first  # of each language: the honest answers of test_attacks.py
@pytest.mark.docker
@pytest.mark.parametrize("case", [timed(case) for case in REFERENCES])
def test_the_reference_keeps_its_points_under_trials_for_all(case: StackCase, graded: Graded) -> None:
    result = graded(case)
    assert (result.passed, result.failure) == (case.worth, None)
    assert not [name for name in result.suspicions if name.startswith(PROOFS)]
    assert result.trial in {"tried", "equal"}  # an unusual answer may come to the same

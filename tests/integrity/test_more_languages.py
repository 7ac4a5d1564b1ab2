"""Go, Rust and PHP: ten attacks and more and ten unusual honest answers each, in containers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from attacks_on_languages import ATTACKS, HONEST, LanguageCase

if TYPE_CHECKING:
    from collections.abc import Callable

    from graded_answers import Case

    from astra_async.types import Result

    Graded = Callable[[Case], Result]


def name_of(case: LanguageCase) -> str:
    return f"{case.framework}: {case.name}"


def test_there_are_ten_and_more_of_each_for_each_language() -> None:
    for cases in (ATTACKS, HONEST):
        assert min(Counter(each.framework for each in cases).values()) >= 10
    names = [name_of(each) for each in (*ATTACKS, *HONEST)]
    assert len(names) == len(set(names))


@pytest.mark.first(end=lambda case: (case.framework, case.outcome))
@pytest.mark.docker
@pytest.mark.parametrize("case", ATTACKS, ids=name_of)
def test_an_attack_earns_nothing(case: LanguageCase, graded: Graded) -> None:
    result = graded(case)
    assert result.status == "scored"
    if case.outcome == "prevented":
        assert {entry.path for entry in result.dropped} >= case.dropped
        assert (result.passed, result.failure) == (case.worth, "tests_failed")
    else:
        assert (result.passed, result.failure) == (0, "tampered"), result.note


@pytest.mark.first(framework=lambda case: case.framework)
@pytest.mark.docker
@pytest.mark.parametrize("case", HONEST, ids=name_of)
def test_an_unusual_honest_answer_keeps_every_point(case: LanguageCase, graded: Graded) -> None:
    result = graded(case)
    assert {entry.path for entry in result.dropped} <= case.dropped
    assert (result.passed, result.failure) == (case.worth, None), result.note
    assert result.trial == "tried" or not case.everybody

"""Honest answers that look odd keep every point under the default: a spread, or all in scripts/long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from astra_async.bundled import load_answers
from unusual_answers import Unusual, unusual_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from graded_answers import Case

    from astra_async.types import Result

ALL = tuple(unusual_answers())
ANSWERS = ALL if os.environ.get("ASTRA_ALL_ANSWERS") else ALL[:: len(ALL) // 40]


@pytest.mark.docker
@pytest.mark.parametrize("case", ANSWERS, ids=lambda each: f"{each.stack}: {each.name}")
def test_an_honest_answer_keeps_every_point(case: Unusual, graded: Callable[[Case], Result]) -> None:
    answers = load_answers(case.framework)
    assert answers is not None
    result = graded(case)
    assert {entry.path for entry in result.dropped} <= case.left_out
    assert (result.passed, result.total, result.failure) == (answers.total, answers.total, None), result.note

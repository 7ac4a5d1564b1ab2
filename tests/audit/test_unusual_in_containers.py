"""Honest answers with unusual files keep every point: a sample of them, or all in scripts/long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from astra_async.bundled import load_answers
from astra_async.overlay import integrate
from astra_async.testing.installed_modules import InstalledModules
from astra_async.types import Integrated, Limits, Solution
from unusual_answers import Unusual, unusual_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from graded_answers import Await, Case, Grader

    from astra_async.types import Result

ALL = tuple(unusual_answers())
ANSWERS = ALL if os.environ.get("ASTRA_ALL_ANSWERS") else ALL[:: len(ALL) // 40]


@pytest.mark.first(stack=lambda case: case.stack)
@pytest.mark.docker
@pytest.mark.parametrize("case", ANSWERS, ids=lambda each: f"{each.stack}: {each.name}")
def test_an_honest_answer_keeps_every_point(case: Unusual, graded: Callable[[Case], Result]) -> None:
    answers = load_answers(case.framework)
    assert answers is not None
    result = graded(case)
    assert {entry.path for entry in result.dropped} <= case.left_out
    assert (result.passed, result.total, result.failure) == (answers.total, answers.total, None), result.note


@pytest.mark.docker
def test_no_file_is_dropped_for_what_the_images_really_hold(grader: Grader, wait: Await) -> None:
    modules = InstalledModules(grader.directory.path / "cache", grader.sandbox, Limits())

    async def lost(case: Unusual) -> set[tuple[str, str]]:
        prepared = await grader.ready(case.framework)
        policy = (await modules.fitted(prepared, grader.images[case.framework])).policy
        result = integrate(prepared.project, Solution(files=case.answer), policy)
        assert isinstance(result, Integrated)
        return {(entry.path, entry.reason) for entry in result.dropped if entry.path not in case.left_out}

    assert {case.name: found for case in ALL if (found := wait(lost(case)))} == {}

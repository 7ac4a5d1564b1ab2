"""One sandbox and one event loop for all tests of this folder; four answers are graded at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from graded_answers import Grader

from machine import slowness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graded_answers import Await, Case

    from astra_async.types import Result


@pytest.fixture(scope="session")
def wait() -> Iterator[Await]:
    """Runs coroutines in one loop, in which the sandbox lives."""
    with asyncio.Runner() as runner:
        yield runner.get_loop().run_until_complete


@pytest.fixture(scope="session")
def grader(wait: Await, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    slowness()  # measured before anything else runs
    opened: Grader = wait(Grader.open(tmp_path_factory.mktemp("audit")))
    yield opened
    wait(opened.close())


@pytest.fixture(scope="session")
def graded(request: pytest.FixtureRequest, wait: Await, grader: Grader) -> Callable[[Case], Result]:
    """The result of a case; all cases are under way, in the order of the tests, once one is asked for."""
    params = [getattr(item, "callspec", None) for item in request.session.items]
    cases = [each.params["case"] for each in params if each is not None and "case" in each.params]

    def result(case: Case) -> Result:
        grader.begin(cases)
        found: Result = wait(grader.result(case))
        return found

    return result

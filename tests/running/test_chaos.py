"""An unexpected error at every call that one part makes of another, one by one: nothing else is harmed.

The points where a fault is put in are not listed here: a run without faults tells them. A fault comes before
the real call or after it, once or always; the errors are what parts never promised to raise.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import orjson
import pytest
from botocore.parsers import ResponseParserError

from astra_async.answers import parse_leniently
from astra_async.errors import AstraError, ContainerLost, InvariantError
from fakes import CountingSandbox, ScriptedPool, completion
from in_memory import run_in_memory
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.running.runner import Runner
    from astra_async.types import Completion, ModelRequest

PROBLEMS, SAMPLES, MODELS = ("p1", "p2"), 3, ("one", "other")
PLANNED = len(PROBLEMS) * SAMPLES * len(MODELS)
# An answer that never reached the log is asked for again; where nothing can say why, the run ends.
LOSES_AN_ANSWER = ("pool.call", "directory.record_completion")
ENDS_THE_RUN = ("directory.record_event",)
NOT_CALLED_FOR_A_SAMPLE = ("pool.stop",)
ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: KeyError("delta"),
    lambda: OSError(5, "Input/output error"),
    lambda: ResponseParserError("Unable to parse response (no element found)"),
    lambda: RuntimeError("can't start new thread"),
    lambda: ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("inner")]),
    asyncio.CancelledError,
)
When = Literal["before", "after"]


@dataclass
class Chaos:
    """Puts one fault into the calls at one point; counts the calls at every point."""

    point: str = ""
    when: When = "before"
    error: Callable[[], BaseException] = ERRORS[0]
    nth: int = 1
    always: bool = False
    calls: Counter[str] = field(default_factory=Counter)

    def around(self, room: str, target: Any) -> Any:
        """The target, with this chaos around each of its methods."""
        return Around(self, room, target)

    def strike(self, point: str, when: When, number: int) -> None:
        if point == self.point and when == self.when and (self.always or number == self.nth):
            raise self.error()


class Around:
    """Whatever it stands around, but for the faults."""

    def __init__(self, chaos: Chaos, room: str, target: Any) -> None:
        self._chaos, self._room, self._target = chaos, room, target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not inspect.ismethod(found):
            return found
        point = f"{self._room}.{name}"

        @wraps(found)
        async def called_async(*words: Any, **named: Any) -> Any:
            number = self._begin(point)
            value = await found(*words, **named)
            self._chaos.strike(point, "after", number)
            return value

        @wraps(found)
        def called(*words: Any, **named: Any) -> Any:
            number = self._begin(point)
            value = found(*words, **named)
            self._chaos.strike(point, "after", number)
            return value

        return called_async if inspect.iscoroutinefunction(found) else called

    def _begin(self, point: str) -> int:
        self._chaos.calls[point] += 1
        number = self._chaos.calls[point]
        self._chaos.strike(point, "before", number)
        return number


class InProcess:
    """The lenient parser without its helper process."""

    async def parse(self, *answer: Any) -> Any:
        await asyncio.sleep(0)
        return parse_leniently(*answer)


def answer(request: ModelRequest) -> Completion:
    """One in three needs the lenient parser, two are the same."""
    colon = "" if request.key.sample == 1 else ":"
    return completion(f'{{"src/answer.txt"{colon} "{request.key.sample % 2}\\n"}}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    runner: Runner
    fatal: AstraError | None
    asked: Counter[str]


async def bring_about(path: Path, chaos: Chaos) -> Outcome:
    """A run whose parts are under chaos, but for the other model's pool."""
    opened: list[Runner] = []
    pools = {model: ScriptedPool(answer) for model in MODELS}

    def around(room: str, target: Any) -> Any:
        return chaos.around(room, InProcess() if room == "lenient" else target)

    fatal = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            await run_in_memory(
                path,
                {"one": around("pool", pools["one"]), "other": pools["other"]},
                CountingSandbox(troubles=[ContainerLost("the engine restarted")]),
                formats=("json",),
                problem_ids=PROBLEMS,
                samples=SAMPLES,
                thorough=True,
                around=around,
                on_open=opened.append,
            )
    except AstraError as error:
        fatal = error
    asked = Counter(name for pool in pools.values() for name in pool.asked)
    return Outcome(runner=opened[0], fatal=fatal, asked=asked)


def points(path: Path) -> list[str]:
    """Where parts call each other in a run without faults."""
    chaos = Chaos()
    outcome = asyncio.run(bring_about(path, chaos))
    assert outcome.runner.tally.final == PLANNED
    return sorted(name for name in chaos.calls if name not in NOT_CALLED_FOR_A_SAMPLE)


def final_lines(path: Path) -> list[tuple[str, ...]]:
    lines = map(orjson.loads, (path / "results.jsonl").read_bytes().splitlines())
    return [(line["model"], line["problem_id"], str(line["sample"])) for line in lines]


def check_end(path: Path, outcome: Outcome) -> None:
    """planned = final + missing where the run came to its end, and no key twice."""
    lines = final_lines(path)
    assert len(lines) == len(set(lines))
    tally = outcome.runner.tally
    assert (tally.asking, tally.grading) == (0, 0)
    assert not isinstance(outcome.fatal, InvariantError), outcome.fatal
    if outcome.fatal is None:
        assert len(lines) + tally.missing.total() == PLANNED
        named = [orjson.loads(line) for line in (path / "events.jsonl").read_bytes().splitlines()]
        assert sum("sample" in event and event["kind"].endswith("_error") for event in named) >= (
            tally.missing.total()
        )


def check_resume(path: Path, asked: Counter[str], *, answers_lost: int) -> None:
    """Without chaos the same call completes, and asks again only for answers that were never recorded."""
    outcome = asyncio.run(bring_about(path, Chaos()))
    assert outcome.fatal is None
    assert len(set(final_lines(path))) == len(final_lines(path)) == PLANNED
    again = asked + outcome.asked
    assert sum(count - 1 for count in again.values()) <= answers_lost


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("when", ["before", "after"])
def test_one_unexpected_error_anywhere_costs_one_sample_at_most(tmp_path: Path, when: When) -> None:
    for number, point in enumerate(points(tmp_path / "undisturbed")):
        for kind, error in enumerate(ERRORS):
            path = tmp_path / f"{number}-{kind}"
            chaos = Chaos(point=point, when=when, error=error, nth=1 + (number + kind) % 3)
            outcome = asyncio.run(bring_about(path, chaos))
            check_end(path, outcome)
            assert outcome.fatal is None or point in ENDS_THE_RUN, (point, error())
            if outcome.fatal is None:
                assert outcome.runner.tally.missing.total() <= 1, (point, error())
            check_resume(path, outcome.asked, answers_lost=point in LOSES_AN_ANSWER)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_unexpected_error_at_every_call_spares_what_does_not_need_it(tmp_path: Path, when: When) -> None:
    for number, point in enumerate(points(tmp_path / "undisturbed")):
        path = tmp_path / str(number)
        chaos = Chaos(point=point, when=when, error=ERRORS[number % len(ERRORS)], always=True)
        outcome = asyncio.run(bring_about(path, chaos))
        check_end(path, outcome)
        other = [line for line in final_lines(path) if line[0] == "other"]
        if point.startswith("pool."):
            assert len(other) == PLANNED / 2, "the other model's samples are all there"
        check_resume(path, outcome.asked, answers_lost=PLANNED if point in LOSES_AN_ANSWER else 0)

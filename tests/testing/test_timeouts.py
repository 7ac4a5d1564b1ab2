from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from astra_async.testing.timeouts import Exclusive, Timeouts, oversubscribed
from astra_async.types import Execution, Job, Limits

if TYPE_CHECKING:
    from pathlib import Path

JOB = Job(image="any", archive=b"", command="true")


class SlowSandbox:
    """Runs take a few turns of the loop; `most` is how many were ever under way together."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0

    async def image_id(self, image: str) -> str:
        return f"id of {image}"

    def expect(self, image: str, limits: Limits) -> None:
        return None

    async def run(self, job: Job) -> Execution:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(5):
                await asyncio.sleep(0)
        finally:
            self.running -= 1
        return Execution(exit_code=0, duration_s=0.1)


async def test_nothing_runs_beside_a_run_that_is_alone() -> None:
    sandbox = SlowSandbox()
    exclusive = Exclusive(sandbox)
    beside: list[int] = []

    async def alone() -> None:
        async with exclusive.alone() as inner:
            beside.append(sandbox.running)
            await asyncio.gather(inner.run(JOB), asyncio.sleep(0))
            beside.append(sandbox.running)

    before = [asyncio.create_task(exclusive.run(JOB)) for _ in range(3)]
    await asyncio.sleep(0)
    lonely = [asyncio.create_task(alone()) for _ in range(2)]
    await asyncio.sleep(0)
    after = [asyncio.create_task(exclusive.run(JOB)) for _ in range(3)]
    await asyncio.gather(*before, *lonely, *after)
    assert beside == [0, 0, 0, 0]
    assert sandbox.most == 3


async def test_a_cancelled_run_does_not_keep_others_waiting() -> None:
    exclusive = Exclusive(SlowSandbox())
    running = asyncio.create_task(exclusive.run(JOB))
    await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(60), exclusive.alone() as sandbox:
        await sandbox.run(JOB)
    await asyncio.gather(running, return_exceptions=True)
    assert await exclusive.image_id("a") == "id of a"


def timeouts(samples: int, *, strained: bool = True, earlier: tuple[tuple[str, str], ...] = ()) -> Timeouts:
    return Timeouts(Exclusive(SlowSandbox()), samples=samples, earlier=earlier, strained=lambda _: strained)


def test_a_time_out_on_an_idle_machine_stands() -> None:
    assert not timeouts(1000, strained=False).take_repetition("p", "sha", 60.0)


def test_a_solution_is_repeated_once() -> None:
    deciding = timeouts(1000)
    assert deciding.take_repetition("p", "sha", 60.0)
    assert not deciding.take_repetition("p", "sha", 60.0)
    assert deciding.take_repetition("q", "sha", 60.0)


@pytest.mark.parametrize(("samples", "repeated"), [(1, 3), (99, 3), (400, 4), (2080, 20)])
def test_one_sample_in_a_hundred_is_repeated_and_three_in_a_small_run(samples: int, repeated: int) -> None:
    deciding = timeouts(samples)
    assert sum(deciding.take_repetition("p", f"sha {n}", 60.0) for n in range(100)) == repeated


def test_repetitions_of_an_earlier_call_count() -> None:
    deciding = timeouts(200, earlier=(("p", "old"), ("p", "older")))
    assert not deciding.take_repetition("p", "old", 60.0)
    assert deciding.take_repetition("p", "new", 60.0)
    assert not deciding.take_repetition("p", "newer", 60.0)


@pytest.mark.parametrize(
    ("duration_s", "averages", "strained"),
    [
        (10.0, (35.0, 0.0, 0.0), True),
        (10.0, (5.0, 90.0, 90.0), False),
        (100.0, (0.0, 35.0, 0.0), True),
        (300.0, (0.0, 0.0, 35.0), True),
        (300.0, (90.0, 90.0, 5.0), False),
    ],
)
def test_the_kernels_pressure_over_the_time_of_the_run_decides(
    tmp_path: Path, duration_s: float, averages: tuple[float, float, float], *, strained: bool
) -> None:
    (tmp_path / "pressure").mkdir()
    short, middle, long = averages
    (tmp_path / "pressure" / "cpu").write_text(
        f"some avg10={short:.2f} avg60={middle:.2f} avg300={long:.2f} total=1\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    )
    assert oversubscribed(duration_s, tmp_path) is strained


@pytest.mark.parametrize(("load", "strained"), [("900.0 0.1 0.1 1/1 1", True), ("0.1 0.1 0.1 1/1 1", False)])
def test_without_pressure_the_load_average_decides(tmp_path: Path, load: str, *, strained: bool) -> None:
    (tmp_path / "loadavg").write_text(load)
    assert oversubscribed(10.0, tmp_path) is strained

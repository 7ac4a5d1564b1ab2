"""Repeat a timed-out test run once, alone, if the machine was overloaded.

Each solution is repeated at most once, and at most 1 % of a run's samples (at least three), so that endless
loops cost little. The record has the repair `timeout_repeated`.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from astra_async.types import Execution, Job, Limits, Sandbox

TIMEOUT_REPEATED = "timeout_repeated"
_SHARE_OF_SAMPLES = 0.01
_FEWEST = 3
_PRESSURE = 20.0  # percent of the time in which some task waited for a core
_SOME = re.compile(r"^some avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+)", re.MULTILINE)
_SHORT_S, _MIDDLE_S = 30.0, 150.0  # longest runs for the averages over 10 s and 60 s


class Exclusive:
    """Sandbox that can run one job with no other job of this process on the machine.

    With several machines, `alone` provides one of them.
    """

    def __init__(
        self, sandbox: Sandbox, *, alone: Callable[[], AbstractAsyncContextManager[Sandbox]] | None = None
    ) -> None:
        self._sandbox = sandbox
        self._own = alone
        self._running = 0
        self._idle = asyncio.Event()
        self._entrance = asyncio.Lock()  # held while a job runs alone

    async def image_id(self, image: str) -> str:
        """See `types.Sandbox`."""
        return await self._sandbox.image_id(image)

    def expect(self, image: str, limits: Limits) -> None:
        """See `types.Sandbox`."""
        self._sandbox.expect(image, limits)

    async def run(self, job: Job) -> Execution:
        """Run a job, see `types.Sandbox`; wait while another job runs alone."""
        async with self._entrance:
            self._running += 1
        try:
            return await self._sandbox.run(job)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Sandbox]:
        """Wait until all jobs have ended, and yield the sandbox; other jobs wait until the block ends."""
        if self._own is not None:
            async with self._own() as machine:
                yield machine
            return
        async with self._entrance:
            while self._running:
                self._idle.clear()
                await self._idle.wait()
            yield self._sandbox


class Timeouts:
    """Decides whether a timed-out run is repeated.

    `samples` is the number of samples in the whole run. `earlier` are the (problem, solution) pairs repeated
    by earlier invocations. `strained` returns True if the machine was overloaded in the last given seconds.
    """

    def __init__(
        self,
        exclusive: Exclusive,
        *,
        samples: int,
        earlier: Iterable[tuple[str, str]] = (),
        strained: Callable[[float], bool] | None = None,
    ) -> None:
        self.exclusive = exclusive
        self._allowed = max(_FEWEST, int(samples * _SHARE_OF_SAMPLES))
        self._strained = strained or oversubscribed
        self._repeated = list(earlier)

    def take_repetition(
        self, problem_id: str, solution_sha256: str, duration_s: float, *, strained: bool | None = None
    ) -> bool:
        """Return True if this timed-out run should be repeated, and count the repetition.

        `strained` is a node's own measurement of its load.
        """
        if not (self._strained(duration_s) if strained is None else strained):
            return False
        if len(self._repeated) >= self._allowed or (problem_id, solution_sha256) in self._repeated:
            return False
        self._repeated.append((problem_id, solution_sha256))
        return True


def oversubscribed(duration_s: float, proc: Path = Path("/proc")) -> bool:
    """Return True if tasks had to wait for a core in about the last `duration_s` seconds.

    The source is the kernel's pressure stall information (`cpu`, `some`), or else the load average compared
    with the number of cores.
    """
    try:
        found = _SOME.search((proc / "pressure" / "cpu").read_text())
    except OSError:
        found = None
    which = 0 if duration_s < _SHORT_S else 1 if duration_s < _MIDDLE_S else 2
    if found:
        return float(found[which + 1]) >= _PRESSURE
    load = (proc / "loadavg").read_text().split()
    return float(load[1 if duration_s >= _MIDDLE_S else 0]) > (os.cpu_count() or 1)

"""Sandbox on a Docker Engine with a limited number of slots and containers created ahead."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from astra_async.errors import ContainerLost, EngineUnavailable, SandboxError
from astra_async.testing.sandbox.containers import Containers, Made

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Execution, Job, Limits, Sandbox

_IDLE_S = 60.0  # an unused container is then replaced if another image needs its place
_PING_S = 1.0
_PATIENCE_S = 120.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Image and limits of a container created ahead."""

    image: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Ahead:
    kind: _Kind
    made: Made
    made_at: float


class DockerSandbox(Containers):
    """Runs every job in a fresh container, at most `slots` jobs at a time; see `types.Sandbox`.

    At most `slots` containers are created ahead; they are not started. `waiting` and `running` count jobs. If
    the engine is unavailable before a job has begun, it has `patience_s` seconds to come back (a restart
    takes a few).
    """

    def __init__(
        self,
        engine: Engine,
        *,
        run_id: str,
        slots: int,
        patience_s: float = _PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(engine, run_id=run_id, spare=slots)
        self.slots = slots
        self.waiting = 0
        self.running = 0
        self.on_slots: Callable[[int], None] = lambda _: None  # never called: the number is fixed
        self.alone: Callable[[], AbstractAsyncContextManager[Sandbox]] | None = None
        self._patience_s = patience_s
        self._clock = clock
        self._free = asyncio.Semaphore(slots)
        self._ahead: list[_Ahead] = []
        self._making = 0

    @classmethod
    async def open(
        cls, *, run_id: str, slots: int, docker_host: str | None = None, patience_s: float = _PATIENCE_S
    ) -> Self:
        """Connect to the engine, and remove containers of dead runs for a few seconds at most.

        Raises:
            EngineUnavailable: no Docker Engine answers.
        """
        engine = await cls.swept(run_id, docker_host)
        return cls(engine, run_id=run_id, slots=slots, patience_s=patience_s)

    def _left(self) -> list[str]:
        left = [*super()._left(), *(each.made.container for each in self._ahead)]
        self._ahead.clear()
        return left

    @property
    def ahead(self) -> int:
        """Number of created containers that wait for a job."""
        return len(self._ahead)

    def expect(self, image: str, limits: Limits) -> None:
        """Announce an answer for this image, so that a container may be created ahead. Never blocks."""
        kind, gives_way = _Kind(image, limits), None
        if self._closed:
            return
        if len(self._ahead) + self._making >= self.slots:
            old = (each for each in self._ahead if self._clock() - each.made_at > _IDLE_S)
            gives_way = next((each for each in old if each.kind != kind), None)
            if gives_way is None:
                return
            self._ahead.remove(gives_way)
        # Invariant: containers created ahead or being created are at most as many as slots.
        self._making += 1
        self.spawn(self._make_ahead(kind, gives_way))

    async def run(self, job: Job) -> Execution:
        """Wait for a free slot, then run the job's command in a fresh container.

        Raises:
            ImageError, ContainerLost, EngineUnavailable, SandboxError: see `errors`.
        """
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            return await self._run(job)
        finally:
            self.running -= 1
            self._free.release()

    async def _run(self, job: Job) -> Execution:
        try:
            done = await self._run_once(job)
        except EngineUnavailable:
            # No command has run yet: a connection lost during a command is ContainerLost.
            await self._engine_is_back()
            done = await self._run_once(job)
        return replace(done, image_id=await self.image_id(job.image))

    async def _run_once(self, job: Job) -> Execution:
        fitness = await self.fit(job.image)
        while (ahead := self._take_ahead(_Kind(job.image, job.limits))) is not None:
            async with self.removing(ahead):
                try:
                    keeper = await self.start(ahead)
                except ContainerLost:
                    continue  # the waiting container was pruned from outside
                return await self.execute(ahead, job, keeper, fitness)
        async with self.removing(await self.create(job.image, job.limits, fitness)) as fresh:
            return await self.execute(fresh, job, await self.start(fresh), fitness)

    async def _engine_is_back(self) -> None:
        """Wait for a restarting engine; raise EngineUnavailable if it does not come back in time."""
        began_at = self._clock()
        while True:
            try:
                await self.engine.ping()
            except EngineUnavailable:
                if self._clock() > began_at + self._patience_s:
                    raise
                await asyncio.sleep(_PING_S)
            else:
                return

    def stop_waiting(self) -> None:
        """Stop waiting for an unavailable engine, because the run is being stopped."""
        self._patience_s = 0.0

    # --- containers made ahead --------------------------------------------------------------------

    def _take_ahead(self, kind: _Kind) -> Made | None:
        for each in self._ahead:
            if each.kind == kind:
                # Now the caller must remove the container; the sandbox removes those in the list.
                self._ahead.remove(each)
                return each.made
        return None

    async def _make_ahead(self, kind: _Kind, gives_way: _Ahead | None) -> None:
        try:
            if gives_way:
                await self._remove(gives_way.made)
            fitness = await self.fit(kind.image)
            made = await self.create(kind.image, kind.limits, fitness)
            self._ahead.append(_Ahead(kind, made, self._clock()))
        except SandboxError as error:
            _log.info("no container made ahead: %s", error)  # the job meets the same error and reports it
        finally:
            self._making -= 1

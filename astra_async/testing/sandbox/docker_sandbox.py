"""The Sandbox on a Docker Engine: slots, containers made ahead, and nothing left behind."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

from astra_async.errors import ContainerLost, EngineUnavailable, ImageError, SandboxError
from astra_async.testing.sandbox.bounded_layers import BoundedLayers
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.execution import execute
from astra_async.testing.sandbox.fitness import UNPRIVILEGED, Fitness, declared_user, look, try_layers, unseen
from astra_async.testing.sandbox.hardened import hardened
from astra_async.testing.sandbox.keeper import Keeper
from astra_async.testing.sandbox.sweep import (
    OWNER_LABEL,
    RUN_LABEL,
    container_name,
    owner,
    remove_all,
    sweep,
    sweep_own,
)
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from astra_async.testing.sandbox.bounded_layers import BoundedLayer
    from astra_async.types import Execution, Sandbox

_T = TypeVar("_T")
_IDLE_S = 60.0  # a container made ahead that nobody took for so long gives way to another image's
_LOOK_S = 60.0
_SWEEP_S = 5.0
_PING_S = 1.0
_PATIENCE_S = 120.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a container made ahead is fit for."""

    image: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Made:
    """A container that was created, and its bounded layer where it has one."""

    container: str
    layer: BoundedLayer | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    kind: _Kind
    made: _Made
    made_at: float


class DockerSandbox:
    """Runs every job in a fresh container, `slots` of them at once; see `types.Sandbox`.

    Containers made ahead are created and not started; there are at most `slots` of them. `waiting` and
    `running` count jobs. An engine that does not answer before a job has begun is given `patience_s`
    seconds to come back (a restart takes a few).
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
        self.engine = engine
        self.slots = slots
        self.waiting = 0
        self.running = 0
        self.on_slots: Callable[[int], None] = lambda _: None  # never called: they are what they are
        self.alone: Callable[[], AbstractAsyncContextManager[Sandbox]] | None = None
        self._run_id = run_id
        self._patience_s = patience_s
        self._clock = clock
        self._labels = {RUN_LABEL: run_id, OWNER_LABEL: owner()}
        self._layers = BoundedLayers(engine, run_id=run_id, labels=self._labels, spare=slots)
        self._free = asyncio.Semaphore(slots)
        self._ahead: list[_Ahead] = []
        self._making = 0
        self._image_ids: dict[str, str] = {}
        self._fitness: dict[str, asyncio.Task[Fitness]] = {}
        self._leftovers: set[str] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False
        self._seccomp: bool | None = None

    @classmethod
    async def open(
        cls, *, run_id: str, slots: int, docker_host: str | None = None, patience_s: float = _PATIENCE_S
    ) -> Self:
        """Connect to the engine, and remove what dead runs left there, as far as that takes seconds.

        Raises:
            EngineUnavailable: no Docker Engine answers.
        """
        engine = await Engine.open(docker_host)
        try:
            async with asyncio.timeout(_SWEEP_S):
                await sweep(engine, run_id)
        except TimeoutError:
            _log.warning("what dead runs left behind is still being removed; this run does not wait for it")
        except BaseException:
            await engine.close()
            raise
        return cls(engine, run_id=run_id, slots=slots, patience_s=patience_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Remove every container of this run that this process made, and disconnect."""
        if self._closed:
            return
        self._closed = True
        try:
            while self._tasks:
                await asyncio.wait(set(self._tasks))
            await self._layers.close()
            await remove_all(
                self.engine, [each.made.container for each in self._ahead] + list(self._leftovers)
            )
            await sweep_own(self.engine, self._run_id)
        except SandboxError as error:
            _log.warning("containers may be left until the next run sweeps them: %s", error)
        finally:
            self._ahead.clear()
            await self.engine.close()

    @property
    def ahead(self) -> int:
        """Containers that are made and wait for a job."""
        return len(self._ahead)

    async def image_id(self, image: str) -> str:
        """The content id (sha256:...) of an image, the same one for as long as the sandbox is open.

        Raises:
            ImageError: the engine has no such image.
        """
        if image not in self._image_ids:
            found = await self.engine.image(image)
            if found is None:
                raise ImageError(
                    f"Image {image} is not there; build it (`astra images build`) or `docker pull {image}`"
                )
            self._image_ids[image] = str(found["Id"])
        return self._image_ids[image]

    def expect(self, image: str, limits: Limits) -> None:
        """An answer for this image is under way: a container may be made ahead. Never blocks."""
        kind, gives_way = _Kind(image, limits), None
        if self._closed:
            return
        if len(self._ahead) + self._making >= self.slots:
            gives_way = next((each for each in self._ahead if self._gives_way_to(kind, each)), None)
            if gives_way is None:
                return
            self._ahead.remove(gives_way)
        # Invariant: containers ahead, and those being made, are at most as many as slots.
        self._making += 1
        self._spawn(self._make_ahead(kind, gives_way))

    async def run(self, job: Job) -> Execution:
        """Run the job's command in a container of its own; waits for a free slot first.

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
            fitness = await self._fit(job.image)
            return await self._run_as(job, fitness)
        except EngineUnavailable:
            # Nothing has run yet: a running command's lost connection is ContainerLost.
            await self._engine_is_back()
        return await self._run_as(job, await self._fit(job.image))

    async def _run_as(self, job: Job, fitness: Fitness) -> Execution:
        while (ahead := self._take(_Kind(job.image, job.limits))) is not None:
            async with self._removing(ahead):
                try:
                    keeper = await self._start(ahead)
                except ContainerLost:
                    continue  # somebody pruned it while it lay ready
                return await self._execute(ahead, job, keeper, fitness)
        fresh = await self._create(job.image, job.limits, fitness)
        async with self._removing(fresh):
            return await self._execute(fresh, job, await self._start(fresh), fitness)

    async def _start(self, made: _Made) -> Keeper:
        if made.layer is None:
            return await Keeper.start(self.engine, made.container)
        try:
            keeper = await Keeper.start(self.engine, made.container)
        except ContainerLost:
            raise
        except SandboxError as error:
            if made.layer.held:
                raise
            raise ContainerLost("The container's layer was lost before its start") from error
        await self._layers.entered(made.layer)
        return keeper

    async def _execute(self, made: _Made, job: Job, keeper: Keeper, fitness: Fitness) -> Execution:
        async with keeper:
            done = await execute(self.engine, made.container, job, keeper=keeper, fitness=fitness)
        return replace(done, image_id=await self.image_id(job.image), disk_watched=fitness.layered)

    async def _engine_is_back(self) -> None:
        """Wait for a restarting engine; raises EngineUnavailable when it stays away."""
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
        """From now on an engine that is away is not waited for: the run is being stopped."""
        self._patience_s = 0.0

    # --- containers made ahead --------------------------------------------------------------------

    def _take(self, kind: _Kind) -> _Made | None:
        for each in self._ahead:
            if each.kind == kind:
                self._ahead.remove(each)  # from here its taker removes it; what is in the list, the sandbox
                return each.made
        return None

    def _gives_way_to(self, kind: _Kind, each: _Ahead) -> bool:
        return each.kind != kind and self._clock() - each.made_at > _IDLE_S

    async def _make_ahead(self, kind: _Kind, gives_way: _Ahead | None) -> None:
        try:
            if gives_way:
                await self._remove(gives_way.made)
            fitness = await self._fit(kind.image)
            made = await self._create(kind.image, kind.limits, fitness)
            self._ahead.append(_Ahead(kind, made, self._clock()))
        except SandboxError as error:
            _log.info("no container made ahead: %s", error)  # the run meets the same error and reports it
        finally:
            self._making -= 1

    # --- one container's beginning and end -----------------------------------------------------------

    async def _fit(self, image: str) -> Fitness:
        """Fitness of an image; looked at once, whoever asks first, and again after a failure."""
        image_id = await self.image_id(image)
        task = self._fitness.get(image_id)
        if task is None or (task.done() and task.exception()):
            task = self._spawn(self._look(image))
            self._fitness[image_id] = task
        return await asyncio.shield(task)

    async def _look(self, image: str) -> Fitness:
        config = (await self.engine.image(await self.image_id(image)) or {}).get("Config") or {}
        volumes = tuple(config.get("Volumes") or ())
        fitness = await self._look_as(image, declared_user(config.get("User") or ""), volumes)
        if fitness.uid == 0:  # another name of root
            fitness = await self._look_as(image, "{}:{}".format(*UNPRIVILEGED), volumes)
        return await self._with_layers_tried(image, fitness) if fitness.overlaid else fitness

    async def _look_as(self, image: str, user: str, volumes: tuple[str, ...]) -> Fitness:
        limits = Limits(timeout_s=_LOOK_S)
        made = await self._create(image, limits, unseen())
        async with self._removing(made):
            return await look(self.engine, made.container, limits, user=user, declared=volumes)

    async def _with_layers_tried(self, image: str, fitness: Fitness) -> Fitness:
        """The fitness with its bounded layers, if this engine and its kernel can mount them, else without."""
        limits = Limits(timeout_s=_LOOK_S)
        job = Job(image=image, archive=bytes(1024), command=try_layers(fitness), limits=limits)
        try:
            done = await self._run_as(job, fitness)
            reason = "" if done.exit_code == 0 else done.output
        except (ContainerLost, EngineUnavailable):
            raise
        except SandboxError as error:
            reason = str(error)
        if not reason:
            return fitness
        _log.warning(
            "Image %s: the disk that its tests may fill is watched, not bounded: %s", image, both_ends(reason)
        )
        return replace(fitness, overlaid={}, layered=True)

    async def _create(self, image: str, limits: Limits, fitness: Fitness) -> _Made:
        """Create a container; a cancellation waits for the engine's answer and removes it again."""
        creation = self._spawn(self._made(image, limits, fitness))
        try:
            return await asyncio.shield(creation)
        except asyncio.CancelledError:
            await self._finish(self._undo(creation))
            raise

    async def _made(self, image: str, limits: Limits, fitness: Fitness) -> _Made:
        if self._seccomp is None:
            self._seccomp = await self.engine.confines_system_calls()
        image_id = await self.image_id(image)
        config = hardened(image_id, limits, fitness=fitness, seccomp=self._seccomp, labels=self._labels)
        name = container_name(self._run_id)
        if not fitness.overlaid:
            return _Made(await self.engine.create(config, name), None)
        layer = await self._layers.take(image_id, fitness, limits.disk_bytes)
        config["HostConfig"]["Mounts"] += layer.mounts
        try:
            return _Made(await self.engine.create(config, name), layer)
        except BaseException:
            await self._layers.leave(layer)
            raise

    async def _undo(self, creation: asyncio.Task[_Made]) -> None:
        try:
            made = await creation
        except SandboxError:
            return  # nothing was made
        await self._remove(made)

    @asynccontextmanager
    async def _removing(self, made: _Made) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._finish(self._remove(made))

    async def _remove(self, made: _Made) -> None:
        try:
            await self.engine.remove(made.container)
        except SandboxError as error:
            self._leftovers.add(made.container)
            _log.warning("container %s is removed later: %s", made.container[:12], error)
            return
        if made.layer is not None:
            self._spawn(self._layers.leave(made.layer))

    async def _finish(self, work: Coroutine[object, object, _T]) -> _T:
        """Await work that must end whatever happens to the caller; `close` awaits what outlives it."""
        task = self._spawn(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await asyncio.wait({task})
            raise

    def _spawn(self, work: Coroutine[object, object, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._settled)
        return task

    def _settled(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: whoever awaits the task gets it, and nobody may be left

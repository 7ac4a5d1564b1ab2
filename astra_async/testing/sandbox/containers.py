"""Containers on a Docker Engine: made as their image bears it, and removed whatever happens.

What tests and agents share: the look into an image, the hardened container with its bounded layers, its
beginning and its end.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from astra_async.errors import ContainerLost, EngineUnavailable, ImageError, SandboxError
from astra_async.tasks import Closing, mark_retrieved
from astra_async.testing.sandbox.bounded_layers import BoundedLayers
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.hardened import UNPRIVILEGED, Fitness, hardened, unseen
from astra_async.testing.sandbox.job import execute
from astra_async.testing.sandbox.keeper import Keeper
from astra_async.testing.sandbox.looking import declared_user, look, try_layers
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
    from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Mapping, Sequence

    from astra_async.testing.sandbox.bounded_layers import BoundedLayer
    from astra_async.types import Execution

_T = TypeVar("_T")
_LOOK_S = 60.0
_SWEEP_S = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """A container that was created, and its bounded layer where it has one."""

    container: str
    layer: BoundedLayer | None = None


class Containers(Closing):
    """The containers that this process makes for a run on one engine; an asynchronous context manager.

    `spare` is how many holders of bounded layers are kept for the next containers. `whose` they are, where
    another process than this one removes what is left of them.
    """

    def __init__(self, engine: Engine, *, run_id: str, spare: int, whose: str = "") -> None:
        self.engine = engine
        self.labels = {RUN_LABEL: run_id, OWNER_LABEL: whose or owner()}
        self._run_id = run_id
        self._whose = whose
        self._layers = BoundedLayers(engine, name=self._name, labels=self.labels, spare=spare)
        self._image_ids: dict[str, str] = {}
        self._once: dict[Hashable, asyncio.Task[Any]] = {}
        self._leftovers: set[str] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False
        self._seccomp: bool | None = None

    @staticmethod
    async def swept(run_id: str, docker_host: str | None = None) -> Engine:
        """An engine on which nothing of dead runs is left, as far as removing that takes seconds.

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
        return engine

    async def close(self) -> None:
        """Remove every container of this run that this process made, and disconnect."""
        if self._closed:
            return
        self._closed = True
        try:
            while self._tasks:
                await asyncio.wait(set(self._tasks))
            await self._layers.close()
            await remove_all(self.engine, self._left())
            await sweep_own(self.engine, self._run_id, self._whose)
        except SandboxError as error:
            level = logging.INFO if self._whose else logging.WARNING  # or their owner removes them
            _log.log(level, "containers may be left until the next run sweeps them: %s", error)
        finally:
            await self.engine.close()

    def _left(self) -> list[str]:
        """Containers that nobody removes any more."""
        return list(self._leftovers)

    async def image_id(self, image: str) -> str:
        """The content id (sha256:...) of an image, the same one for as long as this is open.

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

    async def start(self, made: Made) -> Keeper:
        """Start a created container and hold its first process. Raises SandboxError."""
        layer = made.layer
        try:
            keeper = await Keeper.start(self.engine, made.container)
        except SandboxError as error:
            if layer is None or layer.held or isinstance(error, ContainerLost):
                raise
            raise ContainerLost("The container's layer was lost before its start") from error
        if layer is not None:
            await self._layers.entered(layer)
        return keeper

    async def fit(self, image: str) -> Fitness:
        """Fitness of an image; looked at once, whoever asks first, and again after a failure."""
        image_id = await self.image_id(image)
        return await self.once(("fitness", image_id), lambda: self._look(image))

    async def _look(self, image: str) -> Fitness:
        config = (await self.engine.image(await self.image_id(image)) or {}).get("Config") or {}
        volumes = tuple(config.get("Volumes") or ())
        fitness = await self._look_as(image, declared_user(config.get("User") or ""), volumes)
        if fitness.uid == 0:  # another name of root
            fitness = await self._look_as(image, "{}:{}".format(*UNPRIVILEGED), volumes)
        return await self._with_layers_tried(image, fitness) if fitness.overlaid else fitness

    async def _look_as(self, image: str, user: str, volumes: tuple[str, ...]) -> Fitness:
        limits = Limits(timeout_s=_LOOK_S)
        async with self.removing(await self.create(image, limits, unseen())) as made:
            return await look(self.engine, made.container, limits, user=user, declared=volumes)

    async def _with_layers_tried(self, image: str, fitness: Fitness) -> Fitness:
        """The fitness with its bounded layers, if this engine and its kernel can mount them, else without."""
        limits = Limits(timeout_s=_LOOK_S)
        job = Job(image=image, archive=bytes(1024), command=try_layers(fitness), limits=limits)
        try:
            async with self.removing(await self.create(image, limits, fitness)) as made:
                done = await self.execute(made, job, await self.start(made), fitness)
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

    async def execute(self, made: Made, job: Job, keeper: Keeper, fitness: Fitness) -> Execution:
        """Run a job's tests in a started container, which the caller removes."""
        async with keeper:
            return await execute(self.engine, made.container, job, keeper=keeper, fitness=fitness)

    async def create(
        self, image: str, limits: Limits, fitness: Fitness, *, mounts: Sequence[Mapping[str, Any]] = ()
    ) -> Made:
        """Create a hardened container, with `mounts` besides its own."""
        return await self._shielded(self._hardened(image, limits, fitness, mounts))

    async def create_as(self, config: Mapping[str, Any]) -> Made:
        """Create a container as a request's body says."""
        return await self._shielded(self._plain(config))

    async def _shielded(self, making: Coroutine[object, object, Made]) -> Made:
        """Create a container; a cancellation waits for the engine's answer and removes it again."""
        creation = self.spawn(making)
        try:
            return await asyncio.shield(creation)
        except asyncio.CancelledError:
            await self._finish(self._undo(creation))
            raise

    async def _plain(self, config: Mapping[str, Any]) -> Made:
        return Made(await self.engine.create(config, self._name()))

    def _name(self) -> str:
        return container_name(self._run_id, self._whose)

    async def _hardened(
        self, image: str, limits: Limits, fitness: Fitness, mounts: Sequence[Mapping[str, Any]]
    ) -> Made:
        if self._seccomp is None:
            self._seccomp = await self.engine.confines_system_calls()
        image_id = await self.image_id(image)
        config = hardened(image_id, limits, fitness=fitness, seccomp=self._seccomp, labels=self.labels)
        config["HostConfig"]["Mounts"] += mounts
        if not fitness.overlaid:
            return await self._plain(config)
        layer = await self._layers.take(image_id, fitness, limits.disk_bytes)
        config["HostConfig"]["Mounts"] += layer.mounts
        try:
            return Made((await self._plain(config)).container, layer)
        except BaseException:
            await self._layers.leave(layer)
            raise

    async def _undo(self, creation: asyncio.Task[Made]) -> None:
        try:
            made = await creation
        except SandboxError:
            return  # nothing was made
        await self._remove(made)

    @asynccontextmanager
    async def removing(self, made: Made) -> AsyncIterator[Made]:
        """Remove the container in the end."""
        try:
            yield made
        finally:
            await self._finish(self._remove(made))

    async def _remove(self, made: Made) -> None:
        try:
            await self.engine.remove(made.container)
        except SandboxError as error:
            self._leftovers.add(made.container)
            _log.warning("container %s is removed later: %s", made.container[:12], error)
            return
        if made.layer is not None:
            self.spawn(self._layers.leave(made.layer))

    async def _finish(self, work: Coroutine[object, object, _T]) -> _T:
        """Await work that must end whatever happens to the caller; `close` awaits what outlives it."""
        task = self.spawn(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await asyncio.wait({task})
            raise

    async def once(self, key: Hashable, work: Callable[[], Coroutine[object, object, _T]]) -> _T:
        """What all callers with this key share: done for the first of them, and again after a failure."""
        task = self._once.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._once[key] = self.spawn(work())
        outcome: _T = await asyncio.shield(task)
        return outcome

    def spawn(self, work: Coroutine[object, object, _T]) -> asyncio.Task[_T]:
        """A task that `close` awaits, and whose failure is its awaiter's alone."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(mark_retrieved)
        return task

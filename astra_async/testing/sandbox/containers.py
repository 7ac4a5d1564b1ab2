"""Creation, start and removal of containers, for tests and for agents.

This includes the inspection of images and bounded layers.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from astra_async.errors import ContainerLost, EngineUnavailable, ImageError, SandboxError
from astra_async.tasks import Closing, closed_on_error, mark_retrieved
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
    """A created container and its bounded layer, if any."""

    container: str
    layer: BoundedLayer | None = None


class Containers(Closing):
    """Containers of a run that this process creates on one engine; an asynchronous context manager.

    `spare` is the number of bounded-layer holders to keep for later containers. `whose` is the owner's name
    if another process removes leftover containers.
    """

    def __init__(self, engine: Engine, *, run_id: str, spare: int, whose: str = "") -> None:
        self.engine = engine
        self.labels = {RUN_LABEL: run_id, OWNER_LABEL: whose or owner()}
        self._run_id = run_id
        self._whose = whose
        self._level = logging.INFO if whose else logging.WARNING  # the owner `whose` removes what remains
        self._layers = BoundedLayers(engine, name=self._name, labels=self.labels, spare=spare)
        self._image_ids: dict[str, str] = {}
        self._once: dict[Hashable, asyncio.Task[Any]] = {}
        self._leftovers: set[str] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False
        self._seccomp: bool | None = None

    @staticmethod
    async def swept(run_id: str, docker_host: str | None = None) -> Engine:
        """Connect to the engine and remove containers of dead runs, for a few seconds at most.

        Raises:
            EngineUnavailable: no Docker Engine answers.
        """
        engine = await Engine.open(docker_host)
        async with closed_on_error(engine.close):
            try:
                async with asyncio.timeout(_SWEEP_S):
                    await sweep(engine, run_id)
            except TimeoutError:
                _log.warning("containers of dead runs are still being removed; this run does not wait")
        return engine

    async def close(self) -> None:
        """Remove every container that this process created for the run, and disconnect."""
        if self._closed:
            return
        self._closed = True
        try:
            while self._tasks:
                await asyncio.wait(set(self._tasks))
            await self._layers.close()
            await remove_all(self.engine, self._left(), level=self._level)
            await sweep_own(self.engine, self._run_id, self._whose)
        except SandboxError as error:
            _log.log(self._level, "containers may remain until the next run removes them: %s", error)
        finally:
            await self.engine.close()

    def _left(self) -> list[str]:
        """Return the containers that are still to be removed."""
        return list(self._leftovers)

    async def image_id(self, image: str) -> str:
        """Return the content id (sha256:...) of an image; cached until this object is closed.

        Raises:
            ImageError: the engine has no such image.
        """
        if image not in self._image_ids:
            found = await self.engine.image(image)
            if found is None:
                raise ImageError(
                    f"Image {image} does not exist; build it (`astra images build`) or `docker pull {image}`"
                )
            self._image_ids[image] = str(found["Id"])
        return self._image_ids[image]

    async def start(self, made: Made) -> Keeper:
        """Start a created container and connect to its first process. Raises SandboxError."""
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
        """Return the fitness of an image; inspected once for all callers, and again after a failure."""
        image_id = await self.image_id(image)
        return await self.once(("fitness", image_id), lambda: self._look(image))

    async def _look(self, image: str) -> Fitness:
        config = (await self.engine.image(await self.image_id(image)) or {}).get("Config") or {}
        volumes = tuple(config.get("Volumes") or ())
        fitness = await self._look_as(image, declared_user(config.get("User") or ""), volumes)
        if fitness.uid == 0:  # the image's user is root under another name
            fitness = await self._look_as(image, "{}:{}".format(*UNPRIVILEGED), volumes)
        return await self._with_layers_tried(image, fitness) if fitness.overlaid else fitness

    async def _look_as(self, image: str, user: str, volumes: tuple[str, ...]) -> Fitness:
        limits = Limits(timeout_s=_LOOK_S)
        async with self.removing(await self.create(image, limits, unseen())) as made:
            return await look(self.engine, made.container, limits, user=user, declared=volumes)

    async def _with_layers_tried(self, image: str, fitness: Fitness) -> Fitness:
        """Return the fitness with bounded layers if this engine and kernel can mount them, else without."""
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
            "Image %s: the tests' disk usage is watched, not bounded by the kernel: %s",
            image,
            both_ends(reason),
        )
        return replace(fitness, overlaid={}, layered=True)

    async def execute(self, made: Made, job: Job, keeper: Keeper, fitness: Fitness) -> Execution:
        """Run a job's tests in a started container; the caller removes the container."""
        async with keeper:
            return await execute(self.engine, made.container, job, keeper=keeper, fitness=fitness)

    async def create(
        self, image: str, limits: Limits, fitness: Fitness, *, mounts: Sequence[Mapping[str, Any]] = ()
    ) -> Made:
        """Create a hardened container, with additional `mounts`."""
        return await self._shielded(self._create_hardened(image, limits, fitness, mounts))

    async def create_as(self, config: Mapping[str, Any]) -> Made:
        """Create a container from the body of a create request."""
        return await self._shielded(self._create_plain(config))

    async def _shielded(self, making: Coroutine[object, object, Made]) -> Made:
        """Create a container; if cancelled, wait for the engine's response and remove the container."""
        creation = self.spawn(making)
        try:
            return await asyncio.shield(creation)
        except asyncio.CancelledError:
            await self._finish(self._remove_created(creation))
            raise

    async def _create_plain(self, config: Mapping[str, Any]) -> Made:
        return Made(await self.engine.create(config, self._name()))

    def _name(self) -> str:
        return container_name(self._run_id, self._whose)

    async def _create_hardened(
        self, image: str, limits: Limits, fitness: Fitness, mounts: Sequence[Mapping[str, Any]]
    ) -> Made:
        if self._seccomp is None:
            self._seccomp = await self.engine.confines_system_calls()
        image_id = await self.image_id(image)
        config = hardened(image_id, limits, fitness=fitness, seccomp=self._seccomp, labels=self.labels)
        config["HostConfig"]["Mounts"] += mounts
        if not fitness.overlaid:
            return await self._create_plain(config)
        layer = await self._layers.take(image_id, fitness, limits.disk_bytes)
        config["HostConfig"]["Mounts"] += layer.mounts
        async with closed_on_error(lambda: self._layers.leave(layer)):
            made = await self._create_plain(config)
        return Made(made.container, layer)

    async def _remove_created(self, creation: asyncio.Task[Made]) -> None:
        try:
            made = await creation
        except SandboxError:
            return  # no container was created
        await self._remove(made)

    @asynccontextmanager
    async def removing(self, made: Made) -> AsyncIterator[Made]:
        """Remove the container at the end of the block."""
        try:
            yield made
        finally:
            await self._finish(self._remove(made))

    async def _remove(self, made: Made) -> None:
        try:
            await self.engine.remove(made.container)
        except SandboxError as error:
            self._leftovers.add(made.container)
            _log.log(self._level, "container %s is removed later: %s", made.container[:12], error)
            return
        if made.layer is not None:
            self.spawn(self._layers.leave(made.layer))

    async def _finish(self, work: Coroutine[object, object, _T]) -> _T:
        """Run work that must finish even if the caller is cancelled; `close` waits for it."""
        task = self.spawn(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await asyncio.wait({task})
            raise

    async def once(self, key: Hashable, work: Callable[[], Coroutine[object, object, _T]]) -> _T:
        """Run `work` once for all callers with this key. After a failure, the next caller runs it again."""
        task = self._once.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._once[key] = self.spawn(work())
        outcome: _T = await asyncio.shield(task)
        return outcome

    def spawn(self, work: Coroutine[object, object, _T]) -> asyncio.Task[_T]:
        """Start a task that `close` waits for; its exception is only raised to callers that await it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(mark_retrieved)
        return task

"""A size-limited writable layer over image folders that are too large to copy for each run.

For a folder that the tests may write to, Docker Engine mounts an overlay. Its lower folder is the image's
folder; its upper folder is in a tmpfs with a limited size and number of files. Everything can be read,
changed and deleted as usual, the kernel enforces the limit for every system call, and no file is copied.

The overlay needs an upper and a work folder when it is mounted, but a new volume of the engine is empty.
Therefore each layer has a holder: an idle container of the same image without privileges. The engine creates
the two folders in the tmpfs as mount points for small file systems of the holder. If the engine's storage
driver is overlay2, the holder's root also provides the image as one tree. The holder ends as soon as the
tests' container has started, because that container's overlay then keeps both mounted. When the tests'
container is removed, the holder is started again with a fresh tmpfs for the next container.

Sources: Linux, Documentation/filesystems/overlayfs.rst (upper and work folder on one file system; an overlay
may be the lower layer of another); Docker's `local` volume driver, which mounts what its options say.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.errors import SandboxError
from astra_async.tasks import closed_on_error
from astra_async.testing.sandbox.hardened import confined, tmpfs, volume
from astra_async.testing.sandbox.keeper import Keeper
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.sandbox.hardened import Fitness

_HELD = "/.astra-layer"
_WAITS = ["bash", "-c", "read -r"]  # `read` returns when the holder's input closes
_HOLDER_LIMITS = Limits(memory_bytes=64 * 1024**2, processes=16)
_HOLDER_FILES = "size=4096,nr_inodes=2"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    image_id: str
    places: tuple[str, ...]
    size_bytes: int


@dataclass(slots=True, eq=False, kw_only=True)
class BoundedLayer:
    """Bounded layer of one container: its holder, and the mounts for the tests' container."""

    kind: _Kind
    holder: str
    mounts: Sequence[Mapping[str, Any]]
    keeper: Keeper | None = None

    @property
    def held(self) -> bool:
        """True if the holder is running, so that a container can be started with this layer."""
        return self.keeper is not None and not self.keeper.gone


class BoundedLayers:
    """Makes layers on one engine, and keeps at most `spare` unused layers for later.

    `name` returns a name for each holder.
    """

    def __init__(
        self, engine: Engine, *, name: Callable[[], str], labels: Mapping[str, str], spare: int
    ) -> None:
        self._engine = engine
        self._name = name
        self._labels = labels
        self._spare = spare
        self._idle: list[BoundedLayer] = []

    async def take(self, image_id: str, fitness: Fitness, size_bytes: int) -> BoundedLayer:
        """Return a fresh layer with which a container can be started.

        Raises:
            SandboxError: the engine cannot make a layer.
        """
        kind = _Kind(image_id=image_id, places=tuple(fitness.overlaid), size_bytes=size_bytes)
        for layer in [each for each in self._idle if each.kind == kind]:
            self._idle.remove(layer)
            if layer.held:
                return layer
            await self._drop(layer)
        layer = await self._made(kind, fitness)
        async with closed_on_error(lambda: asyncio.shield(self._drop(layer))):
            layer.keeper = await Keeper.start(self._engine, layer.holder)
        return layer

    async def entered(self, layer: BoundedLayer) -> None:
        """Stop the holder after the tests' container has started and keeps the layer mounted."""
        keeper, layer.keeper = layer.keeper, None
        if keeper is not None:
            await keeper.close()

    async def leave(self, layer: BoundedLayer) -> None:
        """Restart the holder with a fresh tmpfs after the layer's container was removed or not created."""
        await self.entered(layer)
        try:
            await self._engine.ended(layer.holder)  # its tmpfs must be unmounted first
            layer.keeper = await Keeper.start(self._engine, layer.holder)
        except SandboxError as error:
            _log.info("holder %s is not used again: %s", layer.holder[:12], error)
            await self._drop(layer)
            return
        self._idle.append(layer)
        if len(self._idle) > self._spare:
            await self._drop(self._idle.pop(0))

    async def close(self) -> None:
        """Stop all unused holders; they are removed with the run's other containers."""
        while self._idle:
            await self.entered(self._idle.pop())

    async def _drop(self, layer: BoundedLayer) -> None:
        await self.entered(layer)
        try:
            await self._engine.remove(layer.holder)
        except SandboxError as error:  # the holder is swept with the run's other containers
            _log.info("holder %s is removed later: %s", layer.holder[:12], error)

    async def _made(self, kind: _Kind, fitness: Fitness) -> BoundedLayer:
        one_tree = await self._engine.shows_images_as_trees()
        config = _holder(kind, fitness, self._labels, copied=() if one_tree else kind.places)
        holder = await self._engine.create(config, self._name())
        async with closed_on_error(lambda: asyncio.shield(self._engine.remove(holder))):
            about = await self._engine.inspect(holder)
        sources = {mount["Destination"]: mount["Source"] for mount in about["Mounts"]}
        tree = about["GraphDriver"]["Data"]["MergedDir"] if one_tree else ""
        mounts = []
        for at, place in enumerate(kind.places):
            lower, held = sources.get(place, f"{tree}{place}"), sources[_HELD]
            options = f"nosuid,nodev,lowerdir={lower},upperdir={held}/upper{at},workdir={held}/work{at}"
            mounts.append(volume(place, "overlay", options))
        return BoundedLayer(kind=kind, holder=holder, mounts=mounts)


def _holder(
    kind: _Kind, fitness: Fitness, labels: Mapping[str, str], *, copied: Sequence[str]
) -> dict[str, Any]:
    """Return the body of the create request; the engine copies the folders `copied` into volumes."""
    folders = [f"{_HELD}/{name}{at}" for at in range(len(kind.places)) for name in ("upper", "work")]
    body = confined(kind.image_id, _WAITS, _HOLDER_LIMITS, keeper=fitness.keeper, labels=labels)
    body["HostConfig"] |= {
        "IpcMode": "none",
        "Tmpfs": dict.fromkeys(folders, _HOLDER_FILES),
        "Mounts": [
            volume(_HELD, "tmpfs", tmpfs(kind.size_bytes)),
            *({"Type": "volume", "Target": place} for place in copied),
        ],
    }
    return body

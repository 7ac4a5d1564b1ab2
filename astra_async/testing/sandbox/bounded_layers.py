"""A writable layer of limited size over folders of an image that hold too much to be copied for each run.

Where the tests may write to such a folder the engine mounts an overlay: below what the image holds, above it
a tmpfs of a certain size and number of files. Everything may be read, changed and deleted as before, and the
kernel bounds what that takes, whatever call takes it; nothing is copied.

An overlay needs two folders in its tmpfs when it is mounted, and a volume of the engine is empty. So each
layer has a holder: a container of the same image, without rights, that does nothing. To mount its own small
file systems in that tmpfs the engine makes the two folders; and where the engine's storage is overlay2, the
holder's root is the image as one tree. The holder ends as soon as the tests' container has started, whose
overlay keeps both: what the tests write lives as long as their container. When that is gone the holder is
started again, with a fresh tmpfs, for another one.

Source of the rules: Linux, Documentation/filesystems/overlayfs.rst (upper and work folder in one file system,
an overlay may lie upon one other); Docker's `local` volume driver, which mounts what its options say.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.errors import SandboxError
from astra_async.testing.sandbox.hardened import confined, tmpfs, volume
from astra_async.testing.sandbox.keeper import Keeper
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.sandbox.hardened import Fitness

_HELD = "/.astra-layer"
_WAITS = ["bash", "-c", "read -r"]  # until its input ends, and that is when our connection does
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
    """The layer of one container: its holder, and the mounts that the tests' container gets."""

    kind: _Kind
    holder: str
    mounts: Sequence[Mapping[str, Any]]
    keeper: Keeper | None = None

    @property
    def held(self) -> bool:
        """Whether its holder is at work, so that a container could be started with it."""
        return self.keeper is not None and not self.keeper.gone


class BoundedLayers:
    """Makes layers on one engine; those that nobody uses are kept for later, at most `spare` of them.

    `name` gives each holder its name.
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
        """A fresh layer, which a container can be started with from now on.

        Raises:
            SandboxError: the engine cannot make one.
        """
        kind = _Kind(image_id=image_id, places=tuple(fitness.overlaid), size_bytes=size_bytes)
        for layer in [each for each in self._idle if each.kind == kind]:
            self._idle.remove(layer)
            if layer.held:
                return layer
            await self._drop(layer)
        layer = await self._made(kind, fitness)
        try:
            layer.keeper = await Keeper.start(self._engine, layer.holder)
        except BaseException:
            await asyncio.shield(self._drop(layer))
            raise
        return layer

    async def entered(self, layer: BoundedLayer) -> None:
        """The layer's container has started and holds what it needs: the holder ends."""
        keeper, layer.keeper = layer.keeper, None
        if keeper is not None:
            await keeper.close()

    async def leave(self, layer: BoundedLayer) -> None:
        """The layer's container is gone, or was never made. Its holder begins anew, with a fresh tmpfs."""
        await self.entered(layer)
        try:
            await self._engine.ended(layer.holder)  # the next tmpfs has to come to an empty place
            layer.keeper = await Keeper.start(self._engine, layer.holder)
        except SandboxError as error:
            _log.info("holder %s is not used again: %s", layer.holder[:12], error)
            await self._drop(layer)
            return
        self._idle.append(layer)
        if len(self._idle) > self._spare:
            await self._drop(self._idle.pop(0))

    async def close(self) -> None:
        """Let go of all holders that nobody uses; to be removed with the run's other containers."""
        while self._idle:
            await self.entered(self._idle.pop())

    async def _drop(self, layer: BoundedLayer) -> None:
        await self.entered(layer)
        try:
            await self._engine.remove(layer.holder)
        except SandboxError as error:  # it is swept with the run's other containers
            _log.info("holder %s is removed later: %s", layer.holder[:12], error)

    async def _made(self, kind: _Kind, fitness: Fitness) -> BoundedLayer:
        one_tree = await self._engine.shows_images_as_trees()
        config = _holder(kind, fitness, self._labels, copied=() if one_tree else kind.places)
        holder = await self._engine.create(config, self._name())
        try:
            about = await self._engine.inspect(holder)
        except BaseException:
            await asyncio.shield(self._engine.remove(holder))
            raise
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
    """The body of the create request; `copied` are folders that the engine copies into volumes of its own."""
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

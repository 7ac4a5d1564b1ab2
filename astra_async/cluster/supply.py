"""Delivery of the run's images to every node: present, pulled, or sent from the head's engine.

Images are built once, on the head's engine, because two builds of the same files have different content
(DOCKER_HOST may name a node's engine). Named images are pulled by each node if a registry has them. Before
a node gets a job, its images must have the same content ids as on all other nodes. Images built later are
delivered to the current nodes, and a new node gets all images.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from astra_async.cluster.messages import LOAD, connected, unpack
from astra_async.cluster.nodes import NodeRefused
from astra_async.errors import EngineUnavailable, ImageError, SandboxError
from astra_async.images.resolve import SET_PREFIX, ProblemImages
from astra_async.testing.sandbox.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from astra_async.cluster.nodes import Node
    from astra_async.errors import AstraError
    from astra_async.images.failed_images import FailedImages
    from astra_async.prepare import Prepared

_AT_ONCE = 4  # concurrent transfers to nodes
_TELL_EVERY_BYTES = 200 * 10**6
_NO_ENGINE = (
    "no image is named for the problem, and there is no Docker Engine on the head to build one; name an"
    " image, or set DOCKER_HOST to the engine of a node (ssh://node)"
)


class Supply:
    """Keeps the run's images and their content ids, and delivers them to nodes.

    Attributes:
        known: content id by name; '' until the first node reports it, if the head has no engine.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.known: dict[str, str] = {}
        self._say = say
        self._pulled: tuple[str, ...] = ()
        self._engine: Engine | None = None
        self._settled = asyncio.Event()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by node
        self._first = asyncio.Lock()
        self._transfers = asyncio.Semaphore(_AT_ONCE)

    async def open(
        self,
        prepared: Mapping[str, Prepared],
        default: str,
        *,
        failures: FailedImages,
        deliver: Callable[[str], Awaitable[None]],
    ) -> tuple[dict[str, str], dict[str, AstraError], ProblemImages | None]:
        """Return images by problem, errors of problems without one, and the object that builds the rest.

        Images are built on the head's engine. Without it, only images that nodes pull themselves are found.
        """
        named = {key: item.problem.image or default for key, item in prepared.items()}
        images = {key: name for key, name in named.items() if name and not name.startswith(SET_PREFIX)}
        self._pulled = tuple(set(images.values()))
        try:
            self._engine = await Engine.open()
        except EngineUnavailable:
            absent = (key for key in named if key not in images)
            return images, {key: ImageError(f"problem {key}: {_NO_ENGINE}") for key in absent}, None
        making = await ProblemImages.open(
            self._engine, prepared, default, self._say, failures=failures, deliver=deliver
        )
        return making.ready, making.failed, making

    async def close(self) -> None:
        """Close the connection to the head's engine."""
        if self._engine is not None:
            await self._engine.close()

    async def settle(self, names: Iterable[str]) -> None:
        """Add images to the run, with the content ids of the head's engine if it has them."""
        for name in names:
            found = await self._engine.image(name) if self._engine else None
            self.known[name] = str((found or {}).get("Id", ""))
        self._settled.set()

    async def bring(self, node: Node, connection: Mapping[str, Any]) -> None:
        """Deliver all images to a node, and check that their content ids match those of other nodes.

        Raises NodeRefused if an image differs or is unavailable; OSError if the node was lost.
        """
        await self._settled.wait()
        async with self._turns[node.address]:
            brought: set[str] = set()
            while wanted := {name: known for name, known in self.known.items() if name not in brought}:
                brought |= wanted.keys()
                await self._deliver(node, wanted, connection)

    async def _deliver(self, node: Node, wanted: Mapping[str, str], connection: Mapping[str, Any]) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if not all(wanted.values()):
                await stack.enter_async_context(self._first)  # the first node determines the content id
            wanted = {name: self.known[name] for name in wanted}
            found = dict(await node.images(wanted, self._pulled))
            absent = [name for name, image_id in wanted.items() if image_id and not found.get(name)]
            if absent:
                await self._send(node, absent, connection)
                found |= await node.images({name: self.known[name] for name in absent}, ())
            self._compare(wanted, found)

    def _compare(self, wanted: Mapping[str, str], found: Mapping[str, str]) -> None:
        for name, ours in wanted.items():
            theirs = found.get(name, "")
            if ours and not theirs:
                raise NodeRefused(f"it has no image {name} and cannot get it")
            if ours and theirs != ours:
                raise NodeRefused(
                    f"its image {name} is {theirs[:19]}, but other nodes have {ours[:19]};"
                    f" run `docker rmi {name}` there to get the same image"
                )
        self.known |= found

    async def _send(self, node: Node, names: list[str], connection: Mapping[str, Any]) -> None:
        """Stream images from the head's engine to the node; only one piece is in memory at a time."""
        listed, sent, reported = ", ".join(names), 0, 0
        async with self._transfers:
            try:
                async with await Engine.open() as engine, connected(node.address, connection) as comm:
                    self._say(f"sending {listed} to node {node.name}")
                    await comm.write({"op": LOAD})
                    async with contextlib.aclosing(engine.export(names)) as pieces:
                        async for piece in pieces:
                            await comm.write(piece)
                            sent += len(piece)
                            if sent - reported >= _TELL_EVERY_BYTES:
                                reported = sent
                                self._say(f"node {node.name}: {sent / 1e6:,.0f} MB sent")
                    await comm.write(b"")
                    trouble = unpack(await comm.read())["trouble"]
            except SandboxError as error:
                raise NodeRefused(f"it has no image {listed}, and sending it failed: {error}") from error
        self._say(f"node {node.name}: {sent / 1e6:,.0f} MB sent")
        if trouble:
            raise NodeRefused(f"it rejected {listed}: {trouble}")

"""One node from the head's view: connection, jobs on the node, and its state."""

from __future__ import annotations

import asyncio
import itertools
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, Protocol

from distributed.comm import CommClosedError, connect

from astra_async.cluster.messages import TESTS, VERSION, Message, Stream, pack, to_error, unpack
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.types import Execution

if TYPE_CHECKING:
    from collections.abc import Mapping

State = Literal["connecting", "preparing", "ready", "refused", "lost"]
_CONNECT_S = 10.0
_PING_S = 1.0
_AGAIN_S = (0.5, 1.0, 2.0, 5.0)
_REFUSED_AGAIN_S = 15.0
_SET_ASIDE_AFTER = 3
_SET_ASIDE_S = 30.0
_KNOWN = ("messages", "name", "slots", "version", "process", "engine_id", "trouble")


class NodeGone(Exception):  # noqa: N818 - named after the condition
    """The node was lost before the job's end; the job's outcome is unknown, and another node may run it."""


class NodeRefused(Exception):  # noqa: N818 - a decision
    """This worker is unusable; the message is the reason."""


class Surroundings(Protocol):
    """The part of the head that a node uses."""

    run_id: str
    memory_bytes: int
    connection: Mapping[str, Any]
    silence_s: float

    async def supply(self, node: Node) -> None:
        """Deliver the run's images to the node; raises NodeRefused, OSError."""
        ...

    def admit(self, node: Node) -> None:
        """Check if the node may join; raises NodeRefused."""

    def changed(self) -> None:
        """Handle a change of a node's state or free slots."""

    def say(self, text: str) -> None:
        """Print a line for the user."""


class Node:
    """A worker of the cluster; `serve` reconnects for as long as the worker is a member.

    Invariant: `_in_flight` has the jobs sent over the current connection that have not ended. When the
    connection ends, each of them fails with NodeGone, so a result can come from one node only.

    Attributes:
        state: `ready` while jobs may be sent.
        why: the reason why the node is not ready.
        troubles: number of consecutive jobs that failed with a SandboxError.
        reserved: True while one job has the node to itself.
        taken: number of slots given to jobs, including jobs not sent yet.
        expected: number of announced jobs that have not arrived.
    """

    def __init__(self, address: str, head: Surroundings) -> None:
        self.address = address
        self.name = address
        self.state: State = "connecting"
        self.why = ""
        self.about: Message = {}
        self.slots = 0
        self.troubles = 0
        self.is_member = True
        self.expected = 0
        self.taken = 0
        self.reserved = False
        self._head = head
        self._stream: Stream | None = None
        self._numbers = itertools.count()
        self._in_flight: dict[int, asyncio.Future[Execution]] = {}
        self._found: asyncio.Future[Mapping[str, str]] | None = None
        self._silent_s = 0.0
        self._rested_at = 0.0
        self._was_ready = False

    @property
    def busy(self) -> int:
        """Number of jobs running on the node."""
        return len(self._in_flight)

    @property
    def free(self) -> int:
        """Number of further jobs that the node may get now."""
        if self.state != "ready" or self.reserved or self._rested_at > asyncio.get_running_loop().time():
            return 0
        return self.slots - self.taken

    async def run(self, job: Message) -> Execution:
        """Run a job on the node. Raises NodeGone, or the SandboxError of the job."""
        stream = self._stream
        if stream is None or self.state != "ready":
            raise NodeGone(self.why)
        number = next(self._numbers)
        ended: asyncio.Future[Execution] = asyncio.get_running_loop().create_future()
        self._in_flight[number] = ended
        self.expected = max(0, self.expected - 1)
        stream.send("run", number=number, job=job)
        try:
            return await ended
        except asyncio.CancelledError:
            stream.send("cancel", number=number)
            raise
        finally:
            self._in_flight.pop(number, None)

    def expect(self, image_id: str, limits: Message) -> None:
        """Announce a job for this image, so that the node can create a container in advance."""
        if self._stream is not None:
            self.expected += 1
            self._stream.send("expect", image=image_id, limits=limits)

    async def images(self, wanted: Mapping[str, str], pulled: tuple[str, ...]) -> Mapping[str, str]:
        """Return the content ids of these images on the node ('' if missing). Raises OSError."""
        if self._stream is None:
            raise OSError(self.why)
        self._found = asyncio.get_running_loop().create_future()
        self._stream.send("images", wanted=dict(wanted), pulled=pulled)
        return await self._found

    def end(self) -> bool:
        """Announce the end of the run; the node cleans up and disconnects. Return False if not connected."""
        self.is_member = False
        if self._stream is None:
            return False
        self._stream.send("end")
        return True

    def disconnect(self) -> None:
        """Abort the connection; after reconnecting, all images are delivered again or the node is refused."""
        if self._stream is not None:
            self._stream.abort()

    async def serve(self) -> None:
        """Connect, and reconnect after every loss, until the worker is no member and unreachable."""
        failures = 0
        while True:
            try:
                await self._serve()
            except NodeRefused as error:
                if str(error) != self.why:
                    self._head.say(f"worker {self.name} ({self.address}) is refused: {error}")
                self._become("refused", str(error))
                failures = len(_AGAIN_S)
            except Exception as error:  # noqa: BLE001 - an error of one node must not affect others
                broke = isinstance(error, CommClosedError)
                self._become("lost", "the connection broke" if broke else both_ends(error) or "no response")
                if self._was_ready and self.is_member:
                    failures, self._was_ready = 0, False
                    self._head.say(f"node {self.name} is lost ({self.why}); its jobs are sent to other nodes")
            if not self.is_member:
                return
            await asyncio.sleep(_REFUSED_AGAIN_S if self.state == "refused" else _AGAIN_S[min(failures, 3)])
            failures += 1

    async def _serve(self) -> None:
        hello = {
            "messages": VERSION,
            "version": version("astra_async"),
            "run_id": self._head.run_id,
            "memory_bytes": self._head.memory_bytes,
        }
        comm = await connect(self.address, timeout=_CONNECT_S, deserialize=False, **self._head.connection)
        try:
            await comm.write({"op": TESTS, "hello": pack(hello)})
            first = await asyncio.wait_for(comm.read(), self._head.silence_s)
        except BaseException:
            comm.abort()
            raise
        stream = Stream(comm)
        try:
            self._check_worker(first)
            self._stream, self._silent_s = stream, 0.0
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(stream))
                tasks.create_task(self._watch(stream))
                self._become("preparing", "")
                await self._head.supply(self)
                self.slots, self.troubles = int(self.about["slots"]), 0
                self._become("ready", "")
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._was_ready = self.state == "ready"
            self._stream, self.state = None, "lost"
            await stream.close()
            under, self._in_flight, self.expected = self._in_flight, {}, 0
            for ended in under.values():
                if not ended.done():
                    ended.set_exception(NodeGone(self.name))
            if self._found is not None and not self._found.done():
                self._found.cancel()

    def _check_worker(self, first: Any) -> None:
        if first is None:
            raise NodeRefused("it is a Dask worker without astra; start it with `astra worker`")
        about = unpack(first[0])
        if any(name not in about for name in _KNOWN) or about["messages"] != VERSION:
            raise NodeRefused(f"it uses another message format (astra_async {about.get('version')})")
        self.about, self.name = about, str(about["name"])
        ours = version("astra_async")
        if about["version"] != ours:
            raise NodeRefused(f"it has astra_async {about['version']}, but the head has {ours}")
        if about["trouble"]:
            raise OSError(about["trouble"])
        self._head.admit(self)

    async def _read(self, stream: Stream) -> None:
        while True:
            for message in await stream.receive():
                self._silent_s = 0.0
                self._take(message)

    def _take(self, message: Message) -> None:
        kind = message["op"]
        if kind in ("done", "failed"):
            self._end(message)
        elif kind == "left":
            raise OSError(message["text"])
        elif kind == "said":
            self._head.say(f"node {self.name}: {message['text']}")
        elif kind == "images" and self._found is not None and not self._found.done():
            self._found.set_result(message["found"])

    def _end(self, message: Message) -> None:
        ended = self._in_flight.pop(message["number"], None)
        if ended is None or ended.done():
            return  # the job was cancelled
        if message["op"] == "done":
            self.troubles = 0
            ended.set_result(Execution(**{**message["execution"], "node": self.name}))
        else:
            self.troubles += 1
            if self.troubles >= _SET_ASIDE_AFTER:  # a node with fast failures attracts all jobs
                loop = asyncio.get_running_loop()
                self._rested_at = loop.time() + _SET_ASIDE_S
                loop.call_later(_SET_ASIDE_S, self._head.changed)
            ended.set_exception(to_error(message, self.name))
        self._head.changed()

    async def _watch(self, stream: Stream) -> None:
        """Disconnect a silent node; count sleeps, not time, because this process may have been suspended."""
        while self._silent_s < self._head.silence_s:
            stream.send("ping")
            await asyncio.sleep(_PING_S)
            self._silent_s += _PING_S
        raise OSError(f"silent for {self._head.silence_s:.0f} s")

    def _become(self, state: State, why: str) -> None:
        self.state, self.why = state, why
        self._head.changed()

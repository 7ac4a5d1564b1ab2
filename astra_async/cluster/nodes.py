"""One node as the head sees it: the connection's life, what is under way there, and what becomes of it."""

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


class NodeGone(Exception):  # noqa: N818 - names what was seen
    """The node was lost, or left, before the job's end: nothing is known of it, and others may run it."""


class NodeRefused(Exception):  # noqa: N818 - a decision
    """This worker cannot take part; the message says why."""


class Surroundings(Protocol):
    """What a node asks of the head."""

    run_id: str
    memory_bytes: int
    connection: Mapping[str, Any]
    silence_s: float

    async def supply(self, node: Node) -> None:
        """Bring the run's images there; raises NodeRefused, OSError."""
        ...

    def admit(self, node: Node) -> None:
        """Whether the node may take part at all; raises NodeRefused."""

    def changed(self) -> None:
        """A node's state or its free places have changed."""

    def say(self, text: str) -> None:
        """A line for people."""


class Node:
    """A worker of the cluster; `serve` connects to it again and again for as long as it is a member.

    Invariant: `in_flight` holds the jobs that were sent over the present connection and have not come back;
    when that ends each of them ends with NodeGone, so that a result can only come from one place.

    Attributes:
        state: `ready` while jobs may be sent.
        why: what keeps it from being ready, in words.
        troubles: jobs in a row that ended with trouble of the sandbox.
        reserved: one run has it to itself.
        taken: places that were given to jobs, also to one that has not been sent yet.
        expected: jobs that were announced and have not come.
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
        """Jobs that are under way there."""
        return len(self._in_flight)

    @property
    def free(self) -> int:
        """How many more jobs it may get now."""
        if self.state != "ready" or self.reserved or self._rested_at > asyncio.get_running_loop().time():
            return 0
        return self.slots - self.taken

    async def run(self, job: Message) -> Execution:
        """Run a job there. Raises NodeGone, or the SandboxError that it met."""
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
        """A job for this image is on its way: a container may be made ahead there."""
        if self._stream is not None:
            self.expected += 1
            self._stream.send("expect", image=image_id, limits=limits)

    async def images(self, wanted: Mapping[str, str], pulled: tuple[str, ...]) -> Mapping[str, str]:
        """The content ids of these images as the node has them (empty: not at all). Raises OSError."""
        if self._stream is None:
            raise OSError(self.why)
        self._found = asyncio.get_running_loop().create_future()
        self._stream.send("images", wanted=dict(wanted), pulled=pulled)
        return await self._found

    def end(self) -> bool:
        """Tell it that the run is over; it hangs up when nothing of it is left there. False: it is away."""
        self.is_member = False
        if self._stream is None:
            return False
        self._stream.send("end")
        return True

    def hang_up(self) -> None:
        """Cut the connection: it is made again, all images are brought anew, or the node is refused."""
        if self._stream is not None:
            self._stream.abort()

    async def serve(self) -> None:
        """Connect, and again after every loss, until it is no member and cannot be reached any more."""
        failures = 0
        while True:
            try:
                await self._serve()
            except NodeRefused as error:
                if str(error) != self.why:
                    self._head.say(f"worker {self.name} ({self.address}) is refused: {error}")
                self._become("refused", str(error))
                failures = len(_AGAIN_S)
            except Exception as error:  # noqa: BLE001 - the boundary: its trouble is its own
                broke = isinstance(error, CommClosedError)
                self._become("lost", "the connection broke" if broke else both_ends(error) or "no answer")
                if self._was_ready and self.is_member:
                    failures, self._was_ready = 0, False
                    self._head.say(
                        f"node {self.name} is lost ({self.why}); what it had under way goes elsewhere"
                    )
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
            self._meet(first)
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

    def _meet(self, first: Any) -> None:
        if first is None:
            raise NodeRefused("it is a Dask worker without astra: start it with `astra worker`")
        about = unpack(first[0])
        if any(name not in about for name in _KNOWN) or about["messages"] != VERSION:
            raise NodeRefused(f"it speaks another version of astra_async ({about.get('version')})")
        self.about, self.name = about, str(about["name"])
        ours = version("astra_async")
        if about["version"] != ours:
            raise NodeRefused(f"it has astra_async {about['version']}, and this is {ours}")
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
            return  # nobody waits for it any more
        if message["op"] == "done":
            self.troubles = 0
            ended.set_result(Execution(**{**message["execution"], "node": self.name}))
        else:
            self.troubles += 1
            if self.troubles >= _SET_ASIDE_AFTER:  # where everything fails fast, it would draw every job
                loop = asyncio.get_running_loop()
                self._rested_at = loop.time() + _SET_ASIDE_S
                loop.call_later(_SET_ASIDE_S, self._head.changed)
            ended.set_exception(to_error(message, self.name))
        self._head.changed()

    async def _watch(self, stream: Stream) -> None:
        """A node that is silent for too long is lost; counted in looks: our own sleep is no silence."""
        while self._silent_s < self._head.silence_s:
            stream.send("ping")
            await asyncio.sleep(_PING_S)
            self._silent_s += _PING_S
        raise OSError(f"silent for {self._head.silence_s:.0f} s")

    def _become(self, state: State, why: str) -> None:
        self.state, self.why = state, why
        self._head.changed()

"""A node: a Dask worker that runs this package's jobs on its own Docker Engine.

It is started by `astra worker`, or by `dask worker --preload astra_async.cluster.worker`; then
`--resources sandboxes=N` gives the number of concurrent containers.

A head opens one connection for its run. When the connection ends for any reason, its jobs on this node are
cancelled and its containers removed, because the head sends the jobs to other nodes. Invariant: only one
connection per run has containers here. A new connection ends the old one and waits until that has cleaned up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import shutil
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from distributed.core import Status

from astra_async.cluster.engine_tunnel import carried
from astra_async.cluster.messages import (
    ABOUT,
    ENGINE,
    LOAD,
    TESTS,
    VERSION,
    Message,
    Stream,
    from_error,
    from_execution,
    pack,
    to_job,
    unpack,
)
from astra_async.config import default_sandboxes
from astra_async.errors import EngineUnavailable, ImageError, SandboxError
from astra_async.tasks import cancel
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import (
    of_agents,
    owner,
    remove_when_this_process_ends,
    sweep,
    sweep_own,
)
from astra_async.testing.timeouts import oversubscribed
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from distributed import Worker
    from distributed.comm import Comm

RESOURCE = "sandboxes"
_ENGINE_RETURNS_S = 20.0  # enough for a restart; the head has other nodes for longer outages
_PULL_STARTS_S = 60.0
# Dask handlers that execute code for anyone who can connect; not needed here.
_NOT_OURS = (
    *("run", "run_coroutine", "plugin-add", "plugin-remove", "actor_execute", "actor_attribute"),
    *("upload_file", "update_data"),
)
_log = logging.getLogger(__name__)


async def dask_setup(worker: Worker) -> None:
    """Turn a Dask worker into a node; Dask calls this before the worker joins its scheduler."""
    resources = worker.state.total_resources
    sandboxes = int(resources[RESOURCE]) if RESOURCE in resources else None
    named = worker.name if str(worker.name) != worker.address else platform.node()
    node = NodeService(name=str(named), sandboxes=sandboxes)
    worker.handlers |= {TESTS: node.serve, ABOUT: node.about, LOAD: node.load, ENGINE: node.engine}
    worker.blocked_handlers = [*worker.blocked_handlers, *_NOT_OURS]
    worker.stream_handlers["compute-task"] = _refused_task
    worker.extensions["astra"] = node  # closed with the worker
    await node.begin()


def _refused_task(**_: object) -> None:
    _log.warning("refused a Dask task: this worker only runs tests of astra_async")


class NodeService:
    """The service for heads. `sandboxes` limits the containers; None derives the number from the machine."""

    def __init__(self, *, name: str, sandboxes: int | None) -> None:
        self._name = name
        self._sandboxes = sandboxes
        self._places = asyncio.Semaphore(sandboxes or default_sandboxes(Limits()))
        self._runs: dict[str, asyncio.Lock] = {}
        self._streams: dict[str, Stream] = {}
        self._engines: dict[str, Engine] = {}  # by run id, for connected runs
        self._serving: set[asyncio.Task[Any]] = set()
        self._guard = remove_when_this_process_ends(os.environ)

    async def begin(self) -> None:
        """Remove containers of dead processes of this host, if the engine responds."""
        try:
            async with await Engine.open() as engine:
                await sweep(engine, "")
        except SandboxError as error:
            _log.warning("%s", error)  # also reported to every head

    async def close(self) -> None:
        """Close all connections and wait until their containers are removed."""
        for stream in self._streams.values():
            stream.abort()
        if self._serving:
            await asyncio.wait(set(self._serving))
        self._guard.terminate()
        self._guard.wait()

    # --- handlers, called by Dask -----------------------------------------------------------------------

    async def about(self, comm: Comm) -> bytes:  # noqa: ARG002 - Dask passes arguments by name
        """Describe this machine and its engine; `trouble` is the reason why it cannot run tests, or ''."""
        return pack(await self._described(Limits()))

    async def serve(self, comm: Comm, hello: bytes) -> Status:
        """Run the jobs of one head until its connection ends."""
        asked = unpack(hello)
        task: Any = asyncio.current_task()
        self._serving.add(task)
        stream = Stream(comm)
        try:
            if (older := self._streams.get(asked["run_id"])) is not None:
                older.abort()
            self._streams[asked["run_id"]] = stream
            async with self._runs.setdefault(asked["run_id"], asyncio.Lock()):
                await self._serve(stream, asked)
        except OSError:
            pass  # the head is gone, and its containers were removed
        finally:
            if self._streams.get(asked["run_id"]) is stream:
                del self._streams[asked["run_id"]]
            await stream.close()
            self._serving -= {task}
        return Status.dont_reply

    async def load(self, comm: Comm) -> bytes:
        """Load images sent piece by piece until an empty piece; return the error in `trouble`, or ''."""

        async def pieces() -> AsyncIterator[bytes]:
            while piece := await comm.read():
                yield piece

        try:
            async with await Engine.open() as engine:
                await engine.load(pieces())
        except SandboxError as error:
            return pack({"trouble": str(error)})
        return pack({"trouble": ""})

    async def engine(self, comm: Comm, run_id: str) -> Status:
        """Forward a connection of a head to this machine's engine; the head's run must be connected."""
        try:
            if (engine := self._engines.get(run_id)) is not None:
                connection = await engine.connection()
                await comm.write(b"")
                await carried(comm, *connection)
        except OSError:
            pass  # the head sees its end close
        finally:
            comm.abort()
        return Status.dont_reply

    async def _described(self, limits: Limits) -> Message:
        about: Message = {
            "messages": VERSION,
            "version": version("astra_async"),
            "name": self._name,
            "process": owner(),
            "slots": self._sandboxes or default_sandboxes(limits),
            "cores": os.cpu_count() or 1,
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "free_disk_bytes": shutil.disk_usage("/").free,
            "clock": time.time(),
            "engine": "",
            "engine_id": "",
            "images": 0,
            "trouble": "",
        }
        try:
            async with await Engine.open() as engine:
                info = await engine.info()
                about["engine"], about["engine_id"] = str(info.get("ServerVersion")), str(info.get("ID", ""))
                about["images"] = int(info.get("Images") or 0)
        except SandboxError as error:
            about["trouble"] = str(error)
        return about

    async def _serve(self, stream: Stream, asked: Message) -> None:
        limits = Limits(memory_bytes=asked["memory_bytes"])
        about = await self._described(limits)
        stream.send("about", **about)
        if about["trouble"] or (about["messages"], about["version"]) != (asked["messages"], asked["version"]):
            await stream.receive()  # until the head has read the reason and disconnects
            return
        try:
            run_id, slots = asked["run_id"], about["slots"]
            sandbox = await DockerSandbox.open(run_id=run_id, slots=slots, patience_s=_ENGINE_RETURNS_S)
        except SandboxError as error:
            stream.send("left", text=str(error))
            await stream.receive()
            return
        async with sandbox:
            self._engines[run_id] = sandbox.engine
            try:
                await _Session(stream, sandbox, self._places).serve()
            finally:
                del self._engines[run_id]
                with contextlib.suppress(SandboxError):  # if the engine is down, clean up at exit
                    await sweep_own(sandbox.engine, of_agents(run_id))


class _Session:
    """One head's jobs on this node."""

    def __init__(self, stream: Stream, sandbox: DockerSandbox, places: asyncio.Semaphore) -> None:
        self._stream = stream
        self._sandbox = sandbox
        self._places = places
        self._jobs: dict[int, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._over = False

    async def serve(self) -> None:
        """Handle messages until the connection ends; then cancel all jobs."""
        try:
            while not self._over:
                for message in await self._stream.receive():
                    self._take(message)
        finally:
            await cancel(*self._jobs.values(), *self._others)

    def _take(self, message: Message) -> None:
        if message["op"] == "run":
            number = message["number"]
            self._jobs[number] = asyncio.create_task(self._run(number, message["job"]))
            self._jobs[number].add_done_callback(lambda _: self._jobs.pop(number, None))
        elif message["op"] == "cancel":
            if (task := self._jobs.get(message["number"])) is not None:
                task.cancel()
        elif message["op"] == "expect":
            self._sandbox.expect(message["image"], Limits(**message["limits"]))
        elif message["op"] == "ping":
            self._stream.send("pong")
        elif message["op"] == "end":
            self._over = True
        elif message["op"] == "images":
            task = asyncio.create_task(self._find(message["wanted"], message["pulled"]))
            self._others.add(task)
            task.add_done_callback(self._others.discard)

    async def _run(self, number: int, content: Message) -> None:
        try:
            job = to_job(content)
            async with self._places:
                done = await self._sandbox.run(job)
        except EngineUnavailable as error:
            self._stream.send("left", text=str(error))
        except SandboxError as error:
            if isinstance(error, ImageError) and not await self._has(job.image):
                self._stream.send("left", text=str(error))  # the image was removed here; other nodes have it
            else:
                self._stream.send("failed", number=number, **from_error(error))
        except Exception as error:  # noqa: BLE001 - a bug of this package is reported, not scored
            _log.exception("a job failed with an unexpected error")
            failure = SandboxError(f"{type(error).__name__}: {error}")
            self._stream.send("failed", number=number, **from_error(failure))
        else:
            strained = oversubscribed(done.duration_s) if done.timed_out else None
            self._stream.send("done", number=number, execution={**from_execution(done), "strained": strained})

    async def _has(self, image: str) -> bool:
        try:
            return await self._sandbox.engine.image(image) is not None
        except SandboxError:
            return False

    async def _find(self, wanted: dict[str, str], pulled: tuple[str, ...]) -> None:
        """Report the content ids of images on this node; missing images in `pulled` are pulled."""
        found: dict[str, str] = {}
        for name, image_id in wanted.items():
            with contextlib.suppress(SandboxError):
                found[name] = await self._image(name, image_id, pull=name in pulled)
        self._stream.send("images", found=found)

    async def _image(self, name: str, image_id: str, *, pull: bool) -> str:
        engine = self._sandbox.engine
        if image_id and await engine.image(image_id) is not None:
            return image_id
        here = await engine.image(name)
        # Pull only images named by the user, because any user could register a generated name.
        if here is None and pull:
            self._stream.send("said", text=f"pulling {name}")
            await engine.pull(name, starts_within_s=_PULL_STARTS_S)
            here = await engine.image(name)
        return str(here["Id"]) if here else ""

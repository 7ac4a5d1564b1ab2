"""Docker's Engine API as this project uses it: one method for each request, each with a time-out.

A thin layer over aiodocker. Every error that leaves it is a SandboxError (see `engine_errors`). The few
requests that aiodocker has no method for, or answers only by reading everything into memory, go
through its own request function, here, in `engine_images` and nowhere else.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from astra_async.errors import EngineUnavailable, SandboxError
from astra_async.tasks import Closing
from astra_async.testing.sandbox.engine_errors import PathUnreachable, engine_call, path_error
from astra_async.testing.sandbox.engine_images import (
    CALL_S,
    NOT_FOUND,
    PULL_S,
    TRANSFER_S,
    EngineImages,
    gone_is_well,
)
from astra_async.testing.sandbox.ssh_tunnel import SshTunnel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    import aiodocker
    from aiodocker.stream import Stream

_PING_S = 10.0
_LATE_NEWS_S = 1.0
_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock", "~/.docker/run/docker.sock")


class Engine(Closing, EngineImages):
    """An open connection to one Docker Engine; an asynchronous context manager."""

    def __init__(self, docker: aiodocker.Docker, tunnel: SshTunnel | None = None) -> None:
        super().__init__(docker)
        self._tunnel = tunnel

    @classmethod
    async def open(cls, docker_host: str | None = None, *, answers_within_s: float = _PING_S) -> Self:
        """Connect to `docker_host`, else DOCKER_HOST, else the usual sockets, and wait for an answer.

        Raises:
            EngineUnavailable: nothing answers there.
        """
        address = docker_host or os.environ.get("DOCKER_HOST")
        tunnel = SshTunnel(address) if address and address.startswith("ssh://") else None
        engine = cls(_client(f"unix://{tunnel.socket}" if tunnel else address), tunnel)
        try:
            await engine.ping(answers_within_s)
        except BaseException:
            await engine.close()
            raise
        return engine

    async def close(self) -> None:
        """Release the connections."""
        await self.docker.close()
        # A connector that we made is not aiodocker's to close.
        if self.docker.connector is not None:
            await self.docker.connector.close()
        if self._tunnel is not None:
            await self._tunnel.close()

    async def ping(self, answers_within_s: float = _PING_S) -> Mapping[str, Any]:
        """The engine's version document; raises EngineUnavailable when it does not answer properly."""
        if self._tunnel is not None:
            await self._tunnel.ensure()
        try:
            async with engine_call("answer", timeout_s=answers_within_s):
                return await self.docker.version()
        except EngineUnavailable:
            raise
        except SandboxError as error:
            raise EngineUnavailable(str(error)) from error

    async def connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the engine's own port or socket, for whoever carries bytes. Raises OSError."""
        import aiohttp
        from yarl import URL

        connector: Any = self.docker.connector
        if isinstance(connector, aiohttp.UnixConnector):
            return await asyncio.open_unix_connection(connector.path)
        url = URL(self.docker.docker_host or "")
        tls = connector._ssl if url.scheme == "https" else None  # noqa: SLF001 - the certificates are there alone
        return await asyncio.open_connection(url.host, url.port, ssl=tls)

    # --- containers -----------------------------------------------------------------------------

    async def create(self, config: Mapping[str, Any], name: str) -> str:
        """Create a container; returns its id."""
        async with engine_call("create a container", timeout_s=CALL_S):
            return (await self.docker.containers.create(config, name=name)).id

    async def upload(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar archive into a folder of the container; owners are kept as the archive says."""
        async with engine_call("upload the project", timeout_s=TRANSFER_S, running=True):
            put_archive: Any = self.docker.containers.container(container).put_archive  # untyped there
            await put_archive(folder, io.BytesIO(archive))  # bytes above 1 MiB would be warned of

    async def unpack(self, container: str, folder: str, pieces: AsyncIterator[bytes]) -> None:
        """As `upload`, of an archive of any length, piece by piece."""
        async with engine_call("take an archive", timeout_s=PULL_S, running=True):
            request, headers = f"containers/{container}/archive", {"content-type": "application/x-tar"}
            query = self.docker._query(request, "PUT", params={"path": folder}, data=pieces, headers=headers)  # noqa: SLF001 - aiodocker's own takes no pieces
            async with query as response:
                await response.read()

    async def attach(self, container: str) -> Stream:
        """Standard input, output and error of a container, multiplexed, from now on; to be closed."""
        stream = self.docker.containers.container(container).attach(
            stdin=True, stdout=True, stderr=True, logs=False
        )
        async with engine_call("attach to the container", timeout_s=CALL_S, running=True):
            await stream.__aenter__()
        return stream

    async def start(self, container: str) -> None:
        """Start a created container; raises ImageError when the image has no bash."""
        async with engine_call("start the container", timeout_s=CALL_S, running=True):
            await self.docker.containers.container(container).start()

    async def prepare(
        self, container: str, command: Sequence[str], *, user: str, environment: Mapping[str, str]
    ) -> str:
        """Make a further process of a running container ready; returns its id."""
        async with engine_call("prepare the command", timeout_s=CALL_S, running=True):
            made = await self.docker.containers.container(container).exec(
                list(command), user=user, environment=[f"{key}={value}" for key, value in environment.items()]
            )
        return made.id

    @asynccontextmanager
    async def started(self, process: str) -> AsyncIterator[Stream]:
        """Start a prepared process; its standard output and error, multiplexed.

        The stream ends with the process, or seconds later when its children hold its output open.
        """
        from aiodocker.execs import Exec

        stream = Exec(self.docker, process, tty=False).start()
        try:
            async with engine_call("start the command", timeout_s=CALL_S, running=True):
                await stream.__aenter__()
            yield stream
        finally:
            with suppress(AssertionError):  # aiodocker's, when the connection has gone already
                await stream.close()

    async def exit_code(self, process: str) -> int | None:
        """The exit code of a started process, or None while it runs; its children do not count."""
        state = await self._state(process, "end")
        return None if state["Running"] else int(state["ExitCode"])

    async def has_begun(self, process: str) -> bool:
        """Whether a started process exists: an engine that is busy takes its time to make it."""
        # One without a Pid, of an engine that tells none, has begun.
        return (await self._state(process, "beginning")).get("Pid") != 0

    async def _state(self, process: str, asked: str) -> Mapping[str, Any]:
        from aiodocker.execs import Exec

        async with engine_call(f"ask for the command's {asked}", timeout_s=CALL_S, running=True):
            return await Exec(self.docker, process).inspect()

    async def pause(self, container: str) -> None:
        """Freeze every process of a running container.

        Never while one of them is being made: neither it nor the container could ever be ended again, and
        the engine's calls about the container would wait for ever (Docker 20.10, runc 1.0).
        """
        async with engine_call("pause the container", timeout_s=CALL_S, running=True):
            await self.docker.containers.container(container).pause()

    async def allow_processes(self, container: str, limit: int) -> None:
        """Change how many processes a running container may have."""
        async with engine_call("change the container's limits", timeout_s=CALL_S, running=True):
            await self.docker._query_json(  # noqa: SLF001 - aiodocker has no method for it
                f"containers/{container}/update", method="POST", data={"PidsLimit": limit}
            )

    async def ran_out_of_memory(self, container: str) -> bool:
        """Whether the engine saw the kernel kill in the container, now dead, for want of memory."""
        if (await self.inspect(container))["State"]["OOMKilled"]:
            return True
        # The kernel's word may come after the end; it is then in the engine's diary alone.
        await asyncio.sleep(_LATE_NEWS_S)
        filters = json.dumps({"container": [container], "event": ["oom"]})
        events = self.events(
            "events", {"since": "0", "until": str(int(time.time()) + 1), "filters": filters}, "GET"
        )
        async with engine_call("tell the container's end", timeout_s=CALL_S, running=True), aclosing(events):
            async for _ in events:
                return True
        return False

    async def info(self) -> Mapping[str, Any]:
        """The engine's own description: `ID`, `ServerVersion`, `Images`, `SecurityOptions` ..."""
        async with engine_call("describe itself", timeout_s=CALL_S):
            about: Mapping[str, Any] = await self.docker.system.info()
        return about

    async def confines_system_calls(self) -> bool:
        """Whether the engine can take a seccomp profile."""
        options = (await self.info()).get("SecurityOptions") or ()
        return any("name=seccomp" in option for option in options)

    async def shows_images_as_trees(self) -> bool:
        """Whether a started container's root is a folder of the engine's host, named in its inspection.

        Raises:
            SandboxError: nothing can be laid over a folder of an image: the engine has no root's rights.
        """
        about = await self.info()
        if any("name=rootless" in option for option in about.get("SecurityOptions") or ()):
            raise SandboxError("The engine is rootless")
        return bool(about.get("Driver") == "overlay2")

    async def ended(self, container: str) -> None:
        """Return when a container has ended whose first process is about to."""
        async with engine_call("end a container", timeout_s=CALL_S):
            await self.docker.containers.container(container).wait()

    async def inspect(self, container: str, *, size: bool = False) -> Mapping[str, Any]:
        """The container's inspection document; with `size`, its `SizeRw` in bytes is in it."""
        async with engine_call("inspect the container", timeout_s=CALL_S, running=True):
            return await self.docker.containers.container(container).show(size=size)

    async def remove(self, container: str) -> None:
        """Remove a container and its anonymous volumes, running or not; no error if it is gone."""
        async with engine_call("remove the container", timeout_s=CALL_S):
            with gone_is_well():
                await self.docker.containers.container(container).delete(force=True, v=True)

    async def containers(self, label: str | None = None) -> list[Mapping[str, Any]]:
        """Summaries (`Id`, `Names`, `Labels`, ...) of all containers, or those with a label, in any state."""
        filters = json.dumps({} if label is None else {"label": [label]})
        async with engine_call("list containers", timeout_s=CALL_S):
            found = await self.docker.containers.list(all=True, filters=filters)
        return [each._container for each in found]  # noqa: SLF001 - aiodocker has no other door to it

    @asynccontextmanager
    async def packed(self, container: str, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """A path of a container as a tar, piece by piece, as far as it is wanted; empty without such a path.

        Raises PathUnreachable when the inside of the container is the reason why there is no answer.
        """
        from aiodocker.exceptions import DockerError

        async with engine_call("read archive", timeout_s=TRANSFER_S, running=True):
            try:
                request = f"containers/{container}/archive"
                query = self.docker._query(request, params={"path": path})  # noqa: SLF001 - streamed
                async with query as response:
                    try:
                        yield response.content.iter_chunked(64 * 1024)
                    finally:
                        if not response.content.at_eof():
                            response.close()  # the rest is not wanted: do not reuse the connection
            except DockerError as error:
                if error.status == NOT_FOUND and not error.message.lower().startswith("no such container"):
                    yield _nothing()
                elif (unreachable := path_error(error.message)) is not None:
                    raise PathUnreachable(unreachable) from error
                else:
                    raise

    # --- volumes ----------------------------------------------------------------------------------

    async def volumes(self) -> list[Mapping[str, Any]]:
        """Summaries (`Name`, `CreatedAt`, `Labels`) of all volumes."""
        async with engine_call("list volumes", timeout_s=CALL_S):
            found = await self.docker._query_json("volumes", method="GET")  # noqa: SLF001 - untyped there
        return list(found["Volumes"] or ())

    async def volume_sizes(self) -> Mapping[str, int]:
        """Bytes of each volume by its name; the engine walks their files."""
        async with engine_call("measure volumes", timeout_s=TRANSFER_S):
            about = await self.docker._query_json("system/df", method="GET")  # noqa: SLF001 - aiodocker has no method for it
        return {str(each["Name"]): int(each["UsageData"]["Size"]) for each in about["Volumes"] or ()}

    async def remove_volume(self, name: str) -> bool:
        """Remove a volume; no error if it is gone or in use. Whether it is gone."""
        async with engine_call(f"remove volume {name}", timeout_s=TRANSFER_S):
            with gone_is_well():
                await self.docker._query_json(f"volumes/{name}", method="DELETE")  # noqa: SLF001 - the same
        return all(each["Name"] != name for each in await self.volumes())


async def _nothing() -> AsyncIterator[bytes]:
    for nothing in tuple[bytes, ...]():
        yield nothing


def _client(docker_host: str | None) -> aiodocker.Docker:
    import aiodocker
    import aiohttp
    from aiodocker.exceptions import DockerError

    if docker_host is None and not os.environ.get("DOCKER_CONTEXT"):
        # Not Path's own, which raises where the user has no home.
        sockets = [Path(os.path.expanduser(each)) for each in _SOCKETS]  # noqa: PTH111
        docker_host = f"unix://{next((path for path in sockets if path.is_socket()), sockets[0])}"
    if docker_host is not None and docker_host.startswith("unix://"):
        # Two connections for each container at work: aiohttp's limit of 100 would deadlock.
        connector = aiohttp.UnixConnector(docker_host.removeprefix("unix://"), limit=0)
        return aiodocker.Docker(url="unix://localhost", connector=connector)
    try:
        docker = aiodocker.Docker(url=docker_host)
    except (ValueError, DockerError) as error:
        raise EngineUnavailable(f"DOCKER_HOST={docker_host} is no address of a Docker Engine") from error
    # Every container at work holds two connections: aiohttp's limit of 100 would deadlock fifty of them.
    docker.connector._limit = 0  # noqa: SLF001 - aiodocker makes it, with keys and contexts, and takes no limit
    return docker

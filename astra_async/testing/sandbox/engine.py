"""Client for Docker's Engine API: one method for each request, each with a timeout.

A thin layer over aiodocker. Every exception is translated to a SandboxError (see `engine_errors`). A few
requests have no aiodocker method, or that method reads the whole response into memory. Those use aiodocker's
private request function, only in this module and in `engine_images`.
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
from astra_async.tasks import Closing, closed_on_error
from astra_async.testing.sandbox.engine_errors import PathUnreachable, engine_call, path_error
from astra_async.testing.sandbox.engine_images import (
    CALL_S,
    NOT_FOUND,
    PULL_S,
    TRANSFER_S,
    EngineImages,
    ignore_missing,
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
    """Open connection to one Docker Engine; an asynchronous context manager."""

    def __init__(self, docker: aiodocker.Docker, tunnel: SshTunnel | None = None) -> None:
        super().__init__(docker)
        self._tunnel = tunnel

    @classmethod
    async def open(cls, docker_host: str | None = None, *, answers_within_s: float = _PING_S) -> Self:
        """Connect to `docker_host`, else DOCKER_HOST, else the usual sockets, and wait for an answer.

        Raises:
            EngineUnavailable: no Docker Engine answers at this address.
        """
        address = docker_host or os.environ.get("DOCKER_HOST")
        tunnel = SshTunnel(address) if address and address.startswith("ssh://") else None
        engine = cls(_client(f"unix://{tunnel.socket}" if tunnel else address), tunnel)
        async with closed_on_error(engine.close):
            await engine.ping(answers_within_s)
        return engine

    async def close(self) -> None:
        """Close the connections."""
        await self.docker.close()
        # aiodocker does not close a connector that it was given.
        if self.docker.connector is not None:
            await self.docker.connector.close()
        if self._tunnel is not None:
            await self._tunnel.close()

    async def ping(self, answers_within_s: float = _PING_S) -> Mapping[str, Any]:
        """Return the engine's version document; raise EngineUnavailable if there is no valid response."""
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
        """Open a raw connection to the engine's port or socket, to forward bytes. Raises OSError."""
        import aiohttp
        from yarl import URL

        connector: Any = self.docker.connector
        if isinstance(connector, aiohttp.UnixConnector):
            return await asyncio.open_unix_connection(connector.path)
        url = URL(self.docker.docker_host or "")
        tls = connector._ssl if url.scheme == "https" else None  # noqa: SLF001 - holds the certificates
        return await asyncio.open_connection(url.host, url.port, ssl=tls)

    # --- containers -----------------------------------------------------------------------------

    async def create(self, config: Mapping[str, Any], name: str) -> str:
        """Create a container and return its id."""
        async with engine_call("create a container", timeout_s=CALL_S):
            return (await self.docker.containers.create(config, name=name)).id

    async def upload(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar archive into a folder of the container, with the owners in the archive."""
        async with engine_call("upload the project", timeout_s=TRANSFER_S, running=True):
            put_archive: Any = self.docker.containers.container(container).put_archive  # untyped there
            await put_archive(folder, io.BytesIO(archive))  # aiohttp warns about `bytes` above 1 MiB

    async def unpack(self, container: str, folder: str, pieces: AsyncIterator[bytes]) -> None:
        """Unpack a streamed tar archive of any length into a folder of the container."""
        async with engine_call("take an archive", timeout_s=PULL_S, running=True):
            request, headers = f"containers/{container}/archive", {"content-type": "application/x-tar"}
            query = self.docker._query(request, "PUT", params={"path": folder}, data=pieces, headers=headers)  # noqa: SLF001 - put_archive cannot stream
            async with query as response:
                await response.read()

    async def attach(self, container: str) -> Stream:
        """Attach to the input and the multiplexed output of a container; the caller closes the stream."""
        stream = self.docker.containers.container(container).attach(
            stdin=True, stdout=True, stderr=True, logs=False
        )
        async with engine_call("attach to the container", timeout_s=CALL_S, running=True):
            await stream.__aenter__()
        return stream

    async def start(self, container: str) -> None:
        """Start a created container; raises ImageError if the image has no bash."""
        async with engine_call("start the container", timeout_s=CALL_S, running=True):
            await self.docker.containers.container(container).start()

    async def prepare(
        self,
        container: str,
        command: Sequence[str],
        *,
        user: str,
        environment: Mapping[str, str],
        stdin: bool = False,
    ) -> str:
        """Create an exec in a running container and return its id."""
        async with engine_call("prepare the command", timeout_s=CALL_S, running=True):
            made = await self.docker.containers.container(container).exec(
                list(command),
                stdin=stdin,
                user=user,
                environment=[f"{key}={value}" for key, value in environment.items()],
            )
        return made.id

    @asynccontextmanager
    async def started(self, process: str) -> AsyncIterator[Stream]:
        """Start a prepared exec and yield its multiplexed output.

        The stream ends with the process, or some seconds later if child processes keep its output open.
        """
        from aiodocker.execs import Exec

        stream = Exec(self.docker, process, tty=False).start()
        try:
            async with engine_call("start the command", timeout_s=CALL_S, running=True):
                await stream.__aenter__()
            yield stream
        finally:
            with suppress(AssertionError):  # raised by aiodocker if the connection is already closed
                await stream.close()

    async def exit_code(self, process: str) -> int | None:
        """Return the exit code of a started exec, or None while it runs; child processes do not count."""
        state = await self._state(process, "end")
        return None if state["Running"] else int(state["ExitCode"])

    async def has_begun(self, process: str) -> bool:
        """Return True if a started exec has a process; a busy engine may take a while to create it."""
        # An engine that reports no Pid: treat the exec as started.
        return (await self._state(process, "beginning")).get("Pid") != 0

    async def _state(self, process: str, asked: str) -> Mapping[str, Any]:
        from aiodocker.execs import Exec

        async with engine_call(f"ask for the command's {asked}", timeout_s=CALL_S, running=True):
            return await Exec(self.docker, process).inspect()

    async def pause(self, container: str) -> None:
        """Freeze every process of a running container.

        Do not call this while an exec is being created: neither the exec nor the container could then be
        stopped, and the engine's requests about the container would never return (Docker 20.10, runc 1.0).
        """
        async with engine_call("pause the container", timeout_s=CALL_S, running=True):
            await self.docker.containers.container(container).pause()

    async def allow_processes(self, container: str, limit: int) -> None:
        """Change the maximum number of processes of a running container."""
        async with engine_call("change the container's limits", timeout_s=CALL_S, running=True):
            await self.docker._query_json(  # noqa: SLF001 - aiodocker has no method for it
                f"containers/{container}/update", method="POST", data={"PidsLimit": limit}
            )

    async def ran_out_of_memory(self, container: str) -> bool:
        """Return True if the kernel killed a process of the container, now dead, for lack of memory."""
        if (await self.inspect(container))["State"]["OOMKilled"]:
            return True
        # The kernel's notification may arrive after the container's end; then only the event log has it.
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
        """Return the engine's description: `ID`, `ServerVersion`, `Images`, `SecurityOptions` ..."""
        async with engine_call("describe itself", timeout_s=CALL_S):
            about: Mapping[str, Any] = await self.docker.system.info()
        return about

    async def confines_system_calls(self) -> bool:
        """Return True if the engine supports seccomp profiles."""
        options = (await self.info()).get("SecurityOptions") or ()
        return any("name=seccomp" in option for option in options)

    async def shows_images_as_trees(self) -> bool:
        """Return True if inspection shows a started container's root as a folder of the engine's host.

        Raises:
            SandboxError: the engine is rootless and cannot mount overlays.
        """
        about = await self.info()
        if any("name=rootless" in option for option in about.get("SecurityOptions") or ()):
            raise SandboxError("The engine is rootless")
        return bool(about.get("Driver") == "overlay2")

    async def ended(self, container: str) -> None:
        """Wait until a container has ended."""
        async with engine_call("end a container", timeout_s=CALL_S):
            await self.docker.containers.container(container).wait()

    async def inspect(self, container: str, *, size: bool = False) -> Mapping[str, Any]:
        """Return the container's inspection document; with `size`, including `SizeRw` in bytes."""
        async with engine_call("inspect the container", timeout_s=CALL_S, running=True):
            return await self.docker.containers.container(container).show(size=size)

    async def remove(self, container: str) -> None:
        """Remove a container, running or not, and its anonymous volumes; no error if it does not exist."""
        async with engine_call("remove the container", timeout_s=CALL_S):
            with ignore_missing():
                await self.docker.containers.container(container).delete(force=True, v=True)

    async def containers(self, label: str | None = None) -> list[Mapping[str, Any]]:
        """Return summaries (`Id`, `Names`, `Labels`, ...) of all containers, optionally with a label."""
        filters = json.dumps({} if label is None else {"label": [label]})
        async with engine_call("list containers", timeout_s=CALL_S):
            found = await self.docker.containers.list(all=True, filters=filters)
        return [each._container for each in found]  # noqa: SLF001 - no public attribute

    @asynccontextmanager
    async def packed(self, container: str, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield a path of a container as a streamed tar; empty if the path does not exist.

        The caller may stop reading at any time.

        Raises:
            PathUnreachable: files in the container make the path unreachable.
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
                            response.close()  # unread data remains: do not reuse the connection
            except DockerError as error:
                if error.status == NOT_FOUND and not error.message.lower().startswith("no such container"):
                    yield _nothing()
                elif (unreachable := path_error(error.message)) is not None:
                    raise PathUnreachable(unreachable) from error
                else:
                    raise

    # --- volumes ----------------------------------------------------------------------------------

    async def volumes(self) -> list[Mapping[str, Any]]:
        """Return summaries (`Name`, `CreatedAt`, `Labels`) of all volumes."""
        async with engine_call("list volumes", timeout_s=CALL_S):
            found = await self.docker._query_json("volumes", method="GET")  # noqa: SLF001 - untyped there
        return list(found["Volumes"] or ())

    async def volume_sizes(self) -> Mapping[str, int]:
        """Return the bytes of each volume by name; slow, because the engine walks all files."""
        async with engine_call("measure volumes", timeout_s=TRANSFER_S):
            about = await self.docker._query_json("system/df", method="GET")  # noqa: SLF001 - aiodocker has no method for it
        return {str(each["Name"]): int(each["UsageData"]["Size"]) for each in about["Volumes"] or ()}

    async def remove_volume(self, name: str) -> bool:
        """Remove a volume unless it is in use; return True if it no longer exists."""
        async with engine_call(f"remove volume {name}", timeout_s=TRANSFER_S):
            with ignore_missing():
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
        # Path.expanduser raises an exception if the user has no home folder.
        sockets = [Path(os.path.expanduser(each)) for each in _SOCKETS]  # noqa: PTH111
        docker_host = f"unix://{next((path for path in sockets if path.is_socket()), sockets[0])}"
    if docker_host is not None and docker_host.startswith("unix://"):
        # Each running container holds two connections; aiohttp's limit of 100 would cause a deadlock.
        connector = aiohttp.UnixConnector(docker_host.removeprefix("unix://"), limit=0)
        return aiodocker.Docker(url="unix://localhost", connector=connector)
    try:
        docker = aiodocker.Docker(url=docker_host)
    except (ValueError, DockerError) as error:
        raise EngineUnavailable(f"DOCKER_HOST={docker_host} is no address of a Docker Engine") from error
    # Each running container holds two connections; aiohttp's limit of 100 would cause a deadlock.
    docker.connector._limit = 0  # noqa: SLF001 - aiodocker makes it, with keys and contexts, and takes no limit
    return docker

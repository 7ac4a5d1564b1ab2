"""Docker's Engine API as this project uses it: one method for each request, each with a time-out.

A thin layer over aiodocker. Every error that leaves it is a SandboxError (see `failures`). The few
requests that aiodocker has no method for, or answers only by reading everything into memory, go
through its own request function, here and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import orjson

from astra_async.errors import EngineUnavailable, SandboxError
from astra_async.testing.sandbox.engine_errors import PathUnreachable, engine_call, path_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    import aiodocker
    from aiodocker.stream import Stream

_PING_S = 10.0
_CALL_S = 60.0  # creating a container took 5 s on a host with 30 others starting; an order above that
_TRANSFER_S = 120.0
_PULL_S = 1800.0
_BUILD_S = 3600.0
_NOT_FOUND = 404
_CONFLICT = 409
_FAILED = 500
_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock", "~/.docker/run/docker.sock")


class Engine:
    """An open connection to one Docker Engine; an asynchronous context manager."""

    def __init__(self, docker: aiodocker.Docker) -> None:
        self.docker = docker

    @classmethod
    async def open(cls, docker_host: str | None = None, *, answers_within_s: float = _PING_S) -> Self:
        """Connect to `docker_host`, else DOCKER_HOST, else the usual sockets, and wait for an answer.

        Raises:
            EngineUnavailable: nothing answers there.
        """
        engine = cls(_client(docker_host or os.environ.get("DOCKER_HOST")))
        try:
            await engine.ping(answers_within_s)
        except BaseException:
            await engine.close()
            raise
        return engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release the connections."""
        await self.docker.close()
        # A connector that we made is not aiodocker's to close.
        if self.docker.connector is not None:
            await self.docker.connector.close()

    async def ping(self, answers_within_s: float = _PING_S) -> Mapping[str, Any]:
        """The engine's version document; raises EngineUnavailable when it does not answer properly."""
        try:
            async with engine_call("answer", timeout_s=answers_within_s):
                return await self.docker.version()
        except EngineUnavailable:
            raise
        except SandboxError as error:
            raise EngineUnavailable(str(error)) from error

    # --- containers -----------------------------------------------------------------------------

    async def create(self, config: Mapping[str, Any], name: str) -> str:
        """Create a container; returns its id."""
        async with engine_call("create a container", timeout_s=_CALL_S):
            return (await self.docker.containers.create(config, name=name)).id

    async def upload(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar archive into a folder of the container; owners are kept as the archive says."""
        async with engine_call("upload the project", timeout_s=_TRANSFER_S, running=True):
            put_archive: Any = self.docker.containers.container(container).put_archive  # untyped there
            await put_archive(folder, archive)

    @asynccontextmanager
    async def attached(self, container: str) -> AsyncIterator[Stream]:
        """Standard input, output and error of a container, multiplexed, from now on."""
        stream = self.docker.containers.container(container).attach(
            stdin=True, stdout=True, stderr=True, logs=False
        )
        try:
            async with engine_call("attach to the container", timeout_s=_CALL_S, running=True):
                await stream.__aenter__()
            yield stream
        finally:
            with suppress(AssertionError):  # aiodocker's, when the connection has gone already
                await stream.close()

    async def start(self, container: str) -> None:
        """Start a created container; raises ImageError when the image has no bash."""
        async with engine_call("start the container", timeout_s=_CALL_S, running=True):
            await self.docker.containers.container(container).start()

    async def wait(self, container: str) -> int:
        """Wait without a time limit for the end of a container; returns its exit code.

        Raises:
            ContainerLost: the connection broke, so the engine was restarted or died.
        """
        async with engine_call("wait for the container", timeout_s=None, running=True):
            answer = await self.docker.containers.container(container).wait()
        if (answer.get("Error") or {}).get("Message"):
            raise SandboxError(f"Docker Engine could not run the container: {answer['Error']['Message']}")
        return int(answer["StatusCode"])

    async def inspect(self, container: str, *, size: bool = False) -> Mapping[str, Any]:
        """The container's inspection document; with `size`, its `SizeRw` in bytes is in it."""
        async with engine_call("inspect the container", timeout_s=_CALL_S, running=True):
            return await self.docker.containers.container(container).show(size=size)

    async def kill(self, container: str) -> bool:
        """End every process of the container at once; False when it had ended by itself."""
        from aiodocker.exceptions import DockerError

        async with engine_call("kill the container", timeout_s=_CALL_S, running=True):
            try:
                await self.docker.containers.container(container).kill()
            except DockerError as error:
                if error.status == _CONFLICT:
                    return False
                raise
        return True

    async def remove(self, container: str) -> None:
        """Remove a container and its anonymous volumes, running or not; no error if it is gone."""
        from aiodocker.exceptions import DockerError

        async with engine_call("remove the container", timeout_s=_CALL_S):
            try:
                await self.docker.containers.container(container).delete(force=True, v=True)
            except DockerError as error:
                # 409: another request removes it already.
                if error.status not in (_NOT_FOUND, _CONFLICT):
                    raise

    async def containers(self, label: str) -> list[Mapping[str, Any]]:
        """Summaries (`Id`, `Labels`, ...) of all containers that carry a label, in any state."""
        filters = json.dumps({"label": [label]})
        async with engine_call("list containers", timeout_s=_CALL_S):
            found = await self.docker.containers.list(all=True, filters=filters)
        return [each._container for each in found]  # noqa: SLF001 - aiodocker has no other door to it

    async def read(self, request: str, params: Mapping[str, str], limit: int) -> bytes | None:
        """At most `limit` bytes of the answer to a GET request; None when there is no such thing.

        For answers whose length the inside of a container decides; raises PathUnreachable when the inside
        of the container is the reason why there is no answer.
        """
        from aiodocker.exceptions import DockerError

        async with engine_call(f"read {request.rpartition('/')[2]}", timeout_s=_TRANSFER_S, running=True):
            try:
                return await self._read(request, params, limit)
            except DockerError as error:
                if error.status == _NOT_FOUND and not error.message.lower().startswith("no such container"):
                    return None
                if (unreachable := path_error(error.message)) is not None:
                    raise PathUnreachable(unreachable) from error
                raise

    async def _read(self, request: str, params: Mapping[str, str], limit: int) -> bytes:
        content = bytearray()
        query = self.docker._query(request, params=dict(params))  # noqa: SLF001 - the only streamed door
        async with query as response, response:
            async for chunk in response.content.iter_chunked(64 * 1024):
                content += chunk
                if len(content) >= limit:
                    response.close()  # the rest is not wanted: do not reuse the connection
                    break
        return bytes(content[:limit])

    # --- images -----------------------------------------------------------------------------------

    async def image(self, name: str) -> Mapping[str, Any] | None:
        """An image's inspection document, or None when the engine has no such image."""
        from aiodocker.exceptions import DockerError

        async with engine_call(f"inspect image {name}", timeout_s=_CALL_S):
            try:
                return await self.docker.images.inspect(name)
            except DockerError as error:
                if error.status == _NOT_FOUND:
                    return None
                raise

    async def tag(self, image: str, name: str) -> None:
        """Give an image a further name, `repository:tag`."""
        repository, _, tag = name.rpartition(":")
        async with engine_call(f"tag {image}", timeout_s=_CALL_S):
            await self.docker.images.tag(image, repository, tag=tag)

    async def remove_image(self, image: str) -> None:
        """Remove an untagged image and the untagged ones that only it needed; no error if one is in use."""
        from aiodocker.exceptions import DockerError

        async with engine_call(f"remove image {image}", timeout_s=_TRANSFER_S):
            try:
                await self.docker.images.delete(image)
            except DockerError as error:
                if error.status not in (_NOT_FOUND, _CONFLICT):
                    raise

    async def pull(self, name: str, *, starts_within_s: float) -> None:
        """Pull an image from its registry, which must begin to answer within so many seconds."""
        repository, _, tag = name.rpartition(":")
        if "/" in tag or not repository:
            repository, tag = name, "latest"
        async with (
            engine_call(f"pull {name}", timeout_s=_PULL_S),
            asyncio.timeout(starts_within_s) as patience,
        ):
            events = self._events("images/create", {"fromImage": repository, "tag": tag})
            async with aclosing(events):
                async for _ in events:
                    patience.reschedule(None)

    async def build(
        self, context: IO[bytes], *, tag: str | None, arguments: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Build a Dockerfile from a tar `context`; yields the builder's events."""
        params = {"rm": "true", "forcerm": "true", "buildargs": json.dumps(dict(arguments))}
        if tag:
            params["t"] = tag
        async with engine_call("build the image", timeout_s=_BUILD_S):
            events = self._events(
                "build", params, data=context, headers={"content-type": "application/x-tar"}
            )
            async with aclosing(events):
                async for event in events:
                    yield event

    async def _events(
        self, request: str, params: Mapping[str, str], **rest: Any
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """JSON lines of a long answer. aiodocker's own readers leave the connection open when cancelled."""
        query = self.docker._query(request, "POST", params=dict(params), **rest)  # noqa: SLF001 - streamed
        async with query as response:
            try:
                async for line in response.content:
                    yield _event(line)
            except BaseException:
                response.close()
                raise

    async def commit(self, container: str, name: str, config: Mapping[str, Any]) -> None:
        """Make an image `repository:tag` of a dead container's files, with `config` as its configuration."""
        repository, _, tag = name.rpartition(":")
        async with engine_call(f"commit {name}", timeout_s=_PULL_S):
            await self.docker.containers.container(container).commit(
                repository=repository, tag=tag, config=dict(config)
            )


def _event(line: bytes) -> Mapping[str, Any]:
    """One line of a build or a pull; these report failure within an answer of status 200."""
    from aiodocker.exceptions import DockerError

    event: Mapping[str, Any] = orjson.loads(line)
    if "error" in event:
        raise DockerError(_FAILED, str(event["error"]))
    return event


def _client(docker_host: str | None) -> aiodocker.Docker:
    import aiodocker
    import aiohttp
    from aiodocker.exceptions import DockerError

    if docker_host is None and not os.environ.get("DOCKER_CONTEXT"):
        docker_host = f"unix://{_socket()}"
    if docker_host is not None and docker_host.startswith("unix://"):
        # Every wait and every attach holds a connection: aiohttp's limit of 100 would deadlock.
        connector = aiohttp.UnixConnector(docker_host.removeprefix("unix://"), limit=0)
        return aiodocker.Docker(url="unix://localhost", connector=connector)
    try:
        return aiodocker.Docker(url=docker_host)
    except (ValueError, DockerError) as error:
        raise EngineUnavailable(f"DOCKER_HOST={docker_host} is no address of a Docker Engine") from error


def _socket() -> Path:
    # Not Path's own, which raises where the user has no home.
    candidates = [Path(os.path.expanduser(each)) for each in _SOCKETS]  # noqa: PTH111
    return next((path for path in candidates if path.is_socket()), candidates[0])

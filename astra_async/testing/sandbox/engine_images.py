"""Docker's Engine API for images: one method for each request, each with a timeout (see `engine`)."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, closing, contextmanager
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from astra_async.testing.sandbox.engine_errors import engine_call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence

    import aiodocker

CALL_S = 60.0  # creating a container took 5 s while 30 others were starting; ten times that
TRANSFER_S = 120.0
PULL_S = 1800.0
_BUILD_S = 3600.0
NOT_FOUND = 404
_CONFLICT = 409
_FAILED = 500
_TAR = {"content-type": "application/x-tar"}


class EngineImages:
    """Images of one engine."""

    def __init__(self, docker: aiodocker.Docker) -> None:
        self.docker = docker

    async def image(self, name: str) -> Mapping[str, Any] | None:
        """Return an image's inspection document, or None if the engine has no such image."""
        from aiodocker.exceptions import DockerError

        async with engine_call(f"inspect image {name}", timeout_s=CALL_S):
            try:
                return await self.docker.images.inspect(name)
            except DockerError as error:
                if error.status == NOT_FOUND:
                    return None
                raise

    async def images(self) -> list[Mapping[str, Any]]:
        """Return summaries (`Id`, `RepoTags`, `Created`, `Size`) of all tagged images."""
        async with engine_call("list images", timeout_s=CALL_S):
            found: list[Mapping[str, Any]] = await self.docker.images.list()
        return found

    async def tag(self, image: str, name: str) -> None:
        """Add the name `repository:tag` to an image."""
        repository, _, tag = name.rpartition(":")
        async with engine_call(f"tag {image}", timeout_s=CALL_S):
            await self.docker.images.tag(image, repository, tag=tag)

    async def remove_image(self, image: str) -> None:
        """Remove an image and its unused untagged parents; no error if the image is in use."""
        async with engine_call(f"remove image {image}", timeout_s=TRANSFER_S):
            with ignore_missing():
                await self.docker.images.delete(image)

    async def pull(self, name: str, *, starts_within_s: float) -> None:
        """Pull an image; the registry's first response must arrive within `starts_within_s` seconds."""
        repository, _, tag = name.rpartition(":")
        if "/" in tag or not repository:
            repository, tag = name, "latest"
        async with (
            engine_call(f"pull {name}", timeout_s=PULL_S),
            asyncio.timeout(starts_within_s) as patience,
            aclosing(self.events("images/create", {"fromImage": repository, "tag": tag})) as events,
        ):
            async for _ in events:
                patience.reschedule(None)

    async def export(self, names: Sequence[str]) -> AsyncGenerator[bytes, None]:
        """Yield a tar archive of images with their names; shared layers occur once."""
        async with engine_call("export images", timeout_s=PULL_S):
            wanted = urlencode([("names", name) for name in names])
            query = self.docker._query(f"images/get?{wanted}")  # noqa: SLF001 - aiodocker takes one name
            async with query as response:
                with closing(response):
                    async for piece in response.content.iter_chunked(1024 * 1024):
                        yield piece

    async def load(self, pieces: AsyncIterator[bytes]) -> None:
        """Load images from an archive made by `export`."""
        events = self.events("images/load", {"quiet": "true"}, data=pieces, headers=_TAR)
        async with engine_call("load images", timeout_s=PULL_S), aclosing(events):
            async for _ in events:
                pass

    async def build(
        self, context: IO[bytes], *, tag: str | None, arguments: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Build a Dockerfile from a tar `context` and yield the builder's events."""
        params = {"rm": "true", "forcerm": "true", "buildargs": json.dumps(dict(arguments))}
        if tag:
            params["t"] = tag
        events = self.events("build", params, data=context, headers=_TAR)
        async with engine_call("build the image", timeout_s=_BUILD_S), aclosing(events):
            async for event in events:
                yield event

    async def events(
        self, request: str, params: Mapping[str, str], method: str = "POST", **rest: Any
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the JSON lines of a streamed response.

        aiodocker's own readers leave the connection open if cancelled.
        """
        query = self.docker._query(request, method, params=dict(params), **rest)  # noqa: SLF001 - streamed
        async with query as response:
            with closing(response):
                async for line in response.content:
                    yield _event(line)

    async def commit(self, container: str, name: str, config: Mapping[str, Any]) -> None:
        """Create the image `repository:tag` from a stopped container, with `config` as configuration."""
        repository, _, tag = name.rpartition(":")
        async with engine_call(f"commit {name}", timeout_s=PULL_S):
            await self.docker.containers.container(container).commit(
                repository=repository, tag=tag, config=dict(config)
            )


@contextmanager
def ignore_missing() -> Iterator[None]:
    """Ignore errors of a removal if the object does not exist or is in use (409)."""
    from aiodocker.exceptions import DockerError

    try:
        yield
    except DockerError as error:
        if error.status not in (NOT_FOUND, _CONFLICT):
            raise


def _event(line: bytes) -> Mapping[str, Any]:
    """Parse one line of a build or pull, which report errors in a response with status 200."""
    from aiodocker.exceptions import DockerError

    event: Mapping[str, Any] = orjson.loads(line)
    if "error" in event:
        raise DockerError(_FAILED, str(event["error"]))
    return event

"""What is asked of Docker's Engine API about images; each request with a time-out (see `engine`)."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, contextmanager
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from astra_async.testing.sandbox.engine_errors import engine_call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence

    import aiodocker

CALL_S = 60.0  # creating a container took 5 s on a host with 30 others starting; an order above that
TRANSFER_S = 120.0
PULL_S = 1800.0
_BUILD_S = 3600.0
NOT_FOUND = 404
_CONFLICT = 409
_FAILED = 500
_TAR = {"content-type": "application/x-tar"}


class EngineImages:
    """The images of one engine."""

    def __init__(self, docker: aiodocker.Docker) -> None:
        self.docker = docker

    async def image(self, name: str) -> Mapping[str, Any] | None:
        """An image's inspection document, or None when the engine has no such image."""
        from aiodocker.exceptions import DockerError

        async with engine_call(f"inspect image {name}", timeout_s=CALL_S):
            try:
                return await self.docker.images.inspect(name)
            except DockerError as error:
                if error.status == NOT_FOUND:
                    return None
                raise

    async def images(self) -> list[Mapping[str, Any]]:
        """Summaries (`Id`, `RepoTags`, `Created`, `Size`) of all images that have a name."""
        async with engine_call("list images", timeout_s=CALL_S):
            found: list[Mapping[str, Any]] = await self.docker.images.list()
        return found

    async def tag(self, image: str, name: str) -> None:
        """Give an image a further name, `repository:tag`."""
        repository, _, tag = name.rpartition(":")
        async with engine_call(f"tag {image}", timeout_s=CALL_S):
            await self.docker.images.tag(image, repository, tag=tag)

    async def remove_image(self, image: str) -> None:
        """Remove an untagged image and the untagged ones that only it needed; no error if one is in use."""
        async with engine_call(f"remove image {image}", timeout_s=TRANSFER_S):
            with gone_is_well():
                await self.docker.images.delete(image)

    async def pull(self, name: str, *, starts_within_s: float) -> None:
        """Pull an image from its registry, which must begin to answer within so many seconds."""
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
        """Images with their names as one tar archive, piece by piece, with layers that they share once."""
        async with engine_call("export images", timeout_s=PULL_S):
            wanted = urlencode([("names", name) for name in names])
            query = self.docker._query(f"images/get?{wanted}")  # noqa: SLF001 - aiodocker takes one name
            async with query as response:
                try:
                    async for piece in response.content.iter_chunked(1024 * 1024):
                        yield piece
                except BaseException:
                    response.close()
                    raise

    async def load(self, pieces: AsyncIterator[bytes]) -> None:
        """Take images that `export` gave."""
        events = self.events("images/load", {"quiet": "true"}, data=pieces, headers=_TAR)
        async with engine_call("load images", timeout_s=PULL_S), aclosing(events):
            async for _ in events:
                pass

    async def build(
        self, context: IO[bytes], *, tag: str | None, arguments: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Build a Dockerfile from a tar `context`; yields the builder's events."""
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
        """JSON lines of a long answer. aiodocker's own readers leave the connection open when cancelled."""
        query = self.docker._query(request, method, params=dict(params), **rest)  # noqa: SLF001 - streamed
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
        async with engine_call(f"commit {name}", timeout_s=PULL_S):
            await self.docker.containers.container(container).commit(
                repository=repository, tag=tag, config=dict(config)
            )


@contextmanager
def gone_is_well() -> Iterator[None]:
    """For removals: what is not there is removed; 409: it is in use, or being removed already."""
    from aiodocker.exceptions import DockerError

    try:
        yield
    except DockerError as error:
        if error.status not in (NOT_FOUND, _CONFLICT):
            raise


def _event(line: bytes) -> Mapping[str, Any]:
    """One line of a build or a pull; these report failure within an answer of status 200."""
    from aiodocker.exceptions import DockerError

    event: Mapping[str, Any] = orjson.loads(line)
    if "error" in event:
        raise DockerError(_FAILED, str(event["error"]))
    return event

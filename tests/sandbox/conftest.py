"""What the Docker tests stand on: images built for them, and a check that they leave nothing behind."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import own_containers, tar

from astra_async.images.base_image import build_image, ensure_base
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import owner
from astra_async.types import Execution, Job, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sandbox_jobs import Run

DOCKERFILES = {
    "named-user": "RUN useradd --uid 4321 --create-home runner\nUSER runner",
    "named-root": "RUN useradd --non-unique --uid 0 toor\nUSER toor",
    "no-bash": "RUN rm -f /usr/bin/bash /bin/bash",
    "with-project": (
        "RUN mkdir -p /projects/challenge/node_modules /projects/node_modules /projects/challenge/out"
        " && echo near > /projects/challenge/node_modules/near && echo far > /projects/node_modules/far"
        " && echo image > /projects/challenge/a.txt && echo kept > /projects/challenge/kept.txt"
        " && echo stale > /projects/challenge/unit.xml && echo stale > /projects/challenge/out/unit.xml"
        " && chmod 777 /projects/challenge/out"
    ),
    "large-project": (
        "RUN mkdir -p /projects/challenge/out && cd /projects/challenge && chmod 777 ."
        " && echo stale > out/unit.xml && echo stale > unit.xml && head -c 31457280 /dev/urandom > large"
        " && mkdir -p /opt/tool/in && echo kept > /opt/tool/in/file && chmod 666 /opt/tool/in/file"
    ),
    "no-layer": "RUN mkdir -m 777 /opt/a,b && head -c 31457280 /dev/urandom > /opt/a,b/large",
    "owned-system": "RUN chown -R 1000:1000 /usr /bin/ /lib/ /etc /opt",
    "with-volume": "VOLUME /projects/challenge /data",
    "entry-point": 'ENTRYPOINT ["/bin/false"]\nENV COLOUR=blue',
}


@pytest.fixture(scope="session")
def image() -> str:
    """A Debian with bash and coreutils."""

    async def ensure() -> str:
        async with await Engine.open() as engine:
            return await ensure_base(engine, progress=print)

    return asyncio.run(ensure())


@pytest.fixture(scope="session")
def made(image: str) -> Iterator[Callable[[str], str]]:
    """Builds one of DOCKERFILES and gives its tag; all are removed at the end."""
    tags: dict[str, str] = {}

    async def build(name: str) -> None:
        context = io.BytesIO(tar({"Dockerfile": f"FROM {image}\n{DOCKERFILES[name]}\n".encode()}))
        async with await Engine.open() as engine:
            await build_image(engine, context, tag=tags[name], progress=print)

    def make(name: str) -> str:
        if name not in tags:
            tags[name] = f"astra-test/{name}:{owner().rpartition(':')[2]}"
            asyncio.run(build(name))
        return tags[name]

    async def remove() -> None:
        async with await Engine.open() as engine:
            for tag in tags.values():
                await engine.remove_image(tag)

    yield make
    asyncio.run(remove())


@pytest.fixture
def run(image: str) -> Run:
    default_image = image

    def run_one(
        command: str,
        *result_files: str,
        archive: bytes = tar({"a.txt": b"a\n"}),
        image: str = default_image,
        limits: Limits = Limits(timeout_s=600.0),  # noqa: B008 - immutable
        environment: Mapping[str, str] | None = None,
    ) -> Execution:
        job = Job(
            image=image,
            archive=archive,
            command=command,
            result_files=result_files,
            limits=limits,
            environment=environment or {},
        )

        async def one() -> Execution:
            async with await DockerSandbox.open(run_id="test", slots=1) as sandbox:
                return await sandbox.run(job)

        return asyncio.run(one())

    return run_one


@pytest.fixture(scope="session")
def leaves_no_container() -> Iterator[None]:
    """Fails the last test when a container of this process outlives them all."""
    yield

    async def left() -> list[str]:
        async with await Engine.open() as engine:
            return await own_containers(engine)

    assert asyncio.run(left()) == []

"""The least that testing takes: create, upload, start, wait, fetch the report, remove, over the socket.

Usage: floor_docker.py IMAGE PROJECT CONTAINERS AT_ONCE
"""

from __future__ import annotations

import asyncio
import io
import sys
import tarfile
from typing import Any

import aiodocker


async def main(image: str, project: str, containers: int, at_once: int) -> None:
    """Test the untouched project so many times."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        tar.add(project, "challenge")
    config: dict[str, Any] = {
        "Image": image,
        "Cmd": ["bash", "tests/suite.sh"],
        "WorkingDir": "/projects/challenge",
        "HostConfig": {"NetworkMode": "none"},
    }
    gate = asyncio.Semaphore(at_once)

    async def test(docker: aiodocker.Docker) -> None:
        async with gate:
            container = await docker.containers.create(config)
            await container.put_archive("/projects", packed.getvalue())  # type: ignore[no-untyped-call]
            await container.start()
            await container.wait()
            await container.get_archive("/projects/challenge/junit.xml")
            await container.delete(force=True, v=True)

    async with aiodocker.Docker() as docker, asyncio.TaskGroup() as tests:
        for _ in range(containers):
            tests.create_task(test(docker))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))

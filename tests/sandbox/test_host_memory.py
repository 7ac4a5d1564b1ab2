"""Whose memory was short: the container's own, which is the model's failure, or the host's, which is not."""

from __future__ import annotations

import asyncio
import errno
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sandbox_jobs import own_containers, tar

from astra_async.errors import ContainerLost
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.keeper import SCRIPT
from astra_async.types import Job, Limits
from private_engine import needs_own_engine, private_engine
from waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Mapping

IMAGE = "host-memory-test:1"
MB = 2**20
GROUPS = Path("/sys/fs/cgroup/memory")  # cgroup v1; under v2 delegation differs from host to host
HUNGRY = (
    'big() { bash -c \'x=$(head -c 300000000 /dev/zero | tr "\\0" a); echo ${#x}\'; }; big; echo "so: $?"'
)


@pytest.mark.first
@pytest.mark.docker
@needs_own_engine
@pytest.mark.skipif(not (GROUPS / "memory.limit_in_bytes").exists(), reason="no cgroup v1 for memory")
def test_a_host_out_of_memory_is_told_from_a_container_that_is() -> None:
    group = GROUPS / f"astra-{uuid4().hex[:8]}"
    group.mkdir()
    options = ("--exec-opt=native.cgroupdriver=cgroupfs", f"--cgroup-parent=/{group.name}")

    async def check(host: str) -> None:
        async with await DockerSandbox.open(run_id="m", slots=1, docker_host=host) as sandbox:
            own = await sandbox.run(job(HUNGRY, memory_bytes=100 * MB))
            assert (own.out_of_memory, "so: 137" in own.output) == (True, True)
            enough = await sandbox.run(job(HUNGRY, memory_bytes=4096 * MB))
            assert (enough.out_of_memory, enough.exit_code) == (False, 0)
            (group / "memory.limit_in_bytes").write_text(str(100 * MB))
            with pytest.raises(ContainerLost, match="host ran out of memory"):
                await sandbox.run(job(HUNGRY, memory_bytes=4096 * MB))
            modest = await sandbox.run(job("echo fine", memory_bytes=4096 * MB))
            assert (modest.out_of_memory, modest.stdout) == (False, "fine\n")
            (group / "memory.limit_in_bytes").write_text("-1")
        async with await Engine.open(host) as engine:
            assert await own_containers(engine) == []

    try:
        programs = ("bash", "cat", "head", "tr")
        with private_engine(IMAGE, programs, *options) as engine:
            asyncio.run(check(engine.host))
    finally:
        awaited(lambda: removed(group), "the end of what was in the group")


def removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError as error:  # the kernel still takes its last process down
        assert error.errno == errno.EBUSY  # noqa: PT017 - any other error is one
        return False
    return True


def job(command: str, *, memory_bytes: int) -> Job:
    limits = Limits(timeout_s=600.0, memory_bytes=memory_bytes)
    return Job(image=IMAGE, archive=tar({"a": b"a"}), command=command, limits=limits)


V1 = {"memory/memory.limit_in_bytes": "4294967296\n", "memory/memory.failcnt": "0\n"}
KILLED = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"


@pytest.mark.parametrize(
    ("files", "starved"),
    [
        ({}, False),
        ({"memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"}, False),
        ({"memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n"}, False),
        ({"memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n"}, True),
        (
            {**V1, "memory/memory.oom_control": KILLED, "memory/memory.max_usage_in_bytes": "4294967296"},
            False,
        ),
        ({**V1, "memory/memory.oom_control": KILLED, "memory/memory.max_usage_in_bytes": "1048576\n"}, True),
        (
            {
                **V1,
                "memory/memory.oom_control": KILLED.replace("kill 1", "kill 0"),
                "memory/memory.max_usage_in_bytes": "1048576\n",
            },
            False,
        ),
    ],
)
def test_the_cgroup_tells_whose_limit_it_was(
    tmp_path: Path, files: Mapping[str, str], *, starved: bool
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    script = SCRIPT.replace("/sys/fs/cgroup", str(tmp_path))
    # Asked more than once, as the keeper does: a line that comes as its wait ends may be lost in part.
    asked = b"1\n" * 3
    done = subprocess.run(["bash", "-c", script, "bash", "5"], input=asked, capture_output=True, check=False)
    answers = [line.split() for line in done.stdout.splitlines()]
    _, _, kills, reached = map(int, next(answer for answer in answers if len(answer) == 4))
    assert (kills > 0 and not reached) == starved
    assert done.stderr == b""

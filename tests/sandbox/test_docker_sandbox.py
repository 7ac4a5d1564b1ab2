from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import await_commands, own_containers, tar

from astra_async.errors import ContainerLost, EngineUnavailable
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import OWNER_LABEL, RUN_LABEL, claim, container_name, owner, sweep
from astra_async.types import Job, Limits
from slow_engine import SlowEngine
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("leaves_no_container")]
PROJECT = tar({"a.txt": b"a"})


def job(image: str, command: str = "true", **limits: float) -> Job:
    return Job(image=image, archive=PROJECT, command=command, limits=Limits(**{"timeout_s": 60.0, **limits}))  # type: ignore[arg-type]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.02)


@pytest.mark.first
async def test_slots_bound_what_runs_at_once_and_the_rest_waits(image: str) -> None:
    async with await DockerSandbox.open(run_id="slots", slots=2) as sandbox:
        jobs = [asyncio.create_task(sandbox.run(job(image, "sleep 1"))) for _ in range(5)]
        await asyncio.sleep(0.5)
        assert (sandbox.running, sandbox.waiting) == (2, 3)
        assert [done.exit_code for done in await asyncio.gather(*jobs)] == [0] * 5
        assert (sandbox.running, sandbox.waiting) == (0, 0)


async def test_the_time_limit_does_not_run_while_a_job_waits_for_a_slot(image: str) -> None:
    async with await DockerSandbox.open(run_id="patience", slots=1) as sandbox:
        first = asyncio.create_task(sandbox.run(job(image, "sleep 16")))
        await eventually(lambda: asyncio.sleep(0, sandbox.running == 1))
        assert not (await sandbox.run(job(image, "true", timeout_s=15.0))).timed_out
        assert (await first).exit_code == 0


async def test_a_container_made_ahead_is_taken_and_never_two_jobs_share_one(image: str) -> None:
    async with await DockerSandbox.open(run_id="ahead", slots=2) as sandbox:
        for _ in range(10):
            sandbox.expect(image, job(image).limits)

        async def ready() -> bool:
            return len(await own_containers(sandbox.engine)) == 2 and not sandbox._tasks

        await eventually(ready)
        before = set(await own_containers(sandbox.engine))
        first = await sandbox.run(job(image, "touch ~/mine mine; ls ~"))
        second = await sandbox.run(job(image, "ls ~; ls"))
        assert (first.stdout, second.stdout) == ("mine\n", "a.txt\n")
        assert await own_containers(sandbox.engine) == []
        assert len(before) == 2


async def test_containers_made_ahead_fit_only_their_image_and_limits(image: str) -> None:
    async with await DockerSandbox.open(run_id="kinds", slots=1) as sandbox:
        small, large = job(image, "true", processes=50), job(image, "true", processes=60)
        sandbox.expect(image, small.limits)
        await sandbox.fit(image)
        await sandbox.run(large)

        async def kept() -> bool:
            return [each.kind.limits for each in sandbox._ahead] == [small.limits]

        await eventually(kept)


async def test_a_container_made_ahead_that_idles_gives_way(image: str) -> None:
    now = 0.0

    async def check() -> None:
        nonlocal now
        engine = await Engine.open()
        async with DockerSandbox(engine, run_id="idle", slots=1, clock=lambda: now) as sandbox:
            old, new = Limits(processes=50), Limits(processes=60)
            sandbox.expect(image, old)

            async def made(limits: Limits) -> bool:
                return [each.kind.limits for each in sandbox._ahead] == [limits]

            await eventually(lambda: made(old))
            sandbox.expect(image, new)
            await asyncio.gather(*sandbox._tasks)
            assert await made(old)
            now = 61.0
            sandbox.expect(image, new)
            await eventually(lambda: made(new))
            assert len(await own_containers(engine)) == 1

    await check()


async def test_a_container_made_ahead_waits_for_its_own_image_as_long_as_it_takes(image: str) -> None:
    now = 0.0

    async def check() -> None:
        nonlocal now
        engine = await Engine.open()
        async with DockerSandbox(engine, run_id="patient", slots=3, clock=lambda: now) as sandbox:
            mine, other = Limits(processes=50), Limits(processes=60)
            sandbox.expect(image, mine)
            sandbox.expect(image, mine)
            await asyncio.gather(*sandbox._tasks)
            first = {each.made.container for each in sandbox._ahead}
            now = 61.0
            for limits in (
                mine,
                mine,
                other,
            ):  # a third place is free; then all are taken, and one is old enough
                sandbox.expect(image, limits)
                await asyncio.gather(*sandbox._tasks)
                ahead = [(each.made.container in first, each.kind.limits) for each in sandbox._ahead]
                if limits == mine:
                    assert ahead == [(True, mine), (True, mine), (False, mine)]
            assert ahead == [(True, mine), (False, mine), (False, other)]

    await check()


async def test_a_container_made_ahead_that_somebody_pruned_costs_nothing(image: str) -> None:
    async with await DockerSandbox.open(run_id="pruned", slots=1) as sandbox:
        sandbox.expect(image, job(image).limits)

        async def ready() -> bool:
            return bool(sandbox._ahead)

        await eventually(ready)
        await sandbox.engine.remove(sandbox._ahead[0].made.container)
        assert (await sandbox.run(job(image))).exit_code == 0


async def test_an_image_that_is_not_there_spoils_neither_expecting_nor_closing(image: str) -> None:
    async with await DockerSandbox.open(run_id="absent", slots=1) as sandbox:
        sandbox.expect("astra-test/nowhere:1", Limits())
        assert (await sandbox.run(job(image))).exit_code == 0


@pytest.mark.parametrize("seed", range(20))
async def test_a_cancellation_at_any_moment_leaves_nothing(image: str, seed: int) -> None:
    moment = random.Random(seed).uniform(0, 0.45)

    async with await DockerSandbox.open(run_id="cancel", slots=2) as sandbox:
        await sandbox.fit(image)
        sandbox.expect(image, job(image).limits)
        tasks = [asyncio.create_task(sandbox.run(job(image, "sleep 0.1"))) for _ in range(2)]
        await asyncio.sleep(moment)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) or end.exit_code == 0 for end in ends)  # type: ignore[union-attr]
        left = await own_containers(sandbox.engine)
        assert set(left) <= {each.made.container for each in sandbox._ahead}
    async with await Engine.open() as engine:
        assert await own_containers(engine) == []


async def test_a_second_cancellation_during_the_clean_up_leaves_nothing(image: str) -> None:
    async with await DockerSandbox.open(run_id="cancel-twice", slots=1) as sandbox:
        await sandbox.fit(image)
        for pause in (0.0, 0.005, 0.02):
            task = asyncio.create_task(sandbox.run(job(image, "sleep 60")))
            await asyncio.sleep(0.3)
            task.cancel()
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    async with await Engine.open() as engine:
        assert await own_containers(engine) == []


async def test_a_container_killed_from_outside_is_lost_and_not_scored(image: str) -> None:
    async with await DockerSandbox.open(run_id="killed", slots=1) as sandbox:
        await sandbox.fit(image)
        task = asyncio.create_task(sandbox.run(job(image, "sleep 60")))
        (victim,) = await await_commands(sandbox.engine, 1)
        await sandbox.engine.docker.containers.container(victim).kill()
        with pytest.raises(ContainerLost, match=r"killed from outside|ended before"):
            await task


@pytest.mark.first
async def test_a_container_removed_from_outside_is_lost_and_not_scored(image: str) -> None:
    async with await DockerSandbox.open(run_id="removed", slots=1) as sandbox:
        await sandbox.fit(image)
        task = asyncio.create_task(sandbox.run(job(image, "sleep 60")))
        (victim,) = await await_commands(sandbox.engine, 1)
        await sandbox.engine.remove(victim)
        with pytest.raises(ContainerLost):
            await task


async def test_two_sandboxes_do_not_disturb_each_other(image: str) -> None:
    async with (
        await DockerSandbox.open(run_id="one", slots=1) as one,
        await DockerSandbox.open(run_id="two", slots=1) as two,
    ):
        await one.fit(image)
        command = "until [ -e go ]; do sleep 0.1; done; echo one"
        mine = asyncio.create_task(one.run(job(image, command)))
        (container,) = await await_commands(one.engine, 1)
        await sweep(two.engine, "two")
        assert (await one.engine.inspect(container))["State"]["Running"]
        assert (await two.run(job(image, "echo two"))).stdout == "two\n"
        await two.close()
        await one.engine.upload(container, "/", tar({"projects/challenge/go": b""}))
        assert (await mine).stdout == "one\n"


async def test_a_slow_engine_makes_no_command_that_ended_in_time_too_late(image: str) -> None:
    """Every answer of the engine comes up to three seconds late; the command has one and needs nothing."""

    with SlowEngine(0.0) as between:
        async with await DockerSandbox.open(run_id="late", slots=3, docker_host=between.host) as sandbox:
            await sandbox.fit(image)
            between.longest_s = 3.0
            jobs = [sandbox.run(job(image, "exit 3", timeout_s=1.0)) for _ in range(3)]
            ends = await asyncio.gather(*jobs)
            between.longest_s = 0.0
    assert [(end.timed_out, end.exit_code) for end in ends] == [(False, 3)] * 3


# --- sweeping: every program that opens a sandbox sweeps, so the one that does it here may be another ---

_OTHER_RUN = """
import asyncio, os, signal, sys
sys.path[:0] = {places!r}
from sandbox_jobs import tar
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.sweep import RUN_LABEL
from astra_async.types import Job, Limits

async def main():
    sandbox = await DockerSandbox.open(run_id={run_id!r}, slots=2)
    job = Job(image={image!r}, archive=tar({{}}), command="echo up; sleep 300")
    running = asyncio.create_task(sandbox.run(job))
    sandbox.expect({image!r}, Limits(timeout_s=5.0))
    states = []
    while sorted(states) != ["created", "running"]:
        await asyncio.sleep(0.05)
        states = [each["State"] for each in await sandbox.engine.containers(f"{{RUN_LABEL}}={run_id}")]
    print("ready", flush=True)
    {end}

asyncio.run(main())
"""


def started_run(image: str, run_id: str, tests: Path, end: str) -> subprocess.Popen[str]:
    """A program whose run has one container that runs and one that is made ahead."""
    code = _OTHER_RUN.format(places=[str(tests), str(tests.parent)], run_id=run_id, image=image, end=end)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdout.close()
    return process


async def of_run(run_id: str) -> int:
    async with await Engine.open() as engine:
        return len(await engine.containers(f"{RUN_LABEL}={run_id}"))


@pytest.mark.first
async def test_what_a_killed_run_left_is_swept_and_a_living_run_is_spared(
    image: str, request: pytest.FixtureRequest
) -> None:
    async def swept(run_id: str) -> None:
        async def gone() -> bool:
            return await of_run(run_id) == 0

        async with await Engine.open() as engine:
            await sweep(engine, "another run")
        await eventually(gone)

    tests = request.path.parent
    alive = started_run(image, "alive", tests, "await asyncio.sleep(300)")
    try:
        dead = started_run(image, "dead", tests, "os.kill(os.getpid(), signal.SIGKILL)")
        assert dead.wait() == -9
        (await swept("dead"))
        assert (await of_run("alive")) == 2
    finally:
        alive.kill()
        alive.wait()
    await swept("alive")


async def test_what_runs_in_a_killed_programs_containers_ends_with_it(
    image: str, request: pytest.FixtureRequest
) -> None:
    async def ended() -> bool:
        async with await Engine.open() as engine:
            found = await engine.containers(f"{RUN_LABEL}=orphaned")
            return "running" not in {each["State"] for each in found}

    async def swept() -> None:
        async with await Engine.open() as engine:
            await sweep(engine, "orphaned")

    program = started_run(image, "orphaned", request.path.parent, "await asyncio.sleep(300)")
    try:
        assert not (await ended())
    finally:
        program.kill()
        program.wait()
    await eventually(ended)
    await swept()


def named(run: str, of: str) -> str:
    """A name for a container of a run and an owner."""
    return container_name(run).replace(owner(), of)


@pytest.mark.parametrize(
    ("name", "of_this_run", "swept"),
    [
        ("0123456789abcdef.1.1", False, False),
        ("0123456789abcdef.1.1", True, True),
        (owner(), False, False),
        (owner(), True, False),
        (f"{owner()}1", False, True),  # its pid is in use again, by a process that started later
    ],
    ids=["before a reboot", "before a reboot, this run", "alive", "alive, this run", "pid again"],
)
async def test_only_an_owner_known_to_be_dead_loses_its_containers(
    image: str,
    name: str,
    of_this_run: bool,  # noqa: FBT001 - parametrised
    swept: bool,  # noqa: FBT001 - parametrised
) -> None:
    run = "mine" if of_this_run else "theirs"
    async with await Engine.open() as engine:
        container = await engine.create({"Image": image, "Cmd": ["true"]}, named(run, name))
        try:

            async def gone() -> bool:
                return container not in {each["Id"] for each in await engine.containers()}

            await sweep(engine, "mine")
            if swept:
                await eventually(gone)
            assert await gone() == swept
        finally:
            await engine.remove(container)


@pytest.mark.first
async def test_a_dead_runs_container_that_cannot_be_removed_holds_up_no_other_run(image: str) -> None:
    async with await Engine.open() as engine:
        config = {"Image": image, "Cmd": ["true"]}
        container = await engine.create(config, named("stuck", f"{owner()}1"))
        try:
            with SlowEngine(0.0) as between:
                between.unanswered = b"DELETE"
                async with asyncio.timeout(55):  # a removal may take a minute
                    sandbox = await DockerSandbox.open(run_id="next", slots=1, docker_host=between.host)
                between.unanswered = None
                async with sandbox:
                    assert (await sandbox.run(job(image, "echo on"))).stdout == "on\n"
        finally:
            await engine.remove(container)


# --- engines ----------------------------------------------------------------------------------------


async def test_no_engine_at_the_socket_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match=r"No Docker Engine answers.*scripts/engine"):
        (await DockerSandbox.open(run_id="x", slots=1, docker_host=f"unix://{tmp_path}/no.sock"))


@pytest.mark.parametrize("address", ["nonsense", "carrier://pigeon"])
async def test_a_docker_host_that_is_no_address_is_named(address: str) -> None:
    with pytest.raises(EngineUnavailable, match=f"{address} is no address"):
        (await DockerSandbox.open(run_id="x", slots=1, docker_host=address))


@pytest.mark.first
async def test_an_engine_that_hangs_does_not_hang_us(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client gives up
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_unix_server(listen, tmp_path / "s"):
        with pytest.raises(EngineUnavailable, match="took too long to answer"):
            await Engine.open(f"unix://{tmp_path}/s", answers_within_s=0.1)
        await gone.wait()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nbusy",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{nope",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
async def test_something_else_behind_the_socket_is_no_engine(tmp_path: Path, answer: bytes) -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_unix_server(speak, tmp_path / "s"):
        with pytest.raises(EngineUnavailable):
            await Engine.open(f"unix://{tmp_path}/s", answers_within_s=5.0)


async def test_name_and_labels_say_whose_a_container_is(image: str) -> None:
    async with await DockerSandbox.open(run_id="labelled", slots=1) as sandbox:
        sandbox.expect(image, Limits())
        await eventually(lambda: asyncio.sleep(0, bool(sandbox._ahead)))
        found = (await sandbox.engine.containers(f"{RUN_LABEL}=labelled"))[0]
        assert found["Labels"][OWNER_LABEL] == owner()
        assert claim(found) == ("labelled", owner())

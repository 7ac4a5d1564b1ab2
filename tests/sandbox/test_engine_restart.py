"""What a restart of the engine in mid-run does, on an engine of the tests' own."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import await_commands, own_containers, tar

from astra_async.errors import ContainerLost, EngineUnavailable
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.types import Execution, Job, Limits
from private_engine import needs_own_engine, private_engine
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from private_engine import PrivateEngine

pytestmark = [pytest.mark.docker, needs_own_engine]
IMAGE = "restart-test:1"


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateEngine]:
    with private_engine(IMAGE, ("bash", "sleep", "rm", "mkdir")) as engine:
        yield engine


def job(command: str) -> Job:
    return Job(image=IMAGE, archive=tar({"a": b"a"}), command=command, limits=Limits(timeout_s=600.0))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_restart_in_mid_run_loses_the_container_and_never_scores_it(
    private: PrivateEngine, how: signal.Signals
) -> None:
    async with await DockerSandbox.open(run_id="r", slots=3, docker_host=private.host) as sandbox:
        before = await sandbox.run(job("exit 3"))
        assert before.exit_code == 3
        jobs = [asyncio.create_task(sandbox.run(job("sleep 50"))) for _ in range(2)]
        assert len(await await_commands(sandbox.engine, 2)) == sandbox.running == 2
        await asyncio.to_thread(private.stop, how)
        ends = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(end) for end in ends] == [ContainerLost, ContainerLost]
        # A job that comes while the engine is away waits for it.
        late = asyncio.create_task(sandbox.run(job("echo back; exit 4")))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(private.start)
        done = await late
        assert isinstance(done, Execution)
        assert (done.exit_code, done.stdout) == (4, "back\n")
    async with await Engine.open(private.host) as engine:
        assert await own_containers(engine) == []


@pytest.mark.first
async def test_a_restart_at_any_moment_gives_a_true_result_or_an_error(private: PrivateEngine) -> None:
    async with await DockerSandbox.open(run_id="r2", slots=6, docker_host=private.host) as sandbox:
        await sandbox.run(job("true"))
        jobs = []
        for number in range(6):
            jobs.append(asyncio.create_task(sandbox.run(job(f"sleep 0.{number}; exit 7"))))
            await asyncio.sleep(0.1)
        await asyncio.to_thread(private.stop, signal.SIGKILL)
        await asyncio.to_thread(private.start)
        await asyncio.to_thread(private.await_answer)
        for end in await asyncio.gather(*jobs, return_exceptions=True):
            assert isinstance(end, ContainerLost) or (isinstance(end, Execution) and end.exit_code == 7)
    async with await Engine.open(private.host) as engine:
        assert await own_containers(engine) == []


def test_an_engine_that_stays_away_is_named_after_a_while(private: PrivateEngine) -> None:
    async def check() -> None:
        engine = await Engine.open(private.host)
        async with DockerSandbox(engine, run_id="r3", slots=1, patience_s=1.0) as sandbox:
            await sandbox.run(job("true"))
            await asyncio.to_thread(private.stop)
            with pytest.raises(EngineUnavailable, match="No Docker Engine answers"):
                await sandbox.run(job("true"))

    asyncio.run(check())
    private.start()
    private.await_answer()


@pytest.mark.first
def test_an_engine_that_is_away_is_not_waited_for_once_the_run_is_stopped(private: PrivateEngine) -> None:
    async def check() -> None:
        engine = await Engine.open(private.host)
        async with DockerSandbox(engine, run_id="r4", slots=1, patience_s=600.0) as sandbox:
            await sandbox.run(job("true"))
            await asyncio.to_thread(private.stop)
            waiting = asyncio.create_task(sandbox.run(job("true")))
            await asyncio.sleep(2)
            assert not waiting.done()
            sandbox.stop_waiting()
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(EngineUnavailable, match="No Docker Engine answers"):
                    await waiting

    asyncio.run(check())
    private.start()
    private.await_answer()

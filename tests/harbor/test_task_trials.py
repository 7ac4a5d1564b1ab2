from __future__ import annotations

import asyncio
import gzip
import secrets
import tarfile
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from astra_async.agents.session_log import keep_session_log
from astra_async.errors import ImageError, SandboxError
from astra_async.harbor.trial import TaskPlaces
from astra_async.harbor.verified import read_verified
from astra_async.images.base_image import ensure_base
from astra_async.overlay import path_policy
from astra_async.prepare import Prepared
from astra_async.testing.sandbox.containers import Containers
from astra_async.types import AgentSettings, Problem, Project
from astra_async.types.task_work import NOP, ORACLE, Artifact, Collecting, Health, TaskProfile, TaskWork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from astra_async.harbor.verified import Verified

pytestmark = [pytest.mark.docker, pytest.mark.seconds(10)]

ROOT = TaskProfile(rights=True, workdir="/srv", memory_bytes=256 * 1024**2)
REWARD = "/logs/verifier/reward.txt"
CTRF = '{"results":{"tests":[{"name":"t","status":"failed"}]}}'
OTHER = AgentSettings(name="other", command="true")


def script(*lines: str) -> tuple[bytes, int]:
    return "\n".join(["#!/bin/bash", *lines, ""]).encode(), 0o755


def a_task(*test: str, solution: tuple[str, ...] = (), **fields: Any) -> Prepared:
    work = TaskWork(
        sha256="0" * 64,
        agent=fields.pop("agent", ROOT),
        tests={"/tests/test.sh": script(*test)},
        solution={"/solution/solve.sh": script(*solution)} if solution else {},
        **{"verifier_s": 30.0, "agent_s": 30.0, **fields},
    )
    problem = Problem(id="t", statement="Do it.", project="t", task="t")
    empty = Project(files=(), sha256="")
    return Prepared(
        problem=problem, project=empty, policy=path_policy(problem, empty), prompts={}, command="", task=work
    )


@asynccontextmanager
async def opened_places() -> AsyncIterator[tuple[TaskPlaces, str]]:
    run_id = f"task-test-{secrets.token_hex(4)}"
    async with Containers(await Containers.swept(run_id), run_id=run_id, spare=0) as containers:
        yield TaskPlaces(containers), await ensure_base(containers.engine, progress=print)


async def left_by(command: str, task: Prepared) -> Verified:
    """The verifier's outcome after an agent has run a command."""
    async with opened_places() as (places, image), places.open(image, task, OTHER) as place:
        await place.run(command, {})
        return read_verified((await place.left()).text)


@pytest.mark.first
async def test_the_oracle_gets_the_reward_and_an_agent_that_does_nothing_does_not() -> None:
    task = a_task(
        f'[ "$(cat /srv/file)" = done ] && echo 1 > {REWARD} || echo 0.25 > {REWARD}',
        solution=("echo done > /srv/file",),
    )
    async with opened_places() as (places, image):
        scores = [(await places.tried(image, task, agent)).score for agent in (ORACLE, NOP)]
    assert scores == [1, 0.25]


async def test_a_service_that_an_agent_started_runs_while_the_verifier_looks() -> None:
    """Only the agent's own process ends."""
    task = a_task(f"rm -f /srv/beat; sleep 1; [ -e /srv/beat ] && echo 1 > {REWARD} || echo 0 > {REWARD}")
    service = "(while sleep 0.1; do : > /srv/beat; done) >/dev/null 2>&1 &"
    assert (await left_by(service, task)).score == 1


async def test_reading_the_session_log_leaves_the_services_of_an_agent_alone(tmp_path: Path) -> None:
    task = a_task(f"rm -f /srv/beat; sleep 1; [ -e /srv/beat ] && echo 1 > {REWARD} || echo 0 > {REWARD}")
    service = "(while sleep 0.1; do : > /srv/beat; done) >/dev/null 2>&1 & echo done >~/session.log"
    path = tmp_path / "agent-logs" / "p" / "m-a-0.txt.gz"
    async with opened_places() as (places, image), places.open(image, task, OTHER) as place:
        await place.run(service, {})
        await keep_session_log(path, place, ("session.log",), "said")
        assert read_verified((await place.left()).text).score == 1
    assert "done" in gzip.decompress(path.read_bytes()).decode()


async def test_an_agent_at_its_time_limit_is_ended_with_its_process_group() -> None:
    task = a_task(
        "sleep 1  # until the first process has collected what died",
        "for each in /proc/[0-9]*/comm; do read -r name <$each; [ $name != sleep ] || found=yes; done",
        f'[ "$found" ] && echo 0 > {REWARD} || echo 1 > {REWARD}',
    )
    async with opened_places() as (places, image), places.open(image, task, OTHER) as place:
        working = asyncio.create_task(place.run("sleep 1000 | sleep 1000", {}))
        while "sleep" not in (await place.shell("cat /proc/[0-9]*/comm", 10.0)).output:
            await asyncio.sleep(0.1)
        working.cancel()
        assert read_verified((await place.left()).text).score == 1


async def test_a_reward_that_the_agent_wrote_itself_is_removed() -> None:
    """The agent may also have put links where the verifier's folders will be."""
    forged = f"rm -rf /logs; mkdir -p /evil/verifier; ln -s /evil /logs; echo 1 > {REWARD}"
    forged += "; ln -s /evil /tests"
    assert (await left_by(forged, a_task(f"[ -e {REWARD} ] || echo 0.5 > {REWARD}"))).score == 0.5


async def test_a_verifier_without_a_reward_runs_twice_and_leaves_the_sample_missing() -> None:
    with pytest.raises(SandboxError, match=r"no reward: neither reward\.json nor reward\.txt"):
        await left_by(
            "true", a_task("echo again >> /srv/runs", f"[ $(wc -l </srv/runs) -lt 3 ] || echo 1 > {REWARD}")
        )


async def test_a_verifier_that_works_the_second_time_gives_its_reward() -> None:
    task = a_task(f"[ -e /srv/once ] && echo 1 > {REWARD}; : > /srv/once")
    assert (await left_by("true", task)).score == 1


async def test_a_verifier_that_takes_too_long_gives_no_reward() -> None:
    with pytest.raises(SandboxError, match=r"stopped at its limit of time after 1 s; it printed: a$"):
        await left_by("true", a_task(f"echo 1 > {REWARD}; echo a; sleep 1000", verifier_s=1.0))


async def test_a_missing_reward_is_told_with_the_exit_code_and_the_output() -> None:
    with pytest.raises(SandboxError, match=r"was written; exit code 3; it printed: no such tool$"):
        await left_by("true", a_task("echo no such tool >&2; exit 3"))


async def test_a_separate_verifier_finds_the_artifacts_and_nothing_else() -> None:
    task = a_task(
        f'[ "$(cat /srv/made/a)" = a ] && [ ! -e /srv/made/b ] && [ ! -e /srv/other ] && echo 1 > {REWARD}',
        verifier=ROOT,
        artifacts=(
            Artifact(source="/srv/made", exclude=("b",)),
            Artifact(source="/srv/absent"),
        ),
    )
    assert (await left_by("mkdir made; echo a > made/a; : > made/b; : > other", task)).score == 1


async def test_hard_links_in_artifacts_lead_to_files() -> None:
    """The first name of a file may be left out."""
    task = a_task(
        f"cd /srv/made && [ b/two -ef b/three ] && [ $(<c) = x ] && [ d -ef e ] && echo 1 > {REWARD}",
        verifier=ROOT,
        artifacts=(Artifact(source="/srv/made", exclude=("a", "a/*")),),
    )
    command = "mkdir -p made/{a,b}; cd made; echo x >a/one; for to in b/two b/three c; do ln a/one $to; done"
    assert (await left_by(f"{command}; echo y >d; ln d e", task)).score == 1


async def test_a_reward_may_be_a_link_to_a_file_beside_it() -> None:
    task = a_task("cd /logs/verifier; echo 1 >a; ln a b; ln -s ../verifier/b reward.txt")
    assert (await left_by("true", task)).score == 1
    task = a_task("echo 1 >/srv/a; ln -s /srv/a /logs/verifier/reward.txt")
    with pytest.raises(SandboxError, match="neither"):
        await left_by("true", task)


async def test_snapshots_are_taken_before_artifacts_are_copied_and_may_fail() -> None:
    task = a_task(
        f'[ "$(cat /srv/out/state)" = a ] && echo 1 > {REWARD}',
        verifier=ROOT,
        artifacts=(Artifact(source="/srv/out"),),
        collecting=(Collecting(command="false"), Collecting(command="mkdir out; cp state out")),
    )
    assert (await left_by("echo a > state", task)).score == 1


@pytest.mark.parametrize("verifier", [None, ROOT])
async def test_kept_artifacts_are_those_of_the_task_and_all_logs(
    tmp_path: Path, verifier: TaskProfile | None
) -> None:
    artifacts = (Artifact(source="/srv/made"), Artifact(source="/logs/artifacts"))
    task = a_task(f"echo 1 > {REWARD}", artifacts=artifacts, verifier=verifier)
    path = tmp_path / "artifacts" / "p" / "m-a-0.tar.gz"
    async with opened_places() as (places, image), places.open(image, task, OTHER) as place:
        await place.run("echo a > made; : > other; echo b > /logs/agent/note; : > /logs/artifacts/more", {})
        await place.left()
        await place.keep(path)
    with tarfile.open(path) as tar:
        files = sorted(each.name for each in tar if each.isreg())
    verifiers = ["logs/verifier/reward.txt", "logs/verifier/test-stdout.txt"]
    assert files == ["logs/agent/note", "logs/artifacts/more", *verifiers, "srv/made"]


async def test_too_large_artifacts_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("astra_async.harbor.trial._KEPT_BYTES", 4096)
    path = tmp_path / "artifacts" / "p" / "m-a-0.tar.gz"
    async with opened_places() as (places, image), places.open(image, a_task("true"), OTHER) as place:
        await place.run("head -c 300000 /dev/zero > /logs/agent/note", {})
        await place.keep(path)
    assert not path.exists()
    assert "/logs cannot be copied" in caplog.text


async def test_a_0_without_a_report_counts_if_the_verifier_writes_one_elsewhere() -> None:
    """An agent that has broken the verifier gets 0: after an agent that does nothing it writes its report."""
    task = a_task(
        f"echo 0 > {REWARD}; [ -e /srv/broken ] || echo '{CTRF}' > /logs/verifier/ctrf.json",
        solution=("true",),
    )
    assert (await left_by(": > /srv/broken", task)).score == 0


@pytest.mark.parametrize("fields", [{"solution": ("true",)}, {}, {"reward_range": (-1.0, 1.0)}])
async def test_a_0_without_a_report_is_missing_if_nothing_confirms_it(fields: dict[str, Any]) -> None:
    """The verifier may be without a download that it needs. The oracle fails too, or there is no solution."""
    with pytest.raises(SandboxError, match="a download may have failed"):
        await left_by("true", a_task(f"echo 0 > {REWARD}", **fields))


async def test_a_verifier_that_gives_0_without_a_report_runs_once_more() -> None:
    report = f"echo '{CTRF}' > /logs/verifier/ctrf.json"
    task = a_task(f"[ -e /srv/once ] && echo 1 > {REWARD} && {report} || echo 0 > {REWARD}; : > /srv/once")
    assert (await left_by("true", task)).score == 1


@pytest.mark.parametrize("untouched", ["echo 0", "exit 1"])
async def test_a_0_counts_if_the_verifier_never_writes_a_report(untouched: str) -> None:
    """The oracle shows that, also if the verifier gives no reward after an agent that does nothing."""
    task = a_task(
        f"reward=$(cat /srv/done 2>/dev/null || {untouched}) || exit 1; echo $reward > {REWARD}",
        solution=("echo 1 > /srv/done",),
    )
    assert (await left_by("echo 0 > /srv/done", task)).score == 0


async def test_the_oracle_is_refused_without_a_solution() -> None:
    async with opened_places() as (places, image):
        with pytest.raises(SandboxError, match=r"no solution/solve\.sh"):
            await places.tried(image, a_task("true"), ORACLE)


@pytest.mark.first
async def test_without_consent_a_task_has_no_root_no_rights_and_no_network() -> None:
    plain = replace(ROOT, rights=False)
    async with opened_places() as (places, image):
        with pytest.raises(ImageError, match="--allow-root"):
            await places.tried(image, a_task("true", agent=plain), NOP)
        user = replace(plain, user="1000", workdir="/tmp")
        async with places.open(image, a_task("true", agent=user, verifier_user="1000"), OTHER) as place:
            seen = await place.shell("id -u; grep CapEff /proc/self/status; grep -c : /proc/net/dev", 30.0)
            about = await place.box.engine.inspect(place.container)
    assert seen.output.split() == ["1000", "CapEff:", "0000000000000000", "1"]
    host = about["HostConfig"]
    assert (host["NetworkMode"], host["CapDrop"], host["Privileged"]) == ("none", ["ALL"], False)
    assert not host["Binds"]


async def test_with_consent_a_container_is_not_privileged_and_has_the_usual_rights() -> None:
    async with opened_places() as (places, image), places.open(image, a_task("true"), OTHER) as place:
        about = await place.box.engine.inspect(place.container)
        seen = await place.shell("id -u; grep CapEff /proc/self/status", 30.0)
    assert not about["HostConfig"]["Privileged"]
    assert about["HostConfig"]["Memory"] == ROOT.memory_bytes
    assert seen.output.split() == ["0", "CapEff:", "00000000a80425fb"]


async def test_the_network_is_there_for_the_agent_and_gone_for_the_verifier() -> None:
    task = a_task(
        f"grep -q eth0 /proc/net/dev && echo 0.5 > {REWARD} || echo 1 > {REWARD}",
        agent=replace(ROOT, network=True, connected=True),
    )
    async with opened_places() as (places, image), places.open(image, task, OTHER) as place:
        assert "eth0" in (await place.shell("cat /proc/net/dev", 30.0)).output
        assert read_verified((await place.left()).text).score == 1


async def test_a_health_check_is_waited_for_and_may_fail() -> None:
    health = Health(command="[ -e /srv/x ] || { : > /srv/x; false; }", tries=2, interval_s=0.1)
    async with opened_places() as (places, image):
        async with places.open(image, a_task("true", health=health), OTHER) as place:
            assert (await place.shell("ls /srv/x", 30.0)).exit_code == 0
        never = Health(command="echo sick; false", tries=2, interval_s=0.1)
        with pytest.raises(SandboxError, match="health check fails: sick"):
            async with places.open(image, a_task("true", health=never), OTHER):
                pass

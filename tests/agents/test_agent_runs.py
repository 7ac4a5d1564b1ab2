"""Agents at work in real containers, against stand-ins for the gateway: how they end, and what is left."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from agent_stands import Calls, Gateway, problem

from astra_async.agents.agent_runs import LIMITS, AgentRuns, most_slots
from astra_async.errors import ContainerLost, SandboxError, TransientError
from astra_async.images.base_image import ensure_base
from astra_async.testing.sandbox.sweep import claim, owner
from astra_async.types import SampleKey
from astra_async.types.agents import AgentLimits, AgentSettings
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from pathlib import Path

    from astra_async.agents.workplace import Ran
    from astra_async.types import Completion
    from astra_async.types.agents import AgentEnd

docker = pytest.mark.docker
ASK = (
    "ask() { exec 3<>/dev/tcp/127.0.0.1/24601 || return;"
    " printf 'POST /v1/chat/completions HTTP/1.1\\r\\nAuthorization: Bearer %s\\r\\n\\r\\n' \"$TOKEN\" >&3;"
    " cat <&3 >/dev/null; exec 3>&-; }; "
)
FILES = {
    "src/app.js": b"old\n",
    "src/same.js": b"same\n",
    "tests/visible.js": b"test\n",
    "tests/hidden.js": b"secret\n",
    "hackerrank.yml": b"version: 1\n",
    ".git/config": b"x\n",
    "logo.png": b"\x89PNG\0",
}
SMALL = replace(LIMITS, memory_bytes=256 * 1024**2, disk_bytes=64 * 1024**2)


def agent(command: str, **rest: Any) -> AgentSettings:
    return AgentSettings(
        name="mine",
        version="7",
        speaks="chat",
        command=ASK + command,
        variables={"TOKEN": "{token}", "MODEL": "{model}", "BASE": "{base_url}"},
        **rest,
    )


@asynccontextmanager
async def at_work(
    settings: AgentSettings,
    tmp_path: Path,
    *,
    minutes: float = 5.0,
    think_s: float = 0.0,
    shell: Any = None,
) -> AsyncIterator[tuple[AgentRuns, Callable[[Calls], Coroutine[Any, Any, Completion]]]]:
    """Runs of one agent, and a function that asks it for a sample."""
    gateway = Gateway(tmp_path, think_s=think_s)
    name = f"agents-{secrets.token_hex(4)}"
    async with (
        asyncio.timeout(PATIENCE_S),
        await gateway.start(),
        await AgentRuns.open(
            name,
            {settings.name: settings},
            AgentLimits(minutes=minutes),
            SMALL,
            gateway,
            slots=2,
            shell=shell,
        ) as runs,
    ):
        image = await ensure_base(runs._containers.engine, progress=print)
        prepared = await problem(image, FILES, hidden=("tests/hidden.js",))
        key = SampleKey("m", settings.name, "p", 0)

        async def ask(calls: Calls) -> Completion:
            return await runs.ask(key, prepared, image, calls, "Do it: 'now' \"$HOME\" `x`\n")

        yield runs, ask
        assert gateway.admitted == {}
        assert await containers_of(runs) == []


async def containers_of(runs: AgentRuns) -> list[str]:
    return [
        str(each["Id"])
        for each in await runs._containers.engine.containers()
        if (whose := claim(each)) and whose.owner == owner() and whose.run == runs._containers._run_id
    ]


def left(done: Completion) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.text)
    return found


@docker
def test_an_agent_finds_what_the_problem_shows_and_what_it_leaves_is_its_answer(tmp_path: Path) -> None:
    settings = agent(
        "ask; find . -type f | sort >found; printf %s {prompt} >asked; cmp {prompt_file} asked >>odd;"
        ' cp ~/.mine/settings.json seen; echo "$MODEL $BASE" >>seen; pwd >>seen; id -u >>seen;'
        " echo new >src/app.js; rm tests/visible.js; mkdir node_modules; echo x >node_modules/x;"
        " ln -s /etc/passwd link; (sleep 1000 &); echo done",
        files={".mine/settings.json": '{"model": "{model}", "key": "{token}", "url": "{base_url}/v1"}\n'},
    )

    async def check() -> None:
        calls = Calls("to\"k'en")
        async with at_work(settings, tmp_path) as (_, ask):
            done = await ask(calls)
        files = left(done)["files"]
        assert files["found"].split() == [
            "./found",
            "./logo.png",
            "./src/app.js",
            "./src/same.js",
            "./tests/visible.js",
        ]
        assert files["asked"] == "Do it: 'now' \"$HOME\" `x`"
        assert files["seen"].splitlines() == [
            '{"model": "m-1", "key": "to\\"k\'en", "url": "http://127.0.0.1:24601/v1"}',
            "m-1 http://127.0.0.1:24601",
            "/projects/challenge",
            "1000",
        ]
        assert files["src/app.js"] == "new\n"
        assert left(done)["deleted"] == ["tests/visible.js"]
        work = done.agent
        assert work
        assert (work.agent, work.version, work.end, work.exit_code, work.steps) == ("mine", "7", "done", 0, 1)
        assert work.left_out == ("a symbolic link: link", "node_modules/: node_modules/x")
        assert (done.attempts, done.cost_usd) == (1, 0.25)

    asyncio.run(check())


@docker
def test_the_models_time_is_not_the_agents_and_at_its_own_limit_what_lies_there_counts(
    tmp_path: Path,
) -> None:
    settings = agent("ask; echo half >half; while :; do echo more >>more; done")

    async def check() -> None:
        calls = Calls()
        async with at_work(settings, tmp_path, minutes=2 / 60, think_s=4.0) as (_, ask):
            done = await ask(calls)
        assert done.agent
        assert done.agent.end == "time"
        assert done.agent.own_s >= 2
        assert done.agent.model_s >= 4
        assert left(done)["files"]["half"] == "half\n"

    asyncio.run(check())


@docker
@pytest.mark.parametrize("end", ["steps", "cost"])
def test_a_limit_of_its_calls_ends_the_agent_wherever_it_is(tmp_path: Path, end: AgentEnd) -> None:
    settings = agent("trap '' TERM HUP; echo first >first; ask; sleep 1000")

    async def check() -> None:
        calls = Calls()
        async with at_work(settings, tmp_path) as (_, ask):
            asking = asyncio.create_task(ask(calls))
            await calls.asked.wait()
            calls.end = end
            calls.ended.set()
            done = await asking
        assert done.agent
        assert done.agent.end == end
        assert left(done)["files"] == {"first": "first\n"}

    asyncio.run(check())


@docker
def test_an_agent_that_fails_is_graded_and_one_that_never_asked_is_trouble(tmp_path: Path) -> None:
    async def check() -> None:
        async with at_work(agent("ask; echo it >it; echo why; exit 7"), tmp_path) as (_, ask):
            done = await ask(Calls())
        assert done.agent
        assert (done.agent.end, done.agent.exit_code) == ("crashed", 7)
        assert done.agent.said == "why"
        assert left(done)["files"] == {"it": "it\n"}
        async with at_work(agent("echo no such option >&2; exit 2"), tmp_path) as (_, ask):
            with pytest.raises(SandboxError, match=r"never called its model.*exit code 2.*no such option"):
                await ask(Calls())

    asyncio.run(check())


@docker
def test_trouble_of_the_model_is_raised_and_a_stop_cuts_the_agent(tmp_path: Path) -> None:
    settings = agent("ask; sleep 1000")

    async def check() -> None:
        async with at_work(settings, tmp_path) as (runs, ask):
            calls = Calls()
            asking = asyncio.create_task(ask(calls))
            await calls.asked.wait()
            calls.trouble = TransientError("no answer")
            calls.ended.set()
            with pytest.raises(TransientError, match="no answer"):
                await asking
            asking = asyncio.create_task(ask(other := Calls()))
            await other.asked.wait()
            runs.stop()
            with pytest.raises(SandboxError, match="being stopped"):
                await asking

    asyncio.run(check())


@docker
def test_a_cancelled_sample_leaves_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        async with at_work(agent("ask; sleep 1000"), tmp_path) as (runs, ask):
            asking = asyncio.create_task(ask(calls := Calls()))
            await calls.asked.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await containers_of(runs) == []

    asyncio.run(check())


@docker
@pytest.mark.parametrize(
    ("command", "ends", "files"),
    [
        ("rm -rf /projects/challenge; ask", {"done", "crashed"}, {}),
        ("ask; head -c 1G /dev/zero >big; echo more >more", {"done", "crashed"}, None),
        ("ask; f() { f | f & }; f; sleep 2; echo on", {"done", "crashed"}, {}),
        ("ask; head -c 100M /dev/zero", {"done"}, {}),
        ("ask; mkfifo pipe; exec cat pipe", {"time"}, {}),
        ("ask; kill -9 -1; kill -9 1", {"crashed"}, {}),
        ("ask; perl -e '$x = \"x\" x 600_000_000'; echo it >it", {"done"}, {"it": "it\n"}),
        ("ask; i=0; while mkdir a 2>/dev/null && cd a; do :; done; echo deep >deep", {"done", "time"}, None),
    ],
)
def test_whatever_an_agent_does_there_is_an_answer_and_nothing_is_left(
    tmp_path: Path, command: str, ends: set[str], files: dict[str, str] | None
) -> None:
    async def check() -> None:
        async with at_work(agent(command), tmp_path, minutes=15 / 60) as (_, ask):
            done = await ask(Calls())
        assert done.agent
        assert done.agent.end in ends
        assert files is None or left(done)["files"] == files

    asyncio.run(check())


@docker
def test_a_container_that_is_killed_from_outside_is_trouble(tmp_path: Path) -> None:
    async def check() -> None:
        async with at_work(agent("ask; sleep 1000"), tmp_path) as (runs, ask):
            asking = asyncio.create_task(ask(calls := Calls()))
            await calls.asked.wait()
            for each in await containers_of(runs):
                await runs._containers.engine.remove(each)
            with pytest.raises(ContainerLost):
                await asking

    asyncio.run(check())


@docker
def test_commands_of_an_agent_that_works_from_here(tmp_path: Path) -> None:
    ran: list[Ran] = []

    async def work(prompt: str, calls: Any, run: Callable[[str], Awaitable[Ran]]) -> AgentEnd:
        calls.steps = 2
        commands = (
            "echo out; echo err >&2; echo it >it; exit 3",
            "cat it; pwd; id -u; cat",
            "(while :; do echo on >>on; sleep .1; done) & echo begun",
            "for n in {1..30}; do [ -s on ] && break; sleep .1; done; cat on | head -1",
            "seq 100000",
            "echo " + "x" * 130_000,
            "exit 124",
        )
        ran.extend([await run(command) for command in commands])
        return "done"

    async def check() -> None:
        shell = AgentSettings(name="shell", version="1")
        async with at_work(shell, tmp_path, shell=work) as (_, ask):
            done = await ask(Calls())
        assert [each.exit_code for each in ran] == [3, 0, 0, 0, 0, 126, 124]
        assert not any(each.timed_out for each in ran)
        assert sorted(ran[0].output.split()) == ["err", "out"]
        assert ran[1].output.split() == ["it", "/projects/challenge", "1000"]
        assert ran[2].output == "begun\n"
        assert ran[3].output == "on\n"
        assert ran[4].output.startswith("1\n2\n")
        assert ran[4].output.endswith("99999\n100000\n")
        assert 10_000 < len(ran[4].output) < 10_100
        assert set(left(done)["files"]) == {"it", "on"}

    asyncio.run(check())


@docker
def test_a_command_is_ended_with_its_group_at_its_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astra_async.agents.agent_runs._COMMAND_S", 2.0)
    ran: list[Ran] = []

    async def work(prompt: str, calls: Any, run: Callable[[str], Awaitable[Ran]]) -> AgentEnd:
        calls.steps = 1
        ran.append(await run("trap '' TERM; echo begun; sleep 1000 | sleep 1000"))
        ran.append(await run("for each in /proc/[0-9]*/comm; do cat $each; done 2>/dev/null"))
        return "done"

    async def check() -> None:
        async with at_work(AgentSettings(name="shell", version="1"), tmp_path, shell=work) as (_, ask):
            await ask(Calls())
        assert ran[0].timed_out
        assert ran[0].output.startswith("begun\n")
        assert "sleep" not in ran[1].output

    asyncio.run(check())


def test_slots_are_what_memory_bears() -> None:
    giga = 1024**3
    assert most_slots(2 * giga, machine_bytes=24 * giga, graders_bytes=8 * giga) == 5
    assert most_slots(2 * giga, machine_bytes=4 * giga, graders_bytes=8 * giga) == 1

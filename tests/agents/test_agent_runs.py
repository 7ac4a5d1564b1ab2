"""Agents at work in real containers, by the real gateway to a scripted model: how they end, what is left."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import secrets
import subprocess
import sys
import textwrap
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agent_stands import OneSample, problem
from scripted import KEY, Scripted, answered, calls_of

from astra_async.agents.agent_runs import LIMITS, AgentRuns, Agents, _Fill, most_slots
from astra_async.agents.gateway.gateway_server import Gateway
from astra_async.agents.installing import SHELL
from astra_async.agents.session_log import session_log
from astra_async.agents.workplace import _TIMED
from astra_async.errors import ContainerLost, SandboxError, TransientError
from astra_async.images.base_image import ensure_base
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import claim, owner
from astra_async.types import SampleKey
from astra_async.types.agents import AgentLimits, AgentSettings, ToolCall
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from astra_async.types import Completion, ModelRequest
    from astra_async.types.agents import AgentEnd

docker = pytest.mark.docker
pytestmark = pytest.mark.first
# A client of chat completions in bash alone.
ASK = r"""
ask() {
  local said="{\"model\":\"$MODEL\",\"messages\":[{\"role\":\"user\",\"content\":\"do it\"}]}"
  exec 3<>/dev/tcp/127.0.0.1/24601 || return
  printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n' >&3
  printf 'Authorization: Bearer %s\r\n' "$TOKEN" >&3
  printf 'Content-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' "${#said}" "$said" >&3
  head -1 <&3; cat <&3 >/dev/null
  exec 3>&-
}
"""
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
async def _closing(gateway: Gateway) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await gateway.close()


@asynccontextmanager
async def at_work(
    settings: AgentSettings,
    tmp_path: Path,
    *,
    minutes: float = 5.0,
    image: str = "",
    files: Mapping[str, bytes] = FILES,
) -> AsyncIterator[tuple[AgentRuns, Callable[[OneSample], Coroutine[Any, Any, Completion]]]]:
    """Runs of one agent, and a function that asks it for a sample."""
    gateway = Gateway()
    await gateway.start()
    name = f"agents-{secrets.token_hex(4)}"
    async with (
        _closing(gateway),
        asyncio.timeout(PATIENCE_S),
        await AgentRuns.open(
            name,
            Agents(settings=(settings,), limits=AgentLimits(minutes=minutes), container=SMALL, at_once=2),
            gateway,
        ) as runs,
    ):
        image = image or await ensure_base(runs._containers.engine, progress=print)
        prepared = await problem(image, files, hidden=("tests/hidden.js",))
        key = SampleKey("m", settings.name, "p", 0)

        async def ask(sample: OneSample) -> Completion:
            return await runs.ask(key, prepared, image, sample.calls, "Do it: 'now' \"$HOME\" `x`\n")

        yield runs, ask
        assert gateway._calls == {}
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
async def test_an_agent_finds_what_the_problem_shows_and_what_it_leaves_is_its_answer(tmp_path: Path) -> None:
    settings = agent(
        "ask; find . -type f >~/found; sort ~/found >found; mkdir -p ~/.mine/log/1;"
        " echo 'GET /?api_key=sk-ant-api03-verysecret1 done' >~/.mine/log/1/a.jsonl;"
        " printf %s {prompt} >asked; cp {prompt_file} file;"
        ' cp ~/.mine/settings.json seen; echo "$MODEL $BASE" >>seen; pwd >>seen; id -u >>seen;'
        " echo new >src/app.js; rm tests/visible.js; mkdir node_modules; echo x >node_modules/x;"
        " ln -s /etc/passwd link; (sleep 1000 &); echo done",
        files={".mine/settings.json": '{"model": "{model}", "key": "{token}", "url": "{base_url}/v1"}\n'},
        logs=(".mine/log/**/*.jsonl", "missing/*"),
    )

    sample = OneSample(tmp_path)
    async with at_work(settings, tmp_path) as (_, ask):
        done = await ask(sample)
    files = left(done)["files"]
    assert files["found"].split() == [
        "./logo.png",
        "./src/app.js",
        "./src/same.js",
        "./tests/visible.js",
    ]
    assert files["asked"] == "Do it: 'now' \"$HOME\" `x`"
    assert files["file"] == files["asked"] + "\n"
    assert files["seen"].splitlines() == [
        f'{{"model": "toy", "key": "{sample.calls.token}", "url": "http://127.0.0.1:24601/v1"}}',
        "toy http://127.0.0.1:24601",
        "/projects/challenge",
        "1000",
    ]
    assert files["src/app.js"] == "new\n"
    assert left(done)["deleted"] == ["tests/visible.js"]
    work = done.agent
    assert work
    assert (work.agent, work.version, work.end, work.exit_code, work.steps) == ("mine", "7", "done", 0, 1)
    assert work.left_out == ("node_modules/: node_modules/x", "a symbolic link: link")
    assert (done.attempts, done.cost_usd) == (1, 0.01)
    log = gzip.decompress(session_log(tmp_path, KEY).read_bytes()).decode()
    assert log.startswith("==> output <==\n")
    assert log.endswith("done\n\n==> .mine/log/1/a.jsonl <==\nGET /?api_key=*** done\n")


@docker
@pytest.mark.parametrize(("reason", "end"), [("end_turn", "done"), ("refusal", "crashed")])
async def test_an_agent_of_the_client_protocol_is_ended_after_its_turn(
    tmp_path: Path, reason: str, end: str
) -> None:
    def reply(number: int, result: str) -> str:
        return f"""; read -r line; echo "$line" >>lines; echo '{{"id": {number}, "result": {result}}}'"""

    command = "ask" + reply(0, '{"protocolVersion": 1}') + reply(1, '{"sessionId": "s"}')
    command += reply(2, f'{{"stopReason": "{reason}"}}') + "; sleep 1000"
    async with at_work(agent(command, acp=True), tmp_path) as (_, ask):
        done = await ask(OneSample(tmp_path))
    asked = [json.loads(line) for line in left(done)["files"]["lines"].splitlines()]
    assert [each["method"] for each in asked] == ["initialize", "session/new", "session/prompt"]
    assert asked[1]["params"]["cwd"] == "/projects/challenge"
    assert "Do it: 'now'" in asked[2]["params"]["prompt"][0]["text"]
    assert done.agent
    assert done.agent.end == end


@docker
async def test_the_output_of_an_agent_at_its_time_limit_is_kept(tmp_path: Path) -> None:
    async with at_work(agent("ask; echo words before; sleep 1000"), tmp_path, minutes=0.05) as (_, ask):
        done = await ask(OneSample(tmp_path))
    assert done.agent
    assert done.agent.end == "time"
    assert "words before" in gzip.decompress(session_log(tmp_path, KEY).read_bytes()).decode()


@docker
async def test_the_agents_user_has_a_name_and_other_entries_stay(tmp_path: Path) -> None:
    settings = agent("ask; { whoami; grep -c ^root: /etc/passwd; } >found")
    async with at_work(settings, tmp_path) as (_, ask):
        done = await ask(OneSample(tmp_path))
    assert left(done)["files"]["found"] == "user1000\n1\n"


@docker
async def test_what_the_image_holds_of_hidden_files_and_history_is_gone_before_the_agent_comes(
    tmp_path: Path,
) -> None:
    name = f"holding-{secrets.token_hex(4)}"
    folders = "mkdir -p .git/objects/ab tests && echo old >.git/objects/ab/cd && echo x >.git/HEAD"
    made = f"FROM {(await base())}\nWORKDIR /projects/challenge\nRUN {folders}"
    made += " && echo secret >tests/hidden.js && echo v >hackerrank.yml && echo kept >kept.txt\n"
    subprocess.run(["docker", "build", "-q", "-t", name, "-"], input=made.encode(), check=True)

    async def check() -> None:
        settings = agent("ask; find . -type f -not -name found | sort >found")
        async with at_work(settings, tmp_path, image=name) as (_, ask):
            done = await ask(OneSample(tmp_path))
        shown = {"./kept.txt", "./logo.png", "./src/app.js", "./src/same.js", "./tests/visible.js"}
        assert set(left(done)["files"]["found"].split()) == shown

    try:
        (await check())
    finally:
        subprocess.run(["docker", "rmi", "-f", name], check=True, capture_output=True)


async def base() -> str:
    async with await Engine.open() as engine:
        return await ensure_base(engine, progress=print)


@docker
async def test_the_models_time_is_not_the_agents_and_at_its_own_limit_what_lies_there_counts(
    tmp_path: Path,
) -> None:
    settings = agent("ask; echo half >half; while :; do echo more >>more; done")

    sample = OneSample(tmp_path, think_s=12.0)
    async with at_work(settings, tmp_path, minutes=2 / 60) as (_, ask):
        done = await ask(sample)
    assert done.agent
    assert done.agent.end == "time"
    assert done.agent.own_s >= 2
    assert done.agent.model_s >= 2
    assert left(done)["files"]["half"] == "half\n"


@docker
@pytest.mark.parametrize("end", ["steps", "cost"])
async def test_a_limit_of_its_calls_ends_the_agent_wherever_it_is(tmp_path: Path, end: AgentEnd) -> None:
    settings = agent("trap '' TERM HUP; echo first >first; ask; ask >&2; sleep 1000")
    limits = AgentLimits(steps=1) if end == "steps" else AgentLimits(usd=0.01)

    async with at_work(settings, tmp_path) as (_, ask):
        done = await ask(OneSample(tmp_path, limits=limits))
    assert done.agent
    assert done.agent.end == end
    assert left(done)["files"] == {"first": "first\n"}


@docker
async def test_an_agent_that_fails_is_graded_and_one_that_never_asked_is_trouble(tmp_path: Path) -> None:
    async with at_work(agent("ask; echo it >it; echo why; exit 7"), tmp_path) as (_, ask):
        done = await ask(OneSample(tmp_path))
    assert done.agent
    assert (done.agent.end, done.agent.exit_code) == ("crashed", 7)
    assert done.agent.output_tail.endswith(" why")
    assert left(done)["files"] == {"it": "it\n"}
    other = tmp_path / "other"
    other.mkdir()
    async with at_work(agent("echo no such option >&2; exit 2"), tmp_path) as (_, ask):
        with pytest.raises(SandboxError, match=r"never called its model.*exit code 2.*no such option"):
            await ask(OneSample(other))


@docker
async def test_trouble_of_the_model_is_raised_and_a_stop_cuts_the_agent(tmp_path: Path) -> None:
    settings = agent("ask; sleep 1000")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()

    def refuse() -> Completion:
        raise TransientError("no answer")

    async with at_work(settings, tmp_path) as (runs, ask):
        with pytest.raises(TransientError, match="no answer"):
            await ask(OneSample(tmp_path / "one", answer=refuse))
        asking = asyncio.create_task(ask(sample := OneSample(tmp_path / "two")))
        await sample.answered.wait()
        runs.stop()
        with pytest.raises(SandboxError, match="being stopped"):
            await asking


@docker
async def test_a_cancelled_sample_leaves_nothing(tmp_path: Path) -> None:
    async with at_work(agent("ask; sleep 1000"), tmp_path) as (runs, ask):
        asking = asyncio.create_task(ask(sample := OneSample(tmp_path)))
        await sample.answered.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await containers_of(runs) == []


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
async def test_whatever_an_agent_does_there_is_an_answer_and_nothing_is_left(
    tmp_path: Path, command: str, ends: set[str], files: dict[str, str] | None
) -> None:
    async with at_work(agent(command), tmp_path, minutes=15 / 60) as (_, ask):
        done = await ask(OneSample(tmp_path))
    assert done.agent
    assert done.agent.end in ends
    assert files is None or left(done)["files"] == files


@docker
async def test_a_container_that_is_killed_from_outside_is_trouble(tmp_path: Path) -> None:
    async with at_work(agent("ask; sleep 1000"), tmp_path) as (runs, ask):
        asking = asyncio.create_task(ask(sample := OneSample(tmp_path)))
        await sample.answered.wait()
        for each in await containers_of(runs):
            await runs._containers.engine.remove(each)
        with pytest.raises(ContainerLost):
            await asking


def in_shell(*commands: str) -> Callable[[int, ModelRequest], Completion]:
    """A model that runs commands one after the other and then submits."""

    def answer(number: int, request: ModelRequest) -> Completion:
        if number == len(commands):
            return answered("", ToolCall(id="end", name="submit", arguments="{}"))
        text = json.dumps({"command": commands[number]})
        return answered("", ToolCall(id=str(number), name="shell", arguments=text))

    return answer


async def run_shell(tmp_path: Path, *commands: str) -> tuple[Completion, list[str]]:
    """What the agent `shell` leaves, and what its model was shown of each command."""
    pool = Scripted(in_shell(*commands))
    calls = calls_of(tmp_path, pool)
    async with at_work(AgentSettings(name="shell", version="1"), tmp_path) as (_, ask):
        done = await ask(OneSample.of(calls))
    shown = [
        result.text
        for request in pool.asked[1:]
        if request.dialogue
        for result in request.dialogue.messages[-1].results
    ]
    return done, shown


@docker
async def test_commands_of_the_agent_that_works_from_here(tmp_path: Path) -> None:
    done, shown = await run_shell(
        tmp_path,
        "echo out; echo err >&2; echo it >it; exit 3",
        "cat it; pwd; id -u; cat",
        "(while :; do echo on >>on; sleep .1; done) & echo begun",
        "for n in {1..30}; do [ -s on ] && break; sleep .1; done; cat on | head -1",
        "seq 100000",
        "exit 124",
    )
    assert sorted(shown[0].split()) == ["(exit", "3)", "code", "err", "out"]
    assert shown[1].split() == ["(exit", "code", "0)", "it", "/projects/challenge", "1000"]
    assert shown[2] == "(exit code 0)\nbegun\n"
    assert shown[3] == "(exit code 0)\non\n"
    assert shown[4].startswith("(exit code 0)\n1\n2\n")
    assert shown[4].endswith("99999\n100000\n")
    assert shown[5] == "(exit code 124, no output)"
    assert done.agent
    assert (done.agent.end, done.agent.steps, done.agent.agent) == ("done", 7, "shell")
    assert set(left(done)["files"]) == {"it", "on"}


def test_a_command_that_fails_at_once_is_shown_without_the_shells_own_words() -> None:
    one = str(min(os.sched_getaffinity(0)))  # on one core the command has often ended before the next line
    command = ["taskset", "-c", one, "bash", "-c", _TIMED, "bash", "exit 124", "60"]
    ran = [subprocess.run(command, capture_output=True, check=False) for _ in range(100)]
    assert {(each.returncode, each.stdout, each.stderr) for each in ran} == {(124, b"", b"")}


@docker
async def test_a_command_is_ended_with_its_group_at_its_time_limit(tmp_path: Path) -> None:
    gateway = Gateway()
    async with (
        _closing(gateway),
        await AgentRuns.open(
            f"agents-{secrets.token_hex(4)}",
            Agents(settings=(), limits=AgentLimits(), container=SMALL),
            gateway,
        ) as runs,
    ):
        image = await ensure_base(runs._containers.engine, progress=print)
        async with runs._places.open(image, await problem(image, FILES), SHELL) as place:
            ran = await place.shell("trap '' TERM; echo begun; sleep 1000 | sleep 1000", 2.0)
            # The first process collects what has died five times a second.
            after = await place.shell("read -t 2 <> <(:); cat /proc/[0-9]*/comm", 60.0)
    assert ran.timed_out
    assert ran.output == "begun\n"
    assert "sleep" not in after.output


@docker
async def test_nothing_is_left_of_a_process_that_was_killed(tmp_path: Path) -> None:
    here = Path(__file__).parent
    script = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        sys.path[:0] = sys.argv[2:]
        from test_agent_runs import OneSample, agent, at_work

        async def main():
            async with at_work(agent("ask; sleep 1000"), Path(sys.argv[1])) as (runs, ask):
                sample = OneSample(Path(sys.argv[1]))
                asking = asyncio.create_task(ask(sample))
                await sample.answered.wait()
                print(runs._containers._run_id, flush=True)
                await asking

        asyncio.run(main())
        """
    )

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, str(tmp_path), str(here), str(here.parent)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    run_id = (await process.stdout.readline()).decode().strip()
    process.kill()
    await process.wait()
    async with at_work(agent("ask"), tmp_path) as (runs, _):
        left = [claim(each) for each in await runs._containers.engine.containers()]
        assert run_id
        assert run_id not in {whose.run for whose in left if whose}


def test_a_value_that_holds_another_name_stays_as_it_is(tmp_path: Path) -> None:
    calls = OneSample(tmp_path).calls
    fill = _Fill('{token} "a"\n{model}', calls, home="/home/x y")
    assert fill.plain("{prompt}|{token}") == f'{{token}} "a"\n{{model}}|{calls.token}'
    assert json.loads(fill.quoted('{"p": "{prompt}"}')) == {"p": '{token} "a"\n{model}'}
    assert fill.command("run {prompt} <{prompt_file}") == (
        "run \"$(cat '/home/x y/.agent/task.md')\" <'/home/x y/.agent/task.md'"
    )


def test_slots_are_what_memory_bears() -> None:
    giga = 1024**3
    assert most_slots(2 * giga, machine_bytes=24 * giga, graders_bytes=8 * giga) == 5
    assert most_slots(2 * giga, machine_bytes=4 * giga, graders_bytes=8 * giga) == 1

"""Simulated models that work with tools, asked by an agent of each interface that knows nothing of them."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest

from astra_async.asking.providers import open_provider
from astra_async.bundled import load_answers, read_statement
from astra_async.errors import TransientError
from astra_async.simulate.server import SimulatedServer
from astra_async.types import ModelRequest, ModelSettings, SampleKey
from astra_async.types.agents import Dialogue, Message, Tool, ToolResult
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Completion, RateLimits
    from astra_async.types.agents import ToolCall

PROBLEM = "task-api"
NOT_CACHED = {"bedrock/steady"}  # no model of a maker whose models take cache points
SPECS = ("openai/steady", "openai-responses/steady", "anthropic/steady", "gemini/steady", "bedrock/steady")
KEYS = dict.fromkeys(
    ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-test-0123456789abcdef"
) | {
    "AWS_ACCESS_KEY_ID": "AKIATEST0123456789AB",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-0123456789abcdef",
    "AWS_REGION": "us-east-1",
}
TEXT, LIST = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
# The shells of agents that were seen, by the names and the arguments that they have there.
SHELLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "claude-code": ("Bash", {"command": TEXT, "description": TEXT}, ["command"]),
    "codex": ("exec_command", {"cmd": TEXT, "yield_time_ms": {"type": "number"}}, ["cmd"]),
    "codex-list": ("shell", {"command": LIST, "workdir": TEXT}, ["command"]),
    "gemini-cli": ("run_shell_command", {"command": {"type": "STRING"}}, ["command"]),
    "opencode": ("bash", {"command": TEXT, "description": TEXT}, ["command", "description"]),
}


class Deaf:
    def limits(self, limits: RateLimits) -> None: ...

    def first_token(self) -> None: ...

    def streamed(self, characters: int) -> None: ...


def tool(name: str, properties: dict[str, Any], required: list[str]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required}
    return Tool(name=name, description="Runs a command.", parameters=schema)


def run_in(folder: Path, call: ToolCall) -> str:
    """What an agent does with a call of its shell."""
    arguments = orjson.loads(call.arguments)
    command = arguments.get("command", arguments.get("cmd"))
    argv = command if isinstance(command, list) else ["bash", "-c", command]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False, text=True).stdout


async def worked(
    folder: Path,
    spec: str,
    tools: tuple[Tool, ...],
    *,
    agent: str = "shell",
    sample: int = 0,
    faults: bool = False,
) -> list[Completion]:
    """The answers to an agent that runs what it is told until nothing is called, or `submit`."""
    settings = SimulationSettings(speed=0, faults=faults, fault_rate=1.0, fault_kinds=("cut", "server_error"))
    server = await SimulatedServer.start(settings=settings)
    provider, _, model = spec.partition("/")
    asked = ModelSettings(name=spec, spec=spec, provider=provider, model=model, base_url=server.base_url)
    said = [Message(role="user", text=read_statement(PROBLEM))]
    answers: list[Completion] = []
    async with aiohttp.ClientSession() as session:
        provided = open_provider(asked, session=session, environ=KEYS)
        while len(answers) < 20:
            request = ModelRequest(
                key=SampleKey(spec, agent, PROBLEM, sample),
                prompt="",
                prompt_sha256="",
                dialogue=Dialogue(system="Work. " * 2_000, tools=tools, messages=tuple(said)),
                cache=True,
                goes_on=True,
                sample_header=f"7/{agent}/{PROBLEM}/{sample}",
            )
            answer = await tried(provided, request, attempts=6 if faults else 1)
            answers.append(answer)
            if not answer.calls or answer.calls[0].name == "submit":
                break
            results = tuple(ToolResult(call=call, text=run_in(folder, call)) for call in answer.calls)
            said.append(Message(role="assistant", text=answer.text, calls=answer.calls, native=answer.native))
            said.append(Message(role="user", results=results))
    await server.stop()
    return answers


async def tried(provider: Any, request: ModelRequest, attempts: int) -> Completion:
    for left in range(attempts, 0, -1):
        try:
            answer: Completion = await provider.complete(request, Deaf())
        except TransientError:
            if left == 1:
                raise
        else:
            return answer
    raise AssertionError


def left_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def is_a_solution(files: dict[str, str]) -> bool:
    known = load_answers(PROBLEM)
    assert known is not None
    return files in [dict(known.reference), *(dict(one.files) for one in known.faulty)]


@pytest.mark.long
@pytest.mark.first(spec=lambda spec, **_: spec, shell=lambda shell, **_: shell)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("shell", SHELLS)
async def test_any_shell_is_used_in_every_interface(tmp_path: Path, spec: str, shell: str) -> None:
    other = tool("read_file", {"path": TEXT}, ["path"])
    answers = await worked(tmp_path, spec, (other, tool(*SHELLS[shell])), agent=shell)
    assert is_a_solution(left_in(tmp_path))
    assert bool(answers[-1].usage.cached_tokens) == (spec not in NOT_CACHED)
    assert answers[-1].calls == ()
    assert answers[-1].text
    for call in (call for answer in answers for call in answer.calls):
        assert set(SHELLS[shell][2]) <= set(orjson.loads(call.arguments))


def test_the_same_sample_works_the_same_in_every_interface_and_others_differ(tmp_path: Path) -> None:
    def texts(spec: str, sample: int) -> list[tuple[str, ...]]:
        folder = tmp_path / spec.partition("/")[0] / str(sample)
        folder.mkdir(parents=True)
        made = asyncio.run(worked(folder, spec, (tool(*SHELLS["opencode"]),), sample=sample))
        return [(one.text, *(call.arguments for call in one.calls)) for one in made]

    first = [texts(spec, 0) for spec in SPECS]
    assert all(each == first[0] for each in first)
    assert len({str(texts(SPECS[0], sample)) for sample in range(1, 5)}) > 1


async def test_it_submits_where_there_is_a_tool_for_it(tmp_path: Path) -> None:
    tools = (tool("shell", {"command": TEXT}, ["command"]), tool("submit", {}, []))
    answers = await worked(tmp_path, SPECS[0], tools)
    assert answers[-1].calls[0].name == "submit"
    assert is_a_solution(left_in(tmp_path))


async def test_faults_change_nothing_of_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    tools = (tool(*SHELLS["opencode"]),)
    for spec in SPECS[:4]:
        (await worked(tmp_path / "a", spec, tools))
        (await worked(tmp_path / "b", spec, tools, faults=True))
        assert left_in(tmp_path / "a") == left_in(tmp_path / "b")


async def test_whole_answers_have_the_same_calls(tmp_path: Path) -> None:
    server = await SimulatedServer.start(settings=SimulationSettings(speed=0, faults=False))
    question = read_statement(PROBLEM)
    function = {"name": "bash", "parameters": {"type": "object", "properties": {"command": TEXT}}}
    schema = {"name": "bash", "input_schema": function["parameters"]}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/chat/completions": {
            "messages": [{"role": "user", "content": question}],
            "tools": [{"type": "function", "function": function}],
        },
        "/v1/responses": {"input": question, "tools": [{"type": "function", **function}]},
        "/v1/messages": {
            "max_tokens": 20_000,
            "messages": [{"role": "user", "content": question}],
            "tools": [schema],
        },
        "/v1beta/models/steady:generateContent": {
            "contents": [{"role": "user", "parts": [{"text": question}]}],
            "tools": [{"functionDeclarations": [function]}],
        },
    }
    async with aiohttp.ClientSession() as session:
        for path, body in bodies.items():
            headers = {"x-astra-sample": f"7/shell/{PROBLEM}/0"}
            body["model"] = "steady"
            async with session.post(server.root_url + path, json=body, headers=headers) as response:
                text = await response.text()
                assert response.status == 200, text
                assert "ls -la" in text, path
    await server.stop()

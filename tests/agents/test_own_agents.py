"""Agents of the user's own: those of docs/own-agents.md, and conversations over the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import orjson
import pytest
from test_gateway_official_clients import PROBLEM, worked

from astra_async.agents.acp import converse, require_library
from astra_async.bundled import read_statement
from astra_async.config import load_config
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from astra_async.testing.sandbox.execution import Dialog
    from astra_async.types import AgentSettings

PAGE = Path(__file__).parents[2] / "docs" / "own-agents.md"
TABLES = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# An agent that asks for a permission and for a method that its client lacks.
ACP_AGENT = r"""
import json, sys

def send(**message):
    print("some words of its own")
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def take():
    return json.loads(sys.stdin.readline())

for result in ({"protocolVersion": 1}, {"sessionId": "s1"}):
    send(id=take()["id"], result=result)
prompt = take()
assert prompt["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "Fix it."}]}, prompt
send(method="session/update", params={"sessionId": "s1", "update": {}})
kinds = {"no": "reject_once", "yes": "allow_once"}
options = [{"optionId": each, "name": each, "kind": kind} for each, kind in kinds.items()]
call = {"sessionId": "s1", "toolCall": {"toolCallId": "t1"}, "options": options}
send(id=7, method="session/request_permission", params=call)
assert take()["result"]["outcome"] == {"outcome": "selected", "optionId": "yes"}
send(id=8, method="fs/read_text_file", params={"sessionId": "s1", "path": "/x"})
assert take()["error"]["code"] == -32601
send(id=prompt["id"], result={"stopReason": sys.argv[1]})
sys.stdin.read()
"""


def described(number: int, folder: Path) -> AgentSettings:
    """The agent of a table, with its files in a folder."""
    (folder / "astra.toml").write_text(TABLES[number])
    options = {"out": "x", "problems": "bundled", "model": ["simulated/steady"]}
    name = re.search(r'^name = "(.+)"$', TABLES[number], re.MULTILINE)
    assert name
    (agent,) = load_config({**options, "agent": [name[1]]}, folder / "astra.toml").agents
    for path, text in agent.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return agent


class Pipes:
    """A program's standard output and input as a `Dialog`."""

    def __init__(self, program: asyncio.subprocess.Process) -> None:
        assert program.stdout
        assert program.stdin
        self.read = partial(program.stdout.read, 1000)
        self._stdin = program.stdin

    async def write(self, content: bytes) -> None:
        self._stdin.write(content)
        await self._stdin.drain()


async def conversed(*words: str) -> str:
    """The end of a conversation with a Python program."""
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", *words, stdin=pipe, stdout=pipe)
    try:
        return await converse(cast("Dialog", Pipes(program)), prompt="Fix it.", folder="/work")
    finally:
        with suppress(ProcessLookupError):
            program.kill()
        await program.communicate()  # a paused pipe keeps `wait` waiting


@pytest.mark.parametrize(
    ("reason", "end"), [("end_turn", ""), ("max_tokens", "the agent stopped: max_tokens")]
)
async def test_the_client_of_the_protocol_allows_calls_and_has_no_files(reason: str, end: str) -> None:
    assert await conversed(ACP_AGENT, reason) == end


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('no JSON')", "the agent's turn failed: Connection closed"),
        ('print(\'{"jsonrpc": "2.0", "id": 0, "result": 5}\', flush=True); input()', "turn failed"),
        ("import sys; sys.stdout.write('x' * 3_000_000)", "the agent's turn failed: Connection closed"),
        ('while True: print(\'{"id": 7, "method": "m"}\')', "the agent's turn failed: Connection closed"),
    ],
)
async def test_an_agent_that_does_not_speak_the_protocol_ends_with_the_reason(
    program: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astra_async.agents.acp._LINE_BYTES", 1_000_000)
    assert why in await conversed(program)


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'astra_async\[acp\]'"):
        require_library()


def test_the_table_of_the_page_describes_an_agent_of_the_protocol(tmp_path: Path) -> None:
    agent = described(1, tmp_path)
    assert (agent.acp, agent.speaks, agent.command) == (True, "chat", "/opt/agent/opencode/bin/opencode acp")
    orjson.loads(agent.files[".config/opencode/opencode.json"])


async def test_the_script_on_an_sdk_does_its_task(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="the clients of providers are an extra: astra_async[sdks]")
    agent = described(0, tmp_path)
    (tmp_path / "task.md").write_text(read_statement(PROBLEM))

    def client(url: str, token: str, folder: Path) -> None:
        known = {"{base_url}": url, "{token}": token, "{model}": "real"}
        variables = {
            name: re.sub("|".join(map(re.escape, known)), lambda found: known[found[0]], value)
            for name, value in agent.variables.items()
        }
        command = [sys.executable, str(tmp_path / "agent.py"), str(tmp_path / "task.md")]
        subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True)

    assert not await worked(tmp_path, client, "openai/steady")

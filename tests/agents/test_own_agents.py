"""The two agents of docs/own-agents.md, run as they stand on the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_gateway_official_clients import PROBLEM, worked

from astra_async.bundled import read_statement
from astra_async.config import load_config

if TYPE_CHECKING:
    from astra_async.types import AgentSettings

PAGE = Path(__file__).parents[2] / "docs" / "own-agents.md"
TABLES = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# An agent that asks for a permission and for a method that its client lacks.
ACP_AGENT = r"""
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def take():
    return json.loads(sys.stdin.readline())

for result in ({"protocolVersion": 1}, {"sessionId": "s1"}):
    send(id=take()["id"], result=result)
prompt = take()
assert prompt["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "Fix it."}]}
send(method="session/update", params={"sessionId": "s1", "update": {}})
options = [{"optionId": "no", "kind": "reject_once"}, {"optionId": "yes", "kind": "allow_once"}]
send(id=7, method="session/request_permission", params={"sessionId": "s1", "options": options})
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
        (folder / path).write_text(text)
    return agent


@pytest.mark.parametrize(("reason", "code"), [("end_turn", 0), ("max_tokens", 1)])
def test_the_client_of_the_protocol_allows_calls_and_prints_all_messages(
    tmp_path: Path, reason: str, code: int
) -> None:
    agent = described(1, tmp_path)
    assert agent.command == "python3 ~/acp.py {prompt_file} my-agent --acp"
    (tmp_path / "task.md").write_text("Fix it.")
    command = [sys.executable, "acp.py", "task.md", sys.executable, "-c", ACP_AGENT, reason]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stdout.splitlines()) == 6


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

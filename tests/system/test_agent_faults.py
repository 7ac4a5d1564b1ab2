"""Installed agents with a provider that spoils its second answer: the end, the score, and the requests.

With ALL_AGENTS=1 all known agents are tested. Install them with `astra agents install all`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from agent_faults import ANSWERS, HIDDEN, IMPATIENT, REFUSALS
from agent_tools import Step
from agent_work import installed_agents, interface_of, run, works
from scripted_upstream import Upstream, upstream
from test_kill_and_resume import lines

from astra_async import bundled
from astra_async.agents.installing import KNOWN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600), pytest.mark.seconds(10)]

AGENTS = tuple(KNOWN) if os.environ.get("ALL_AGENTS") else ("claude-code", "codex")
PROBLEM = "task-api"
AIDER_HAS_NO_TOOLS = {"invalid JSON", "unknown tool", "5 MB of tool output", "parallel tools"}
LARGE_OUTPUT = "head -c 5000000 /dev/zero | tr '\\0' x"


async def ran(
    agent: str, folder: Path, *, extra: str = "true", at_once: int = 1, tables: str = "", **fault: Any
) -> tuple[dict[str, Any], Upstream]:
    """Run one sample. The script has the command `extra` as its second step."""
    if agent not in installed_agents():
        pytest.skip(f"needs: astra agents install {agent}")
    script = works()[PROBLEM].script()
    steps = [script.steps[0], Step(kind="run", command=extra), *script.steps[1:]]
    async with upstream([replace(script, steps=steps, at_once=at_once)]) as server:
        for name, value in fault.items():
            setattr(server, name, value)
        speaks = interface_of(agent)
        (line,) = await run(folder, agent, speaks, server, "--only", PROBLEM, tables=tables)
    return line, server


def check_paid_once(line: dict[str, Any], server: Upstream, folder: Path, *, overflows: int = 0) -> None:
    """Each conversation is billed at most once, and the record has every billed call.

    A request that exceeds the context is recorded as an answered call.
    """
    calls = [call for call in lines(folder / "run" / "calls.jsonl") if not call.get("failed")]
    assert len(calls) == line["agent"]["steps"] == len(server.billed) + overflows
    assert server.different >= len(server.billed), "a request was paid twice"
    assert len(server.asked) <= 30, "the agent repeats itself"


@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=pytest.mark.seconds(50) if name == "silence" else ()) for name in HIDDEN],
)
@pytest.mark.parametrize("agent", AGENTS)
async def test_a_hidden_fault_changes_nothing_for_the_agent(agent: str, fault: str, tmp_path: Path) -> None:
    spoil, times = HIDDEN[fault]
    tables = f'[[agents]]\nname = "{agent}"\n{IMPATIENT.get(agent, "")}' if fault == "silence" else ""
    line, server = await ran(agent, tmp_path, tables=tables, spoil=spoil, times=times)
    assert line["agent"]["end"] == "done"
    assert line["passed"] == line["total"]
    assert server.spoiled == times
    assert len(server.asked) == len(server.billed) + (0 if fault == "silence" else times)
    check_paid_once(line, server, tmp_path)
    # A broken stream may be billed, so its cost is estimated.
    is_broken = fault in {"cut", "overloaded twice in the stream"}
    assert line["cost_usd"] == pytest.approx(server.usd) or (is_broken and line["cost_usd"] > server.usd)


@pytest.mark.parametrize("fault", REFUSALS)
@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_sees_a_refused_request_once(agent: str, fault: str, tmp_path: Path) -> None:
    line, server = await ran(agent, tmp_path, spoil=REFUSALS[fault])
    assert line["status"] in {"scored", "no_solution"}
    assert server.spoiled == 1
    assert len(server.asked) == len(server.billed) + 1
    check_paid_once(line, server, tmp_path, overflows=fault == "context")
    assert line["cost_usd"] == pytest.approx(server.usd)


@pytest.mark.parametrize("fault", [*ANSWERS, "5 MB of tool output", "parallel tools"])
@pytest.mark.parametrize("agent", AGENTS)
async def test_an_unusual_answer_costs_one_request(agent: str, fault: str, tmp_path: Path) -> None:
    if agent == "aider" and fault in AIDER_HAS_NO_TOOLS:
        pytest.skip("aider has no tools")
    if agent == "gemini-cli" and fault == "invalid JSON":
        pytest.skip("Gemini's arguments are an object")
    extra = LARGE_OUTPUT if fault == "5 MB of tool output" else "true"
    at_once = 3 if fault == "parallel tools" else 1
    line, server = await ran(agent, tmp_path, extra=extra, at_once=at_once, reply=ANSWERS.get(fault))
    assert line["status"] in {"scored", "no_solution"}
    assert len(server.asked) == len(server.billed)
    check_paid_once(line, server, tmp_path)
    assert line["cost_usd"] == pytest.approx(server.usd)


LINKS = """\
ln -s accounts.py tasks/alias.py; ln -s tasks more; ln -s /etc/passwd outside.py
ln -sf ../tasks/accounts.py tests/test_tasks.py"""


@pytest.mark.parametrize("agent", AGENTS[:1])
async def test_links_of_an_agent_reach_the_tests_as_copies(agent: str, tmp_path: Path) -> None:
    line, _ = await ran(agent, tmp_path, extra=LINKS)
    (completion,) = lines(tmp_path / "run" / "completions.jsonl")
    files = orjson.loads(completion["text"])["files"]
    accounts = bundled.bundled_problems_csv().parent / "problems" / PROBLEM / "project" / "tasks/accounts.py"
    assert files["tasks/alias.py"] == files["more/alias.py"] == accounts.read_text()
    assert line["agent"]["left_out"] == ["a symbolic link: outside.py"]
    assert ("tests/test_tasks.py", "read_only") in {
        (each["path"], each["reason"]) for each in line["dropped"]
    }
    assert {"tasks/alias.py", "more/accounts.py"} <= {each["path"] for each in line["changes"]}
    assert line["passed"] == line["total"]

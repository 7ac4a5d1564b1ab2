"""Runs of installed agents that are killed at ten moments: only the request in flight is asked again.

With ALL_AGENTS=1 all known agents are tested. Install them with `astra agents install all`.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from agent_work import installed_agents, interface_of, run, start, works
from scripted_upstream import upstream
from test_kill_and_resume import containers_of

from astra_async.agents.installing import KNOWN
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from scripted_upstream import Upstream

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200), pytest.mark.seconds(60)]

AGENTS = tuple(KNOWN) if os.environ.get("ALL_AGENTS") else ("codex",)
PROBLEM = "task-api"
KILLS = 10


def recorded(folder: Path) -> int:
    """Return the number of whole lines in calls.jsonl."""
    path = folder / "run" / "calls.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


async def killed(folder: Path, agent: str, server: Upstream, *, in_flight: bool) -> bool:
    """Kill a run when its next request arrives or its next answer is on record; False if it ends before."""
    asked, answered = len(server.asked), recorded(folder)
    if in_flight:
        server.may_answer.clear()
    process = await start(folder, agent, interface_of(agent), server, "--only", PROBLEM)
    async with asyncio.timeout(PATIENCE_S):
        while process.returncode is None and (
            len(server.asked) == asked if in_flight else recorded(folder) == answered
        ):
            await asyncio.sleep(0.01)
    if process.returncode is None:
        process.kill()
    is_killed = await process.wait() != 0
    server.may_answer.set()
    return is_killed


@pytest.mark.parametrize("agent", AGENTS)
async def test_after_sigkill_only_the_request_in_flight_is_asked_again(agent: str, tmp_path: Path) -> None:
    if agent not in installed_agents():
        pytest.skip(f"needs: astra agents install {agent}")
    async with upstream([works()[PROBLEM].script()]) as server:
        kills = lost = 0
        while kills < KILLS and await killed(tmp_path, agent, server, in_flight=kills % 2 == 0):
            kills += 1
            in_flight = len(server.asked) - recorded(tmp_path) - lost
            assert in_flight <= 1, "an answer was not on record"
            lost += in_flight
        (line,) = await run(tmp_path, agent, interface_of(agent), server, "--only", PROBLEM)
    assert kills == KILLS or agent == "aider"  # it needs two requests
    assert lost >= kills // 2
    assert (line["agent"]["end"], line["passed"]) == ("done", line["total"])
    assert line["agent"]["repeated_usd"] == 0
    conversations = {asked.messages for asked in server.asked}
    assert line["agent"]["steps"] == len(conversations) == len(server.asked) - lost
    assert containers_of(tmp_path / "run") == []

"""Every installed agent solves problems with scripted models of its own and of other interfaces.

The score is complete, the answer has exactly the scripted changes, and calls and costs on record are those
that the models' server billed. With ALL_AGENTS=1 all installed versions of all agents are tested; install
them with `astra agents install all` and `astra agents install NAME@latest`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import orjson
import pytest
from agent_work import installed_agents, interface_of, run, works
from scripted_upstream import MODELS, upstream
from test_kill_and_resume import lines

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200), pytest.mark.seconds(25)]

ALL = bool(os.environ.get("ALL_AGENTS"))
CASES = (
    [(agent, speaks) for agent in installed_agents() for speaks in MODELS]
    if ALL
    else [("claude-code", "messages"), ("codex", "chat")]
)


@pytest.mark.parametrize(("agent", "speaks"), CASES)
async def test_an_agent_solves_problems_and_is_billed_what_its_model_counted(
    agent: str, speaks: str, tmp_path: Path
) -> None:
    if agent not in installed_agents():
        pytest.skip(f"needs: astra agents install {agent}")
    todo = works()
    async with upstream([work.script() for work in todo.values()]) as server:
        results = await run(tmp_path, agent, speaks, server)
    answers = {
        line["problem_id"]: orjson.loads(line["text"])
        for line in lines(tmp_path / "run" / "completions.jsonl")
    }
    for line in results:
        work = todo[line["problem_id"]]
        deleted = [] if agent == "aider" else list(work.deleted)  # aider runs no commands
        answer = answers[line["problem_id"]]
        assert line["agent"]["end"] == "done", line["agent"]
        assert line["passed"] == line["total"]
        assert [note for note in line["agent"]["left_out"] if not note.startswith(".aider*")] == []
        assert (answer["files"], answer["deleted"], answer["binary"]) == (dict(work.after), deleted, {})
    assert sum(line["agent"]["steps"] for line in results) == len(server.billed)
    assert sum(line["cost_usd"] for line in results) == pytest.approx(server.usd, rel=1e-12)
    usage = [sum(line["usage"][name] for line in results) for name in ("input_tokens", "output_tokens")]
    assert usage == [sum(each.inputs for each in server.billed), sum(each.outputs for each in server.billed)]
    assert all(line["agent"]["translated"] == (interface_of(agent) != speaks) for line in results)

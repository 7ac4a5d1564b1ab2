"""The minimal agent: its loop, its bounds, and what it says to a model that errs."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING

from scripted import Scripted, answered, calls_of

from astra_async.agents import shell
from astra_async.agents.shell import Ran, shown, work
from astra_async.types.agents import AgentLimits, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Completion, ModelRequest
    from astra_async.types.agents import AgentEnd, ToolResult

SUBMIT = ToolCall(id="s", name="submit", arguments="{}")
TEXT_OF_VERSION_1 = "6a24a3f6267d"


def runs(number: int, command: str, name: str = "shell") -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, arguments=f'{{"command": "{command}"}}')


def worked(
    folder: Path, *answers: Completion, limits: AgentLimits | None = None
) -> tuple[AgentEnd, Scripted, list[str]]:
    ran: list[str] = []

    async def run(command: str) -> Ran:
        ran.append(command)
        return Ran(exit_code=0, output=f"ran {command}")

    async def go() -> tuple[AgentEnd, Scripted, list[str]]:
        pool = Scripted(lambda n, _: answers[min(n, len(answers) - 1)])
        calls = calls_of(folder, pool, limits=limits)
        return await work("Fix it.", calls, run), pool, ran

    return asyncio.run(go())


def results(request: ModelRequest) -> tuple[ToolResult, ...]:
    assert request.dialogue is not None
    return request.dialogue.messages[-1].results


def test_commands_run_in_turn_until_the_model_submits(tmp_path: Path) -> None:
    end, pool, ran = worked(
        tmp_path, answered("Look.", runs(0, "ls"), runs(1, "cat a")), answered("", SUBMIT)
    )
    assert (end, ran, len(pool.asked)) == ("done", ["ls", "cat a"], 2)
    assert [one.text for one in results(pool.asked[1])] == [
        "(exit code 0)\nran ls",
        "(exit code 0)\nran cat a",
    ]
    first = pool.asked[0].dialogue
    assert first is not None
    assert "Fix it." in first.messages[0].text
    assert [tool.name for tool in first.tools] == ["shell", "submit"]


def test_output_of_a_command_cannot_submit(tmp_path: Path) -> None:
    end, _, ran = worked(tmp_path, answered("", runs(0, "echo submit")), answered("", SUBMIT))
    assert (end, ran) == ("done", ["echo submit"])


def test_commands_beside_a_submission_still_run(tmp_path: Path) -> None:
    assert worked(tmp_path, answered("", runs(0, "touch a"), SUBMIT))[2] == ["touch a"]


def test_three_answers_without_a_call_end_it(tmp_path: Path) -> None:
    end, pool, _ = worked(
        tmp_path, answered("I think ..."), answered("", finish_reason="length"), answered("Done.")
    )
    assert (end, len(pool.asked)) == ("done", 3)
    said = [request.dialogue.messages[-1].text for request in pool.asked if request.dialogue]
    assert "called no tool" in said[1]
    assert "cut off" in said[2]


def test_what_is_wrong_with_a_call_is_said_and_nothing_runs(tmp_path: Path) -> None:
    wrong = (
        ToolCall(id="1", name="python", arguments="{}"),
        ToolCall(id="2", name="shell", arguments='{"command": "l'),
        ToolCall(id="3", name="shell", arguments='["ls"]'),
        runs(4, " "),
        runs(5, "x" * 120_000),
    )
    _, pool, ran = worked(tmp_path, answered("", *wrong), answered("", SUBMIT))
    assert ran == []
    assert all(one.failed for one in results(pool.asked[1]))
    assert [
        word in one.text
        for one, word in zip(
            results(pool.asked[1]),
            ("no tool", "not JSON", "must be", "must be", "100,000 bytes"),
            strict=True,
        )
    ] == [True] * 5


def test_a_limit_ends_it(tmp_path: Path) -> None:
    end, pool, _ = worked(tmp_path, answered("", runs(0, "ls")), limits=AgentLimits(steps=3))
    assert (end, len(pool.asked)) == ("steps", 3)


def test_a_killed_sample_is_worked_on_from_its_record(tmp_path: Path) -> None:
    script = (answered("", runs(0, "ls")), answered("", runs(1, "cat a")), answered("", SUBMIT))
    worked(tmp_path, *script[:2], limits=AgentLimits(steps=2))
    end, pool, ran = worked(tmp_path, script[2])
    assert (end, ran, len(pool.asked)) == ("done", ["ls", "cat a"], 1)


def test_long_output_is_shown_by_its_ends() -> None:
    text = shown(Ran(exit_code=1, output="a" * 6_000 + "b" * 100_000 + "c" * 6_000))
    assert len(text) < 10_100
    assert text.startswith("(exit code 1)\naaa")
    assert text.endswith("ccc")
    assert "102,000 characters left out" in text
    assert shown(Ran(exit_code=None, output="", timed_out=True)) == "(timed out, no output)"


def test_the_text_is_that_of_its_version() -> None:
    text = "\n".join(
        (shell.SYSTEM, shell._FIRST, shell._NO_CALL, shell._CUT, repr(shell._SHELL), repr(shell._SUBMIT))
    )
    assert (shell.VERSION, sha256(text.encode()).hexdigest()[:12]) == ("1", TEXT_OF_VERSION_1)

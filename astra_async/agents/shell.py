"""The built-in agent `shell`: a tool that runs a command, a tool that submits, and a linear history.

The limits are those of mini-swe-agent 2.4.6: a new shell for each command, output above 10,000 characters is
cut to its first and last 5,000, and three answers in a row without a tool call end the work. Unlike
mini-swe-agent, submitting is a tool call, so the output of a command can never submit. Change VERSION with
every change of a prompt in this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from astra_async.agents.model_calls import SampleEnds
from astra_async.types import Dialogue, Message, Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from astra_async.agents.model_calls import AgentCalls
    from astra_async.types import AgentEnd, Completion, ToolCall

VERSION = "1"
COMMAND_TIMEOUT_S = 60.0
_MOST_CHARACTERS = 10_000
_LONGEST_COMMAND_BYTES = 100_000  # a command is one argument of a process: 128 KB
_MOST_WORDLESS = 3

SYSTEM = (
    "You are a software engineer who works on a project through a shell. You act only by calling tools."
    " Your work is judged by tests that you cannot see, on the files that you leave in the project folder."
)
_FIRST = """{task}

You work alone: nobody answers questions. Each command runs in a new shell in the project folder, for
{seconds:.0f} seconds at most, without input and without network: `cd` and variables do not last from one
command to the next. Write files with the shell, for example with a here-document. Look at the project first,
make your changes, check them, and call `submit` when the work is done: what is in the project folder then is
your answer.
"""
IN_PROJECT = (SYSTEM, _FIRST)
# The same for a task, whose container may have a network, and whose result is not only files.
IN_TASK = (
    (
        "You are a software engineer who works in a container through a shell. You act only by calling tools."
        " Your work is judged by tests that you cannot see, on the state in which you leave the container."
    ),
    """{task}

You work alone: nobody answers questions. Each command runs in a new shell in the task's working folder, for
{seconds:.0f} seconds at most and without input: `cd` and variables do not last from one command to the next.
Processes that you start in the background stay. Write files with the shell, for example with a here-document.
Look around first, make your changes, check them, and call `submit` when the work is done.
""",
)
_NO_CALL = "Your answer called no tool. Call `shell` to go on, or `submit` if the work is done."
_CUT = "Your answer was cut off, for it was too long. Write less at once: smaller files, or a file in parts."
_SHELL = Tool(
    name="shell",
    description="Runs a command with bash in the project folder; returns its exit code and output.",
    parameters={
        "type": "object",
        "properties": {"command": {"type": "string", "description": "The command."}},
        "required": ["command"],
        "additionalProperties": False,
    },
)
_SUBMIT = Tool(
    name="submit",
    description="Ends the work: the files in the project folder are the answer.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Result of a command. `output` has both streams, already bounded."""

    exit_code: int | None
    output: str
    timed_out: bool = False


async def work(
    task: str,
    calls: AgentCalls,
    run: Callable[[str], Awaitable[Ran]],
    *,
    opening: tuple[str, str] = IN_PROJECT,
) -> AgentEnd:
    """Let the model work until it submits, stops calling tools or reaches a limit. Return the reason.

    `opening` has the system prompt and the template of the first message. `run` runs one command for at
    most COMMAND_TIMEOUT_S. Raises AstraError for errors of the provider, the disk or the container.
    """
    system, template = opening
    first = template.format(task=task.rstrip(), seconds=COMMAND_TIMEOUT_S)
    talk: list[Message] = [Message(role="user", text=first)]
    wordless = 0
    try:
        while True:
            answer = await calls.answer(
                Dialogue(system=system, tools=(_SHELL, _SUBMIT), messages=tuple(talk))
            )
            talk.append(_spoken(answer))
            if not answer.calls:
                wordless += 1
                if wordless == _MOST_WORDLESS:
                    return "done"
                talk.append(Message(role="user", text=_CUT if answer.finish_reason == "length" else _NO_CALL))
                continue
            wordless = 0
            orders = [call for call in answer.calls if call.name != _SUBMIT.name]
            results = tuple([await _result(call, run, answer) for call in orders])
            if len(orders) < len(answer.calls):
                return "done"
            talk.append(Message(role="user", results=results))
    except SampleEnds as end:
        return end.end


def _spoken(answer: Completion) -> Message:
    """Return the model's message.

    An empty one gets a placeholder, because interfaces refuse empty messages.
    """
    if answer.text or answer.calls:
        return Message(role="assistant", text=answer.text, calls=answer.calls, native=answer.native)
    return Message(role="assistant", text="(nothing)")


async def _result(call: ToolCall, run: Callable[[str], Awaitable[Ran]], answer: Completion) -> ToolResult:
    command, fault = _command(call, cut=answer.finish_reason == "length")
    if fault:
        return ToolResult(call=call, text=fault, failed=True)
    ran = await run(command)
    return ToolResult(call=call, text=shown(ran), failed=ran.timed_out)


def _command(call: ToolCall, *, cut: bool) -> tuple[str, str]:
    """Return the command of a call and "", or "" and the error for the model."""
    if call.name != _SHELL.name:
        return "", f"There is no tool {call.name!r}: call `shell` or `submit`."
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return "", _CUT if cut else 'The arguments are not JSON: call `shell` with {"command": "..."}.'
    command = arguments.get("command") if isinstance(arguments, dict) else None
    if not isinstance(command, str) or not command.strip():
        return "", "`command` must be a text that is not empty."
    if "\x00" in command or len(command.encode("utf-8", "replace")) > _LONGEST_COMMAND_BYTES:
        return "", f"A command has {_LONGEST_COMMAND_BYTES:,} bytes at most, no NUL: write files in parts."
    return command, ""


def shown(ran: Ran) -> str:
    """Return the exit code and output of a command for the model. Long output is cut in the middle."""
    output = ran.output
    if len(output) > _MOST_CHARACTERS:
        half, left_out = _MOST_CHARACTERS // 2, len(output) - _MOST_CHARACTERS
        output = f"{output[:half]}\n[... {left_out:,} characters left out ...]\n{output[-half:]}"
    ended = "timed out" if ran.timed_out else f"exit code {ran.exit_code}"
    return f"({ended})\n{output}" if output else f"({ended}, no output)"

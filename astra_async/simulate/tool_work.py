"""Answers of simulated models with tools: rounds of tool calls that write a bundled solution.

Like a text answer, the solution and the number of rounds are a pure function of profile, sample and problem.
The current round is derived from the conversation, so no state is kept between requests. For an unknown task
the model runs the commands that the task's text quotes. Any tool that looks like a shell is used. The work
ends as the agent expects: with the tool `submit`, with mini-swe-agent's final command, or with a text.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.draws import digest, seeded
from astra_async.simulate.model_answers import REFUSALS, UNKNOWN, SimulatedAnswer, draw_solution
from astra_async.simulate.profiles import try_rate
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from astra_async.bundled import BundledAnswers
    from astra_async.simulate.draws import SampleName
    from astra_async.simulate.profiles import Profile
    from astra_async.types.agents import Tool

_SHELLS = re.compile(r"bash|shell|exec|terminal|run_command|cmd", re.IGNORECASE)
_SURE_SHELLS = frozenset(
    {"bash", "shell", "exec_command", "run_shell_command", "shell_command", "local_shell", "execute_command"}
)
_COMMANDS = ("command", "cmd", "script", "input", "code")
_MINI_ENDS = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # mini-swe-agent searches command output for this
_AIDER = "*file listing*"  # in aider's prompt if it expects whole files
_END_OF_FILE = "END_OF_FILE"
# Gemini CLI rejects commands that contain anything like a command substitution.
_NOT_IN_A_HERE_DOCUMENT = (_END_OF_FILE, "`", "$(", "<(", ">(")
# Commands that the text of an unknown task quotes.
_TOLD = re.compile(r"```sh\n(?P<commands>.*?)\n```", re.DOTALL)
_LOOKS, _TOGETHER, _CHECKS, _ENCODED = 0.8, 0.3, 0.5, 0.15
_BEFORE = ("I will look at the project first.", "Let me see what is there.")
_WRITES = ("Now I write {0}.", "{0} has to change.", "I put this into {0}.")
_DONE = ("The work is done.", "All changes are in place.", "I have made the changes that were asked for.")


def draw_work(
    profile: Profile,
    name: SampleName,
    solutions: BundledAnswers | None,
    tools: Sequence[Tool],
    *,
    rounds: int,
    prompt: str,
) -> SimulatedAnswer:
    """Return the answer after `rounds` rounds of tool calls; always equal for equal arguments."""
    generator = seeded("work", profile.name, name.seed, name.format, name.problem_id, name.sample)
    shells = [tool for tool in tools if _SHELLS.search(tool.name)]
    shell = min(shells, key=lambda tool: tool.name.lower() not in _SURE_SHELLS, default=None)
    refused = generator.random() < profile.refusal
    told = _TOLD.search(prompt) if solutions is None else None
    if shell is None or not (told or (solutions and solutions.faulty)):
        return SimulatedAnswer(text=UNKNOWN, finish="stop")
    if refused:
        return SimulatedAnswer(text=generator.choice(REFUSALS), finish="refusal")
    solution = ""
    if solutions:
        solution, files = draw_solution(profile, name, solutions, generator)
        plan = _plan(files, generator)
    elif told:
        rate = try_rate(profile, name.problem_id, name.turn)
        lines = [line for line in told["commands"].splitlines() if generator.random() < rate]
        plan = [(generator.choice(_BEFORE), [line]) for line in lines]
    if rounds < len(plan):
        text, commands = plan[rounds]
        made = [_arguments(shell.parameters, command) for command in commands]
        calls = tuple(_call(name, rounds, at, shell.name, one) for at, one in enumerate(made))
        return SimulatedAnswer(text=text, finish="stop", solution=solution, calls=calls)
    last = _last_call(shell, tools, prompt)
    calls = () if last is None else (_call(name, rounds, 0, *last),)
    return SimulatedAnswer(text=generator.choice(_DONE), finish="stop", solution=solution, calls=calls)


def draw_aside(
    profile: Profile, name: SampleName, solutions: BundledAnswers | None, prompt: str
) -> SimulatedAnswer:
    """Answer an agent's request without tools: whole files for aider, else a short text."""
    generator = seeded("work", profile.name, name.seed, name.format, name.problem_id, name.sample)
    generator.random()
    if _AIDER not in prompt or solutions is None or not solutions.faulty:
        return SimulatedAnswer(text="Changes to a project", finish="stop")
    solution, files = draw_solution(profile, name, solutions, generator)
    blocks = (
        f"{path}\n{_fence(text)}\n{text.rstrip(chr(10))}\n{_fence(text)}" for path, text in files.items()
    )
    return SimulatedAnswer(text="\n\n".join(blocks), finish="stop", solution=solution)


def _plan(files: Mapping[str, str], generator: random.Random) -> list[tuple[str, list[str]]]:
    """Return text and commands of each round: look, write (file by file or all at once), check."""
    plan = []
    if generator.random() < _LOOKS:
        plan.append((generator.choice(_BEFORE), ["ls -la"]))
    writes = {path: _write(path, text, generator) for path, text in sorted(files.items())}
    if generator.random() < _TOGETHER:
        plan.append(("I write all files.", [*writes.values()]))
    else:
        sentence = generator.choice(_WRITES)
        plan += [(sentence.format(path), [command]) for path, command in writes.items()]
    if generator.random() < _CHECKS:
        names = " ".join(map(_quoted, sorted(files)))
        plan.append(("I check what I wrote.", [f"wc -l {names}"]))
    return plan


def _write(path: str, text: str, generator: random.Random) -> str:
    """Return a command that writes exactly this text to a file."""
    folder, slash, _ = path.rpartition("/")
    makes = f"mkdir -p {_quoted(folder)} && " if slash else ""
    encoded = generator.random() < _ENCODED or not text.endswith("\n")
    if encoded or any(mark in text for mark in _NOT_IN_A_HERE_DOCUMENT):
        packed = base64.b64encode(text.encode()).decode()
        return f"{makes}printf %s '{packed}' | base64 -d > {_quoted(path)}"
    return f"{makes}cat > {_quoted(path)} <<'{_END_OF_FILE}'\n{text}{_END_OF_FILE}"


def _last_call(shell: Tool, tools: Sequence[Tool], prompt: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the call that ends the work; None if a text ends it."""
    if any(tool.name == "submit" for tool in tools):
        return "submit", {}
    if _MINI_ENDS in prompt:
        return shell.name, _arguments(shell.parameters, f"echo {_MINI_ENDS}")
    return None


def _call(name: SampleName, rounds: int, at: int, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
    made = digest(f"{name}/{rounds}/{at}")
    return ToolCall(id=f"call_{made}", name=tool, arguments=orjson.dumps(arguments).decode())


def _arguments(schema: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return arguments with the command in the right field, and placeholders in other required fields."""
    properties = schema.get("properties") or {}
    place = next((each for each in _COMMANDS if each in properties), "command")
    wants_list = "array" in str((properties.get(place) or {}).get("type", "")).lower()
    made: dict[str, Any] = {place: ["bash", "-lc", command] if wants_list else command}
    for other in schema.get("required") or ():
        if other not in made:
            made[other] = _filled(properties.get(other) or {})
    return made


def _filled(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "string")).lower()
    return {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}.get(kind, "Work on it")


def _fence(text: str) -> str:
    return "````" if "```" in text else "```"


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"

"""Find the tool for a step of work in the tools that an agent offers, and fill in its arguments."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from provider_streams import Call, Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROJECT = "/projects/challenge"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # the last command of mini-swe-agent
_PATCH = "apply_patch"
# Names of tools by kind of step: Claude Code, Gemini CLI, OpenCode, Codex, mini-swe-agent.
_NAMES = {
    "read": ("Read", "read_file", "read"),
    "edit": ("Edit", "replace", "edit"),
    "write": ("Write", "write_file", "write"),
    "run": ("Bash", "run_shell_command", "bash", "exec_command", "shell_command"),
}
# Names of arguments by their meaning.
_ARGUMENTS = {
    "path": ("file_path", "filePath", "path", "absolute_path"),
    "old": ("old_string", "oldString"),
    "new": ("new_string", "newString"),
    "content": ("content",),
    "command": ("command", "cmd"),
}
_FILLER: Mapping[str, Any] = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One tool call of a script. `content` is the complete file after an edit or a write."""

    kind: Literal["read", "edit", "write", "run"]
    path: str = ""
    old: str = ""
    new: str = ""
    content: str = ""
    command: str = ""

    def as_command(self) -> str:
        """Return a command with the same effect, for agents with no other tool."""
        if self.kind == "run":
            return self.command
        path = shlex.quote(self.path)
        if self.kind == "read":
            return f"cat {path}"
        folder = shlex.quote(str(PurePosixPath(self.path).parent))
        return f"mkdir -p {folder} && printf %s {shlex.quote(self.content)} > {path}"

    def as_patch(self) -> str:
        """Return the edit or write in the format of Codex's apply_patch."""
        if self.kind == "write":
            lines = [f"*** Add File: {self.path}", *(f"+{line}" for line in self.content.splitlines())]
        else:
            lines = [f"*** Update File: {self.path}", "@@"]
            lines += [f"-{line}" for line in self.old.splitlines()]
            lines += [f"+{line}" for line in self.new.splitlines()]
        return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def tools_of(body: Json) -> dict[str, Json | None]:
    """Return the schema of each offered tool by its name; None for a tool whose input is text."""
    return dict(_tools(body.get("tools")))


def _tools(found: Any) -> Iterator[tuple[str, Json | None]]:
    if isinstance(found, list):
        for each in found:
            yield from _tools(each)
    elif isinstance(found, dict):
        places = ("parameters", "input_schema", "parametersJsonSchema")
        schema = next((found[name] for name in places if name in found), None)
        if "name" in found and (schema is not None or found.get("type") == "custom"):
            yield found["name"], schema
        else:
            for each in found.values():
                yield from _tools(each)


def call_for(step: Step, tools: Mapping[str, Json | None]) -> Call:
    """Return the call of the agent's own tool for a step. Without such a tool a command does the step."""
    if step.kind in {"edit", "write"} and _PATCH in tools:
        return _filled(_PATCH, tools[_PATCH], {}, rest=step.as_patch())
    name = next((name for name in _NAMES[step.kind] if name in tools), None)
    if name is None:
        assert step.kind != "run", f"no tool runs commands: {sorted(tools)}"
        return call_for(Step(kind="run", command=step.as_command()), tools)
    values = {field: getattr(step, field) for field in _ARGUMENTS} | {"path": f"{PROJECT}/{step.path}"}
    return _filled(name, tools[name], values, rest="Work on the task.")


def _filled(name: str, schema: Json | None, values: Mapping[str, str], *, rest: str) -> Call:
    """Return a call with all known and all required arguments; `rest` is the value of unknown texts."""
    if schema is None:
        return Call(name=name, arguments=rest)
    made: Json = {}
    for argument, about in (schema.get("properties") or {}).items():
        meaning = next((field for field, names in _ARGUMENTS.items() if argument in names), None)
        if meaning is not None and meaning in values:
            made[argument] = values[meaning]
        elif argument in (schema.get("required") or ()):
            made[argument] = _FILLER.get(about.get("type"), rest)
    return Call(name=name, arguments=made)

"""Values of agents: settings, conversations with a model, and the record of an agent's work.

In a sample key the agent's name replaces the answer format. The files that an agent leaves are its answer.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - evaluated at run time to check settings
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import MinLen, Predicate

from astra_async.types.declarations import Setting, is_agent_name

# Interface between an agent and its model: chat completions, Responses, Messages, generateContent.
AgentWire = Literal["chat", "responses", "messages", "gemini"]
AGENT_MINUTES = 30.0
# Reason for the end of an agent's work: a normal end, an error of the agent, or one of its limits.
AgentEnd = Literal["done", "crashed", "time", "steps", "cost", "context"]
_ENDS: Mapping[str, str] = {
    "done": "finished",
    "crashed": "crashed",
    "time": "reached its time limit",
    "steps": "reached its limit of model calls",
    "cost": "reached its cost limit",
    "context": "the model's context was full",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may call; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that a model makes; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Result of a tool call."""

    call: ToolCall
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a dialogue.

    Only an assistant has `calls`, only a user has `results`. `native` is the assistant's message in the
    provider's form (signatures, thinking blocks). It is sent back unchanged over the same interface.
    """

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    native: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Request of an agent in neutral form; each wire format translates it."""

    system: str = ""
    tools: tuple[Tool, ...] = ()
    messages: tuple[Message, ...] = ()
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeBody:
    """Request of an agent in the provider's own interface; only the model's name is changed.

    `headers` are the agent's headers for the provider (`anthropic-beta`, `anthropic-version`).
    """

    fields: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Settings of one agent: a table `[[agents]]` in TOML, or an agent of the catalog.

    In `command`, `variables` and `files` these placeholders are replaced for each sample: {prompt},
    {prompt_file}, {model}, {base_url}, {token}.

    Attributes:
        speaks: interface between agent and model. The agent `shell` runs in this process and needs none.
        command: run by bash in the project's folder, as the tests' user.
        files: path below HOME to text.
        logs: globs below HOME for the agent's own session log (see `agents.session_log`).
        volume: volume of the engine with the installed agent; empty if the problem's image has the agent.
        sha256: hash of the volume's content.
    """

    name: Annotated[
        str, Predicate(is_agent_name), Setting("Name of the agent in --agent and in all records.")
    ]
    version: Annotated[str, Setting("Version of the agent, for all records.")] = ""
    speaks: Annotated[AgentWire | None, Setting("Interface between the agent and its model.")] = None
    command: Annotated[str, MinLen(1), Setting("Command that bash runs in the project's folder.")] = ""
    acp: Annotated[
        bool, Setting("The agent speaks the Agent Client Protocol over standard input and output.")
    ] = False
    variables: Annotated[Mapping[str, str], Setting("Environment variables of the agent.")] = field(
        default_factory=dict
    )
    files: Annotated[Mapping[str, str], Setting("Files below the agent's HOME, path to text.")] = field(
        default_factory=dict
    )
    logs: Annotated[
        tuple[str, ...],
        Setting("Files below the agent's HOME to keep as its session log: globs of bash."),
    ] = ()
    volume: Annotated[str, Setting("Docker volume to mount read-only at /opt/agent.")] = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """Limits of an agent for one sample; None means no limit. `minutes` exclude model calls."""

    minutes: float = AGENT_MINUTES
    steps: int | None = 250
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWork:
    """Record of an agent's work on one sample, stored with its answer and its final line.

    Attributes:
        steps: number of answered model calls.
        replayed: number of these calls that were replayed from the record of a killed process.
        repeated_usd: cost of recorded calls that a replay did not use.
        model_s: seconds during model calls.
        own_s: all other seconds.
        translated: True if agent and model use different interfaces.
        removed: names of the parts removed from requests (`web_search`).
        left_out: files in the project that are not part of the answer, each with the reason: at most 200
            paths for a reason, then the number of the others.
        lost: number of these files that are neither generated (dependencies, build output, agents' own files)
            nor refused by the rules for answers.
        output_tail: end of the output of a crashed agent.
    """

    agent: str
    version: str
    end: str  # an AgentEnd
    exit_code: int | None = None
    steps: int = 0
    replayed: int = 0
    repeated_usd: float = 0.0
    model_s: float = 0.0
    own_s: float = 0.0
    translated: bool = False
    removed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    lost: int = 0
    output_tail: str = ""


def end_in_words(record: Mapping[str, Any]) -> str | None:
    """Return the name, the version and the end of the agent in a sample's record; None without an agent."""
    if not (agent := record.get("agent")):
        return None
    return f"{agent['agent']} {agent['version']}: {_ENDS.get(agent['end'], agent['end'])}"

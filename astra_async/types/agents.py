"""Agents: what one says to a model and hears, and what became of its work on a problem.

An agent stands in a sample's key where the answer's format does. What it leaves in the project is its answer.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time, by whoever checks a setting
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import MinLen, Predicate

from astra_async.types.declarations import Setting, is_agent_name

# The interfaces that agents speak to their model: chat completions, Responses, Messages, generateContent.
AgentWire = Literal["chat", "responses", "messages", "gemini"]
# Why an agent's work came to its end: by itself, with an error of its own, or at one of its limits.
AGENT_MINUTES = 30.0
AgentEnd = Literal["done", "crashed", "time", "steps", "cost", "context"]


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
    """What a call came to."""

    call: ToolCall
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a dialogue.

    `calls` are an assistant's, `results` a user's. `native` is an assistant's message as its provider sent it
    (signatures, thinking blocks), to be sent back untouched where the same interface reads it.
    """

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    native: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """All that a model is asked with, in no provider's words: each wire format writes it in its own."""

    system: str = ""
    tools: tuple[Tool, ...] = ()
    messages: tuple[Message, ...] = ()
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeBody:
    """A request that agent and provider speak alike: sent on as it is, but for the model's name.

    `headers` are those of the agent's that the provider is to see (`anthropic-beta`, `anthropic-version`).
    """

    fields: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One agent as a run knows it (`[[agents]]` in TOML, or one of those that are known by name).

    `command` is run by bash in the project's folder, as the tests' user. In it and in `variables` and `files`
    (path below HOME -> text) these stand for what a sample has: {prompt}, {prompt_file}, {model}, {base_url},
    {token}. `speaks` is the interface that it calls its model by; the agent `shell`, which works in this
    process, needs none. `volume` is the engine's volume that it was installed into, mounted read-only at
    /opt/agent, none where the problem's image has the agent; `sha256` is of what is in it.
    """

    name: Annotated[str, Predicate(is_agent_name), Setting("What --agent and every record call it.")]
    version: Annotated[str, Setting("What every record says of it.")] = ""
    speaks: Annotated[AgentWire | None, Setting("Interface that it calls its model by.")] = None
    command: Annotated[str, MinLen(1), Setting("What bash runs in the project's folder.")] = ""
    variables: Annotated[Mapping[str, str], Setting("Variables of its environment.")] = field(
        default_factory=dict
    )
    files: Annotated[Mapping[str, str], Setting("Files below its HOME, path to text.")] = field(
        default_factory=dict
    )
    volume: Annotated[str, Setting("Docker volume that is mounted at /opt/agent, read-only.")] = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """What one sample's work may take; None: no limit. `minutes` leave out the time of model calls."""

    minutes: float = AGENT_MINUTES
    steps: int | None = 250
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWork:
    """What an agent did for one sample: recorded with its answer and its final line.

    `steps` counts model calls that were answered, `replayed` those of them that came from the record of a
    call that was killed; `repeated_usd` is what was paid twice because a replay went another way.
    `model_s` is time in which a model call was under way, `own_s` the rest. `translated`: agent and model
    speak different interfaces. `removed` names what was taken out of requests (`web_search`), `left_out` what
    lay in the project in the end and is no part of the answer, with the reason. `output_tail` is the
    end of what a crashed agent printed.
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
    output_tail: str = ""

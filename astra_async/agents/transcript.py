"""Rebuild an agent's conversation with its model, step by step, from the lines of calls.jsonl.

A step is one model call: the messages that its request added, and the model's answer. An agent may have
several conversations (subagents, titles). A step that does not continue the previous one contains all its
messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from astra_async.agents.call_log import rebuilt, recorded_call
from astra_async.agents.gateway.gateway_server import INTERFACES
from astra_async.agents.gateway.interface import NotUnderstood
from astra_async.asking.providers.answer import WRONG_SHAPE
from astra_async.asking.providers.request_fields import arguments_of
from astra_async.types import AgentWire, Dialogue, Message
from astra_async.types.records import Flaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from astra_async.agents.call_log import Json
    from astra_async.types import Completion, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptStep:
    """One model call. `added` holds the new messages; `goes_on` is True if it continues the previous step.

    `seconds` is the duration of the call, waiting included; `at` is its end (UTC, ISO 8601).
    """

    number: int
    at: str
    seconds: float
    goes_on: bool
    system: str
    tools: tuple[Tool, ...]
    added: tuple[Message, ...]
    answer: Completion


def steps_of(records: Iterable[Mapping[str, Any]], speaks: str | None) -> Iterator[TranscriptStep]:
    """Yield the steps of one sample's lines. `speaks` is the agent's interface, None for `shell`.

    A damaged line and the lines that build on it are skipped.
    """
    bodies: dict[int, Json] = {}
    before: Sequence[Message] = ()
    matched = _Matched()
    for record in records:
        try:
            call = recorded_call(dict(record))
            since = {} if call.since is None else bodies[call.since]
            bodies[call.step] = body = rebuilt(since, call.request)
            dialogue = _dialogue(body, speaks)
        except (Flaw, NotUnderstood, msgspec.ValidationError, *WRONG_SHAPE):
            continue
        # The provider's native message may be missing in a later request, so it is not compared.
        messages = [replace(each, native=None) for each in dialogue.messages]
        goes_on = bool(before) and messages[: len(before)] == before
        added = dialogue.messages[len(before) :] if goes_on else dialogue.messages
        if goes_on and added and added[0].role == "assistant":
            added = added[1:]  # the answer of the previous step
        before = messages
        yield TranscriptStep(
            number=call.step,
            at=call.at,
            seconds=call.seconds,
            goes_on=goes_on,
            system="" if goes_on else dialogue.system,
            tools=() if goes_on else dialogue.tools,
            added=tuple(map(matched.message, added)),
            answer=call.completion,
        )
        matched.unanswered += call.completion.calls


class _Matched:
    """Finds the model's call for each result of a tool.

    Some clients (Gemini CLI) replace the model's ids. A result with an unknown id belongs to the first
    unanswered call of its tool, preferably with the same arguments.
    """

    def __init__(self) -> None:
        self.unanswered: list[ToolCall] = []
        self._calls: dict[str, ToolCall] = {}  # by the id that the client uses

    def message(self, message: Message) -> Message:
        """Return a message whose results carry the model's calls."""
        results = tuple(replace(each, call=self._call(each.call)) for each in message.results)
        return replace(message, results=results) if results else message

    def _call(self, used: ToolCall) -> ToolCall:
        if used.id not in self._calls:
            alike = [call for call in self.unanswered if used.name == call.name]
            fields = arguments_of(used)
            alike.sort(key=lambda call: (call.id != used.id, arguments_of(call) != fields))
            self._calls[used.id] = found = alike[0] if alike else used
            if alike:
                self.unanswered.remove(found)
        return self._calls[used.id]


def interface_of(run: Mapping[str, Any], agent: str) -> str | None:
    """Return the interface of an agent from run.json, or None."""
    try:
        speaks = run["parts"]["formats"][agent]["agent"]["speaks"]
    except (KeyError, TypeError):
        return None
    return speaks if isinstance(speaks, str) else None


def step_as_json(step: TranscriptStep) -> dict[str, Any]:
    """Return a step as JSON for `astra show --json` and the viewer."""
    answer = step.answer
    return {
        "step": step.number,
        "at": step.at,
        "seconds": step.seconds,
        "goes_on": step.goes_on,
        "system": step.system,
        "tools": [tool.name for tool in step.tools],
        "messages": [_message(each) for each in step.added],
        "text": answer.text,
        "calls": [{"name": call.name, "arguments": call.arguments} for call in answer.calls],
        "finish_reason": answer.finish_reason,
        "input_tokens": answer.usage.input_tokens,
        "cached_tokens": answer.usage.cached_tokens,
        "output_tokens": answer.usage.output_tokens,
        "cost_usd": answer.cost_usd,
    }


def step_as_text(step: TranscriptStep) -> str:
    """Format a step as text."""
    usage, cost = step.answer.usage, step.answer.cost_usd
    tokens = f"{usage.input_tokens or 0:,} + {usage.output_tokens or 0:,} tokens"
    lines = [f"step {step.number}: {step.seconds:.1f} s, {tokens}" + (f", ${cost:.4f}" if cost else "")]
    for message in step.added:
        if message.text:
            lines += [f"[{message.role}]", message.text]
        lines += [f"[{result.call.name or 'tool'} gave]\n{result.text}" for result in message.results]
    if step.answer.text:
        lines += ["[model]", step.answer.text]
    lines += [f"[model calls {call.name}] {call.arguments}" for call in step.answer.calls]
    return "\n".join(lines)


def _message(message: Message) -> dict[str, Any]:
    results = [{"name": each.call.name, "text": each.text, "failed": each.failed} for each in message.results]
    return {"role": message.role, "text": message.text, "results": results}


def _dialogue(body: Json, speaks: str | None) -> Dialogue:
    """Parse a recorded request. A translated request is recorded as a Dialogue already."""
    messages = body.get("messages")
    is_dialogue = isinstance(messages, list) and bool(messages) and "results" in messages[0]
    if speaks in get_args(AgentWire) and not is_dialogue:
        return INTERFACES[speaks].read(body)  # type: ignore[index]  # checked in the line above
    return msgspec.convert(body, Dialogue)

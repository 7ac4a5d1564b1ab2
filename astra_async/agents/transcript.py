"""What an agent and its model said to each other, step by step, from the lines of calls.jsonl.

A step is one model call: what was new in its request, and what the model answered. An agent may hold several
dialogues (subagents, titles): a step whose request does not go on from the one before says all of it anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from astra_async.agents.call_log import rebuilt, recorded_call
from astra_async.agents.gateway.gateway_server import INTERFACES
from astra_async.agents.gateway.interface import NotUnderstood
from astra_async.asking.providers.answer import WRONG_SHAPE
from astra_async.types import AgentWire, Dialogue, Message
from astra_async.types.records import Flaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from astra_async.agents.call_log import Json
    from astra_async.types import Completion, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptStep:
    """One model call: `added` is what its request added, `goes_on` whether it went on from the step before.

    `seconds` is how long the call was under way, waiting included; `at` its end (UTC, ISO 8601).
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
    """The steps of one sample's lines; `speaks` is the interface of its agent, None for `shell`.

    A line that cannot be read is passed over, and so is what goes on from it.
    """
    bodies: dict[int, Json] = {}
    before: Sequence[Message] = ()
    for record in records:
        try:
            call = recorded_call(dict(record))
            since = {} if call.since is None else bodies[call.since]
            bodies[call.step] = body = rebuilt(since, call.request)
            dialogue = _dialogue(body, speaks)
        except (Flaw, NotUnderstood, msgspec.ValidationError, *WRONG_SHAPE):
            continue
        # Without what a provider sent beside, a message is the same in every request.
        messages = [replace(each, native=None) for each in dialogue.messages]
        goes_on = bool(before) and messages[: len(before)] == before
        added = dialogue.messages[len(before) :] if goes_on else dialogue.messages
        if goes_on and added and added[0].role == "assistant":
            added = added[1:]  # the answer of the step before
        before = messages
        yield TranscriptStep(
            number=call.step,
            at=call.at,
            seconds=call.seconds,
            goes_on=goes_on,
            system="" if goes_on else dialogue.system,
            tools=() if goes_on else dialogue.tools,
            added=tuple(added),
            answer=call.completion,
        )


def interface_of(run: Mapping[str, Any], agent: str) -> str | None:
    """The interface that an agent of a run speaks, by its run.json."""
    try:
        speaks = run["parts"]["formats"][agent]["agent"]["speaks"]
    except (KeyError, TypeError):
        return None
    return speaks if isinstance(speaks, str) else None


def step_as_json(step: TranscriptStep) -> dict[str, Any]:
    """A step for `astra show --json` and the viewer."""
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
    """A step for people."""
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
    """The dialogue that a recorded request is; one that was translated is recorded as such."""
    messages = body.get("messages")
    is_dialogue = isinstance(messages, list) and bool(messages) and "results" in messages[0]
    if speaks in get_args(AgentWire) and not is_dialogue:
        return INTERFACES[speaks].read(body)  # type: ignore[index]  # as it was just found to be
    return msgspec.convert(body, Dialogue)

"""An agent's sample in an `.eval` log of inspect_ai: its messages, and an event for each model call."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.agents.call_log import CallLog
from astra_async.agents.transcript import interface_of, steps_of
from astra_async.export.lines import usage_of
from astra_async.running.recorded import CALLS_NAME
from astra_async.types import SampleKey
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from astra_async.agents.transcript import TranscriptStep
    from astra_async.report.load import Run
    from astra_async.types import Message, ToolCall

    Record = Mapping[str, Any]


def transcripts(run: Run) -> Callable[[Record], list[TranscriptStep]]:
    """What gives the steps of a final line's sample."""
    log = CallLog(run.directory / CALLS_NAME)
    recorded = read_run(run.directory / "run.json")

    def of(record: Record) -> list[TranscriptStep]:
        key = SampleKey(record["model"], record["format"], record["problem_id"], record["sample"])
        return list(steps_of(log.records(key), interface_of(recorded, key.format)))

    return of


def agents_part(steps: Iterable[TranscriptStep], record: Record, never: str) -> dict[str, Any]:
    """`messages` and `events` of a sample; a call's input is what was new in it."""
    messages: list[dict[str, Any]] = []
    events = []
    for step in steps:
        new = [{"role": "system", "content": step.system}] if step.system else []
        new += [each for message in step.added for each in _messages(message)]
        answer = _answer(step, record["model"])
        messages += [*new, answer]
        events.append(_event(step, new, answer, record["model"], never))
    return {"messages": messages, "events": events} if events else {}


def _messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        call = result.call
        yield {"role": "tool", "content": result.text, "tool_call_id": call.id, "function": call.name}
    if message.text:
        yield {"role": message.role, "content": message.text}


def _answer(step: TranscriptStep, model: str) -> dict[str, Any]:
    answer = step.answer
    message = {"role": "assistant", "content": answer.text, "model": model, "source": "generate"}
    return message | ({"tool_calls": list(map(_call, answer.calls))} if answer.calls else {})


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_of(call)
    return {"id": call.id, "function": call.name, "arguments": arguments, "type": "function"}


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object; what the model wrote under `input` where it is none."""
    try:
        given = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        given = call.arguments
    return given if isinstance(given, dict) else {"input": given}


def _event(
    step: TranscriptStep, new: list[dict[str, Any]], answer: dict[str, Any], model: str, never: str
) -> dict[str, Any]:
    return {
        "event": "model",
        "timestamp": step.at or never,
        "working_start": 0.0,
        "model": model,
        "input": new,
        "tools": [{"name": tool.name, "description": tool.description} for tool in step.tools],
        "tool_choice": "auto",
        "config": {},
        "output": {
            "model": step.answer.returned_model or model,
            "choices": [{"message": answer, "stop_reason": "tool_calls" if step.answer.calls else "stop"}],
            "usage": usage_of({"usage": asdict(step.answer.usage)}),
            "time": step.seconds,
        },
        "completed": step.at or never,
        "working_time": step.seconds,
    }

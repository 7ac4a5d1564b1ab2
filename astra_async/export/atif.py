"""Export of agents' samples as trajectories in ATIF 1.8, one JSON file for each sample.

ATIF is the format of Harbor; NeMo also reads it. A model request becomes a step with source `agent`. New
system and user messages in the request become steps before it. Tool results become the observation of the
step with the tool call. If an agent has several conversations (a subagent, a title), their steps are in the
order of the responses.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.agents.call_log import CallLog
from astra_async.agents.transcript import interface_of, steps_of
from astra_async.export.lines import usage_of
from astra_async.files import plain_name, write_atomically
from astra_async.running.recorded import CALLS_NAME
from astra_async.types import SampleKey, is_agent
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.agents.transcript import TranscriptStep
    from astra_async.report.load import Run
    from astra_async.types import Message, ToolCall

    Record = Mapping[str, Any]


def transcripts(run: Run) -> Callable[[Record], list[TranscriptStep]]:
    """Return a function from a result line to the recorded steps of its sample."""
    log = CallLog(run.directory / CALLS_NAME)
    recorded = read_run(run.directory / "run.json")

    def of(record: Record) -> list[TranscriptStep]:
        key = SampleKey(record["model"], record["format"], record["problem_id"], record["sample"])
        return list(steps_of(log.records(key), interface_of(recorded, key.format)))

    return of


def agents_part(steps: Iterable[TranscriptStep], record: Record, never: str) -> dict[str, Any]:
    """Return the `messages` and `events` of an inspect_ai sample; an event's input has only new messages.

    `never` is the timestamp of a step without a recorded time.
    """
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
    return message | ({"tool_calls": list(map(_openai_call, answer.calls))} if answer.calls else {})


def _openai_call(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_of(call)
    return {"id": call.id, "function": call.name, "arguments": arguments, "type": "function"}


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return a tool call's arguments as an object; text that is not a JSON object is put under `input`."""
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


VERSION = "ATIF-v1.8"


def write_atif(runs: tuple[Run, ...], out: Path) -> int:
    """Write a file for each agent's sample with a result and recorded steps; return the number of files.

    Raises StorageError if a file cannot be written.
    """
    written = 0
    for run in runs:
        steps = transcripts(run)
        for pair, (_, agent) in enumerate(run.pairs):
            if not is_agent(agent):
                continue
            for record in run.lines(run.pair_rows(pair)):
                if found := trajectory(record, steps(record), run.settings.run_id):
                    name = f"{plain_name(record['model'])}-{agent}-{record['sample']}.json"
                    path = out / plain_name(record["problem_id"]) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(path, orjson.dumps(found, option=orjson.OPT_INDENT_2), mode=0o644)
                    written += 1
    return written


def trajectory(
    record: Mapping[str, Any], steps: Sequence[TranscriptStep], run_id: str
) -> dict[str, Any] | None:
    """Return the trajectory of one sample; None if it has no steps."""
    if not steps:
        return None
    named = f"{record['problem_id']}/{record['sample']}"
    work, usage = record.get("agent") or {}, record.get("usage") or {}
    written = [_without_none(step) for step in _steps(steps, record["model"])]
    return {
        "schema_version": VERSION,
        "session_id": f"{run_id}/{record['model']}/{named}",
        "trajectory_id": f"{run_id}/{record['model']}/{record['format']}/{named}",
        "agent": {
            "name": work.get("agent") or record["format"],
            "version": work.get("version") or "",
            "model_name": record["model"],
            "tool_definitions": [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in steps[0].tools
            ],
        },
        "steps": [step | {"step_id": number} for number, step in enumerate(written, 1)],
        "final_metrics": _without_none(
            {
                "total_prompt_tokens": usage.get("input_tokens"),
                "total_completion_tokens": usage.get("output_tokens"),
                "total_cached_tokens": usage.get("cached_tokens"),
                "total_cost_usd": record.get("cost_usd"),
                "total_steps": len(written),
                "extra": {"passed": record["passed"], "total": record["total"], "end": work.get("end")},
            }
        ),
    }


def _steps(steps: Iterable[TranscriptStep], model: str) -> Iterator[dict[str, Any]]:
    """Yield the steps for messages and model requests; tool results are added to the step with the call."""
    callers: dict[str, dict[str, Any]] = {}
    pending: list[dict[str, Any]] = []
    for step in steps:
        if step.system:
            pending.append({"source": "system", "message": step.system})
        for message in step.added:
            for result in message.results:
                caller = callers.pop(result.call.id, None)  # a new conversation may repeat a result
                if caller is not None:
                    observation = caller.setdefault("observation", {"results": []})
                    observation["results"].append({"source_call_id": result.call.id, "content": result.text})
            if message.text:
                source = "agent" if message.role == "assistant" else "user"
                pending.append({"source": source, "message": message.text})
        agent_step = _agents(step, model)
        callers |= {call.id: agent_step for call in step.answer.calls}
        pending.append(agent_step)
    yield from pending


def _agents(step: TranscriptStep, model: str) -> dict[str, Any]:
    answer, usage = step.answer, step.answer.usage
    return {
        "timestamp": step.at or None,
        "source": "agent",
        "model_name": answer.returned_model or model,
        "message": answer.text,
        "tool_calls": list(map(_call, answer.calls)) or None,
        "metrics": _without_none(
            {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens,
                "cost_usd": answer.cost_usd,
            }
        ),
        "llm_call_count": 1,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments_of(call)}


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}

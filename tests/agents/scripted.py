"""A pool that answers an agent's calls from a script, and the log of a run directory beside it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from astra_async.agents.call_log import CallLog
from astra_async.agents.model_calls import AgentCalls, CallPool
from astra_async.types import Completion, ModelSettings, SampleKey, Usage
from astra_async.types.agents import AgentLimits, Dialogue, Message, Tool, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.types import ModelRequest

KEY = SampleKey("m", "shell", "p", 0)
SHELL = Tool(name="shell", description="Runs a command.", parameters={"type": "object"})


def answered(text: str = "", *calls: ToolCall, usd: float | None = 0.01, **fields: Any) -> Completion:
    usage = Usage(input_tokens=100, output_tokens=10)
    known = {"finish_reason": "stop", "returned_model": "scripted", "ttft_s": 0.1, "latency_s": 0.2}
    return Completion(text=text, usage=usage, calls=calls, cost_usd=usd, **{**known, **fields})


def call(number: int, command: str) -> ToolCall:
    return ToolCall(id=f"c{number}", name="shell", arguments=f'{{"command":"{command}"}}')


class Scripted:
    """Answers the n-th request with what `answer` says of it; counts requests, waits where it is told."""

    def __init__(self, answer: Callable[[int, ModelRequest], Completion]) -> None:
        self.asked: list[ModelRequest] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.think_s = 0.0
        self._answer = answer

    async def call(self, request: ModelRequest) -> Completion:
        self.asked.append(request)
        number = len(self.asked) - 1
        await self.may_answer.wait()
        await asyncio.sleep(self.think_s)
        return self._answer(number, request)


def a_model(spec: str = "openai-compatible/toy") -> ModelSettings:
    provider, _, model = spec.partition("/")
    return ModelSettings(name="m", spec=spec, provider=provider, model=model)


def calls_of(
    folder: Path,
    pool: CallPool,
    *,
    limits: AgentLimits | None = None,
    log: CallLog | None = None,
    spec: str = "openai-compatible/toy",
    sample_header: str | None = None,
) -> AgentCalls:
    log = log or CallLog.open(folder / "calls.jsonl")
    return AgentCalls(
        KEY,
        pool=pool,
        settings=a_model(spec),
        log=log,
        limits=limits or AgentLimits(),
        sample_header=sample_header,
    )


def asking(*texts: str) -> Dialogue:
    said = tuple(
        Message(role="assistant" if number % 2 else "user", text=text) for number, text in enumerate(texts)
    )
    return Dialogue(system="Work.", tools=(SHELL,), messages=said)

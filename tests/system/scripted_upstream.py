"""A server with four providers' interfaces that plays a script for each problem and counts billed tokens.

The next step of a script is the number of tool calls in the request. Therefore the server keeps no state of a
conversation, and a run that was killed continues at the right step.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_tools import SUBMIT, Step, call_for, tools_of
from aiohttp import web
from provider_streams import STREAMS, Counts, Json, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

Spoil = Callable[[str, web.Request, list[bytes]], Awaitable[web.StreamResponse | None]]
Replace = Callable[["Asked", Reply], Reply | None]
# Model and provider by interface. Agents have other tools for models whose names they do not know.
MODELS = {
    "messages": "anthropic/claude-opus-5",
    "responses": "openai-responses/gpt-5.4",
    "gemini": "gemini/gemini-3-pro-preview",
    "chat": "openai/gpt-5.1",
}
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef",
    "OPENAI_API_KEY": "sk-test-0123456789abcdef",
    "GEMINI_API_KEY": "AIza0123456789abcdef",
}
# US dollars per million tokens.
PRICES = {"price_input": 3.0, "price_cached_input": 0.3, "price_cache_write": 3.75, "price_output": 15.0}
_CALLS = {"function_call", "custom_tool_call", "tool_use"}
_MESSAGES_AT = ("messages", "input", "contents")
_REASONING = 16
# Beginnings of requests for a summary of the conversation: Claude Code, Codex, Gemini CLI, OpenCode.
_COMPACTIONS = (
    "create a detailed summary of",
    "CONTEXT CHECKPOINT COMPACTION",
    "<state_snapshot>",
    "anchored summary",
    "continuing our conversation",
)
_AIDERS_FORMATS = ("SEARCH/REPLACE", "*file listing*")


@dataclass(frozen=True, kw_only=True)
class Script:
    """Work on one problem. `marker` is a text that only this problem's requests contain."""

    marker: str
    steps: Sequence[Step]
    at_once: int = 1  # tool calls of one answer


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request of a model.

    Attributes:
        speaks: name of the interface.
        text: all texts of the request; `last` are those of its last two messages.
        tools: schemas of the offered tools by name.
        calls: number of tool calls in the conversation.
        messages: number of messages in the conversation.
    """

    speaks: str
    body: Json
    text: str
    last: str
    tools: Mapping[str, Json | None]
    calls: int
    messages: int

    @classmethod
    def of(cls, path: str, body: Json) -> Asked:
        ends = {"chat/completions": "chat", "responses": "responses", "messages": "messages"}
        speaks = next((speaks for end, speaks in ends.items() if path.endswith(end)), "gemini")
        messages = _messages(body)
        made = sum(map(_is_call, _walk(messages)))
        text, last = ("\n".join(filter(_is_text, _walk(part))) for part in (body, messages[-2:]))
        counts = {"calls": made, "messages": len(messages)}
        return cls(speaks=speaks, body=body, text=text, last=last, tools=tools_of(body), **counts)


def _messages(body: Json) -> list[Json]:
    return next(body[name] for name in _MESSAGES_AT if name in body)


def _walk(value: Any) -> Iterator[Any]:
    yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _walk(part)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_call(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    function = value.get("function")
    is_chat = isinstance(function, dict) and "arguments" in function
    return value.get("type") in _CALLS or "functionCall" in value or is_chat


@dataclass
class Upstream:
    """State of the server.

    Attributes:
        asked: all requests, in order.
        billed: tokens of all answers.
        spoil: replaces the stream of an answer, or returns None. Such an answer is not billed.
        reply: replaces the content of an answer, or returns None.
        times: number of answers to replace, beginning with the second request.
        spoiled: number of replaced answers so far.
        may_answer: answers are held back while this event is not set.
    """

    scripts: Sequence[Script]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    billed: list[Counts] = field(default_factory=list)
    spoil: Spoil | None = None
    reply: Replace | None = None
    times: int = 1
    spoiled: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def different(self) -> int:
        """Number of different conversations in the requests."""
        return len({json.dumps(_messages(asked.body)) for asked in self.asked})

    @property
    def usd(self) -> float:
        """US dollars for all answers."""
        return sum(map(_usd, self.billed))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw)
        asked = Asked.of(request.path.partition(":")[0], body)
        number = len(self.asked)
        self.asked.append(asked)
        await self.may_answer.wait()
        is_spoiled = number > 0 and self.spoiled < self.times
        reply = self._scripted(asked)
        if is_spoiled and self.reply and (replaced := self.reply(asked, reply)):
            self.spoiled += 1
            reply = replaced
        counts = _counts(len(raw), asked, reply)
        model = body.get("model") or re.search(r"models/([^:]+)", request.path)[1]  # type: ignore[index]
        pieces = list(STREAMS[asked.speaks](reply, model, f"{number:04}", counts))
        if is_spoiled and self.spoil:
            self.spoiled += 1
            if (response := await self.spoil(asked.speaks, request, pieces)) is not None:
                return response
        self.billed.append(counts)
        return await streamed(request, pieces)

    def _scripted(self, asked: Asked) -> Reply:
        script = next((each for each in self.scripts if each.marker in asked.text), None)
        if script is None:
            return Reply(text="A short title")
        if any(words in asked.last for words in _COMPACTIONS):
            return Reply(text=f"<summary>Nothing is done yet. The task: {script.marker}</summary>")
        if not asked.tools:
            is_aider = any(words in asked.text for words in _AIDERS_FORMATS)
            return Reply(text=_as_blocks(script.steps, asked.text) if is_aider else "A short title")
        steps = script.steps[asked.calls : asked.calls + script.at_once]
        if steps:
            return Reply(text="I continue.", calls=tuple(call_for(step, asked.tools) for step in steps))
        if asked.calls == len(script.steps) and SUBMIT.partition(" ")[2] in asked.text:
            return Reply(text="", calls=(call_for(Step(kind="run", command=SUBMIT), asked.tools),))
        return Reply(text="All is done.")


async def streamed(
    request: web.Request, pieces: Sequence[bytes], *, is_cut: bool = False
) -> web.StreamResponse:
    """Send a stream. With `is_cut` the connection breaks instead of the end of the stream."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    if is_cut and request.transport:
        request.transport.abort()
    else:
        await response.write_eof()
    return response


def _as_blocks(steps: Sequence[Step], text: str) -> str:
    """Return all edits as aider expects them in a text: changed blocks or whole files."""
    blocks = []
    for step in steps:
        if step.kind not in {"edit", "write"}:
            continue
        if "SEARCH/REPLACE" in text:
            inner = f"<<<<<<< SEARCH\n{step.old}=======\n{step.new or step.content}>>>>>>> REPLACE\n"
        else:
            inner = step.content
        blocks.append(f"{step.path}\n```\n{inner}```\n")
    return "These are the changes:\n\n" + "\n".join(blocks)


def _counts(size: int, asked: Asked, reply: Reply) -> Counts:
    inputs = size // 4
    outputs = (len(reply.text) + sum(len(call.text) for call in reply.calls)) // 4 + 8 + _REASONING
    cached = inputs // 2 if asked.calls else 0
    written = inputs // 4 if asked.speaks == "messages" else 0
    return Counts(inputs=inputs, cached=cached, written=written, outputs=outputs, reasoning=_REASONING)


def _usd(counts: Counts) -> float:
    plain = counts.inputs - counts.cached - counts.written
    amounts = zip((plain, counts.cached, counts.written, counts.outputs), PRICES.values(), strict=True)
    return sum(tokens * price for tokens, price in amounts) / 1e6


@asynccontextmanager
async def upstream(scripts: Sequence[Script]) -> AsyncIterator[Upstream]:
    """Start the server. `url` of the result is the base URL of every provider."""
    served = Upstream(scripts)
    served.may_answer.set()
    application = web.Application(client_max_size=1024**3)
    application.router.add_post("/{path:.*}", served.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield served
    finally:
        await runner.cleanup()

"""Faults of a provider's second answer: error responses, broken streams, silence, and unusual content."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import web
from provider_streams import Json, Reply
from scripted_upstream import Asked, Replace, Spoil, streamed

if TYPE_CHECKING:
    from collections.abc import Mapping

# Seconds without an answer. Gemini CLI gives up after 60 seconds, the others at the limits below.
_SILENCE_S = {"gemini": 75.0, "": 40.0}
# Settings of agents with shorter limits of silence: tables of TOML.
IMPATIENT = {
    "claude-code": 'variables = {CLAUDE_STREAM_IDLE_TIMEOUT_MS = "15000"}',
    "mini-swe-agent": 'variables = {REQUEST_TIMEOUT = "30"}',
    "aider": 'variables = {REQUEST_TIMEOUT = "30", AIDER_TIMEOUT = "30"}',
}
_MEGABYTES_5 = 5_000_000
# Codes by interface: Messages, Gemini; the other interfaces have OpenAI's.
_LIMITED = {"messages": "rate_limit_error", "gemini": "RESOURCE_EXHAUSTED", "": "rate_limit_exceeded"}
_BUSY = {"messages": "overloaded_error", "gemini": "UNAVAILABLE", "": "server_is_overloaded"}
_INVALID = {"messages": "invalid_request_error", "gemini": "INVALID_ARGUMENT", "": "invalid_request_error"}
_FULL = {**_INVALID, "": "context_length_exceeded"}
_ABSENT = {"messages": "not_found_error", "gemini": "NOT_FOUND", "": "invalid_request_error"}
_TOO_LONG = {
    "messages": "prompt is too long: 213462 tokens > 200000 maximum",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "responses": "Your input exceeds the context window of this model. Please adjust your input.",
    "": "This model's maximum context length is 128000 tokens. Please reduce the length of the messages.",
}
_NOT_FOUND = {
    "messages": "File not found: file_011CNha8iCJcU1wXNR6q4V8w",
    "responses": "Item with id 'rs_0000' not found. Items are not persisted when `store` is set to false.",
    "gemini": "CachedContent not found (or permission denied)",
    "": "No endpoints found that support image input",
}


def _error(speaks: str, status: int, code: str, message: str) -> Json:
    match speaks:
        case "messages":
            return {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_0"}
        case "gemini":
            return {"error": {"code": status, "message": message, "status": code}}
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def _responds(status: int, codes: Mapping[str, str], texts: Mapping[str, str], **headers: str) -> Spoil:
    async def spoil(speaks: str, request: web.Request, pieces: list[bytes]) -> web.StreamResponse:
        code, text = (each.get(speaks, each[""]) for each in (codes, texts))
        return web.json_response(_error(speaks, status, code, text), status=status, headers=headers)

    return spoil


async def _cut(speaks: str, request: web.Request, pieces: list[bytes]) -> web.StreamResponse:
    return await streamed(request, pieces[: len(pieces) // 2], is_cut=True)


async def _silent(speaks: str, request: web.Request, pieces: list[bytes]) -> None:
    await asyncio.sleep(_SILENCE_S.get(speaks, _SILENCE_S[""]))


async def _busy_in_stream(speaks: str, request: web.Request, pieces: list[bytes]) -> web.StreamResponse:
    error = _error(speaks, 503, _BUSY.get(speaks, _BUSY[""]), "Overloaded")
    event = {"type": "error", **error["error"]} if speaks == "responses" else error
    head = "event: error\n" if "type" in event else ""
    return await streamed(request, [*pieces[:1], f"{head}data: {json.dumps(event)}\n\n".encode()])


# Faults that the gateway hides from the agent, with the number of spoiled answers.
HIDDEN: dict[str, tuple[Spoil, int]] = {
    "429 with Retry-After": (_responds(429, _LIMITED, {"": "Rate limited"}, **{"Retry-After": "1"}), 1),
    "429 without Retry-After": (_responds(429, _LIMITED, {"": "Rate limited"}), 1),
    "overloaded": (_responds(503, _BUSY, {"": "Overloaded"}), 1),
    "overloaded twice in the stream": (_busy_in_stream, 2),
    "cut": (_cut, 1),
    "silence": (_silent, 1),
}
# Errors that the agent sees.
REFUSALS: dict[str, Spoil] = {
    "context": _responds(400, _FULL, _TOO_LONG),
    "400": _responds(400, _INVALID, {"": "messages.1: this field is not allowed"}),
    "404": _responds(404, _ABSENT, _NOT_FOUND),
}


def _called(change: Replace) -> Replace:
    """Change only answers with tool calls, after the first call."""

    def replaced(asked: Asked, reply: Reply) -> Reply | None:
        return change(asked, reply) if reply.calls and asked.calls else None

    return replaced


def _with_call(**fields: object) -> Replace:
    def changed(asked: Asked, reply: Reply) -> Reply:
        return replace(reply, calls=(replace(reply.calls[0], **fields),))  # type: ignore[arg-type]

    return _called(changed)


# Answers that no agent may take as a reason to repeat its request. Aider has no tools.
ANSWERS: dict[str, Replace] = {
    "refusal": lambda asked, reply: Reply(text="I cannot help with that.", refused=True),
    "empty": lambda asked, reply: Reply(text=""),
    "invalid JSON": _with_call(invalid='{"command": "ls'),
    "unknown tool": _with_call(name="no_such_tool"),
    "5 MB of text": lambda asked, reply: replace(reply, text="word " * (_MEGABYTES_5 // 5)),
}

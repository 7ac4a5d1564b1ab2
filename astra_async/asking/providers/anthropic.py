"""Anthropic's Messages API (`POST {base}/v1/messages`), always streamed.

Anthropic's `input_tokens` excludes tokens that were read from or written to the prompt cache. A Usage
includes them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from astra_async.asking.providers.answer import Json, Reader, StreamFault, text_of
from astra_async.asking.providers.connection import join_url, without_version
from astra_async.asking.providers.counts import count, merged, usage_from_parts
from astra_async.asking.providers.deltas import merge, read_input
from astra_async.asking.providers.rate_limits import anthropic_limits
from astra_async.asking.providers.request_fields import (
    USUAL_SETTINGS,
    WireFormat,
    arguments_of,
    pieces,
    tools_of,
)
from astra_async.errors import ConfigError
from astra_async.types import Usage
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import ModelRequest, ModelSettings, RateLimits
    from astra_async.types.agents import Message, ToolResult

BASE_URL = "https://api.anthropic.com"
# API versions from 2026-10-21 on reject sampling parameters for every model. This version accepts them for
# older models.
DEFAULT_API_VERSION = "2023-06-01"
_LEAST_BUDGET = 1024
# Input tokens: without the prompt cache, read from the cache, written to the cache.
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_PLACES = {"partial_json": "input", "citation": "citations"}  # field of the block by field of the delta


class MessageReader(Reader):
    """Reader of one message's events. The message has ended once a stop_reason arrived.

    Unknown events are ignored. A complete message is read as well, because some servers send one instead of
    or after a stream.
    """

    def __init__(self) -> None:
        super().__init__()
        self._message: Json = {}
        self._blocks: dict[int, Json] = {}  # by index; the input of a tool call is text until it is complete

    def feed(self, event: Json | None) -> None:
        """Process one event."""
        if event is None:
            return
        kind = event.get("type")
        if kind in {"content_block_delta", "content_block_start"}:
            self._piece(event, event.get("delta") or event["content_block"])
        elif kind == "message_start":
            self._message = dict(event["message"])
            self.model = event["message"].get("model")
            # `output_tokens` is a placeholder here (1, or a few). The real count comes in `message_delta`.
            self._count({**(event["message"].get("usage") or {}), "output_tokens": None})
        elif kind == "message_delta":
            self.reason = event["delta"].get("stop_reason")
            self._message |= event["delta"]
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        elif kind == "message":
            self._whole(event)
        elif kind == "error" or event.get("error"):
            raise StreamFault(event)

    def usage(self) -> Usage:
        """Return the billed tokens: the sum of all iterations if the request took several.

        A refusal before any output is free (Claude Platform release notes of 2 June 2026).
        """
        if self.reason == "refusal" and not self.transcript.begun:
            return Usage(input_tokens=0, output_tokens=0)
        names = (*_INPUT, "output_tokens")
        iterations = self.counts.get("iterations") or []
        # The top-level counts exclude compaction and advisors. After a fallback, the refused model is free.
        fell_back = any(each.get("type") == "fallback_message" for each in iterations)
        billed = [each for each in iterations if not (fell_back and _is_free(each))] or [self.counts]
        sums = [
            None
            if all(each.get(name) is None for each in billed)
            else sum(each.get(name) or 0 for each in billed)
            for name in names
        ]
        details = self.counts.get("output_tokens_details") or {}
        return usage_from_parts(sums, details.get("thinking_tokens"))

    def complete_response(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """Return the message with its blocks. The input of an incomplete tool call stays text."""
        blocks = [
            {**block, "input": read_input(block["input"])} if "input" in block else block
            for _, block in sorted(self._blocks.items())
        ]
        calls = tuple(
            ToolCall(id=block["id"], name=block["name"], arguments=text_of(block["input"]))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        return {
            "type": "message",
            "role": "assistant",
            **self._message,
            "content": blocks,
            "usage": self.counts,
        }, calls

    def _whole(self, message: Json) -> None:
        self._message, self._blocks = message, dict(enumerate(message["content"]))
        self.model = message.get("model")
        self._count(message.get("usage"))
        blocks = message["content"]
        text = "".join(block["text"] for block in blocks if block.get("type") == "text")
        if self.transcript.characters and text:
            self.transcript.replace_text(text)
        else:
            for block in blocks:
                self._delta(block)
        self.reason = message.get("stop_reason")
        self.done = True

    def _piece(self, event: Json, piece: Json) -> None:
        self._delta(piece)
        if self.keep_complete and "content_block" in event:
            self._blocks[event["index"]] = dict(piece)
            self.transcript.begun = True
        elif self.keep_complete:
            named = {_PLACES.get(name, name): value for name, value in piece.items() if name != "type"}
            if "citations" in named:
                named["citations"] = [named["citations"]]
            merge(self._blocks[event["index"]], named)

    def _delta(self, delta: Json) -> None:
        """Add a delta of a block, or a block at its start, to the text or to the reasoning."""
        text = delta.get("text")
        if text and delta.get("type") in {"text_delta", "text"}:
            self.transcript.add(text)
        elif delta.get("type") in {"thinking_delta", "thinking"}:
            self.transcript.add_reasoning(delta.get("thinking"))
        elif self.keep_complete and delta.get("partial_json"):
            self.transcript.add_hidden(delta["partial_json"])

    def _count(self, usage: Json | None) -> None:
        """Merge cumulative counts. Input counts change together, and only if their sum did not decrease."""
        usage = usage or {}
        if sum(count(usage.get(name)) or 0 for name in _INPUT) < sum(
            count(self.counts.get(name)) or 0 for name in _INPUT
        ):
            usage = {name: value for name, value in usage.items() if name not in _INPUT}
        replaced = {name: value for name, value in usage.items() if name in _INPUT and value is not None}
        self.counts = {**merged(self.counts, usage), **replaced}
        self.tier = "fast" if self.counts.get("speed") == "fast" else self.counts.get("service_tier")


def _is_free(iteration: Json) -> bool:
    """Return True for the attempt of a model that refused before any output."""
    return iteration.get("type") == "message" and not iteration.get("output_tokens")


class Anthropic(WireFormat):
    """Wire format of `anthropic/...`."""

    cached_input_is_exempt = True
    reader = MessageReader
    protected_fields = frozenset({"model", "messages"})
    max_tokens_at = (("max_tokens",),)
    supported_settings = USUAL_SETTINGS | {"api_version"}
    refusal_remedies: ClassVar[Mapping[str, str]] = {
        "max_tokens_field": "it is max_tokens: unset it",
        **dict.fromkeys(("organization", "project"), "an Anthropic key belongs to a workspace: unset it"),
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        super().__init__(settings, settings.base_url or BASE_URL, environ=environ)
        self.url = join_url(without_version(self.base), "v1/messages")
        self.headers = {"anthropic-version": settings.api_version or DEFAULT_API_VERSION}
        if key:
            self.headers["x-api-key"] = key
        self._thinking = claude_thinking(settings)

    def options(self, request: ModelRequest) -> Json:
        """Return model, limits, sampling and thinking, with streaming on."""
        del request
        settings = self.settings
        return {
            "model": settings.model,
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k,
            "stop_sequences": list(settings.stop) or None,
            "service_tier": settings.service_tier,
            **self._thinking,
            "stream": True,
        }

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """Return system, messages and tools.

        A cache marker at the end of the prompt caches everything up to there. If a follow-up turn comes, a
        second marker at the end of the last message caches the conversation for it.
        """
        sent: list[Json] = [{"role": each.role, "content": _blocks(each)} for each in messages]
        marked = [0] if request.cache else []
        marked += [-1] if request.cache and request.goes_on else []
        for place in marked:
            sent[place]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in tools_of(request)
        ]
        return {"system": system or None, "messages": sent, "tools": tools or None}

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Parse Anthropic's rate-limit headers."""
        return anthropic_limits(headers, datetime.now(UTC))


def _blocks(message: Message) -> list[Json]:
    """Return the content blocks of a message."""
    if message.native is not None:
        return [dict(block) for block in map(_sendable_block, message.native["content"])]

    def result(each: ToolResult) -> Json:
        failed = {"is_error": True} if each.failed else {}
        return {"type": "tool_result", "tool_use_id": each.call.id, "content": each.text, **failed}

    def call(each: ToolCall) -> Json:
        return {"type": "tool_use", "id": each.id, "name": each.name, "input": arguments_of(each)}

    return pieces(message, result=result, text={"type": "text", "text": message.text}, call=call)


def _sendable_block(block: Json) -> Json:
    """Return a block that can be sent back: the input of an incomplete tool call becomes empty."""
    return {**block, "input": {}} if isinstance(block.get("input"), str) else block


def claude_thinking(settings: ModelSettings) -> Json:
    """Return the fields that control thinking of a Claude model, at Anthropic and Bedrock.

    `adaptive` needs Claude 4.6 or later, a budget needs a model before 4.7. Without either setting the
    model's default applies, which for most models is not to think.

    Raises:
        ConfigError: the budget is set together with `thinking`, is below 1,024 tokens, or is not below
            max_tokens.
    """
    fields: Json = {}
    budget = settings.thinking_budget
    if settings.thinking is not None and budget is not None:
        raise ConfigError(f"{settings.name}: thinking and thinking_budget exclude each other: unset one")
    if budget is not None:
        if budget < _LEAST_BUDGET or budget >= (settings.max_tokens or budget + 1):
            raise ConfigError(
                f"{settings.name}: thinking_budget = {budget} must be at least {_LEAST_BUDGET} and below"
                f" max_tokens ({settings.max_tokens}), which limits thinking and answer together"
            )
        fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif settings.thinking is not None:
        fields["thinking"] = {"type": "disabled" if settings.thinking == "off" else settings.thinking}
    if settings.reasoning_effort is not None:
        fields["output_config"] = {"effort": settings.reasoning_effort}
    return fields

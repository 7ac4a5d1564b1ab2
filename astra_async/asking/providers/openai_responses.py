"""OpenAI's Responses API (`POST {base}/responses`), without server-side storage. It has no seed.

The stream ends with exactly one of `response.completed`, `.incomplete`, `.failed` or `error`. The first three
contain the complete response, whose text replaces the streamed text.

A message may have a `phase`: `commentary` between the steps of a model, or `final_answer`. Commentary does
not count as answer, except for an agent, which receives all messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from astra_async.asking.providers.answer import Json, Reader, StreamFault
from astra_async.asking.providers.connection import join_url
from astra_async.asking.providers.counts import count
from astra_async.asking.providers.openai_chat import (
    NEWER_MODELS,
    NO_THINKING,
    OPENAI_BASE_URL,
    openai_headers,
    prompt_cache_key,
)
from astra_async.asking.providers.rate_limits import openai_limits
from astra_async.asking.providers.request_fields import USUAL_SETTINGS, WireFormat, pieces, tools_of
from astra_async.types import Usage
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import ModelRequest, ModelSettings, RateLimits
    from astra_async.types.agents import Message, ToolResult

_CALL_ITEMS = frozenset({"function_call", "custom_tool_call"})
_BESIDE_TEXT = frozenset(
    f"response.{kind}.delta" for kind in ("reasoning_summary_text", "reasoning_text", "refusal")
)
_NO_SUCH = "the Responses interface has no such parameter: unset it, or use openai/..."
_CALLS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_ITEM = frozenset({"response.output_item.added", "response.output_item.done"})
_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesReader(Reader):
    """Reader of the typed events of one response."""

    def __init__(self) -> None:
        super().__init__()
        self._response: Json = {}
        self._items: list[Json] = []
        self._commentary: set[Any] = set()  # ids and indexes of messages

    def feed(self, event: Json | None) -> None:
        """Process one event. Unknown events and `[DONE]` are ignored."""
        if event is None:
            return
        kind = event.get("type")
        if kind == "response.output_text.delta":
            is_commentary = not self._commentary.isdisjoint({event.get("item_id"), event.get("output_index")})
            (self.transcript.add_hidden if is_commentary else self.transcript.add)(event["delta"])
        elif kind in _TERMINAL:
            self._end(event["response"])
        elif kind in _BESIDE_TEXT:
            self.transcript.add_reasoning(event.get("delta"))
        elif kind in _CALLS:
            self.transcript.add_hidden(event["delta"])
        elif kind in _ITEM:
            self._take(event)
        elif kind == "response.created":
            self._response = event["response"]
        elif kind == "error" or event.get("error"):
            raise StreamFault(event)
        elif event.get("object") == "response":  # a complete response instead of a stream
            self._end(event)

    def usage(self) -> Usage:
        """Return the tokens of the final response."""
        usage = self._response.get("usage")
        if not isinstance(usage, dict):
            return Usage()
        inputs = usage.get("input_tokens_details") or {}
        return Usage(
            input_tokens=count(usage.get("input_tokens")),
            cached_tokens=count(inputs.get("cached_tokens")),
            cache_write_tokens=count(inputs.get("cache_write_tokens")),
            output_tokens=count(usage.get("output_tokens")),
            reasoning_tokens=count((usage.get("output_tokens_details") or {}).get("reasoning_tokens")),
        )

    def complete_response(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """Return the final response and its tool calls. An empty output is filled with the streamed items."""
        output = self._response.get("output") or self._items
        calls = tuple(_call(item) for item in output if item.get("type") in _CALL_ITEMS)
        return {"object": "response", **self._response, "output": output}, calls

    def _end(self, response: Json) -> None:
        self._response, self.tier = response, response.get("service_tier")
        self.counts = response.get("usage") or {}
        if response.get("status") in {"failed", "cancelled"}:
            body = {"error": response.get("error") or {"message": "the response has failed"}}
            raise StreamFault(body, self.known_usage() if response.get("usage") else None)
        self.done, self.model = True, response.get("model")
        self.reason = "completed"
        if response.get("status") == "incomplete":
            self.reason = (response.get("incomplete_details") or {}).get("reason") or "length"
        messages = [item for item in response.get("output") or self._items if item.get("type") == "message"]
        answers = [item for item in messages if self._is_answer(item)]
        text, refusal = _text(answers, "output_text", "text"), _text(answers, "refusal", "refusal")
        if refusal:
            self.reason = "refusal"
        if text or refusal or len(answers) < len(messages):
            self.transcript.replace_text(text or refusal)

    def _take(self, event: Json) -> None:
        """Process the start or the end of an output item."""
        item = event["item"]
        if event["type"] == "response.output_item.done":
            self._items.append(item)
        elif not self._is_answer(item):
            self._commentary |= {item.get("id"), event.get("output_index")} - {None}

    def _is_answer(self, item: Json) -> bool:
        return self.keep_complete or item.get("phase") in (None, "final_answer")


class OpenAIResponses(WireFormat):
    """Wire format of `openai-responses/...`."""

    charges_max_tokens = True
    reader = ResponsesReader
    protected_fields = frozenset({"model", "input", "prompt"})
    max_tokens_at = (("max_output_tokens",),)
    supported_settings = USUAL_SETTINGS - {"stop", "top_k", *NO_THINKING} | {"organization", "project"}
    refusal_remedies: ClassVar[Mapping[str, str]] = {
        **NO_THINKING,
        "top_k": _NO_SUCH,
        "stop": _NO_SUCH,
        "max_tokens_field": "it is max_output_tokens: unset it",
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        super().__init__(settings, settings.base_url or OPENAI_BASE_URL, environ=environ)
        self.url = join_url(self.base, "responses")
        self.headers = openai_headers(settings, key, environ)

    def options(self, request: ModelRequest) -> Json:
        """Return model, limits, sampling and effort, with streaming on and server-side storage off."""
        settings = self.settings
        fields: Json = {
            "model": settings.model,
            "max_output_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "service_tier": settings.service_tier,
            "store": False,
            "stream": True,
            "stream_options": {"include_obfuscation": False},
        }
        if settings.reasoning_effort is not None:
            fields["reasoning"] = {"effort": settings.reasoning_effort}
        if request.cache:
            fields["prompt_cache_key"] = prompt_cache_key(request)
        return fields

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """Return instructions, input and tools. Agents with reasoning models get encrypted reasoning."""
        alone = not request.earlier and not request.by_agent
        fields: Json = {
            "input": request.prompt if alone else [item for each in messages for item in _items(each)],
            "instructions": system or None,
        }
        if request.dialogue is not None:
            fields["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in tools_of(request)
            ] or None
            if NEWER_MODELS.match(self.settings.model):
                fields["include"] = ["reasoning.encrypted_content"]
        return fields

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Parse OpenAI's rate-limit headers."""
        return openai_limits(headers)


def _items(message: Message) -> list[Json]:
    """Return a message as input items. Tool calls and tool results become separate items."""
    if message.native is not None:
        return list(message.native["output"])

    def result(each: ToolResult) -> Json:
        return {"type": "function_call_output", "call_id": each.call.id, "output": each.text}

    def call(each: ToolCall) -> Json:
        return {"type": "function_call", "call_id": each.id, "name": each.name, "arguments": each.arguments}

    text = {"role": message.role, "content": message.text}
    return pieces(message, result=result, text=text, call=call)


def _call(item: Json) -> ToolCall:
    arguments = item.get("arguments", item.get("input")) or ""
    return ToolCall(id=item["call_id"], name=item["name"], arguments=arguments)


def _text(messages: list[Json], kind: str, field: str) -> str:
    """Return one field of all content parts of a type, joined."""
    parts = [part for item in messages for part in item.get("content") or []]
    return "".join(part[field] for part in parts if part.get("type") == kind)

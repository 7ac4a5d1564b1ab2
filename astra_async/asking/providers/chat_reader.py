"""Reader of chat completions from OpenAI and compatible servers (see `openai_chat`).

The reader is tolerant, because vLLM, SGLang, llama.cpp, Ollama, OpenRouter, DeepSeek, Groq, Mistral, xAI and
Together differ in details: usage in a chunk that also has choices, no `[DONE]`, flat errors, content as a
list of parts, a complete answer instead of or after a stream. An answer has ended when its `finish_reason`
has arrived; `[DONE]` ends the stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from astra_async.asking.providers.answer import (
    Json,
    Reader,
    StreamFault,
    Transcript,
    first_choice,
    label,
    reason_name,
    text_of,
)
from astra_async.asking.providers.counts import count, merged, output_tokens
from astra_async.asking.providers.deltas import merge
from astra_async.asking.providers.request_fields import drop_none
from astra_async.types import Usage
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from astra_async.types import Completion

# Finish reasons of answers that the server aborted: OpenRouter and Mistral, SGLang and vLLM, DeepSeek, Zhipu.
_BROKEN_OFF = frozenset({"error", "abort", "cancelled", "insufficient_system_resource", "network_error"})


class ChatReader(Reader):
    """Reader of the chunks of one choice."""

    def __init__(self) -> None:
        super().__init__()
        self.missing = "any choice (`choices: []`)"
        self._refusal = Transcript()
        self._in_pieces = False  # text arrived as deltas
        self._head: Json = {}
        self._message: Json = {}

    def feed(self, event: Json | None) -> None:
        """Process one chunk, None for `[DONE]`."""
        if event is None:
            self.done = True
            return
        choices = event.get("choices")
        if self.keep_complete:
            self._head |= event
        if choices and "error" not in event:
            self._choice(first_choice(choices) or {})
        else:
            self._other(event)
        if usage := event.get("usage"):
            self.counts = merged(self.counts, usage)
        if tier := event.get("service_tier"):
            self.tier = tier
        if not self.model:
            self.model = event.get("model")

    def usage(self) -> Usage:
        """Return the token counts of a stream. Some routers repeat a cumulative count.

        Field names are OpenAI's; for cached tokens those of DeepSeek and Moonshot are also read. Reasoning
        tokens are added to the output if `completion_tokens` omits them (xAI, routers to Gemini).
        """
        usage = self.counts
        if not isinstance(usage, dict):
            return Usage()
        inputs, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        cached = (
            _detail(usage, "prompt_tokens_details", "cached_tokens"),
            count(usage.get("prompt_cache_hit_tokens")),
            count(usage.get("cached_tokens")),
        )
        return Usage(
            input_tokens=inputs,
            cached_tokens=next((tokens for tokens in cached if tokens is not None), None),
            cache_write_tokens=_detail(usage, "prompt_tokens_details", "cache_write_tokens"),
            output_tokens=output_tokens(count(usage.get("total_tokens")), inputs, output),
            reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        )

    def answer(self) -> Completion | None:
        """Return the answer once its finish_reason has arrived, else None."""
        whole = super().answer()
        if whole is not None and self._refusal.begun:
            return replace(whole, finish_reason="refusal", text=whole.text or self._refusal.text())
        return whole

    def complete_response(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """Return the answer as a `chat.completion` with all deltas in one message, and its tool calls."""
        message = {"role": "assistant", "content": None, **self._message}
        calls = message.get("tool_calls") or []
        for number, call in enumerate(calls):
            call["id"] = call.get("id") or self.made_id(number)
            call.pop("index", None)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.reason or "stop"}
        whole = {**self._head, "object": "chat.completion", "choices": [choice], "usage": self.counts or None}
        return drop_none(whole), tuple(map(_call, calls))

    def _gather(self, message: Json, *, whole: bool) -> None:
        for name in ("tool_calls", "content") if whole else ():
            if message.get(name):
                self._message.pop(name, None)
        for call in message.get("tool_calls") or ():
            function = call.get("function") or call.get("custom") or {}
            self.transcript.add_hidden(function.get("arguments") or function.get("input") or "")
            self.transcript.begun = True
        merge(self._message, message)

    def _choice(self, choice: Json) -> None:
        self.missing = ""
        delta = choice.get("delta")
        if message := delta or choice.get("message"):
            if self.keep_complete:
                self._gather(message, whole=not delta)
            content = message.get("content")
            if content:
                text = content if type(content) is str else self._text_of_parts(content)
                self._in_pieces = self._in_pieces or bool(delta)
                if delta or not (self._in_pieces and text):
                    self.transcript.add(text)
                else:  # the complete text after its deltas (MiniMax)
                    self.transcript.replace_text(text)
            elif message.get("refusal"):
                self._refusal.add(message["refusal"])
                self.transcript.begun = True
            elif reasoning := message.get("reasoning_content") or message.get("reasoning"):
                self.transcript.add_reasoning(reasoning)
            elif message.get("tool_calls") and not self.keep_complete:
                self.transcript.add_reasoning(_swallowed(message["tool_calls"]))
        finish = choice.get("finish_reason")
        if finish:
            self._end(finish, choice)

    def _text_of_parts(self, content: Any) -> str:
        """Return the text in Mistral's list of parts. Parts with thinking count as reasoning."""
        for part in content:
            if part.get("type") == "thinking":
                said = part.get("thinking")
                self.transcript.add_reasoning(
                    "".join(each["text"] for each in said) if isinstance(said, list) else said
                )
        return "".join(part["text"] for part in content if part.get("type") == "text")

    def _end(self, finish: str, choice: Json) -> None:
        if reason_name(finish) in _BROKEN_OFF:
            message = f"the server aborted the answer: {label(finish)}"
            raise StreamFault(choice.get("error") or {"message": message})
        self.reason = finish
        if choice.get("usage") and not self.counts:  # Moonshot
            self.counts = choice["usage"]

    def _other(self, event: Json) -> None:
        """Process an event without choices: an error in one of four shapes, or Groq's usage."""
        if event.get("error") or event.get("object") == "error":
            raise StreamFault(event)
        if event.get("choices"):  # the event also has `"error": null`
            self._choice(first_choice(event["choices"]) or {})
        if (event.get("base_resp") or {}).get("status_code"):  # MiniMax, with HTTP 200
            raise StreamFault(event)
        groq = event.get("x_groq")
        if groq and groq.get("usage"):
            self.counts = groq["usage"]
        elif "message" in event and "code" in event:
            raise StreamFault(event)


def _call(call: Json) -> ToolCall:
    function = call.get("function") or call.get("custom") or {}
    arguments = function.get("arguments", function.get("input")) or ""
    return ToolCall(id=call["id"], name=function.get("name") or "", arguments=text_of(arguments))


def _swallowed(calls: Any) -> str:
    """Return text that a server's tool parser took for a tool call, although no tool was offered."""
    pieces = (call.get("function") or {} for call in calls)
    return "".join(f"{piece.get('name') or ''}{piece.get('arguments') or ''}" for piece in pieces)


def _detail(usage: Json, group: str, name: str) -> int | None:
    details: Any = usage.get(group)
    return count(details.get(name)) if isinstance(details, dict) else None

"""OpenAI Chat Completions, as OpenAI, Azure and compatible servers speak it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.openai import OpenAI
from astra_async.simulate.wires.wire import (
    Ask,
    BadAsk,
    Detail,
    Reply,
    Tokens,
    conversation,
    event,
    messages_of,
    name_of,
    of_conversation,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_DONE = b"data: [DONE]\n\n"
_FINISH = {"stop": "stop", "refusal": "stop", "length": "length", "content_filter": "content_filter"}


class ChatCompletions(OpenAI):
    """POST /v1/chat/completions."""

    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> Ask:
        """Understand a request body."""
        messages = messages_of(body, "messages")
        options = body.get("stream_options") or {}
        if not isinstance(options, dict):
            raise BadAsk("stream_options must be an object")
        return Ask(
            model=name_of(body, path),
            **of_conversation(conversation(messages, "messages", "content")),
            stream=bool(body.get("stream")),
            max_tokens=whole_number(body, "max_completion_tokens", "max_tokens"),
            seed=whole_number(body, "seed", "random_seed", least=-(2**63)),
            with_usage=bool(options.get("include_usage")),
        )

    def opening(self, reply: Reply) -> bytes:
        """The chunk that names the role."""
        return event(_chunk(reply, {"role": "assistant", "content": ""}))

    def piece(self, reply: Reply, text: str) -> bytes:
        """A chunk."""
        return event(_chunk(reply, {"refusal" if reply.finish == "refusal" else "content": text}))

    def closing(self, reply: Reply) -> bytes:
        """The finish reason, usage where it was asked for, and `[DONE]`."""
        end = event(_chunk(reply, {}, finish=_FINISH[reply.finish]))
        if reply.with_usage:
            last = {"choices": [], "usage": _usage(reply.tokens)}
            end += event(_head(reply, "chat.completion.chunk") | last)
        return end + _DONE

    def whole(self, reply: Reply) -> bytes:
        """A chat.completion object."""
        refused = reply.finish == "refusal"
        message = {
            "role": "assistant",
            "content": None if refused else reply.text,
            "refusal": reply.text if refused else None,
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[reply.finish]}
        head = _head(reply, "chat.completion")
        return orjson.dumps(head | {"choices": [choice], "usage": _usage(reply.tokens)})

    def stream_error(self, detail: Detail) -> bytes:
        """`data: {"error": ...}` after HTTP 200."""
        return event(self.error("stream_error", detail))


class AzureChatCompletions(ChatCompletions):
    """POST /openai/deployments/{deployment}/chat/completions: the deployment is the model."""

    def opening(self, reply: Reply) -> bytes:
        """Azure sends the verdict of its prompt filter first, in a chunk without choices."""
        verdict = {"prompt_index": 0, "content_filter_results": {}}
        first = _head(reply, "chat.completion.chunk") | {"choices": [], "prompt_filter_results": [verdict]}
        return event(first) + super().opening(reply)

    def duration(self, seconds: float) -> str:
        """Whole seconds."""
        return str(math.ceil(seconds))


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": kind,
        "created": reply.created,
        "model": reply.model,
        "system_fingerprint": "fp_simulated",
    }


def _chunk(reply: Reply, delta: Mapping[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    usage = {"usage": None} if reply.with_usage else {}
    return _head(reply, "chat.completion.chunk") | {"choices": [choice]} | usage


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.prompt + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning, "audio_tokens": 0},
    }

"""OpenAI Chat Completions, as OpenAI, Azure and compatible servers speak it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.openai import openai_error, openai_failure, openai_limit_headers
from astra_async.simulate.wires.wire import (
    Ask,
    BadAsk,
    Detail,
    Failure,
    Reply,
    Tokens,
    Trouble,
    conversation,
    event,
    messages_of,
    name_of,
    of_conversation,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.simulate.limits import Window

_DONE = b"data: [DONE]\n\n"
_FINISH = {"stop": "stop", "refusal": "stop", "length": "length", "content_filter": "content_filter"}


class ChatCompletions:
    """POST /v1/chat/completions."""

    stream_type = "text/event-stream; charset=utf-8"
    charges_max_tokens = True
    marks_cache = False
    cached_is_exempt = False

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

    def events(self, reply: Reply) -> list[bytes]:
        """One chunk for each piece; only the text is encoded anew."""
        mark = "@@"
        field = "refusal" if reply.finish == "refusal" else "content"
        head, tail = event(_chunk(reply, {field: mark})).split(orjson.dumps(mark))
        return [head + orjson.dumps(piece) + tail for piece in reply.pieces]

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

    def failure(self, trouble: Trouble, detail: Detail) -> Failure:
        """OpenAI's error responses."""
        return openai_failure(trouble, detail)

    def stream_error(self, detail: Detail) -> bytes:
        """`data: {"error": ...}` after HTTP 200."""
        return event({"error": openai_error("stream_error", detail)})

    def limit_headers(self, windows: Iterable[Window]) -> dict[str, str]:
        """x-ratelimit-* with Go durations."""
        return openai_limit_headers(windows)


class AzureChatCompletions(ChatCompletions):
    """POST /openai/deployments/{deployment}/chat/completions: the deployment is the model."""

    def opening(self, reply: Reply) -> bytes:
        """Azure sends the verdict of its prompt filter first, in a chunk without choices."""
        verdict = {"prompt_index": 0, "content_filter_results": {}}
        first = _head(reply, "chat.completion.chunk") | {"choices": [], "prompt_filter_results": [verdict]}
        return event(first) + super().opening(reply)

    def limit_headers(self, windows: Iterable[Window]) -> dict[str, str]:
        """x-ratelimit-* with whole seconds."""
        return openai_limit_headers(windows, plain_seconds=True)


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

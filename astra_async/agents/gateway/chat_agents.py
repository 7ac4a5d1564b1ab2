"""Chat completions, as OpenCode, mini-swe-agent and aider speak them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from astra_async.agents.gateway.interface import (
    Interface,
    Json,
    NotUnderstood,
    Talk,
    call,
    event,
    is_remote,
    text_of,
    tool,
)
from astra_async.types import Dialogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.types import Completion, Usage

FINISH = {"length": "length", "content_filter": "content_filter"}


class Chat(Interface):
    """POST /v1/chat/completions."""

    speaks = "chat"
    kept_tools = frozenset({"function", "custom"})
    dropped_fields = ("web_search_options", "plugins", "previous_response_id")
    passed_on: ClassVar[tuple[str, ...]] = ("openai-beta",)

    def read(self, body: Json) -> Dialogue:
        """Each result is a message; those of the system may stand anywhere."""
        talk, system = Talk(), []
        for message in body.get("messages") or ():
            match message.get("role"):
                case "system" | "developer":
                    system.append(text_of(message.get("content")))
                case "tool":
                    talk.gives(message.get("tool_call_id") or "", text_of(message.get("content")))
                case "assistant" | "user" as role:
                    made = [(each, each.get("function") or {}) for each in message.get("tool_calls") or ()]
                    calls = [call(f, each.get("id") or "", f.get("arguments") or "") for each, f in made]
                    talk.says(role, text_of(message.get("content")), calls)
                case other:
                    raise NotUnderstood(f"messages: no such role: {other!r}")
        functions = [each["function"] for each in body.get("tools") or () if "function" in each]
        tools = tuple(tool(each, each.get("parameters") or {}) for each in functions)
        return Dialogue(system="\n\n".join(system), tools=tools, messages=tuple(talk.messages))

    def whole(self, completion: Completion, model: str, name: str) -> Json:
        """A chat.completion."""
        message: Json = {"role": "assistant", "content": completion.text or None}
        if completion.calls:
            message["tool_calls"] = [
                {
                    "id": each.id,
                    "type": "function",
                    "function": {"name": each.name, "arguments": each.arguments},
                }
                for each in completion.calls
            ]
        finish = FINISH.get(completion.finish_reason, "tool_calls" if completion.calls else "stop")
        return {
            "id": f"chatcmpl-{name}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": _usage(completion.usage),
        }

    def events(self, whole: Json, body: Json) -> Iterator[bytes]:
        """The message in one chunk, its end in another; usage for who asked for it."""
        choice = whole["choices"][0]
        delta = dict(choice["message"])
        if delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(delta["tool_calls"])]
        head = {name: value for name, value in whole.items() if name not in {"choices", "usage"}}
        head["object"] = "chat.completion.chunk"
        for said, finish in ((delta, None), ({}, choice["finish_reason"])):
            yield event({**head, "choices": [{"index": 0, "delta": said, "finish_reason": finish}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            yield event({**head, "choices": [], "usage": whole.get("usage")})
        yield b"data: [DONE]\n\n"

    def _remote(self, part: Json) -> str:
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if part.get("type") == "image_url" and is_remote(url):
            return "image_url"
        file = part.get("file")
        return "file" if isinstance(file, dict) and file.get("file_id") else ""


def _usage(usage: Usage) -> Json:
    inputs, output = usage.input_tokens or 0, usage.output_tokens or 0
    details: dict[str, Any] = {"prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0}}
    if usage.reasoning_tokens is not None:
        details["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return {"prompt_tokens": inputs, "completion_tokens": output, "total_tokens": inputs + output, **details}

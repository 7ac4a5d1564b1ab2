"""OpenAI's Responses, as Codex speaks them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from astra_async.agents.gateway.interface import (
    REMOVED,
    Interface,
    Json,
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

    from astra_async.types import Completion, Role, Usage

_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


class Responses(Interface):
    """POST /v1/responses; what the provider would remember of a conversation is taken out."""

    speaks = "responses"
    messages_at = "input"
    kept_tools = frozenset(
        {
            *("function", "custom", "local_shell", "apply_patch", "namespace", "tool_search"),
            "computer_use_preview",
        }
    )
    dropped_fields = ("previous_response_id", "conversation", "background", "prompt")
    passed_on: ClassVar[tuple[str, ...]] = ("openai-beta",)
    text_part: ClassVar = {"type": "input_text", "text": REMOVED}

    def read(self, body: Json) -> Dialogue:
        """Items in order; reasoning is its provider's and stays away."""
        talk, system = Talk(), [text_of(body.get("instructions") or "")]
        items = body.get("input") or ()
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            kind = item.get("type")
            if kind in _CALLS:
                given = item.get("arguments")
                arguments = {"input": item.get("input") or ""} if given is None else given
                talk.says("assistant", "", [call(item, item.get("call_id") or "", arguments)])
            elif kind in _RESULTS:
                talk.gives(item.get("call_id") or "", text_of(item.get("output")))
            elif item.get("role") in {"system", "developer"}:
                system.append(text_of(item.get("content")))
            elif "role" in item:
                role: Role = "assistant" if item["role"] == "assistant" else "user"
                talk.says(role, text_of(item.get("content")))
        offered = [each for each in body.get("tools") or () if each.get("type") in {"function", "custom"}]
        tools = tuple(tool(each, each.get("parameters") or _FREE_TEXT) for each in offered)
        return Dialogue(system="\n\n".join(filter(None, system)), tools=tools, messages=tuple(talk.messages))

    def whole(self, completion: Completion, model: str, name: str) -> Json:
        """A response."""
        output: list[Json] = []
        if completion.text or not completion.calls:
            part = {"type": "output_text", "text": completion.text, "annotations": []}
            head = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed"}
            output.append({**head, "content": [part]})
        for at, each in enumerate(completion.calls):
            head = {
                "type": "function_call",
                "id": f"fc_{name}_{at}",
                "call_id": each.id,
                "status": "completed",
            }
            output.append({**head, "name": each.name, "arguments": each.arguments})
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        cut = reasons.get(completion.finish_reason)
        return {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "incomplete" if cut else "completed",
            "error": None,
            "incomplete_details": {"reason": cut} if cut else None,
            "model": model,
            "output": output,
            "usage": _usage(completion.usage),
        }

    def events(self, whole: Json, body: Json) -> Iterator[bytes]:
        """Each item begins and is done; the last event has the whole response."""
        del body
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        made = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
        for at, item in enumerate(whole.get("output") or ()):
            made += _item_events(at, item)
        made.append((f"response.{whole.get('status') or 'completed'}", {"response": whole}))
        for number, (kind, fields) in enumerate(made):
            yield event({"type": kind, "sequence_number": number, **fields}, kind)

    def error_event(self, message: str) -> bytes:
        """The `error` event, whose fields stand beside its type."""
        fields = {"code": "invalid_request_error", "message": message, "param": None}
        return event({"type": "error", "sequence_number": 0, **fields}, "error")

    def _is_kept(self, tool: Json) -> bool:
        if tool.get("type") == "shell":
            return (tool.get("environment") or {"type": "local"}).get("type") == "local"
        return super()._is_kept(tool)

    def _remote(self, part: Json) -> str:
        kind = part.get("type")
        if kind == "input_image" and (part.get("file_id") or is_remote(part.get("image_url"))):
            return "image_url"
        return "file" if kind == "input_file" and (part.get("file_id") or part.get("file_url")) else ""


def _item_events(at: int, item: Json) -> list[tuple[str, Json]]:
    """An item's begin, its text or arguments in one delta, its end."""
    where = {"output_index": at, "item_id": item.get("id") or f"item_{at}"}
    made: list[tuple[str, Json]] = []
    kind = item.get("type")
    bare = {**item, "status": "in_progress"}
    if kind == "message":
        bare["content"] = []
        for number, part in enumerate(item.get("content") or ()):
            made += _part_events({**where, "content_index": number}, part)
    elif kind == "function_call":
        made = _written(bare, "arguments", "response.function_call_arguments", where)
    elif kind == "custom_tool_call":
        made = _written(bare, "input", "response.custom_tool_call_input", where)
    begins = ("response.output_item.added", {"output_index": at, "item": bare})
    return [begins, *made, ("response.output_item.done", {"output_index": at, "item": item})]


def _written(bare: Json, field: str, kind: str, where: Json) -> list[tuple[str, Json]]:
    """The text of a call's field in one delta; it is taken out of the item that begins."""
    text, bare[field] = bare.get(field) or "", ""
    return [(f"{kind}.delta", {**where, "delta": text}), (f"{kind}.done", {**where, field: text})]


def _part_events(where: Json, part: Json) -> list[tuple[str, Json]]:
    field = "refusal" if part.get("type") == "refusal" else "text"
    name = "refusal" if field == "refusal" else "output_text"
    text = part.get(field) or ""
    return [
        ("response.content_part.added", {**where, "part": {**part, field: ""}}),
        (f"response.{name}.delta", {**where, "delta": text}),
        (f"response.{name}.done", {**where, field: text}),
        ("response.content_part.done", {**where, "part": part}),
    ]


def _usage(usage: Usage) -> Json:
    inputs, output = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": inputs,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": inputs + output,
    }

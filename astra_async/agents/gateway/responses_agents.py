"""OpenAI's Responses, as Codex speaks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from astra_async.agents.gateway.interface import (
    REMOVED,
    Interface,
    Talk,
    call,
    is_remote,
    text_of,
    tool,
)
from astra_async.served import Json, ServedResponses
from astra_async.types import Dialogue

if TYPE_CHECKING:
    from astra_async.types import Role

_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


class Responses(ServedResponses, Interface):
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

    def error_event(self, message: str) -> bytes:
        """The `error` event, whose fields stand beside its type."""
        fields = {"code": "invalid_request_error", "message": message, "param": None}
        return self.encoded({"type": "error", "sequence_number": 0, **fields})

    def _is_kept(self, tool: Json) -> bool:
        if tool.get("type") == "shell":
            return (tool.get("environment") or {"type": "local"}).get("type") == "local"
        return super()._is_kept(tool)

    def _remote(self, part: Json) -> str:
        kind = part.get("type")
        if kind == "input_image" and (part.get("file_id") or is_remote(part.get("image_url"))):
            return "image_url"
        return "file" if kind == "input_file" and (part.get("file_id") or part.get("file_url")) else ""

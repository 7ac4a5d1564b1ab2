"""Anthropic's Messages, as Claude Code speaks them."""

from __future__ import annotations

from typing import ClassVar

from astra_async.agents.gateway.interface import Interface, Talk, call, text_of, tool
from astra_async.served import Json, ServedMessages
from astra_async.types import Completion, Dialogue, Usage

# Tools of Anthropic's own that the client runs; all others with a type are run by the provider.
_RUN_BY_THE_CLIENT = ("bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_", "custom")


class Messages(ServedMessages, Interface):
    """POST /v1/messages."""

    speaks = "messages"
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    dropped_fields = ("mcp_servers", "container")
    passed_on: ClassVar[tuple[str, ...]] = ("anthropic-beta", "anthropic-version")

    def read(self, body: Json) -> Dialogue:
        """Results and text stand in one message."""
        talk = Talk()
        for message in body.get("messages") or ():
            content = message.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            for block in blocks:
                if block.get("type") == "tool_result":
                    failed = bool(block.get("is_error"))
                    talk.gives(block.get("tool_use_id") or "", text_of(block.get("content")), failed=failed)
            uses = [block for block in blocks if block.get("type") == "tool_use"]
            calls = [call(use, use.get("id") or "", use.get("input") or {}) for use in uses]
            text = text_of([block for block in blocks if block.get("type") == "text"])
            talk.says(message.get("role") or "user", text, calls)
        offered = body.get("tools") or ()
        tools = tuple(tool(each, each["input_schema"]) for each in offered if "input_schema" in each)
        return Dialogue(system=text_of(body.get("system") or ""), tools=tools, messages=tuple(talk.messages))

    def error(self, message: str) -> Json:
        """`{"type": "error", "error": {type, message}}`."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def local(self, body: Json) -> Json | None:
        """Whether there is quota: a request for one token."""
        messages = body.get("messages") or [{}]
        if body.get("max_tokens") != 1 or text_of(messages[-1].get("content")) != "quota":
            return None
        usage = Usage(input_tokens=1, output_tokens=1)
        one = Completion(text="#", finish_reason="length", usage=usage, returned_model="")
        return self.whole(one, str(body.get("model") or ""), "probe", 0)

    def _is_kept(self, tool: Json) -> bool:
        kind = tool.get("type")
        return kind is None or str(kind).startswith(_RUN_BY_THE_CLIENT)

    def _remote(self, part: Json) -> str:
        source = part.get("source")
        kind = source.get("type") if isinstance(source, dict) else None
        return str(part.get("type")) if kind in {"url", "file"} else ""

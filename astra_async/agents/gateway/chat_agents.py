"""Chat completions, as OpenCode, mini-swe-agent and aider speak them."""

from __future__ import annotations

from typing import ClassVar

from astra_async.agents.gateway.interface import (
    Interface,
    NotUnderstood,
    Talk,
    call,
    is_remote,
    text_of,
    tool,
)
from astra_async.served import Json, ServedChat
from astra_async.types import Dialogue


class Chat(ServedChat, Interface):
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

    def stream(self, whole: Json, body: Json) -> bytes:
        """With the usage where the client asked for it."""
        if not (body.get("stream_options") or {}).get("include_usage"):
            whole = {name: value for name, value in whole.items() if name != "usage"}
        return super().stream(whole, body)

    def _remote(self, part: Json) -> str:
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if part.get("type") == "image_url" and is_remote(url):
            return "image_url"
        file = part.get("file")
        return "file" if isinstance(file, dict) and file.get("file_id") else ""

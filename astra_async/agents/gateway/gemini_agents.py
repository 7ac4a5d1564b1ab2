"""Gemini's generateContent, as Gemini CLI speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import orjson

from astra_async.agents.gateway.interface import REMOVED, Interface, Talk, call, text_of, tool
from astra_async.served import Json, ServedGemini
from astra_async.types import Dialogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.types import Tool, ToolCall

_FUNCTIONS = ("functionDeclarations", "function_declarations")


class GeminiDialect(ServedGemini, Interface):
    """POST /v1beta/models/{model}:streamGenerateContent and :generateContent.

    Its client gives up after a minute without the head of a response, and loses an answer to a comment.
    """

    speaks = "gemini"
    headers_after_s = 0.05
    ping_after_s = 5.0
    ping = b'data: {"candidates":[]}\r\n\r\n'
    messages_at = "contents"
    dropped_fields = ("cachedContent",)
    text_part: ClassVar = {"text": REMOVED}

    def read(self, body: Json) -> Dialogue:
        """Calls may have no ids: they are told by their place, and results by their names in turn."""
        talk = Talk()
        waiting: list[ToolCall] = []
        for number, content in enumerate(body.get("contents") or ()):
            parts = content.get("parts") or ()
            for part in parts:
                if answer := part.get("functionResponse"):
                    name = answer.get("name")
                    alike = (c for c in waiting if answer.get("id", c.id) == c.id and c.name == name)
                    found = next(alike, None)
                    if found is not None:
                        waiting.remove(found)
                    talk.gives(found.id if found else "", _result(answer.get("response")))
            made = {f"g{number}_{at}": part.get("functionCall") for at, part in enumerate(parts)}
            calls = [
                call(each, each.get("id") or place, each.get("args") or {})
                for place, each in made.items()
                if each is not None
            ]
            waiting += calls
            text = text_of([part for part in parts if not part.get("thought")])
            talk.says("assistant" if content.get("role") == "model" else "user", text, calls)
        system = body.get("systemInstruction") or body.get("system_instruction") or ""
        return Dialogue(system=text_of(system), tools=tuple(_tools(body)), messages=tuple(talk.messages))

    def error(self, message: str) -> Json:
        """`{"error": {code, message, status}}`."""
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

    def context_full(self) -> Json:
        """Gemini's words."""
        return self.error("The input token count exceeds the maximum number of tokens allowed.")

    def counted(self, tokens: int) -> Json:
        """Under a name of its own."""
        return {"totalTokens": tokens}

    def _without_tools(self, body: Json) -> list[str]:
        """An entry may hold functions and tools of the provider's beside them."""
        removed: list[str] = []
        tools = body.get("tools")
        for entry in tools if isinstance(tools, list) else ():
            for name in [name for name in entry if name not in _FUNCTIONS]:
                removed.append(name)
                del entry[name]
        if removed and isinstance(tools, list):
            body["tools"] = [entry for entry in tools if entry]
        return removed

    def _remote(self, part: Json) -> str:
        return "fileData" if part.get("fileData") or part.get("file_data") else ""


def _tools(body: Json) -> Iterator[Tool]:
    for entry in body.get("tools") or ():
        for each in next((entry[name] for name in _FUNCTIONS if name in entry), ()):
            schema = each.get("parametersJsonSchema") or _small(each.get("parameters") or {"type": "object"})
            yield tool(each, schema)


def _small(schema: object) -> Json:
    """A schema whose types are in capitals, as JSON schema spells them."""
    if isinstance(schema, list):
        return [_small(each) for each in schema]  # type: ignore[return-value]
    if not isinstance(schema, dict):
        return schema  # type: ignore[return-value]
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _small(value)
        for name, value in schema.items()
    }


def _result(response: object) -> str:
    if isinstance(response, dict) and len(response) == 1:
        (value,) = response.values()
        if isinstance(value, str):
            return value
    return orjson.dumps(response).decode()

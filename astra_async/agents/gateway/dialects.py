"""The interfaces of agents: Gemini, Messages, Responses and Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import orjson

from astra_async.agents.gateway.interface import (
    Interface,
    NotUnderstood,
    Talk,
    call,
    is_remote,
    text_of,
    tool,
)
from astra_async.response_formats import (
    ChatCompletionFormat,
    GeminiFormat,
    Json,
    MessagesFormat,
    ResponsesFormat,
)
from astra_async.types import Completion, Dialogue, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.types import Role, Tool, ToolCall


_FUNCTIONS = ("functionDeclarations", "function_declarations")


class GeminiDialect(GeminiFormat, Interface):
    """POST /v1beta/models/{model}:streamGenerateContent and :generateContent.

    Gemini CLI gives up after a minute without response headers, and loses an answer that follows a comment.
    """

    speaks = "gemini"
    headers_after_s = 0.05
    ping_after_s = 5.0
    ping = b'data: {"candidates":[]}\r\n\r\n'
    messages_at = "contents"
    dropped_fields = ("cachedContent",)
    text_part: ClassVar[Mapping[str, str]] = {}

    def read(self, body: Json) -> Dialogue:
        """Parse a body. Calls without ids are numbered; results are matched by name, in order."""
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
                    texts = (_result(answer.get("response")), text_of(answer.get("parts")))
                    talk.gives(found.id if found else "", "\n".join(filter(None, texts)))
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
        """Return `{"error": {code, message, status}}`."""
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

    def context_full(self) -> Json:
        """Return Gemini's error."""
        return self.error("The input token count exceeds the maximum number of tokens allowed.")

    def counted(self, tokens: int) -> Json:
        """Return Gemini's `totalTokens`."""
        return {"totalTokens": tokens}

    def _without_tools(self, body: Json) -> list[str]:
        """Remove provider-run tools. One entry may hold both functions and provider-run tools."""
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
    """Return a schema with its upper-case types in lower case, as in JSON Schema."""
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


# Anthropic's typed tools that the client runs. The provider runs all other typed tools.
_RUN_BY_THE_CLIENT = ("bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_", "custom")


class MessagesDialect(MessagesFormat, Interface):
    """POST /v1/messages."""

    speaks = "messages"
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    dropped_fields = ("mcp_servers", "container")
    passed_on: ClassVar[tuple[str, ...]] = ("anthropic-beta", "anthropic-version")

    def read(self, body: Json) -> Dialogue:
        """Parse a body. A message may contain both tool results and text.

        Newer clients put system messages between the others. They stay in place as the user's text, because
        a system prompt that changes cannot be cached.
        """
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
            talk.says("assistant" if message.get("role") == "assistant" else "user", text, calls)
        offered = body.get("tools") or ()
        tools = tuple(tool(each, each["input_schema"]) for each in offered if "input_schema" in each)
        return Dialogue(system=text_of(body.get("system") or ""), tools=tools, messages=tuple(talk.messages))

    def error(self, message: str) -> Json:
        """Return `{"type": "error", "error": {type, message}}`."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def context_full(self) -> Json:
        """Return Anthropic's error, on which Claude Code compacts the conversation."""
        return self.error("prompt is too long: it exceeds the model's maximum of tokens")

    def local(self, body: Json) -> Json | None:
        """Answer Claude Code's probe for quota, a request for one token."""
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


_TRANSLATED = frozenset({"function", "custom"})  # kinds of tools that other interfaces have
_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def _custom(item: Json) -> Json:
    """Convert a function call to a call of a custom tool, whose input is text instead of JSON."""
    try:
        given = orjson.loads(item.get("arguments") or "")
    except orjson.JSONDecodeError:
        given = None
    text = given.get("input") if isinstance(given, dict) else None
    made: Json = {"type": "custom_tool_call"}
    made |= {name: item[name] for name in ("id", "call_id", "status", "name") if name in item}
    return made | {"input": text if isinstance(text, str) else item.get("arguments")}


class ResponsesDialect(ResponsesFormat, Interface):
    """POST /v1/responses, without fields that would store a conversation at the provider."""

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
    text_part: ClassVar = {"type": "input_text"}

    def read(self, body: Json) -> Dialogue:
        """Parse a body. Reasoning items are left out, because another provider cannot use them."""
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
        offered = [each for each in body.get("tools") or () if each.get("type") in _TRANSLATED]
        tools = tuple(tool(each, each.get("parameters") or _FREE_TEXT) for each in offered)
        return Dialogue(system="\n\n".join(filter(None, system)), tools=tools, messages=tuple(talk.messages))

    def untranslated(self, body: Json) -> list[str]:
        """Replace parts; return their kinds and the names of tools that only OpenAI's models can call."""
        others = (each for each in body.get("tools") or () if each.get("type") not in _TRANSLATED)
        return super().untranslated(body) + [str(each.get("name") or each.get("type")) for each in others]

    def translated(self, whole: Json, body: Json) -> Json:
        """Convert calls of custom tools, such as Codex's `apply_patch`, whose input is text."""
        tools = body.get("tools") or ()
        custom = {each.get("name") for each in tools if each.get("type") == "custom"}
        output = [_custom(item) if item.get("name") in custom else item for item in whole["output"]]
        return {**whole, "output": output}

    def context_full(self) -> Json:
        """Return the error of OpenAI's Responses interface."""
        message = "Your input exceeds the context window of this model. Please adjust your input"
        fields = {"code": "context_length_exceeded", "message": f"{message} and try again."}
        return {"error": {"type": "invalid_request_error", **fields}}

    def context_full_event(self) -> bytes | None:
        """Encode a failed response. Codex compacts after that, but gives up after an HTTP error."""
        response: Json = {
            "id": "resp_full",
            "object": "response",
            "status": "failed",
            "output": [],
            "usage": None,
        }
        failed = {**response, "error": self.context_full()["error"]}
        created = {**response, "status": "in_progress"}
        return b"".join(
            self.encoded({"type": f"response.{kind}", "sequence_number": number, "response": each})
            for number, (kind, each) in enumerate((("created", created), ("failed", failed)))
        )

    def error_event(self, message: str) -> bytes:
        """Encode an `error` event, which has its fields next to `type`."""
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


class Chat(ChatCompletionFormat, Interface):
    """POST /v1/chat/completions."""

    speaks = "chat"
    kept_tools = frozenset({"function", "custom"})
    dropped_fields = ("web_search_options", "plugins", "previous_response_id")
    passed_on: ClassVar[tuple[str, ...]] = ("openai-beta",)

    def read(self, body: Json) -> Dialogue:
        """Parse a body. Each tool result is a message; system messages may be anywhere."""
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
                    raise NotUnderstood(f"messages: unknown role {other!r}")
        functions = [each["function"] for each in body.get("tools") or () if "function" in each]
        tools = tuple(tool(each, each.get("parameters") or {}) for each in functions)
        return Dialogue(system="\n\n".join(system), tools=tools, messages=tuple(talk.messages))

    def stream(self, whole: Json, body: Json) -> bytes:
        """Encode a stream, with the usage only if the client asked for it."""
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

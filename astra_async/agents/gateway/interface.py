"""The gateway's side of the interfaces that agents use. `dialects` has one subclass per interface."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson

from astra_async.response_formats import Json, ResponseFormat
from astra_async.types import Message, Tool, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from astra_async.types import AgentWire, Dialogue

REMOVED = "(removed: nothing is fetched for this task)"


class NotUnderstood(ValueError):  # noqa: N818 - names what was seen
    """A body that is invalid in its interface. The message says why."""


class Interface(ResponseFormat):
    """One interface from the server's side.

    Attributes:
        speaks: name of the interface.
        headers_after_s: seconds to wait for an answer before the headers of a stream are sent. An error
            before that gets its own HTTP status.
        ping_after_s: seconds between two keep-alives in a stream.
        ping: the keep-alive that clients of the interface accept.
        messages_at: field of a body with the messages.
        passed_on: headers of the agent that are sent on to the provider.
        text_part: fields of a text part except `text`.
    """

    speaks: ClassVar[AgentWire]
    headers_after_s: ClassVar[float] = 2.0
    ping_after_s: ClassVar[float] = 10.0
    ping: ClassVar[bytes] = b": ping\n\n"
    messages_at: ClassVar[str] = "messages"
    passed_on: ClassVar[tuple[str, ...]] = ()
    text_part: ClassVar[Mapping[str, str]] = {"type": "text"}

    def tidied(self, body: Json) -> list[str]:
        """Remove tools and content that the provider would run or fetch. Return their names."""
        removed = self._without_tools(body)
        for name in [name for name in self.dropped_fields if body.get(name)]:
            removed.append(name)
            del body[name]
        return list(dict.fromkeys(removed + self._replaced(body, lambda part: (self._remote(part), REMOVED))))

    def read(self, body: Json) -> Dialogue:
        """Parse a body as a Dialogue. Raises NotUnderstood if it is invalid."""
        raise NotImplementedError

    def stream(self, whole: Json, body: Json) -> bytes:
        """Encode a complete answer as a stream for the request `body`."""
        del body
        return b"".join(map(self.encoded, self.events(whole, in_one))) + self.done

    def error(self, message: str) -> Json:
        """Return the body of an error that a retry cannot fix."""
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

    def error_event(self, message: str) -> bytes:
        """Encode an error as an event of a stream that has begun."""
        return self.encoded(self.error(message))

    def context_full(self) -> Json:
        """Return the error for a too long conversation in the provider's words, which agents recognize."""
        message = "This model's maximum context length is exceeded. Please reduce the length of the messages."
        fields = {"message": message, "type": "invalid_request_error", "param": "messages"}
        return {"error": {**fields, "code": "context_length_exceeded"}}

    def context_full_event(self) -> bytes | None:
        """Encode that error as a stream, if clients of the interface expect it there; otherwise None."""
        return None

    def untranslated(self, body: Json) -> list[str]:
        """Replace parts that `read` cannot translate, such as images, by a text. Return their kinds."""
        return list(dict.fromkeys(self._replaced(body, _note)))

    def translated(self, whole: Json, body: Json) -> Json:
        """Convert the calls of a translated answer to the kinds of tools in the request."""
        del body
        return whole

    def local(self, body: Json) -> Json | None:  # noqa: ARG002 - most interfaces have no probe
        """Return the answer to a probe that needs no model call, or None."""
        return None

    def counted(self, tokens: int) -> Json:
        """Return the answer to a request for a token count."""
        return {"input_tokens": tokens}

    # --- removed from requests ----------------------------------------------------------------------------

    kept_tools: ClassVar[frozenset[str | None]] = frozenset()
    dropped_fields: ClassVar[tuple[str, ...]] = ()

    def _without_tools(self, body: Json) -> list[str]:
        """Remove tools that the provider would run. Return their names."""
        tools = body.get("tools")
        if not isinstance(tools, list):
            return []
        gone = [tool for tool in tools if isinstance(tool, dict) and not self._is_kept(tool)]
        kept = [tool for tool in tools if tool not in gone]
        names = [str(tool.get("name") or tool.get("type")) for tool in gone]
        choice = body.get("tool_choice")
        chosen = choice.get("name") or choice.get("type") if isinstance(choice, dict) else None
        if gone:
            body["tools"] = kept
        if gone and not kept:
            del body["tools"]
        if gone and (not kept or chosen in names):
            body.pop("tool_choice", None)
        return names

    def _is_kept(self, tool: Json) -> bool:
        return tool.get("type") in self.kept_tools

    def _replaced(self, body: Json, note: Callable[[Json], tuple[str, str]]) -> list[str]:
        """Replace parts of messages by a text, also in results of tools. Return the kinds of parts.

        `note` returns a part's kind and the text, or "" as the kind of a part that stays.
        """
        removed: list[str] = []
        items = body.get(self.messages_at)
        for item in items if isinstance(items, list) else ():
            for parts, at in _parts(item):
                kind, text = note(parts[at])
                if kind:
                    removed.append(kind)
                    parts[at] = {**self.text_part, "text": text}
        return removed

    def _remote(self, part: Json) -> str:
        """Return the kind of a part that the provider would fetch, or ""."""
        raise NotImplementedError


class Talk:
    """Builder for the messages of a Dialogue."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calls: dict[str, ToolCall] = {}

    def says(self, role: Literal["user", "assistant"], text: str, calls: Iterable[ToolCall] = ()) -> None:
        """Add a message. Consecutive messages of one role are joined."""
        calls = tuple(calls)
        self._calls |= {call.id: call for call in calls}
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == role:
            joined = "\n\n".join(filter(None, (last.text, text)))
            self.messages[-1] = replace(last, text=joined, calls=last.calls + calls)
        elif text or calls:
            self.messages.append(Message(role=role, text=text, calls=calls))

    def gives(self, call_id: str, text: str, *, failed: bool = False) -> None:
        """Add the result of a call. Raises NotUnderstood if no message has this call."""
        call = self._calls.get(call_id)
        if call is None:
            raise NotUnderstood(f"a result of the call {call_id!r}, which is in no message")
        result = ToolResult(call=call, text=text, failed=failed)
        last = self.messages[-1]
        if last.role == "user":
            self.messages[-1] = replace(last, results=(*last.results, result))
        else:
            self.messages.append(Message(role="user", results=(result,)))


def tool(fields: Json, schema: Mapping[str, Any]) -> Tool:
    """Return the tool with the name and description in `fields`."""
    return Tool(name=fields["name"], description=fields.get("description") or "", parameters=schema)


def call(fields: Json, call_id: str, arguments: object) -> ToolCall:
    """Return a call of the tool named in `fields`. Arguments that are not text are encoded as JSON."""
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ToolCall(id=call_id, name=fields.get("name") or "", arguments=text)


def _parts(item: Any) -> Iterator[tuple[list[Json], int]]:
    """Yield the list and the index of each part of a message, also in results of tools."""
    for field in ("content", "parts", "output", "functionResponse") if isinstance(item, dict) else ():
        parts = item.get(field)
        if isinstance(parts, dict):
            yield from _parts(parts)
        for at, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, dict):
                yield parts, at
                yield from _parts(parts[at])


# Kinds or fields of parts that `read` translates, or leaves out because only their own provider can use them.
_READ = frozenset(
    {
        *("text", "refusal", "tool_use", "tool_result", "functionCall", "functionResponse"),
        *("thinking", "redacted_thinking", "thought", "thoughtSignature"),
    }
)
_MEDIA_TYPES = ("media_type", "mimeType", "mime_type")


def _note(part: Json) -> tuple[str, str]:
    """Return the kind of a part that `read` cannot translate, and a text for the model in its place."""
    name = part.get("type")
    if not (part and _READ.isdisjoint((*part, name))):
        return "", ""
    held = [each for each in (part, *part.values()) if isinstance(each, dict)]
    texts = [value for each in held for value in each.values() if isinstance(value, str)]
    head, _, data = max(texts, key=len, default="").rpartition(",")  # the longest text is the data, in base64
    types = [each[field] for each in held for field in _MEDIA_TYPES if field in each]
    media = types[0] if types else head.removeprefix("data:").partition(";")[0]
    kind = str(media or name or next(iter(part))).removeprefix("input_").partition("/")[0]
    size = f", {len(data) * 3 // 4 - data[-2:].count('='):,} bytes" if media else ""
    text = f"[{media or kind}{size}: not passed on to this model]"
    return "document" if kind in {"application", "text"} else kind, text


def text_of(content: Any) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text_of(content.get("parts") or content.get("text") or "")
    if not isinstance(content, list):
        return ""
    texts = (part if isinstance(part, str) else part.get("text") or "" for part in content)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def is_remote(url: object) -> bool:
    """Return True if the provider would fetch this address."""
    return isinstance(url, str) and not url.startswith("data:")


def in_one(text: str) -> tuple[str, ...]:
    """Return a text as one piece; an empty text as no piece."""
    return (text,) if text else ()

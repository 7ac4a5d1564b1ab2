"""What the gateway knows of an interface that agents speak: one subclass for each, in a file of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson

from astra_async.response_formats import Json, ResponseFormat
from astra_async.types import Message, Tool, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.types import AgentWire, Dialogue

REMOVED = "(removed: nothing is fetched for this task)"


class NotUnderstood(ValueError):  # noqa: N818 - names what was seen
    """A body that its interface would refuse; the message says why."""


class Interface(ResponseFormat):
    """One interface, as a server speaks it.

    Attributes:
        speaks: its name.
        headers_after_s: how long an answer is waited for before the head of a stream is sent; until then an
            error has its status.
        ping_after_s: the longest silence then.
        ping: what breaks it, in a stream.
        messages_at: the field of a body that holds the messages.
        passed_on: headers of the agent's that the provider is to see.
        text_part: what takes the place of content that the provider would fetch.
    """

    speaks: ClassVar[AgentWire]
    headers_after_s: ClassVar[float] = 2.0
    ping_after_s: ClassVar[float] = 10.0
    ping: ClassVar[bytes] = b": ping\n\n"
    messages_at: ClassVar[str] = "messages"
    passed_on: ClassVar[tuple[str, ...]] = ()
    text_part: ClassVar[Mapping[str, str]] = {"type": "text", "text": REMOVED}

    def tidied(self, body: Json) -> list[str]:
        """Take out of a body what would leave the container by the model's provider; returns its names."""
        removed = self._without_tools(body)
        for name in [name for name in self.dropped_fields if body.get(name)]:
            removed.append(name)
            del body[name]
        items = body.get(self.messages_at)
        for item in items if isinstance(items, list) else ():
            removed += self._without_remote(item)
        return list(dict.fromkeys(removed))

    def read(self, body: Json) -> Dialogue:
        """The dialogue that a body is. Raises NotUnderstood: it has another shape."""
        raise NotImplementedError

    def stream(self, whole: Json, body: Json) -> bytes:
        """A whole answer as a stream, for the client that asked with `body`."""
        del body
        return b"".join(map(self.encoded, self.events(whole, in_one))) + self.done

    def error(self, message: str) -> Json:
        """The body of an error that cannot be helped by asking again."""
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

    def error_event(self, message: str) -> bytes:
        """The same in a stream that has begun."""
        return self.encoded(self.error(message))

    def context_full(self) -> Json:
        """The error of a conversation that is too long, in the provider's words: agents shorten it then."""
        message = "This model's maximum context length is exceeded. Please reduce the length of the messages."
        fields = {"message": message, "type": "invalid_request_error", "param": "messages"}
        return {"error": {**fields, "code": "context_length_exceeded"}}

    def context_full_event(self) -> bytes | None:
        """The same as a stream of its own, where the client looks for it in one; None where not."""
        return None

    def untranslated(self, body: Json) -> list[str]:  # noqa: ARG002 - most translate all
        """Names of tools of a body that `read` leaves out."""
        return []

    def translated(self, whole: Json, body: Json) -> Json:
        """A translated answer, its calls of the kinds that the body's tools have."""
        del body
        return whole

    def local(self, body: Json) -> Json | None:  # noqa: ARG002 - most ask nothing of the kind
        """The answer to a probe that is not worth a call, or None."""
        return None

    def counted(self, tokens: int) -> Json:
        """The answer to a question for the tokens of a request."""
        return {"input_tokens": tokens}

    # --- what is taken out --------------------------------------------------------------------------------

    kept_tools: ClassVar[frozenset[str | None]] = frozenset()
    dropped_fields: ClassVar[tuple[str, ...]] = ()

    def _without_tools(self, body: Json) -> list[str]:
        """Tools that the provider would run."""
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

    def _without_remote(self, item: Any) -> list[str]:
        """Content that the provider would fetch: its place is taken by a text that says so."""
        removed: list[str] = []
        for field in ("content", "parts", "output"):
            parts = item.get(field) if isinstance(item, dict) else None
            if not isinstance(parts, list):
                continue
            for at, part in enumerate(parts):
                if not isinstance(part, dict):
                    continue
                if name := self._remote(part):
                    removed.append(name)
                    parts[at] = dict(self.text_part)
                else:
                    removed += self._without_remote(part)
        return removed

    def _remote(self, part: Json) -> str:
        """What a part is that the provider would fetch, or nothing."""
        raise NotImplementedError


class Talk:
    """Puts together the messages of a dialogue, whatever pieces they come in."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calls: dict[str, ToolCall] = {}

    def says(self, role: Literal["user", "assistant"], text: str, calls: Iterable[ToolCall] = ()) -> None:
        """A message, or more of the one before."""
        calls = tuple(calls)
        self._calls |= {call.id: call for call in calls}
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == role:
            joined = "\n\n".join(filter(None, (last.text, text)))
            self.messages[-1] = replace(last, text=joined, calls=last.calls + calls)
        elif text or calls:
            self.messages.append(Message(role=role, text=text, calls=calls))

    def gives(self, call_id: str, text: str, *, failed: bool = False) -> None:
        """The result of a call. Raises NotUnderstood: no message makes it."""
        call = self._calls.get(call_id)
        if call is None:
            raise NotUnderstood(f"a result of {call_id!r}, which no message calls")
        result = ToolResult(call=call, text=text, failed=failed)
        last = self.messages[-1]
        if last.role == "user":
            self.messages[-1] = replace(last, results=(*last.results, result))
        else:
            self.messages.append(Message(role="user", results=(result,)))


def tool(fields: Json, schema: Mapping[str, Any]) -> Tool:
    """A tool whose name and description stand in `fields`."""
    return Tool(name=fields["name"], description=fields.get("description") or "", parameters=schema)


def call(fields: Json, call_id: str, arguments: object) -> ToolCall:
    """A call of the tool whose name stands in `fields`; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ToolCall(id=call_id, name=fields.get("name") or "", arguments=text)


def text_of(content: Any) -> str:
    """The text of a message's content: text, or a list of parts, of which those with text count."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text_of(content.get("parts") or content.get("text") or "")
    if not isinstance(content, list):
        return ""
    texts = (part if isinstance(part, str) else part.get("text") or "" for part in content)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def is_remote(url: object) -> bool:
    """Whether an address is one that its provider would fetch."""
    return isinstance(url, str) and not url.startswith("data:")


def in_one(text: str) -> tuple[str, ...]:
    """A text in one piece, or none."""
    return (text,) if text else ()

"""What a wire format answers with, in a stream, whole, or with an error; what it reads is `asked`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from aiohttp import web

from astra_async.simulate.wires.asked import Asking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from astra_async.simulate.limits import Rejected, Window
    from astra_async.simulate.model_answers import Finish
    from astra_async.types.agents import ToolCall

Trouble = Literal[
    "rate_limit",
    "too_large",
    "server_error",
    "unavailable",
    "overloaded",
    "stream_error",
    "bad_request",
    "context",
    "unknown_model",
    "key",
    "quota",
]

_MARK = "@@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one call: `cached` and `written` are parts of `prompt`, `reasoning` is part of `output`."""

    prompt: int
    cached: int = 0
    written: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, ready for any wire; `pieces` joined are its text, `created` is Unix time."""

    id: str
    model: str
    created: int
    pieces: Sequence[str]
    finish: Finish
    tokens: Tokens
    with_usage: bool = True
    calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """The whole visible text."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What an error message is made of; each trouble uses the part that it needs."""

    model: str = ""
    message: str = ""
    wait_s: float = 1.0
    tokens: int = 0
    most_tokens: int = 0
    rejected: Rejected | None = None

    @property
    def limit(self) -> str:
        """Which limit the request would have broken, where one is known."""
        known = self.rejected
        return f" of {known.limit:.0f} {known.dimension} per minute" if known else ""


@dataclass(frozen=True, slots=True)
class Error:
    """What a provider answers to a trouble; `message` is a template of a Detail's fields."""

    status: int
    kind: str
    message: str
    code: str | None = None


class Wire(Asking):
    """One wire format, as a server speaks it. A stream is opening, one event for each piece, closing.

    `finishes` names ends, `called` that of an answer with calls.
    """

    finishes: ClassVar[Mapping[str, str]]
    called = "tool_use"
    stream_type = "text/event-stream; charset=utf-8"
    charges_max_tokens = False  # max_tokens counts against the limit when the request is admitted
    cached_is_exempt = False  # cached tokens do not count against the limit
    errors: ClassVar[Mapping[Trouble, Error]]

    def opening(self, reply: Reply) -> bytes:
        """What comes before the first piece."""
        del reply
        return b""

    def piece(self, reply: Reply, text: str) -> bytes:
        """The event of one piece."""
        raise NotImplementedError

    def events(self, reply: Reply) -> list[bytes]:
        """One event for each piece, in order; only the text is encoded anew."""
        head, tail = self.piece(reply, _MARK).split(orjson.dumps(_MARK))
        return [head + orjson.dumps(piece) + tail for piece in reply.pieces]

    def closing(self, reply: Reply) -> bytes:
        """What comes after the last piece, with the terminal marker."""
        raise NotImplementedError

    def whole(self, reply: Reply) -> bytes:
        """The answer to a request that does not want a stream."""
        raise NotImplementedError

    def finish(self, reply: Reply) -> str:
        """Why the answer ends."""
        return self.called if reply.calls else self.finishes[reply.finish]

    def failure(self, trouble: Trouble, detail: Detail) -> web.Response:
        """The error response for a trouble."""
        if trouble == "unavailable":  # a proxy in front of the provider made it up
            page = b"<html><head><title>503 Service Temporarily Unavailable</title></head></html>"
            return web.Response(status=503, body=page, content_type="text/html")
        return web.Response(
            status=self.errors[trouble].status,
            body=orjson.dumps(self.error(trouble, detail)),
            content_type="application/json",
            headers=self.error_headers(trouble, detail),
        )

    def error(self, trouble: Trouble, detail: Detail) -> Mapping[str, Any]:
        """The body of the error response."""
        raise NotImplementedError

    def error_headers(self, trouble: Trouble, detail: Detail) -> Mapping[str, str]:
        """Its headers, such as how long to wait."""
        del trouble, detail
        return {}

    def stream_error(self, detail: Detail) -> bytes:
        """An error in the middle of a stream, after HTTP 200."""
        return event(self.error("stream_error", detail))

    def limit_headers(self, windows: Iterable[Window]) -> dict[str, str]:
        """Headers that announce the limits; empty where the provider sends none."""
        del windows
        return {}

    def message(self, trouble: Trouble, detail: Detail) -> str:
        """The words of an error."""
        return self.errors[trouble].message.format(detail)


def event(data: Mapping[str, Any], name: str | None = None) -> bytes:
    """One server-sent event with a JSON payload."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + orjson.dumps(data) + b"\n\n"

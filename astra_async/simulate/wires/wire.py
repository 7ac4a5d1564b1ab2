"""What a wire format answers with, in a stream, whole, or with an error; what it reads is `asked`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from aiohttp import web

from astra_async.served import Json, Served
from astra_async.simulate.wires.asked import WireRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.simulate.limits import LimitWindow, Rejected
    from astra_async.types import Completion

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, ready for any wire, in pieces of `size` characters; `created` is Unix time."""

    id: str
    created: int
    completion: Completion
    size: int
    with_usage: bool = True

    def cut(self, text: str) -> list[str]:
        """The pieces that a stream carries a text in."""
        return [text[start : start + self.size] for start in range(0, len(text), self.size)]

    @property
    def pieces(self) -> list[str]:
        """Those of the answer's text."""
        return self.cut(self.completion.text)


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


class Wire(Served, WireRequest):
    """One wire format, as a server speaks it. `opening` events of a stream precede a text's first piece."""

    opening = 1
    stream_type = "text/event-stream; charset=utf-8"
    charges_max_tokens = False  # max_tokens counts against the limit when the request is admitted
    cached_is_exempt = False  # cached tokens do not count against the limit
    errors: ClassVar[Mapping[Trouble, Error]]

    def body(self, reply: Reply) -> Json:
        """The answer to a request that does not want a stream."""
        return self.whole(reply.completion, reply.completion.returned_model, reply.id, reply.created)

    def stream(self, reply: Reply) -> list[bytes]:
        """A stream in parts: one for each piece of the text, at least one."""
        body = self.body(reply)
        if not reply.with_usage:
            del body["usage"]
        events = [self.encoded(event) for event in self.events(body, reply.cut)]
        end = self.opening + len(reply.pieces)
        parts = events[self.opening : end] or [b""]
        parts[0] = b"".join(events[: self.opening]) + parts[0]
        parts[-1] += b"".join(events[end:]) + self.done
        return parts

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
        return self.encoded(self.error("stream_error", detail))

    def limit_headers(self, windows: Iterable[LimitWindow]) -> dict[str, str]:
        """Headers that announce the limits; empty where the provider sends none."""
        del windows
        return {}

    def message(self, trouble: Trouble, detail: Detail) -> str:
        """The words of an error."""
        return self.errors[trouble].message.format(detail)

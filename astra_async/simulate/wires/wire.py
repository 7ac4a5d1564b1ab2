"""Responses of a wire format: complete, streamed, or an error. Requests are parsed in `request_parsing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson
from aiohttp import web

from astra_async.response_formats import Json, ResponseFormat
from astra_async.simulate.wires.request_parsing import WireRequest

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
    """One answer for any wire format, in pieces of `size` characters; `created` is Unix time."""

    id: str
    created: int
    completion: Completion
    size: int
    with_usage: bool = True

    def cut(self, text: str) -> list[str]:
        """Split a text into the pieces of a stream."""
        return [text[start : start + self.size] for start in range(0, len(text), self.size)]

    @property
    def pieces(self) -> list[str]:
        """The pieces of the answer's text."""
        return self.cut(self.completion.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Values for error messages; each error uses some of them."""

    model: str = ""
    message: str = ""
    wait_s: float = 1.0
    tokens: int = 0
    most_tokens: int = 0
    rejected: Rejected | None = None

    @property
    def limit(self) -> str:
        """The exceeded limit as text, or '' if unknown."""
        known = self.rejected
        return f" of {known.limit:.0f} {known.dimension} per minute" if known else ""


@dataclass(frozen=True, slots=True)
class Error:
    """A provider's error response; `message` is a template for a Detail's fields."""

    status: int
    kind: str
    message: str
    code: str | None = None


class Wire(ResponseFormat, WireRequest):
    """One wire format on the server side. `opening` is the number of events before the first piece."""

    opening = 1
    stream_type = "text/event-stream; charset=utf-8"
    charges_max_tokens = False  # True: max_tokens counts against the limit on admission
    cached_is_exempt = False  # True: cached tokens do not count against the limit
    errors: ClassVar[Mapping[Trouble, Error]]

    def body(self, reply: Reply) -> Json:
        """Return the response to a request without streaming."""
        return self.whole(reply.completion, reply.completion.returned_model, reply.id, reply.created)

    def stream(self, reply: Reply) -> list[bytes]:
        """Return a stream in parts, one per piece of the text (at least one)."""
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
        """Return the error response."""
        if trouble == "unavailable":  # sent by a proxy in front of the provider
            page = b"<html><head><title>503 Service Temporarily Unavailable</title></head></html>"
            return web.Response(status=503, body=page, content_type="text/html")
        return web.Response(
            status=self.errors[trouble].status,
            body=orjson.dumps(self.error(trouble, detail)),
            content_type="application/json",
            headers=self.error_headers(trouble, detail),
        )

    def error(self, trouble: Trouble, detail: Detail) -> Mapping[str, Any]:
        """Return the body of an error response."""
        raise NotImplementedError

    def error_headers(self, trouble: Trouble, detail: Detail) -> Mapping[str, str]:
        """Return the headers of an error response, such as retry-after."""
        del trouble, detail
        return {}

    def stream_error(self, detail: Detail) -> bytes:
        """Return an error in the middle of a stream, after HTTP 200."""
        return self.encoded(self.error("stream_error", detail))

    def limit_headers(self, windows: Iterable[LimitWindow]) -> dict[str, str]:
        """Return headers that announce the limits; empty if the provider sends none."""
        del windows
        return {}

    def message(self, trouble: Trouble, detail: Detail) -> str:
        """Return an error message."""
        return self.errors[trouble].message.format(detail)

"""What one provider's batch interface is, and what all of them share: HTTP in small and in files.

A create is the one request that costs money: it is sent once for each intent. Whether it brought about a
batch is certain after a whole answer: 2xx yes, most of 4xx no. After anything else (a cut, a time-out, 5xx, a
kill) it is unknown, and `find` tells.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from astra_async.asking.providers.connection import DamagedEncoding, UnknownEncoding, pieces_of
from astra_async.asking.providers.error_body import parse_body
from astra_async.asking.providers.error_meaning import Failure, classify
from astra_async.asking.providers.patience import CONNECT_TIMEOUT_S
from astra_async.asking.providers.reception import BROKEN, Reception
from astra_async.asking.providers.request_fields import laid_over
from astra_async.errors import ProviderError, RequestRejected, TransientError
from astra_async.files import file_mode
from astra_async.redaction import one_line
from astra_async.transport import proxy_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Json, Reader
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import Completion, ModelRequest, ModelSettings, RateLimits, S3Settings

# 4xx after which the request may still have been carried out.
_UNCERTAIN = frozenset({408, 409, 425, 499})
_GONE = frozenset({404, 410})
_LONGEST_REFUSAL_BYTES = 2**20
# A batch that began so long before its intent is not ours, however wrong a clock is.
_CLOCKS_DIFFER_S = 86_400.0
_STREAMING = frozenset({"stream", "stream_options"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """State of a batch: `state` in the provider's word, `results` are the names of its files.

    `done` requests have a result; `succeeded` of them were charged, and their lines must come. `inline` are
    results in the answer itself, as lines. `failure` says why nothing was processed; `was_cancelled` that
    somebody wanted the end; `is_partial` that requests without a result were neither processed nor charged.
    """

    state: str
    has_ended: bool = False
    done: int = 0
    succeeded: int = 0
    results: tuple[str, ...] = ()
    inline: tuple[bytes, ...] = ()
    failure: Failure | None = None
    was_cancelled: bool = False
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """One line of results: an answer's body, or a failure; neither where it was not processed."""

    custom_id: str
    body: Json | None = None
    failure: Failure | None = None

    @property
    def is_result(self) -> bool:
        """Whether the request was processed."""
        return self.body is not None or self.failure is not None


class BatchInterface:
    """One provider's batches, bound to one model: requests are lines of a file, over the models' session.

    One batch may hold `most_requests` of `most_bytes`, with `opening`, `between` and `closing` round them. It
    may bring results until `lifetime_h` hours after its creation.
    """

    most_requests: ClassVar[int]
    most_bytes: ClassVar[int]
    lifetime_h: ClassVar[int] = 24
    opening: ClassVar[bytes] = b""
    between: ClassVar[bytes] = b"\n"
    closing: ClassVar[bytes] = b"\n"

    def __init__(self, wire: WireFormat, control: Control) -> None:
        self.wire = wire
        self.control = control

    @classmethod
    def check(cls, settings: ModelSettings) -> None:
        """Refuse settings that its batches cannot be made of. Raises ConfigError."""

    def row(self, custom_id: str, request: ModelRequest) -> bytes:
        """One request as it stands in the file: the body that is sent online, not streamed."""
        raise NotImplementedError

    async def upload(self, path: Path, token: str) -> str:  # noqa: ARG002 - some are sent the file itself
        """Bring the file to where a batch is made from; costs nothing. What it is called there."""
        return ""

    async def create(self, path: Path, intent: Intent) -> str:
        """Create the batch, once; returns its id. Raises ProviderError, see `is_certainly_none`."""
        raise NotImplementedError

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """The id of the batch that came of an intent, "" without one; those of `known` are other intents'.

        None while one may yet turn out to be it.
        """
        raise NotImplementedError

    async def look(self, batch_id: str) -> Standing:
        """How a batch stands."""
        raise NotImplementedError

    async def fetch(self, standing: Standing, path: Path) -> None:
        """Bring all results into one file of lines."""
        raise NotImplementedError

    def read(self, line: bytes) -> BatchOutcome:
        """One line of results. Raises ValueError, LookupError or TypeError for what is none."""
        raise NotImplementedError

    async def cancel(self, batch_id: str) -> None:
        """Ask for a batch's end; what is finished stays."""
        raise NotImplementedError

    def reader(self) -> Reader:
        """Reads one whole answer."""
        return self.wire.reader()

    async def close(self) -> None:
        """Release connections of its own."""

    def answer(self, settings: ModelSettings, outcome: BatchOutcome) -> Completion:
        """The answer in a result, read as a whole one that came online.

        Raises:
            ProviderError: the request's own failure, or a body that is no answer.
        """
        reception = Reception(settings, _Deaf(), self.reader())
        try:
            if outcome.failure is not None:
                return reception.refused(outcome.failure)
            reception.take([orjson.dumps(outcome.body)])
            return reception.ended("a reason for its end")
        except BROKEN as error:
            return reception.broken(error)

    async def newer(
        self, intent: Intent, url: URL, field: str, *, page_token: tuple[str, str] = ("", "after")
    ) -> AsyncIterator[Json]:
        """The items of a list, newest first and page after page, that may have come of an intent.

        `page_token` is what a page calls the token of the next one, and what the query for that does; without
        a token it is the last item's id, while the page `has_more`.
        """
        earliest = datetime.fromisoformat(intent.at).timestamp() - _CLOCKS_DIFFER_S
        token_name, asked_by = page_token
        while True:
            page = await self.control.ask("GET", url)
            items = [item for item in page.get(field) or [] if isinstance(item, dict)]
            for item in items:
                yield item
                if _created(item, earliest) < earliest:
                    return
            token = page.get(token_name) if token_name else page.get("has_more") and items and items[-1]["id"]
            if not token:
                return
            url = url.update_query({asked_by: str(token)})

    def own(self, text: str, what: str) -> URL:
        """An address that the provider has named, at the host that the key is meant for.

        Raises:
            TransientError: it is none.
            RequestRejected: it is elsewhere.
        """
        url = URL(text)
        if not url.host:
            raise TransientError(f"the provider named no address for {what}")
        if url.origin() != self.wire.base.origin():
            raise RequestRejected(f"{what} at another address, {url.host}: the key is not sent there")
        return url


class _Deaf:
    """A watch of what is over."""

    def limits(self, limits: RateLimits) -> None:
        """Nothing is announced."""

    def first_token(self) -> None:
        """Nothing streams."""

    def streamed(self, characters: int) -> None:
        """Nothing streams."""


class Gone(RequestRejected):
    """The provider does not know a batch or a file: with status 404 it may be known later, with 410 never."""


def is_certainly_none(error: ProviderError) -> bool:
    """Whether a create that ended so has brought about no batch."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in _UNCERTAIN  # noqa: PLR2004 - HTTP


def body_of(wire: WireFormat, request: ModelRequest) -> Json:
    """The body that is sent online, without what asks for a stream."""
    fields = laid_over(wire.body(request), wire.extra_body)
    return {name: value for name, value in fields.items() if value is not None and name not in _STREAMING}


class Control:
    """Requests that manage batches, over the shared session; `s3` holds files that are uploaded elsewhere."""

    def __init__(
        self, wire: WireFormat, session: aiohttp.ClientSession, *, s3: S3Settings, environ: Mapping[str, str]
    ) -> None:
        self.s3 = s3
        self.environ = environ
        self._settings = wire.settings
        self._wire = wire
        self._session = session
        self._proxy = proxy_for(wire.url, environ)
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=self._settings.timeout_s
        )

    async def ask(
        self, method: str, url: URL, data: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Json:
        """A request and the object that answers it. Raises ProviderError."""
        body, _ = await self.ask_with_headers(method, url, data, headers=headers)
        return body

    async def ask_with_headers(
        self, method: str, url: URL, data: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> tuple[Json, Mapping[str, str]]:
        """As `ask`, with the headers of the answer."""
        if isinstance(data, dict):
            data, headers = orjson.dumps(data), {"Content-Type": "application/json", **(headers or {})}
        async with self._answered(method, url, data=data, headers=headers) as response:
            content = b"".join([piece async for piece in pieces_of(response)])
            return self._object(content), response.headers

    async def save(self, url: URL, path: Path) -> None:
        """Append what a GET brings to a file, a piece in memory at a time. Raises ProviderError, OSError."""
        async with self._answered("GET", url) as response:
            with open_private(path) as stream:
                async for piece in pieces_of(response):
                    stream.write(piece)

    async def first_line(self, url: URL) -> bytes:
        """The first line of what a GET brings. Raises ProviderError."""
        found = b""
        async with self._answered("GET", url) as response:
            async for piece in pieces_of(response):
                found += piece
                if b"\n" in found:
                    break
        return found.partition(b"\n")[0]

    @asynccontextmanager
    async def _answered(
        self, method: str, url: URL, data: Any = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a request, if it is no refusal. Raises ProviderError.

        The cause of a lost connection may have come before the act or after it.
        """
        given = CIMultiDict({**self._wire.headers, **self._wire.extra_headers, **(headers or {})})
        signed = await self._wire.signed(url, given, data if isinstance(data, bytes) else b"", method=method)
        try:
            async with self._session.request(
                method,
                url,
                data=data,
                headers=signed,
                proxy=self._proxy,
                timeout=self._timeout,
                allow_redirects=False,  # a redirect would carry the key to wherever it points
            ) as response:
                if not response.ok or response.status >= 300:  # noqa: PLR2004 - HTTP
                    content = b"".join([piece async for piece in pieces_of(response)])
                    raise self._refusal(response, content[:_LONGEST_REFUSAL_BYTES])
                yield response
        except (aiohttp.ClientError, TimeoutError, ConnectionError, UnicodeError) as error:
            text = f"the connection failed ({type(error).__name__}: {error})"
            raise TransientError(f"{self._settings.name}: {one_line(text)}") from error
        except (UnknownEncoding, DamagedEncoding) as error:
            raise TransientError(f"{self._settings.name}: {error}") from error

    def _refusal(self, response: aiohttp.ClientResponse, content: bytes) -> ProviderError:
        body = parse_body(content)
        error = self.meaning(Failure(status=response.status, headers=response.headers, body=body))
        if response.status in _GONE:
            return Gone(str(error), status=error.status, code=error.code)
        return error

    def meaning(self, failure: Failure) -> ProviderError:
        """What an error of the interface is to its pool; of none of them can come a result."""
        meant = classify(self._wire.failure(failure), self._settings)
        if isinstance(meant, ProviderError):
            return meant
        return RequestRejected(
            f"{self._settings.name}: HTTP {failure.status}: {meant}", status=failure.status
        )

    def _object(self, content: bytes) -> Json:
        try:
            found = orjson.loads(content or b"{}")
        except orjson.JSONDecodeError as error:
            raise TransientError(
                f"{self._settings.name}: not JSON: {one_line(content, length=80)}"
            ) from error
        if not isinstance(found, dict):
            raise TransientError(f"{self._settings.name}: no object: {one_line(content, length=80)}")
        return found


def open_private(path: Path, *, anew: bool = False) -> Any:
    """A file for its run's eyes, to append to or to write anew."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if anew else os.O_APPEND)
    return os.fdopen(os.open(path, flags, file_mode(path.parent)), "wb")


def _created(item: Json, otherwise: float) -> float:
    """When a batch was created, Unix time: a number or ISO 8601, under the name that its interface uses."""
    about = item.get("metadata") or {}
    at = item.get("created_at") or item.get("submitTime") or about.get("createTime")
    try:
        return float(at) if isinstance(at, int | float) else datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        return otherwise

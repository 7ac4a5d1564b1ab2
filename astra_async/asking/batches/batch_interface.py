"""Base class of the providers' batch interfaces, and HTTP requests for managing batches.

Only the request that creates a batch costs money. It is sent once for each intent. After a complete response
the outcome is certain: with 2xx the batch exists, with most of 4xx it does not. After anything else (a lost
connection, a time-out, 5xx, a killed process) the outcome is unknown, and `find` looks for the batch.
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

from astra_async.asking.providers.attempt_timeout import CONNECT_TIMEOUT_S
from astra_async.asking.providers.connection import DamagedEncoding, UnknownEncoding, pieces_of
from astra_async.asking.providers.error_body import parse_body
from astra_async.asking.providers.error_meaning import Failure, classify
from astra_async.asking.providers.reception import BROKEN, Reception
from astra_async.asking.providers.request_fields import merge_fields
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

# 4xx statuses after which the batch may exist nevertheless.
_UNCERTAIN = frozenset({408, 409, 425, 499})
_GONE = frozenset({404, 410})
_LONGEST_REFUSAL_BYTES = 2**20
# A batch created this many seconds before an intent does not belong to it, even if a clock is wrong.
_CLOCKS_DIFFER_S = 86_400.0
_STREAMING = frozenset({"stream", "stream_options"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """State of a batch."""

    state: str  # the provider's name of the state
    has_ended: bool = False
    done: int = 0  # requests with a result
    succeeded: int = 0  # requests with an answer; these were charged, so their results must arrive
    results: tuple[str, ...] = ()  # names of the result files
    inline: tuple[bytes, ...] = ()  # lines of results that the response itself contains
    failure: Failure | None = None  # error of a batch that was not processed at all
    was_cancelled: bool = False
    is_partial: bool = False  # requests without a result were neither processed nor charged


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """One line of results: the body of an answer, a failure, or neither if the request was not processed."""

    custom_id: str
    body: Json | None = None
    failure: Failure | None = None

    @property
    def is_result(self) -> bool:
        """True if the request was processed."""
        return self.body is not None or self.failure is not None


class BatchInterface:
    """Batch interface of one provider, bound to one model. Limits are per batch."""

    most_requests: ClassVar[int]
    most_bytes: ClassVar[int]
    lifetime_h: ClassVar[int] = 24  # hours after its creation until which a batch may produce results
    opening: ClassVar[bytes] = b""  # before the first request in the file
    between: ClassVar[bytes] = b"\n"  # between two requests
    closing: ClassVar[bytes] = b"\n"  # after the last request

    def __init__(self, wire: WireFormat, control: Control) -> None:
        self.wire = wire
        self.control = control

    @classmethod
    def check(cls, settings: ModelSettings) -> None:
        """Check that the settings allow batches. Raises ConfigError."""

    def encode_request(self, custom_id: str, request: ModelRequest) -> bytes:
        """Return one request as bytes of the file. The body is the same as online, but without streaming."""
        raise NotImplementedError

    async def upload(self, path: Path, token: str) -> str:  # noqa: ARG002 - some interfaces need no upload
        """Upload the file of a batch, free of charge. Return its name at the provider, "" if not needed."""
        return ""

    async def create(self, path: Path, intent: Intent) -> str:
        """Create the batch and return its id. Raises ProviderError (see `proves_no_batch`)."""
        raise NotImplementedError

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """Return the id of the batch that was created for an intent, or "" if no such batch exists.

        Return None while this is undecided. `known` has the ids of batches that belong to other intents.
        """
        raise NotImplementedError

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch."""
        raise NotImplementedError

    async def fetch(self, status: BatchStatus, path: Path) -> None:
        """Append all results to the file `path`, one a line."""
        raise NotImplementedError

    def read(self, line: bytes) -> BatchOutcome:
        """Parse one line of results. Raises ValueError, LookupError or TypeError if the line is invalid."""
        raise NotImplementedError

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch. Finished requests keep their results."""
        raise NotImplementedError

    def reader(self) -> Reader:
        """Return a reader for one complete answer."""
        return self.wire.reader()

    async def close(self) -> None:
        """Close the connections that only this interface uses."""

    def answer(self, settings: ModelSettings, outcome: BatchOutcome) -> Completion:
        """Return the answer in a result, parsed like an unstreamed response.

        Raises:
            ProviderError: the request failed, or its body does not contain an answer.
        """
        reception = Reception(settings, _NoWatch(), self.reader())
        try:
            if outcome.failure is not None:
                return reception.refused(outcome.failure)
            reception.take([orjson.dumps(outcome.body)])
            return reception.ended("a finish reason")
        except BROKEN as error:
            return reception.broken(error)

    async def list_since(
        self, intent: Intent, url: URL, field: str, *, page_token: tuple[str, str] = ("", "after")
    ) -> AsyncIterator[Json]:
        """Yield the batches in a paged list, newest first, up to those that are older than an intent.

        Each page has its batches in `field`. `page_token` names the field of a page with the token of the
        next page, and the query parameter for that token. With an empty field name the token is the last
        item's id while the page has `has_more`.
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

    def same_origin(self, text: str, what: str) -> URL:
        """Return a URL from a response, after a check that it has the same origin as the base URL.

        Raises:
            TransientError: the text is not a URL.
            RequestRejected: the URL has another origin, where the API key must not be sent.
        """
        url = URL(text)
        if not url.host:
            raise TransientError(f"the provider sent no URL for {what}")
        if url.origin() != self.wire.base.origin():
            raise RequestRejected(f"{what}: the URL is at another host, {url.host}, where no key is sent")
        return url


class _NoWatch:
    """CallWatch that ignores all reports, because the answer in a batch is complete already."""

    def limits(self, limits: RateLimits) -> None:
        """Ignore rate limits."""

    def first_token(self) -> None:
        """Ignore the first token."""

    def streamed(self, characters: int) -> None:
        """Ignore streamed characters."""


class Gone(RequestRejected):
    """The provider does not have a batch or a file: perhaps not yet (404), or not any more (410)."""


def proves_no_batch(error: ProviderError) -> bool:
    """Return True if an error of a create request proves that no batch was created."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in _UNCERTAIN  # noqa: PLR2004 - HTTP


def body_of(wire: WireFormat, request: ModelRequest) -> Json:
    """Return the body that is sent online, without the fields for streaming."""
    fields = merge_fields(wire.body(request), wire.extra_body)
    return {name: value for name, value in fields.items() if value is not None and name not in _STREAMING}


class Control:
    """HTTP client for managing batches, over the shared session; `s3` is for interfaces with files in S3."""

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
        """Send a request and return the JSON object in the response. Raises ProviderError."""
        body, _ = await self.ask_with_headers(method, url, data, headers=headers)
        return body

    async def ask_with_headers(
        self, method: str, url: URL, data: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> tuple[Json, Mapping[str, str]]:
        """Send a request and return the JSON object and the headers of the response. Raises ProviderError."""
        if isinstance(data, dict):
            data, headers = orjson.dumps(data), {"Content-Type": "application/json", **(headers or {})}
        async with self._answered(method, url, data=data, headers=headers) as response:
            content = b"".join([piece async for piece in pieces_of(response)])
            return self._object(content), response.headers

    async def save(self, url: URL, path: Path) -> None:
        """Append the body of a GET response to a file, piece by piece. Raises ProviderError or OSError."""
        async with self._answered("GET", url) as response:
            with open_private(path) as stream:
                async for piece in pieces_of(response):
                    stream.write(piece)

    async def first_line(self, url: URL) -> bytes:
        """Return the first line of the body of a GET response. Raises ProviderError."""
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
        """Send a request and yield the response if it succeeded. Raises ProviderError.

        If the connection is lost, the provider may or may not have carried out the request.
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
                allow_redirects=False,  # a redirect would send the key to another server
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
        """Classify an error of the batch interface.

        An error that a single request would record as the sample's result rejects the whole batch here.
        """
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
                f"{self._settings.name}: the response is not JSON: {one_line(content, length=80)}"
            ) from error
        if not isinstance(found, dict):
            text = one_line(content, length=80)
            raise TransientError(f"{self._settings.name}: the response is not a JSON object: {text}")
        return found


def open_private(path: Path, *, anew: bool = False) -> Any:
    """Open a file with the permissions of its run directory, to append or (`anew`) to overwrite."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if anew else os.O_APPEND)
    return os.fdopen(os.open(path, flags, file_mode(path.parent)), "wb")


def _created(item: Json, otherwise: float) -> float:
    """Return the Unix time when a batch was created, or `otherwise` if it is not given."""
    about = item.get("metadata") or {}
    at = item.get("created_at") or item.get("submitTime") or about.get("createTime")
    try:
        return float(at) if isinstance(at, int | float) else datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        return otherwise

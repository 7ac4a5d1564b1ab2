"""One attempt over HTTP: send, stream, time, translate. The wire formats plug in; nothing is repeated here.

Time-outs: `timeout_s` is the longest silence, from the request to the first byte and between any two
bytes; a whole attempt may last six times that, so that a stream that trickles for ever ends as well (see
`patience`).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import aiohttp

from astra_async.asking.providers.addresses import proxy_for
from astra_async.asking.providers.answer import AnswerTooLong, StreamFault, Unreadable
from astra_async.asking.providers.attempt import Attempt
from astra_async.asking.providers.failures import Failure, classify, parse_body
from astra_async.asking.providers.patience import Patience
from astra_async.asking.providers.sse import EventTooLarge, SseSplitter
from astra_async.errors import PoolUnusable, ProviderError, RequestRejected, TransientError, TruncatedStream
from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from yarl import URL

    from astra_async.asking.providers.answer import Reader
    from astra_async.types import CallWatch, Completion, ModelRequest, ModelSettings, RateLimits

CONNECT_TIMEOUT_S = 30.0
WHOLE_ATTEMPT_FACTOR = 6.0
_MAX_ERROR_BYTES = 2**20
_DRAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What one request looks like on the wire."""

    url: URL
    headers: Mapping[str, str]
    body: bytes


class WireFormat(Protocol):
    """What tells one provider's HTTP interface from another's."""

    charges_max_tokens: bool
    cached_input_is_exempt: bool
    url: URL
    secrets: tuple[str, ...]

    def call(self, request: ModelRequest) -> Call:
        """The request for one answer, streamed."""
        ...

    def reader(self) -> Reader:
        """A fresh reader for one answer."""
        ...

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """What the response's headers announce."""
        ...


class HttpProvider:
    """A Provider over HTTP: a wire format, bound to one model and a session.

    Args:
        owns_session: close the session with the provider (nobody else uses it).
        clock: monotonic seconds.
    """

    def __init__(
        self,
        settings: ModelSettings,
        wire: WireFormat,
        session: aiohttp.ClientSession,
        *,
        environ: Mapping[str, str],
        owns_session: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.charges_max_tokens = wire.charges_max_tokens
        self.cached_input_is_exempt = wire.cached_input_is_exempt
        self._settings = settings
        self._wire = wire
        self._session = session
        self._owns_session = owns_session
        self._clock = clock
        self._proxy = proxy_for(wire.url, environ)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=None)

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its terminal marker; `ttft_s` is the first content, reasoning included.

        Raises:
            ProviderError: the branch says what the pool should do; the message is masked and one line.
        """
        call = self._wire.call(request)
        attempt = Attempt(watch, self._wire.reader(), self._clock)
        silence_s = self._settings.timeout_s
        patience = Patience(silence_s=silence_s, whole_s=WHOLE_ATTEMPT_FACTOR * silence_s)
        try:
            async with patience, self._send(call) as response:
                patience.listen_to(response.content)
                return await self._receive(response, attempt, patience)
        except StreamFault as fault:
            return self._verdict(Failure(body=fault.body, secrets=self._wire.secrets), attempt, fault)
        except Unreadable as error:
            self._fail(TransientError, f"{error}: {error.excerpt}", attempt, error)
        except (EventTooLarge, AnswerTooLong) as error:
            attempt.tell()  # what is thrown away is paid for
            self._fail(TruncatedStream, str(error), attempt, error)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            # The one place where a foreign event of a wrong shape ends up: readers index freely.
            self._fail(TransientError, f"an event has an unknown shape ({error!r})", attempt, error)
        except TimeoutError as error:
            kind = TruncatedStream if attempt.streaming else TransientError
            self._fail(kind, self._silence(patience), attempt, error)
        except aiohttp.ClientError as error:
            self._fail(*_transport(error, streaming=attempt.streaming), attempt, error)
        except OSError as error:
            self._fail(TransientError, f"the connection failed ({error!r})", attempt, error)

    async def close(self) -> None:
        """Close the session, if it is this provider's own."""
        if self._owns_session:
            await self._session.close()

    def _send(self, call: Call) -> Any:
        return self._session.post(
            call.url,
            data=call.body,
            headers=call.headers,
            timeout=self._timeout,
            proxy=self._proxy,
            allow_redirects=False,  # a redirect would carry the key to wherever it points
        )

    async def _receive(
        self, response: aiohttp.ClientResponse, attempt: Attempt, patience: Patience
    ) -> Completion:
        limits = self._wire.limits(response.headers)
        if limits is not None:
            attempt.watch.limits(limits)
        if response.status != HTTPStatus.OK:
            return await self._refused(response, limits, attempt)
        if response.content_type == "text/html":
            self._fail(PoolUnusable, f"{self._wire.url} is a web page: check base_url", attempt)
        await _read_stream(response.content, attempt, patience)
        finished_s = self._clock()
        answer = attempt.reader.answer()
        if answer is None:
            seen = attempt.reader.transcript.characters
            self._fail(
                TruncatedStream, f"the stream ended without its end mark after {seen} characters", attempt
            )
        await _drain(response.content)
        return attempt.completion(answer, finished_s)

    async def _refused(
        self, response: aiohttp.ClientResponse, limits: RateLimits | None, attempt: Attempt
    ) -> Completion:
        try:
            body = parse_body(await _read_some(response))
        except (aiohttp.ClientError, TimeoutError) as error:
            body = f"(its body could not be read: {type(error).__name__})"
        failure = Failure(
            status=response.status,
            headers=response.headers,
            body=body,
            limits=limits,
            secrets=self._wire.secrets,
        )
        return self._verdict(failure, attempt, None)

    def _verdict(self, failure: Failure, attempt: Attempt, cause: Exception | None) -> Completion:
        meant = classify(failure, self._settings, now=datetime.now(UTC))
        if isinstance(meant, ProviderError):
            meant.usage = attempt.billed()
            raise meant from cause
        return attempt.stopped(meant, self._settings.model)

    def _silence(self, patience: Patience) -> str:
        if patience.is_over:
            return f"no end after {patience.whole_s:.0f} s, six times timeout_s in [[models]]"
        return f"no byte for {self._settings.timeout_s:g} s, or no connection within {CONNECT_TIMEOUT_S:g} s"

    def _fail(
        self, kind: type[ProviderError], text: str, attempt: Attempt, cause: Exception | None = None
    ) -> NoReturn:
        line = one_line(f"{self._settings.name}: {text}", self._wire.secrets)
        raise kind(line, usage=attempt.billed()) from cause


async def _read_stream(content: aiohttp.StreamReader, attempt: Attempt, patience: Patience) -> None:
    """Feed the attempt until its reader is done or the stream ends."""
    splitter = SseSplitter()
    try:
        while chunk := await content.readany():
            patience.heard()
            attempt.take(splitter.feed(chunk))
            if attempt.reader.done:
                return
    except aiohttp.ClientError:
        # The connection broke or fell silent; an answer whose end mark had arrived is whole and paid for.
        if attempt.reader.answer() is None:
            raise
    with suppress(Unreadable):  # half an event at the end: the stream was cut there
        attempt.take(splitter.finish())


async def _drain(content: aiohttp.StreamReader) -> None:
    """Wait shortly for the end of the body, so that the connection can be used again."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            while await content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return  # the answer is here; the connection is closed instead


async def _read_some(response: aiohttp.ClientResponse) -> bytes:
    """An error's body, cut where it is longer than any real one."""
    pieces: list[bytes] = []
    size = 0
    while size < _MAX_ERROR_BYTES and (piece := await response.content.readany()):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)[:_MAX_ERROR_BYTES]


def _transport(error: aiohttp.ClientError, *, streaming: bool) -> tuple[type[ProviderError], str]:
    """What trouble below HTTP means; an untrusted certificate and a proxy's refusal do not get better."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return PoolUnusable, f"the certificate is not trusted ({error}); SSL_CERT_FILE names another bundle"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        kind = PoolUnusable if error.status in {401, 403, 407} else TransientError
        return kind, f"the proxy answered {error.status} {error.message}"
    if isinstance(error, aiohttp.InvalidURL):
        return RequestRejected, f"the address cannot be used ({error})"
    if streaming:
        return TruncatedStream, "the connection was cut in mid-stream"
    return TransientError, f"the connection failed ({type(error).__name__}: {error})"

"""One attempt over HTTP: send the request, stream the response, translate errors. Retries are not made here.

`timeout_s` limits the time until the first byte and between two bytes. A whole attempt may last six times as
long, so that a stream that never ends is cut as well (see `AttemptTimeout`).
"""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
from multidict import CIMultiDict

from astra_async.asking.providers.answer import WRONG_SHAPE, Unreadable
from astra_async.asking.providers.attempt_timeout import CONNECT_TIMEOUT_S
from astra_async.asking.providers.connection import DamagedEncoding, Decoder, UnknownEncoding, pieces_of
from astra_async.asking.providers.error_body import parse_body
from astra_async.asking.providers.error_meaning import Failure
from astra_async.asking.providers.error_rules import PROXY_WANTS_CREDENTIALS
from astra_async.asking.providers.reception import BROKEN, Cut, Reception
from astra_async.asking.providers.request_fields import encode, merge_fields
from astra_async.errors import PoolUnusable, ProviderError, TransientError
from astra_async.redaction import public_url
from astra_async.transport import proxy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.asking.providers.aws import Splitter
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import CallWatch, Completion, ModelRequest, ModelSettings

_MAX_ERROR_BYTES = 2**20
_SUCCESS = range(200, 300)
_DRAIN_S = 0.5
_LARGE_BYTES = 2**20  # aiohttp warns about larger bodies unless they are files, which it sends in pieces
# Exceptions of network operations. UnicodeError: a proxy's host name is invalid in DNS (`address` checks the
# host names of base URLs).
_NETWORK = (aiohttp.ClientError, OSError, UnicodeError)


class HttpProvider:
    """Provider over HTTP for one model: a wire format and a session, closed with it if `owns_session`."""

    def __init__(
        self,
        settings: ModelSettings,
        wire: WireFormat,
        session: aiohttp.ClientSession,
        *,
        environ: Mapping[str, str],
        owns_session: bool = False,
    ) -> None:
        self.charges_max_tokens = wire.charges_max_tokens
        self.cached_input_is_exempt = wire.cached_input_is_exempt
        self._settings = settings
        self._wire = wire
        self._session = session
        self._owns_session = owns_session
        self._proxy = proxy_for(wire.url, environ)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=None)
        self._headers = CIMultiDict({"Content-Type": "application/json", **wire.headers})
        self._headers.update(wire.extra_headers)

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its end. `ttft_s` is the time to the first content, including reasoning.

        Raises:
            ProviderError: the attempt failed. The subclass tells the pool what to do. The message is one line
                with keys masked.
        """
        reader = self._wire.reader()
        reader.keep_complete = request.by_agent
        reception = Reception(self._settings, watch, reader, normalize=self._wire.failure)
        try:
            async with reception.timeout:
                return await self._exchange(request, reception)
        except Cut as error:
            return reception.broken(error, *_meaning(error.__cause__, reception))
        except BROKEN as error:
            return reception.broken(error)
        except TimeoutError as error:
            if not reception.timeout.is_timed_out:
                raise
            return reception.broken(error, reception.timeout.describe())

    async def close(self) -> None:
        """Close the session if this provider owns it."""
        if self._owns_session:
            await self._session.close()

    async def _exchange(self, request: ModelRequest, reception: Reception) -> Completion:
        outcome = await self._try_once(request, reception)
        if isinstance(outcome, Failure) and self._wire.switch_form(outcome):
            outcome = await self._try_once(request, reception)
        return reception.refused(outcome) if isinstance(outcome, Failure) else outcome

    async def _try_once(self, request: ModelRequest, reception: Reception) -> Completion | Failure:
        try:
            response = await self._send(request)
        except _NETWORK as error:
            raise Cut from error
        try:
            reception.timeout.watch_stream(response.content)
            reception.headers = response.headers
            refusal = await self._refusal(response, reception)
            return await self._receive(response, reception) if refusal is None else refusal
        finally:
            response.release()

    async def _send(self, request: ModelRequest) -> aiohttp.ClientResponse:
        headers = self._headers
        if request.native is not None and request.native.headers:
            headers = CIMultiDict({**headers, **request.native.headers})
            headers.update(self._wire.extra_headers)
        if request.sample_header is not None:
            headers = CIMultiDict(headers, **{"x-astra-sample": request.sample_header})
        url, body = self._wire.url, encode(merge_fields(self._wire.body(request), self._wire.extra_body))
        return await self._session.post(
            url,
            data=body if len(body) < _LARGE_BYTES else io.BytesIO(body),
            headers=await self._wire.signed(url, headers, body),
            timeout=self._timeout,
            proxy=self._proxy,
            allow_redirects=False,  # a redirect would send the key to another server
        )

    async def _refusal(self, response: aiohttp.ClientResponse, reception: Reception) -> Failure | None:
        """Return the error of a response, None if it succeeded. Reports rate-limit headers to the watch."""
        limits = None
        with suppress(*WRONG_SHAPE):  # an invalid header must not discard the answer
            limits = self._wire.limits(response.headers)
        if limits is not None:
            reception.watch.limits(limits)
        if response.status in _SUCCESS:
            return None
        body = parse_body(await _read_some(response))
        return Failure(status=response.status, headers=response.headers, body=body, limits=limits)

    async def _receive(self, response: aiohttp.ClientResponse, reception: Reception) -> Completion:
        try:
            decoder = Decoder(response.headers)
        except UnknownEncoding as error:
            raise reception.problem(PoolUnusable, str(error)) from error
        is_page = await _read_stream(response.content, decoder, self._wire.splitter(), reception)
        if is_page and not reception.has_events:
            page = public_url(str(self._wire.url))
            raise reception.problem(PoolUnusable, f"{page} returned an HTML page: check base_url")
        whole = reception.ended(f"its end mark after {reception.reader.transcript.characters} characters")
        await _drain(response.content)
        return whole


def _meaning(error: BaseException | None, reception: Reception) -> tuple[str, type[ProviderError] | None]:
    """Return the message and class of a transport error (None: the class depends on the streamed content).

    An untrusted certificate, a refusal by the proxy and an invalid address are permanent.
    """
    if isinstance(error, TimeoutError):
        return reception.timeout.describe(), None
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        text = f"the certificate is not trusted ({error}); set SSL_CERT_FILE to a bundle with its issuer"
        return text, PoolUnusable
    if isinstance(error, aiohttp.ClientHttpProxyError):
        kind = PoolUnusable if error.status in {401, 403, 407} else TransientError
        remedy = f": {PROXY_WANTS_CREDENTIALS}" if error.status in {401, 407} else ""
        return f"the proxy returned {error.status} {error.message}{remedy}", kind
    if isinstance(error, aiohttp.InvalidURL | UnicodeError):
        return f"the address is invalid ({error})", PoolUnusable
    if reception.streaming:
        return "the connection was lost during the answer", None
    return f"the connection failed ({type(error).__name__}: {error})", None


async def _read_stream(
    content: aiohttp.StreamReader,
    decoder: Decoder,
    splitter: Splitter,
    reception: Reception,
) -> bool:
    """Feed the reception until the reader is done or the stream ends. Return True for an HTML page."""
    try:
        while chunk := await _read(content):
            try:
                for piece in decoder.pieces(chunk):
                    reception.take(splitter.feed(piece))
            except DamagedEncoding as error:
                raise Unreadable(str(error)) from error
            reception.timeout.record_data(settled=reception.reader.settled)
            if reception.reader.done:
                return False
    except Cut:
        _flush(splitter, reception)
        raise
    _flush(splitter, reception)
    return splitter.is_page


def _flush(splitter: Splitter, reception: Reception) -> None:
    with suppress(Unreadable):  # the last event is incomplete because the stream was cut
        reception.take(splitter.finish())


async def _read(content: aiohttp.StreamReader) -> bytes:
    """Read available bytes. An exception raised by a callback must not be treated as a network error."""
    try:
        return await content.readany()
    except _NETWORK as error:
        raise Cut from error


async def _drain(content: aiohttp.StreamReader) -> None:
    """Wait briefly for the end of the body, so that the connection can be reused."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            while await content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return  # the answer is complete; the connection is closed instead of reused


async def _read_some(response: aiohttp.ClientResponse) -> bytes:
    """Read the body of an error response, up to `_MAX_ERROR_BYTES` or until the connection is lost."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in pieces_of(response):
            pieces.append(piece)
            size += len(piece)
            if size >= _MAX_ERROR_BYTES:
                break
    except (aiohttp.ClientError, UnknownEncoding, DamagedEncoding) as error:
        if not pieces:
            return f"(the response body could not be read: {type(error).__name__})".encode()
    return b"".join(pieces)[:_MAX_ERROR_BYTES]

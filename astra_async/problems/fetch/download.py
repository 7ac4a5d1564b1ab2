"""One GET of an archive over http or https, streamed to the cache."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from astra_async.errors import SourceError
from astra_async.problems.fetch.cache import CHUNK_BYTES, CachedLocation, TransientFetchError
from astra_async.problems.fetch.hub import refusal
from astra_async.problems.fetch.locations import shown
from astra_async.transport import proxy_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from astra_async.problems.fetch.cache import Cache

_TIMEOUT = aiohttp.ClientTimeout(total=1_800, sock_connect=30, sock_read=60)
_NOT_MODIFIED = 304
_TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}
REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 10
# Client errors that a retry cannot fix.
_FINAL = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, aiohttp.ClientConnectorCertificateError)


class AccessRefused(SourceError):  # noqa: N818 - named after the condition
    """The server responded 401 or 403; a request with credentials may succeed."""


async def download(
    session: aiohttp.ClientSession, url: str, cache: Cache, known: CachedLocation | None
) -> CachedLocation:
    """Fetch an archive, or confirm that the known one is current (ETag or Last-Modified, RFC 9110).

    Raises:
        TransientFetchError: connection error, timeout, truncated body, or status 408, 425, 429 or 5xx.
        AccessRefused: status 401 or 403.
        SourceError: too many redirects, another error status, or an invalid address or certificate.
        ArchiveError: the archive is too large.
    """
    try:
        async with _followed(session, url, _headers(known)) as response:
            if response.status == _NOT_MODIFIED and known is not None:
                return known
            _check(response, url)
            body = response.content.iter_chunked(CHUNK_BYTES)
            return CachedLocation(
                sha256=await cache.keep(body, response.content_length, shown(url)),
                etag=response.headers.get("ETag", ""),
                last_modified=response.headers.get("Last-Modified", ""),
            )
    except (aiohttp.ClientError, TimeoutError) as error:
        # Without the cause, because its text has the whole address, which may contain a signature.
        raise from_client(error, shown(url)) from None


def from_client(error: Exception, where: str) -> SourceError:
    """Convert an aiohttp or connection error: TransientFetchError, or SourceError if a retry cannot help."""
    if isinstance(error, _FINAL):
        return SourceError(f"{_plain(error)}; check the address", where=where)
    return TransientFetchError(_plain(error), where=where)


@asynccontextmanager
async def _followed(
    session: aiohttp.ClientSession, url: str, headers: dict[str, str]
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Follow redirects and yield the final response. Each address uses the proxy configured for it."""
    at = URL(url)
    for _ in range(_MOST_REDIRECTS + 1):
        async with session.get(
            at,
            headers=headers,
            timeout=_TIMEOUT,
            proxy=proxy_for(at, os.environ),
            allow_redirects=False,
        ) as response:
            to = response.headers.get("Location") if response.status in REDIRECTS else None
            if to is None:
                yield response
                return
        at = _next(at, to, shown(url))
    raise SourceError("too many redirects; check the address", where=shown(url))


def _next(at: URL, to: str, where: str) -> URL:
    try:
        address = at.join(URL(to))
    except ValueError:
        address = URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise SourceError("redirected to an address that is not http(s); check the address", where=where)
    return address


def _headers(known: CachedLocation | None) -> dict[str, str]:
    # Without content encoding, because the archive's own bytes are hashed and cached.
    headers = {"User-Agent": "astra_async", "Accept-Encoding": "identity"}
    if known is not None and known.etag:
        headers["If-None-Match"] = known.etag
    elif known is not None and known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


def _check(response: aiohttp.ClientResponse, url: str) -> None:
    if response.status == 200:  # noqa: PLR2004 - 204 and 206 carry no complete archive
        return
    where, answer = shown(url), f"the server responded {response.status}"
    if response.status in _TRANSIENT_STATUSES:
        after = response.headers.get("Retry-After", "")  # the date form is ignored
        raise TransientFetchError(
            answer, where=where, hint_s=float(after) if re.fullmatch("[0-9]+", after) else None
        )
    why = refusal(response.status, response.headers)
    if why:
        raise SourceError(f"{answer}: {why}", where=where)
    if response.status in (401, 403):
        raise AccessRefused(
            f"{answer}: access denied; check the credentials, or sign the address again if it has expired",
            where=where,
        )
    if response.status in (404, 410):
        raise SourceError(f"{answer}: file not found; check the address in the CSV", where=where)
    raise SourceError(answer, where=where)


def _plain(error: Exception) -> str:
    """Describe an error without its address, which may contain a signature."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        wants = "; put user and password before the host in HTTPS_PROXY" if error.status == 407 else ""  # noqa: PLR2004 - HTTP
        return f"the proxy responded {error.status}{wants}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "the server's certificate is not trusted; name a CA file in SSL_CERT_FILE"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect ({error.os_error.strerror or type(error.os_error).__name__})"
    words = {
        "ClientPayloadError": "the connection was lost in the middle of the file",
        "ServerDisconnectedError": "the server closed the connection",
        "InvalidURL": "invalid address",
    }
    return words.get(type(error).__name__, type(error).__name__)

"""HTTP connections to models: base URLs, the session, and decompression of response bodies.

Requests ask for uncompressed bodies, but some servers compress anyway. gzip and deflate are decoded; any
other encoding is an error (RFC 9110, section 8.4). Decoded pieces have at most `_MOST_BYTES` bytes.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from yarl import URL

from astra_async.errors import ConfigError
from astra_async.redaction import one_line, public_text
from astra_async.transport import trusted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    import aiohttp


_MOST_BYTES = 2**18
_EITHER = 32 + zlib.MAX_WBITS  # detect a zlib or a gzip header
_ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN = frozenset({"", "identity"})


class UnknownEncoding(Exception):  # noqa: N818 - names what was seen
    """The body has a content encoding that was not requested and cannot be decoded."""


class DamagedEncoding(Exception):  # noqa: N818 - names what was seen
    """The body does not match its content encoding."""


class Decoder:
    """Decoder of the chunks of one response body.

    Raises:
        UnknownEncoding: the body's encoding is neither identity, gzip nor deflate.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        encoding = headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ZLIB | _PLAIN:
            raise UnknownEncoding(
                f"the response has Content-Encoding {one_line(encoding, length=40)!r} although the request"
                " had Accept-Encoding: identity: turn off compression at the server or at its proxy"
            )
        self._zlib = zlib.decompressobj(_EITHER) if encoding in _ZLIB else None
        self._is_deflate = encoding == "deflate"

    def pieces(self, chunk: bytes) -> Iterable[bytes]:
        """Decode one chunk into pieces of bounded size.

        Raises:
            DamagedEncoding: the chunk does not match the content encoding.
        """
        if self._zlib is None:
            return (chunk,)
        if self._is_deflate and chunk:
            self._is_deflate = False
            if chunk[0] & 15 != zlib.DEFLATED:  # some servers omit the zlib header
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
        return _inflated(chunk, self._zlib)


def _inflated(chunk: bytes, stream: zlib._Decompress) -> Iterator[bytes]:
    try:
        while chunk:
            yield stream.decompress(chunk, _MOST_BYTES)
            chunk = stream.unconsumed_tail
    except zlib.error as error:
        raise DamagedEncoding(f"the compressed response is damaged ({error})") from error


async def pieces_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the decoded body of a response as it arrives. Raises errors of `Decoder` and aiohttp."""
    decoder = Decoder(response.headers)
    async for chunk in response.content.iter_any():
        for piece in decoder.pieces(chunk):
            yield piece


# DNS answers are cached because otherwise each of hundreds of new connections would look up the same name.
_DNS_CACHE_S = 300
_KEEPALIVE_S = 30.0
_READ_BUFFER_BYTES = 2**18
# Some routers send header fields of many kilobytes (policies, cookies, traces). aiohttp's default limit is
# 8,190 bytes a field.
_LONGEST_HEADER_BYTES = 2**18
_MOST_HEADERS = 1024
_HEADERS = {
    "User-Agent": "astra_async",
    "Accept": "text/event-stream, application/vnd.amazon.eventstream, application/json",
    # A compressed stream costs time on both sides, may be delayed by proxies, and can be a decompression
    # bomb. `Decoder` handles servers that compress anyway.
    "Accept-Encoding": "identity",
}


def address(text: str, *, where: str) -> URL:
    """Parse a base URL from the user. Its query is kept, and slashes at its end are removed.

    Args:
        text: the URL.
        where: name of the setting, for error messages.

    Raises:
        ConfigError: the text is not an http(s) URL, or the URL contains credentials.
    """
    try:
        url = URL(text.strip())
        host = url.host
        (url.raw_host or "").encode("idna")  # raises if a label is longer than 63 characters
    except ValueError as error:
        raise ConfigError(f"{where}: {public_text(text)!r} is not a URL ({error})") from error
    if url.scheme not in {"http", "https"} or not host:
        raise ConfigError(f"{where}: {public_text(text)!r} is not an http:// or https:// URL")
    if url.user or url.password:
        raise ConfigError(
            f"{where}: {public_text(text)!r} contains credentials: use extra_headers instead, for example"
            ' {Authorization = "Basic ${MY_VARIABLE}"}'
        )
    return url.with_path(url.raw_path.rstrip("/"), encoded=True, keep_query=True)


def join_url(base: URL, path: str, **query: str) -> URL:
    """Append an encoded path and query parameters to the base URL. The base URL's query comes first."""
    joined = base.joinpath(path, encoded=True) if path else base
    return joined.with_query([*base.query.items(), *query.items()])


def without_version(base: URL) -> URL:
    """Remove `/v1` or `/v1beta` from the end, because several wire formats may share one --base-url."""
    return base.parent.with_query(base.query) if base.name in {"v1", "v1beta"} else base


def open_session(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """Open a session without connection limit, time-outs or cookies. Call this inside a running event loop.

    Proxies are chosen once for each provider (`proxy_for`) and not by the session, because the session would
    read the environment for every request and let an entry of ~/.netrc replace the API key.

    Raises:
        ConfigError: the configured certificate bundle cannot be read.
    """
    import aiohttp  # imported late because the import takes 0.1 s

    connector = aiohttp.TCPConnector(
        limit=0,
        ssl=trusted(environ),
        ttl_dns_cache=_DNS_CACHE_S,
        keepalive_timeout=_KEEPALIVE_S,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=_READ_BUFFER_BYTES,
        headers=_HEADERS,
        trust_env=False,
        auto_decompress=False,
        max_line_size=_LONGEST_HEADER_BYTES,
        max_field_size=_LONGEST_HEADER_BYTES,
        max_headers=_MOST_HEADERS,
    )

"""The connection to models: addresses as a user typed them, certificates, the session, compressed bodies.

Bodies may come compressed although nobody asked: gzip and deflate are read, all else is named (RFC 9110,
section 8.4). One piece of a body never grows by more than `_MOST_BYTES` at once.
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
_EITHER = 32 + zlib.MAX_WBITS  # zlib's own header, or gzip's
_ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN = frozenset({"", "identity"})


class UnknownEncoding(Exception):  # noqa: N818 - names what was seen
    """The body is encoded in a way that was not asked for and cannot be read."""


class DamagedEncoding(Exception):  # noqa: N818 - names what was seen
    """The body is not what its encoding says."""


class Decoder:
    """Turns the pieces of one body into what they stand for.

    Raises:
        UnknownEncoding: it is neither plain nor compressed by zlib.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        encoding = headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ZLIB | _PLAIN:
            raise UnknownEncoding(
                f"the answer comes encoded as {one_line(encoding, length=40)!r}, which was not asked for"
                " (Accept-Encoding: identity): turn that off at the server or at the proxy before it"
            )
        self._zlib = zlib.decompressobj(_EITHER) if encoding in _ZLIB else None
        self._is_deflate = encoding == "deflate"

    def pieces(self, chunk: bytes) -> Iterable[bytes]:
        """What a chunk holds, in pieces of bounded size.

        Raises:
            DamagedEncoding: it is not what the header says.
        """
        if self._zlib is None:
            return (chunk,)
        if self._is_deflate and chunk:
            self._is_deflate = False
            if chunk[0] & 15 != zlib.DEFLATED:  # some servers leave zlib's header out
                self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
        return _inflated(chunk, self._zlib)


def _inflated(chunk: bytes, stream: zlib._Decompress) -> Iterator[bytes]:
    try:
        while chunk:
            yield stream.decompress(chunk, _MOST_BYTES)
            chunk = stream.unconsumed_tail
    except zlib.error as error:
        raise DamagedEncoding(f"its compression is damaged ({error})") from error


async def pieces_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of a response as it comes. Raises what `Decoder` does, and aiohttp."""
    decoder = Decoder(response.headers)
    async for chunk in response.content.iter_any():
        for piece in decoder.pieces(chunk):
            yield piece


# Beyond a few connections the limit is the pool's, never the connector's; DNS answers are kept a while
# because hundreds of new connections would otherwise ask again each.
_DNS_CACHE_S = 300
_KEEPALIVE_S = 30.0
_READ_BUFFER_BYTES = 2**18
# Routers send policies, cookies and traces of many kilobytes; aiohttp's own limit is 8,190 bytes a field.
_LONGEST_HEADER_BYTES = 2**18
_MOST_HEADERS = 1024
_HEADERS = {
    "User-Agent": "astra_async",
    "Accept": "text/event-stream, application/vnd.amazon.eventstream, application/json",
    # A compressed stream costs time on both sides, may be held back by proxies, and can be a bomb. Whoever
    # compresses all the same is read by `encodings`.
    "Accept-Encoding": "identity",
}


def address(text: str, *, where: str) -> URL:
    """A base URL as a user typed it, with its query, without a slash at its end.

    Raises:
        ConfigError: no http(s) URL, or one that carries credentials.
    """
    try:
        url = URL(text.strip())
        host = url.host
        (url.raw_host or "").encode("idna")  # DNS holds no label of more than 63 characters
    except ValueError as error:
        raise ConfigError(f"{where}: {public_text(text)!r} is not a URL ({error})") from error
    if url.scheme not in {"http", "https"} or not host:
        raise ConfigError(f"{where}: {public_text(text)!r} is not an http:// or https:// URL")
    if url.user or url.password:
        raise ConfigError(
            f"{where}: {public_text(text)!r} holds credentials: send them with extra_headers instead, such as"
            ' {Authorization = "Basic ${MY_VARIABLE}"}'
        )
    return url.with_path(url.raw_path.rstrip("/"), encoded=True, keep_query=True)


def below(base: URL, path: str, **query: str) -> URL:
    """A path under the base URL, whose own query is kept and comes first; `path` is encoded already."""
    joined = base.joinpath(path, encoded=True) if path else base
    return joined.with_query([*base.query.items(), *query.items()])


def without_version(base: URL) -> URL:
    """The base URL without `/v1` or `/v1beta` at its end: one --base-url may serve several wire formats."""
    return base.parent.with_query(base.query) if base.name in {"v1", "v1beta"} else base


def open_session(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """A session without limits, time-outs and cookies of its own; call it inside a running loop.

    Proxies are chosen once for each provider (`proxy_for`) and not by the session: it would look through the
    environment on every call and let an entry of ~/.netrc replace the API key.

    Raises:
        ConfigError: the named bundle cannot be read.
    """
    import aiohttp  # which only whoever sends something needs: it takes 0.1 s

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

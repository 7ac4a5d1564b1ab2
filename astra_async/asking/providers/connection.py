"""Where models are reached: addresses as a user typed them, certificates, and the shared session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yarl import URL

from astra_async.errors import ConfigError
from astra_async.redaction import public_text
from astra_async.transport import trusted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

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

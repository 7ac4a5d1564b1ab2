"""The HTTP session that all models share: connections and certificates."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import aiohttp

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# Beyond a few connections the limit is the pool's, never the connector's; DNS answers are kept a while
# because hundreds of new connections would otherwise ask again each.
_DNS_CACHE_S = 300
_KEEPALIVE_S = 30.0
_READ_BUFFER_BYTES = 2**18
_HEADERS = {
    "User-Agent": "astra_async",
    "Accept": "text/event-stream, application/json",
    # A compressed stream costs time on both sides, may be held back by proxies, and can be a bomb.
    "Accept-Encoding": "identity",
}


def open_session(environ: Mapping[str, str]) -> aiohttp.ClientSession:
    """A session without limits, time-outs and cookies of its own; call it inside a running loop.

    Certificates: `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE` or `CURL_CA_BUNDLE`, else the system's. Proxies are
    chosen once for each provider (`proxy_for`) and not by the session: it would look through the
    environment on every call and let an entry of ~/.netrc replace the API key.

    Raises:
        ConfigError: the named bundle cannot be read.
    """
    connector = aiohttp.TCPConnector(
        limit=0, ssl=_tls(environ), ttl_dns_cache=_DNS_CACHE_S, keepalive_timeout=_KEEPALIVE_S
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=_READ_BUFFER_BYTES,
        headers=_HEADERS,
        trust_env=False,
    )


def certificate_bundle(environ: Mapping[str, str]) -> str | None:
    """The file of certificates that the environment names, or None for the system's."""
    return next((environ[name] for name in _BUNDLE_VARIABLES if environ.get(name)), None)


def _tls(environ: Mapping[str, str]) -> ssl.SSLContext:
    bundle = certificate_bundle(environ)
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"the certificates in {bundle} cannot be read: {error}") from error

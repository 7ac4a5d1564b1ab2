"""Addresses of servers: as a user typed them, on this machine or elsewhere, and behind which proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yarl import URL

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def proxy_for(url: URL, environ: Mapping[str, str]) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name for this address, or None.

    Lower-case names outrank upper-case ones, as in curl. This machine itself never goes through a proxy.
    """
    if is_local(url):
        return None
    proxies: dict[str, str] = {}
    for name in sorted(environ):  # upper case sorts first, so that lower case overwrites it
        if name.lower().endswith("_proxy"):
            proxies[name.lower().removesuffix("_proxy")] = environ[name]
    if _bypassed(url, proxies.get("no", "")):
        return None
    return proxies.get(url.scheme) or proxies.get("all") or None


def is_local(url: URL) -> bool:
    """Whether the address is this machine's own loopback."""
    return (url.host or "") in _LOOPBACK


def address(text: str, *, where: str) -> URL:
    """A base URL as a user typed it, without a slash at its end.

    Raises:
        ConfigError: no http(s) URL, or one that carries credentials.
    """
    try:
        url = URL(text.strip().rstrip("/"))
    except ValueError as error:
        raise ConfigError(f"{where}: {text!r} is not a URL") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigError(f"{where}: {text!r} is not an http:// or https:// URL")
    if url.user or url.password:
        raise ConfigError(f"{where}: a URL must not hold credentials; keys come from the environment")
    return url


def without_version(base: URL) -> URL:
    """The base URL without `/v1` or `/v1beta` at its end: one --base-url may serve several wire formats."""
    return base.parent if base.name in {"v1", "v1beta"} else base


def _bypassed(url: URL, no_proxy: str) -> bool:
    """NO_PROXY as curl reads it: `*`, or names that match themselves and whatever ends with them."""
    host = (url.host or "").lower()
    for entry in no_proxy.lower().replace(" ", ",").split(","):
        name = entry.lstrip(".")
        if name and (name in {"*", host, f"{host}:{url.port}"} or host.endswith("." + name)):
            return True
    return False

"""Connections to model and file servers: proxy selection and certificates.

Proxies: `HTTPS_PROXY` or `HTTP_PROXY` by the URL's scheme, else `ALL_PROXY`. Lower-case names take
precedence, and a proxy without a scheme is an HTTP proxy, as in curl. `NO_PROXY` lists hosts that are
reached directly, separated by commas or blanks: `*`; a name, with or without leading `.` or `*.`, which
also matches subdomains; an IP address or network (`10.0.0.0/8`); each with or without a port. The local
machine is never reached through a proxy.

Certificates: the bundle named by `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE` or
`AWS_CA_BUNDLE`, else the system's.
"""

from __future__ import annotations

import ssl
from functools import cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from yarl import URL

from astra_async.errors import ConfigError
from astra_async.redaction import public_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE")


def proxy_for(url: URL, environ: Mapping[str, str]) -> URL | None:
    """Return the proxy for a URL, with its user and password, or None.

    Raises:
        ConfigError: the variable does not name an HTTP proxy.
    """
    if is_local(url):
        return None
    named: dict[str, tuple[str, str]] = {}
    for name in sorted(environ):  # upper case sorts first, so lower case overwrites it
        if name.lower().endswith("_proxy"):
            named[name.lower().removesuffix("_proxy")] = name, environ[name].strip()
    host, no_proxy = (url.host or "").lower().rstrip("."), named.get("no", ("", ""))[1].lower()
    if any(_matches(entry, host, url.port) for entry in no_proxy.replace(",", " ").split()):
        return None
    for of in (url.scheme, "all"):
        variable, text = named.get(of, ("", ""))
        if text:
            return _proxy(variable, text)
    return None


def is_local(url: URL) -> bool:
    """Return True if the URL's host is loopback."""
    host = url.host or ""
    if host.rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def trusted(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return the SSL context with the trusted certificates for servers and proxies.

    Raises:
        ConfigError: the bundle cannot be read.
    """
    return _context(next((environ[name] for name in _BUNDLE_VARIABLES if environ.get(name)), None))


@cache
def _context(bundle: str | None) -> ssl.SSLContext:
    """Return a shared SSL context, because loading the system's certificates takes 25 ms."""
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:  # includes ssl.SSLError
        raise ConfigError(f"the certificates in {bundle} cannot be read: {error}") from error


def _proxy(variable: str, text: str) -> URL:
    scheme, mark, _ = text.partition("://")
    what = f"{variable} = {public_text(text)!r}"
    if mark and scheme.lower() not in {"http", "https"}:
        raise ConfigError(
            f"{what}: only HTTP proxies are supported (http://HOST:PORT, https://HOST:PORT); put an HTTP"
            " proxy such as privoxy before it, or list hosts to reach directly in NO_PROXY"
        )
    try:
        proxy = URL(text if mark else f"http://{text}")
        known = bool(proxy.host and proxy.port)
    except ValueError as error:
        raise ConfigError(f"{what} is an invalid proxy address ({error}); write http://HOST:PORT") from error
    if not known:
        raise ConfigError(f"{what} is an invalid proxy address; write http://HOST:PORT")
    return proxy


def _matches(entry: str, host: str, port: int | None) -> bool:
    name, _, wanted = entry.rpartition(":")
    if name and wanted.isdecimal() and (":" not in name or name.endswith("]")):
        if int(wanted) != port:
            return False
        entry = name
    if entry == "*":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        ending = entry.removeprefix("*").strip(".")
        return bool(ending) and f".{host}".endswith(f".{ending}")
    try:
        return address in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False

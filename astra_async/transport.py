"""How servers are reached, models' and files': which proxy stands before one, and how it proves who it is.

Proxies: `HTTPS_PROXY` or `HTTP_PROXY` by the address's scheme, else `ALL_PROXY`; lower-case names outrank
upper-case ones, and a proxy without a scheme is an HTTP proxy, as in curl. `NO_PROXY` lists what is asked
directly, with commas or blanks between: `*`; a name, with or without `.` or `*.` before it, for itself and
whatever ends with it; an IP address or a network (`10.0.0.0/8`); each with a port or without. This machine
itself is never asked through a proxy.

Certificates: those in the bundle that `SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE` or
`AWS_CA_BUNDLE` names, else the system's.
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
    """The proxy for this address, with its user and password, or None.

    Raises:
        ConfigError: the variable names no HTTP proxy.
    """
    if is_local(url):
        return None
    named: dict[str, tuple[str, str]] = {}
    for name in sorted(environ):  # upper case sorts first, so that lower case overwrites it
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
    """Whether the address is this machine's own loopback."""
    host = url.host or ""
    if host.rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def trusted(environ: Mapping[str, str]) -> ssl.SSLContext:
    """What servers and proxies have to prove themselves by.

    Raises:
        ConfigError: the named bundle cannot be read.
    """
    return _context(next((environ[name] for name in _BUNDLE_VARIABLES if environ.get(name)), None))


@cache
def _context(bundle: str | None) -> ssl.SSLContext:
    """One for all sessions: reading the certificates of a system takes 25 ms."""
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"the certificates in {bundle} cannot be read: {error}") from error


def _proxy(variable: str, text: str) -> URL:
    scheme, mark, _ = text.partition("://")
    what = f"{variable} = {public_text(text)!r}"
    if mark and scheme.lower() not in {"http", "https"}:
        raise ConfigError(
            f"{what}: only HTTP proxies can be used (http://HOST:PORT, https://HOST:PORT); put one before it,"
            " such as privoxy, or list in NO_PROXY what is asked directly"
        )
    try:
        proxy = URL(text if mark else f"http://{text}")
        known = bool(proxy.host and proxy.port)
    except ValueError as error:
        raise ConfigError(f"{what} is no proxy's address ({error}): write http://HOST:PORT") from error
    if not known:
        raise ConfigError(f"{what} is no proxy's address: write http://HOST:PORT")
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

"""Access control: checks before every response, and headers on every response.

Without a token, the viewer serves only loopback, only this account, and only loopback host names. The last
rule prevents DNS rebinding: a page of another site whose name resolves to 127.0.0.1 sends its own name as
Host. With a token, the cookie is checked. Browsers store the cookie per host and do not send it with
requests from other sites (SameSite=Strict).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from aiohttp import web

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# The only inline script of the page.
_PAGE = (Path(__file__).parent / "page" / "index.html").read_bytes()
_INLINE = _PAGE.partition(b"<script>")[2].partition(b"</script>")[0]
_HASH = base64.b64encode(hashlib.sha256(_INLINE).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self' 'sha256-{_HASH}'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

NOBODY = -1  # not a valid user id


class Access:
    """Access rules of one server; without a token, only loopback connections of this account."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self._accounts: WeakKeyDictionary[asyncio.BaseTransport, bool] = WeakKeyDictionary()

    def refusal(self, request: web.Request) -> str | None:
        """Return the reason for refusing a request, in one line; None if the request is allowed."""
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        if self.token is None and not is_loopback(_name(host)):
            return f"the host name {host!r} is not local; use 127.0.0.1 or localhost"
        if self.token is None and not self._is_own_account(request):
            return "another account of this machine sent the request; `astra view --token` allows this"
        if origin is not None and origin != f"{request.scheme}://{host}":
            return f"requests from pages of {origin} are not allowed"
        if request.headers.get("Sec-Fetch-Site", "none") == "cross-site" and request.path != "/":
            return "requests from other sites are not allowed"
        cookie = request.cookies.get(_cookie(request), "")
        if self.token is not None and not (self.is_introduced(request) or self._is_token(cookie)):
            return "the token is missing; open the complete address that `astra view` printed"
        return None

    def _is_own_account(self, request: web.Request) -> bool:
        """Return True if the client belongs to this account or root; checked once per connection."""
        transport = request.transport
        if transport is None:
            return False
        if transport not in self._accounts:
            account = account_of(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))
            self._accounts[transport] = account in (None, 0, os.geteuid())
        return self._accounts[transport]

    def is_introduced(self, request: web.Request) -> bool:
        """Return True if the request's URL has the token."""
        return self._is_token(request.query.get("token", ""))

    def admit(self, request: web.Request) -> web.Response:
        """Set the cookie and redirect to the URL without the token."""
        response = web.Response(status=303, headers={"Location": request.path})
        response.set_cookie(
            _cookie(request), self.token or "", httponly=True, samesite="Strict", path="/", max_age=None
        )
        return response

    def _is_token(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to every response, including errors (an aiohttp signal)."""
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.pop("Server", None)


def account_of(peer: Any, own: Any) -> int | None:
    """Return the user id of the client of a local connection (/proc/net/tcp, proc(5)).

    Return NOBODY if the client has no open socket. Return None if the user id cannot be found: the system
    has no /proc, or the address is not loopback. The socket of such an address may be in another network
    namespace (a container's published port).
    """
    ends = [_kernel_forms(name, port) for name, port, *_ in (peer, own)]
    tables = [Path("/proc/net", name) for name in ("tcp", "tcp6")]
    if not tables[0].exists():
        return None
    for form, table in enumerate(tables):
        for line in table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else ():
            fields = line.split()
            # A closed socket has inode 0 and is listed with user id 0.
            if fields[1:3] == [forms[form] for forms in ends] and fields[9] != "0":
                return int(fields[7])
    address = ip_address(peer[0].partition("%")[0])
    return NOBODY if (getattr(address, "ipv4_mapped", None) or address).is_loopback else None


def _kernel_forms(name: str, port: int) -> tuple[str, str]:
    """Return an address as listed in the kernel's IPv4 and IPv6 socket tables.

    Addresses are listed in four-byte words in the machine's byte order. An IPv4 address can be in both
    tables, because a program may use it through an IPv6 socket (RFC 4291, section 2.5.5.2).
    """
    packed = ip_address(name.partition("%")[0]).packed
    mapped = (bytes(10) + b"\xff\xff" + packed)[-16:]
    words = [f"{int.from_bytes(mapped[at : at + 4], sys.byteorder):08X}" for at in range(0, 16, 4)]
    return f"{words[-1]}:{port:04X}", f"{''.join(words)}:{port:04X}"


def is_loopback(name: str) -> bool:
    """Return True if a host name or address always means this machine."""
    if name.lower() in {"localhost", "localhost."}:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """Return the name in a Host header, without port and brackets; '' if the header is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or "" if "@" not in host and "/" not in host else ""
    except ValueError:
        return ""


def _cookie(request: web.Request) -> str:
    """Return this server's cookie name, which has the port because all ports of a host share cookies."""
    return f"astra_view_{urlsplit(f'//{request.host}').port or 80}"

"""Who may ask: the checks before every answer, and the headers on every answer.

Without a token only loopback is served, only to this account, and only under a loopback name: a page of
another site that lets its own name lead here (DNS rebinding) sends that name as Host. With a token the cookie
decides, which browsers keep for one host and send to no request that another site began (SameSite=Strict).
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

# The one script that stands in the page itself.
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

NOBODY = -1  # no account has it


class Access:
    """The rules for one server; without a token: loopback only, and only for this account."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self._accounts: WeakKeyDictionary[asyncio.BaseTransport, bool] = WeakKeyDictionary()

    def refusal(self, request: web.Request) -> str | None:
        """Why a request is not served, in one line; None if it is."""
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        if self.token is None and not is_loopback(_name(host)):
            return f"the name {host!r} is not this machine's own; use 127.0.0.1 or localhost"
        if self.token is None and not self._is_own_account(request):
            return "another account of this machine asks; `astra view --token` lets it in"
        if origin is not None and origin != f"{request.scheme}://{host}":
            return f"a page of {origin} may not ask here"
        if request.headers.get("Sec-Fetch-Site", "none") == "cross-site" and request.path != "/":
            return "another site may not ask here"
        cookie = request.cookies.get(_cookie(request), "")
        if self.token is not None and not (self.is_introduced(request) or self._is_token(cookie)):
            return "open the whole address that `astra view` printed, its token included"
        return None

    def _is_own_account(self, request: web.Request) -> bool:
        """Whether the other end of a connection belongs to this account or to root; asked once for each."""
        transport = request.transport
        if transport is None:
            return False
        if transport not in self._accounts:
            account = account_of(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))
            self._accounts[transport] = account in (None, 0, os.geteuid())
        return self._accounts[transport]

    def is_introduced(self, request: web.Request) -> bool:
        """Whether the token comes in the address."""
        return self._is_token(request.query.get("token", ""))

    def admit(self, request: web.Request) -> web.Response:
        """The cookie for a page that came with the token, and the address without it."""
        response = web.Response(status=303, headers={"Location": request.path})
        response.set_cookie(
            _cookie(request), self.token or "", httponly=True, samesite="Strict", path="/", max_age=None
        )
        return response

    def _is_token(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """A signal of the application: every answer carries these, errors too."""
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.pop("Server", None)


def account_of(peer: Any, own: Any) -> int | None:
    """The user id that owns the socket at the other end of a local connection (/proc/net/tcp, proc(5)).

    NOBODY if no open socket is there; None where that cannot be known: without /proc, and from an address
    that is no loopback's, for such a socket is in another network namespace (a container's port).
    """
    ends = [_kernel_forms(name, port) for name, port, *_ in (peer, own)]
    tables = [Path("/proc/net", name) for name in ("tcp", "tcp6")]
    if not tables[0].exists():
        return None
    for form, table in enumerate(tables):
        for line in table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else ():
            fields = line.split()
            # A socket that its program has closed has no inode any more, and root for its user.
            if fields[1:3] == [forms[form] for forms in ends] and fields[9] != "0":
                return int(fields[7])
    address = ip_address(peer[0].partition("%")[0])
    return NOBODY if (getattr(address, "ipv4_mapped", None) or address).is_loopback else None


def _kernel_forms(name: str, port: int) -> tuple[str, str]:
    """An address as the kernel's tables of IPv4 and IPv6 sockets print it.

    In words of four bytes, each in the machine's own order. An IPv4 address is in both tables: a program may
    reach it through an IPv6 socket too (RFC 4291, 2.5.5.2).
    """
    packed = ip_address(name.partition("%")[0]).packed
    mapped = (bytes(10) + b"\xff\xff" + packed)[-16:]
    words = [f"{int.from_bytes(mapped[at : at + 4], sys.byteorder):08X}" for at in range(0, 16, 4)]
    return f"{words[-1]}:{port:04X}", f"{''.join(words)}:{port:04X}"


def is_loopback(name: str) -> bool:
    """Whether a host's name or address can only mean this machine."""
    if name.lower() in {"localhost", "localhost."}:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """The name in a Host header, without port and brackets; empty for a malformed one."""
    try:
        return urlsplit(f"//{host}").hostname or "" if "@" not in host and "/" not in host else ""
    except ValueError:
        return ""


def _cookie(request: web.Request) -> str:
    """Cookies are shared between the ports of a host: each server has a name of its own."""
    return f"astra_view_{urlsplit(f'//{request.host}').port or 80}"

"""Web application of the viewer: access checks, errors as JSON, and files of the front end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from astra_async.errors import AstraError
from astra_async.log import encode
from astra_async.redaction import one_line
from astra_async.view.access import add_headers

if TYPE_CHECKING:
    from astra_async.view.access import Access, Handler

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (("", _PACKAGE / "view" / "page"), ("shared/", _PACKAGE / "report" / "shared"))
# Fixed here, because the machine's own table may give .js a type that browsers refuse to run.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_MOST_BODY_BYTES = 16_384


def checked(access: Access) -> web.Application:
    """Return an application without routes that checks access and answers every error as JSON."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if refusal := access.refusal(request):
            return refused(403, refusal)
        if request.path == "/" and access.is_introduced(request):
            return access.admit(request)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return refused(error.status, error.text or error.reason)
        except (AstraError, OSError) as error:
            return refused(500, str(error))
        except Exception as error:  # noqa: BLE001 - one failed request must not stop the viewer
            return refused(500, f"unexpected {type(error).__name__}: {error}; please report this")

    app = web.Application(middlewares=[check], client_max_size=_MOST_BODY_BYTES)
    app.on_response_prepare.append(add_headers)
    return app


def page(index: str = "index.html") -> Handler:
    """Return a handler for files of the front end; without a name in the request it serves `index`.

    Only files listed in the front end's folders are served, whatever the path in the request.
    """

    async def handler(request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("name", index)
        files = {
            prefix + path.relative_to(folder).as_posix(): path
            for prefix, folder in _FOLDERS
            for path in folder.rglob("*")
            if path.is_file()
        }
        if name not in files:
            raise web.HTTPNotFound(text="no such page")
        content = files[name].read_bytes()
        kind = TYPES.get(files[name].suffix, "application/octet-stream")
        headers = {"Cache-Control": "no-cache", "Content-Type": kind}
        return web.Response(body=content, headers=headers)

    return handler


def as_json(content: Any) -> web.Response:
    """Return a response with JSON."""
    return web.Response(body=encode(content), content_type="application/json")


def refused(status: int, why: str) -> web.Response:
    """Return a response with an error in one line."""
    return web.Response(status=status, body=encode({"error": one_line(why)}), content_type="application/json")

"""The addresses of the viewer, and the server that answers them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from astra_async.errors import AstraError, UsageError
from astra_async.redaction import one_line
from astra_async.view.access import Access, add_headers
from astra_async.view.board import COLUMNS, Board
from astra_async.view.following import Following
from astra_async.view.opened import Samples
from astra_async.view.overview import live_state, run_summary
from astra_async.view.watching import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_PAGE = Path(__file__).parent / "page"
_SHARED = _PAGE.parent.parent / "report" / "shared"  # what the report's page is made of too
_HEARTBEAT_S = 15.0
_MOST_BODY_BYTES = 16_384
_FIRST_PORT, _PORTS = 7575, 20
_SHUTDOWN_S = 1.0


class Viewer:
    """The answers to every address; what each gives stands at its function."""

    def __init__(self, directories: Sequence[Path], access: Access) -> None:
        self.board = Board([Following(directory) for directory in directories])
        self.watch = Watch(self.board, lambda: live_state(self.board))
        self.samples = Samples(self.board)
        self.access = access

    def application(self) -> web.Application:
        """All routes behind the checks."""
        app = web.Application(middlewares=[self._checked], client_max_size=_MOST_BODY_BYTES)
        app.on_response_prepare.append(add_headers)
        app.cleanup_ctx.append(self._context)
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/page/{name:.+}", self._file),
                web.get("/api/run", self._run),
                web.get("/api/cells", self._cells),
                web.get("/api/cells/{column}", self._column),
                web.get("/api/sample", self._sample),
                web.get("/api/live", self._live),
                web.get("/api/stream", self._stream),
            ]
        )
        return app

    async def _context(self, _: web.Application) -> AsyncIterator[None]:
        async with self.watch:
            yield
        await self.samples.close()

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if refusal := self.access.refusal(request):
            return _refused(403, refusal)
        if request.path == "/" and self.access.is_introduced(request):
            return self.access.admit(request)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _refused(error.status, error.text or error.reason)
        except (AstraError, OSError) as error:
            return _refused(500, str(error))
        except Exception as error:  # noqa: BLE001 - a boundary: one answer fails, the viewer goes on
            return _refused(500, f"unexpected {type(error).__name__}: {error}; please report this")

    async def _index(self, _: web.Request) -> web.StreamResponse:
        return _page_file("index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return _page_file(request.match_info["name"])

    async def _run(self, _: web.Request) -> web.StreamResponse:
        await self.watch.fresh()
        return _json(run_summary(self.board))

    async def _cells(self, _: web.Request) -> web.StreamResponse:
        await self.watch.fresh()
        return self._bytes(self.board.cells().tobytes())

    async def _column(self, request: web.Request) -> web.StreamResponse:
        await self.watch.fresh()
        column = self.board.column(request.match_info["column"])
        if column is None:
            return _refused(404, f"no such column; there are {', '.join(COLUMNS)}")
        return self._bytes(column)

    def _bytes(self, content: bytes) -> web.Response:
        headers = {"X-Version": str(self.board.version)}
        return web.Response(body=content, content_type="application/octet-stream", headers=headers)

    async def _sample(self, request: web.Request) -> web.StreamResponse:
        await self.watch.fresh()
        model, problem, sample = self._cell(request.query)
        found = await self.samples.open(model, problem, sample, _number(request.query, "turn", 0))
        if found is None:
            return _refused(404, "no such sample is planned")
        grid = self.board.grid
        named, (_, problems, samples) = grid.models[model], grid.shape
        key = {
            "model": named.name,
            "format": named.format,
            "problem_id": grid.problems[problem].id,
            "sample": sample,
        }
        cell = int(self.board.cells()[(model * problems + problem) * samples + sample])
        return _json({"key": key, "cell": cell, "label": None} | found)

    def _cell(self, query: Any) -> tuple[int, int, int]:
        """Numbers of model, problem and sample that a request names."""
        model, sample = _number(query, "model"), _number(query, "sample")
        places = {info.id: place for place, info in enumerate(self.board.grid.problems)}
        problem = places.get(query.get("problem", ""))
        if problem is None or model >= len(self.board.grid.models) or sample >= self.board.grid.samples:
            raise web.HTTPNotFound(text="no such sample is planned")
        return model, problem, sample

    async def _live(self, _: web.Request) -> web.StreamResponse:
        await self.watch.fresh()
        return _json(live_state(self.board))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        page = self.watch.open()
        try:
            while True:
                try:
                    async with asyncio.timeout(_HEARTBEAT_S):
                        message = await page.next()
                except TimeoutError:
                    message = b": still here\n\n"
                await response.write(message)
        except ConnectionError:
            return response
        finally:
            self.watch.close(page)


@asynccontextmanager
async def served(viewer: Viewer, host: str, port: int | None) -> AsyncIterator[int]:
    """The viewer at an address; gives the port, one of the first free ones if None. Raises UsageError."""
    runner = web.AppRunner(
        viewer.application(), access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S
    )
    await runner.setup()
    try:
        yield await _bound(runner, host, port)
    finally:
        await runner.cleanup()


async def _bound(runner: web.AppRunner, host: str, port: int | None) -> int:
    candidates = [*range(_FIRST_PORT, _FIRST_PORT + _PORTS), 0] if port is None else [port]
    for candidate in candidates:
        try:
            await web.TCPSite(runner, host, candidate).start()
        except OSError as error:
            if candidate != candidates[-1]:
                continue
            raise UsageError(
                f"{host} port {candidate}: {error.strerror}; choose another --port or --host"
            ) from error
        break
    return int(runner.addresses[0][1])


def _page_file(name: str) -> web.Response:
    """A file of the front end: only what a listing of its folder has, whatever was asked for."""
    files = {path.relative_to(_PAGE).as_posix(): path for path in _PAGE.rglob("*") if path.is_file()}
    files |= {f"shared/{path.name}": path for path in _SHARED.iterdir()}
    if name not in files:
        raise web.HTTPNotFound(text="no such page")
    content = files[name].read_bytes()
    kind = guess_type(name)[0] or "application/octet-stream"
    charset = "utf-8" if kind.startswith(("text/", "image/svg")) or "json" in kind else None
    headers = {"Cache-Control": "no-cache", "ETag": f'"{sha256(content).hexdigest()[:16]}"'}
    return web.Response(body=content, content_type=kind, charset=charset, headers=headers)


def _number(query: Any, name: str, absent: int | None = None) -> int:
    text = query.get(name)
    if text is None and absent is not None:
        return absent
    if not (text and text.isascii() and text.isdecimal() and len(text) < 10):  # noqa: PLR2004 - digits
        raise web.HTTPBadRequest(text=f"{name} must be a number from 0")
    return int(text)


def _json(content: Any) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json")


def _refused(status: int, why: str) -> web.Response:
    return web.Response(
        status=status, body=orjson.dumps({"error": one_line(why)}), content_type="application/json"
    )

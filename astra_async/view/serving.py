"""HTTP routes of the viewer, and the server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from astra_async.agents.session_log import session_log
from astra_async.errors import AstraError, UsageError
from astra_async.log import encode
from astra_async.redaction import one_line
from astra_async.report.labels import CLASSES
from astra_async.view.access import Access, add_headers
from astra_async.view.board import COLUMNS, Board
from astra_async.view.finding import MOST_FOUND, TEXTS, tests_of, with_test, with_text
from astra_async.view.following import Following
from astra_async.view.opened import Samples
from astra_async.view.overview import history, labelled, live_state, run_summary
from astra_async.view.watching import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.view.access import Handler

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (("", _PACKAGE / "view" / "page"), ("shared/", _PACKAGE / "report" / "shared"))
# Fixed here, because the machine's own table may give .js a type that browsers refuse to run.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_MOST_SEARCHED = 1_000  # characters
_HEARTBEAT_S = 15.0
_MOST_BODY_BYTES = 16_384
_FIRST_PORT, _PORTS = 7575, 20
_SHUTDOWN_S = 1.0


class Viewer:
    """The viewer's HTTP handlers; each handler's data is documented at the function that computes it."""

    def __init__(self, directories: Sequence[Path], access: Access) -> None:
        self.board = Board([Following(directory) for directory in directories])
        self.watch = Watch(self.board, lambda: live_state(self.board))
        self.samples = Samples(self.board)
        self.access = access
        self._labelling = asyncio.Lock()

    def application(self) -> web.Application:
        """Return the application with all routes, behind the access checks."""
        app = web.Application(middlewares=[self._checked], client_max_size=_MOST_BODY_BYTES)
        app.on_response_prepare.append(add_headers)
        app.cleanup_ctx.append(self._context)
        app.add_routes(
            [
                web.get("/", _page),
                web.get("/page/{name:.+}", _page),
                web.get("/api/run", _answering(lambda _: run_summary(self.board))),
                web.get("/api/cells", self._cells),
                web.get("/api/cells/{column}", self._column),
                web.get("/api/sample", self._sample),
                web.get("/api/session-log", self._session_log),
                web.get("/api/live", _answering(lambda _: live_state(self.board))),
                web.get("/api/history", _answering(lambda _: history(self.board))),
                web.get("/api/tests", _answering(self._tests)),
                web.get("/api/search", self._search),
                web.get("/api/labels", _answering(lambda _: labelled(self.board))),
                web.put("/api/label", self._label),
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
            if request.path.startswith("/api/") and request.path != "/api/stream":
                await self.watch.fresh()
            return await handler(request)
        except web.HTTPException as error:
            return _refused(error.status, error.text or error.reason)
        except (AstraError, OSError) as error:
            return _refused(500, str(error))
        except Exception as error:  # noqa: BLE001 - one failed request must not stop the viewer
            return _refused(500, f"unexpected {type(error).__name__}: {error}; please report this")

    async def _cells(self, _: web.Request) -> web.StreamResponse:
        return self._bytes(self.board.cells().tobytes())

    async def _column(self, request: web.Request) -> web.StreamResponse:
        column = self.board.column(request.match_info["column"])
        if column is None:
            return _refused(404, f"no such column; use one of {', '.join(COLUMNS)}")
        return self._bytes(column)

    def _bytes(self, content: bytes) -> web.Response:
        headers = {"X-Version": str(self.board.version)}
        return web.Response(body=content, content_type="application/octet-stream", headers=headers)

    async def _sample(self, request: web.Request) -> web.StreamResponse:
        model, problem, sample = self._cell(request.query)
        found = await self.samples.open(model, problem, sample, _number(request.query, "turn", 0))
        if found is None:
            return _refused(404, "no such sample is planned")
        key = self.board.key(model, problem, sample)
        run = self.board.run_of(model)
        cell = int(self.board.cells().reshape(self.board.grid.shape)[model, problem, sample])
        label, given_by = run.labels.get(key, (None, None))
        known = {"key": key._asdict(), "cell": cell, "label": label, "label_by": given_by}
        return _json(known | {"session_log": session_log(run.directory, key).is_file()} | found)

    async def _session_log(self, request: web.Request) -> web.StreamResponse:
        """Return the session log of a sample as text."""
        model, problem, sample = self._cell(request.query)
        path = session_log(self.board.run_of(model).directory, self.board.key(model, problem, sample))
        if not path.is_file():
            return _refused(404, "this sample has no session log of an agent")
        headers = {"Content-Encoding": "gzip", "Content-Type": _TYPES[".txt"]}
        return web.Response(body=await asyncio.to_thread(path.read_bytes), headers=headers)

    def _cell(self, query: Mapping[str, str]) -> tuple[int, int, int]:
        """Return the indices of model, problem and sample in a request's query."""
        model, problem, sample = self._model(query, "model"), self._problem(query), _number(query, "sample")
        if sample >= self.board.grid.samples:
            raise web.HTTPNotFound(text="no such sample is planned")
        return model, problem, sample

    def _model(self, query: Mapping[str, str], name: str) -> int:
        number = _number(query, name)
        if number >= len(self.board.grid.models):
            raise web.HTTPNotFound(text="no such model; see /api/run")
        return number

    def _problem(self, query: Mapping[str, str]) -> int:
        for place, info in enumerate(self.board.grid.problems):
            if info.id == query.get("problem"):
                return place
        raise web.HTTPNotFound(text="no such problem; see /api/run")

    def _tests(self, query: Mapping[str, str]) -> Any:
        return {"tests": tests_of(self.board, self._problem(query))}

    async def _search(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        if text := query.get("text"):
            kind = query.get("in", "answers")
            if kind not in TEXTS or len(text) > _MOST_SEARCHED:
                raise web.HTTPBadRequest(
                    text=f"search in {' or '.join(TEXTS)}, at most {_MOST_SEARCHED} characters"
                )
            return _json(await with_text(self.board, text, kind))
        outcome, name = query.get("outcome", "failed"), query.get("test", "")
        if outcome not in {"passed", "failed"}:
            raise web.HTTPBadRequest(text="outcome must be passed or failed")
        found = with_test(self.board, self._problem(query), name, passed=outcome == "passed")
        cells = list(islice(found, MOST_FOUND + 1))
        return _json({"cells": cells[:MOST_FOUND], "more": len(cells) > MOST_FOUND})

    async def _label(self, request: web.Request) -> web.StreamResponse:
        """Set a sample's error class (one of the paper's); the only request that writes."""
        if request.content_type != "application/json" or "Origin" not in request.headers:
            raise web.HTTPUnsupportedMediaType(text="send JSON, from the page itself")
        given = _object(await request.read())
        model, problem, sample = self._cell({name: str(value) for name, value in given.items()})
        label = given.get("label")
        if label is not None and label not in CLASSES:
            raise web.HTTPBadRequest(text=f"label must be null or one of {', '.join(CLASSES)}")
        run = self.board.run_of(model)
        if self.board.flat(model, problem, sample) is None:
            raise web.HTTPNotFound(text="no such sample is planned")
        async with self._labelling:
            await asyncio.to_thread(run.label, self.board.key(model, problem, sample), label)
        run.look()
        return _json({"label": label})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        page = self.watch.open()
        try:
            while True:
                try:
                    async with asyncio.timeout(_HEARTBEAT_S):
                        message = await page.get()
                except TimeoutError:
                    message = b": still here\n\n"
                await response.write(message)
        except ConnectionError:
            return response
        finally:
            self.watch.close(page)


@asynccontextmanager
async def served(viewer: Viewer, host: str, port: int | None) -> AsyncIterator[int]:
    """Serve the viewer and yield the port; None takes one of the first free ports. Raises UsageError."""
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


async def _page(request: web.Request) -> web.StreamResponse:
    """Serve a file of the front end; only files listed in its folders, whatever the path in the request."""
    name = request.match_info.get("name", "index.html")
    files = {
        prefix + path.relative_to(folder).as_posix(): path
        for prefix, folder in _FOLDERS
        for path in folder.rglob("*")
        if path.is_file()
    }
    if name not in files:
        raise web.HTTPNotFound(text="no such page")
    content = files[name].read_bytes()
    kind = _TYPES.get(files[name].suffix, "application/octet-stream")
    headers = {"Cache-Control": "no-cache", "Content-Type": kind}
    return web.Response(body=content, headers=headers)


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise web.HTTPBadRequest(text="send one JSON object")
    return given


def _number(query: Mapping[str, str], name: str, absent: int | None = None) -> int:
    text = query.get(name)
    if text is None and absent is not None:
        return absent
    if not (text and text.isascii() and text.isdecimal() and len(text) < 10):  # noqa: PLR2004 - digits
        raise web.HTTPBadRequest(text=f"{name} must be a whole number >= 0")
    return int(text)


def _answering(of: Callable[[Mapping[str, str]], Any]) -> Handler:
    """Return a handler that computes JSON from the query."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return _json(of(request.query))

    return handler


def _json(content: Any) -> web.Response:
    return web.Response(body=encode(content), content_type="application/json")


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, body=encode({"error": one_line(why)}), content_type="application/json")

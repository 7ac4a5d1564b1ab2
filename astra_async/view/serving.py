"""HTTP routes of the viewer, and the server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from aiohttp import web

from astra_async.agents.session_log import session_log
from astra_async.errors import UsageError
from astra_async.report.labels import CLASSES
from astra_async.view.application import TYPES, as_json, checked, page, refused
from astra_async.view.board import COLUMNS, Board
from astra_async.view.finding import MOST_FOUND, TEXTS, tests_of, with_test, with_text
from astra_async.view.following import Following
from astra_async.view.opened import Samples
from astra_async.view.overview import history, labelled, live_state, run_summary
from astra_async.view.watching import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from astra_async.view.access import Access, Handler

_MOST_SEARCHED = 1_000  # characters
_HEARTBEAT_S = 15.0
_FIRST_PORT, _PORTS = 7575, 20
_SHUTDOWN_S = 1.0


class Server(Protocol):
    """A viewer, or the list of the runs in a folder."""

    access: Access

    def application(self) -> web.Application:
        """Return the application to serve."""


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

        async def this(_: web.Request) -> Viewer:
            return self

        async def context(_: web.Application) -> AsyncIterator[None]:
            async with self:
                yield

        app = checked(self.access)
        app.cleanup_ctx.append(context)
        app.add_routes(viewer_routes("", this))
        return app

    async def __aenter__(self) -> Self:
        await self.watch.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.watch.__aexit__(*error)
        await self.samples.close()

    async def answer(self, name: str, request: web.Request) -> web.StreamResponse:
        """Answer a request for one of ADDRESSES, from logs that are up to date."""
        handlers: dict[str, Handler] = {
            "cells": self._cells,
            "cells/{column}": self._column,
            "sample": self._sample,
            "session-log": self._session_log,
            "search": self._search,
            "label": self._label,
            "stream": self._stream,
        }
        if name != "stream":
            await self.watch.fresh()
        if name in handlers:
            return await handlers[name](request)
        return as_json(self._computed(name, request.query))

    def _computed(self, name: str, query: Mapping[str, str]) -> Any:
        """Return the content of an address whose answer is computed at once."""
        match name:
            case "run":
                return run_summary(self.board)
            case "live":
                return live_state(self.board)
            case "history":
                return history(self.board)
            case "labels":
                return labelled(self.board)
            case _:
                return {"tests": tests_of(self.board, self._problem(query))}

    async def _cells(self, _: web.Request) -> web.StreamResponse:
        return self._bytes(self.board.cells().tobytes())

    async def _column(self, request: web.Request) -> web.StreamResponse:
        column = self.board.column(request.match_info["column"])
        if column is None:
            return refused(404, f"no such column; use one of {', '.join(COLUMNS)}")
        return self._bytes(column)

    def _bytes(self, content: bytes) -> web.Response:
        headers = {"X-Version": str(self.board.version)}
        return web.Response(body=content, content_type="application/octet-stream", headers=headers)

    async def _sample(self, request: web.Request) -> web.StreamResponse:
        model, problem, sample = self._cell(request.query)
        found = await self.samples.open(model, problem, sample, _number(request.query, "turn", 0))
        if found is None:
            return refused(404, "no such sample is planned")
        key = self.board.key(model, problem, sample)
        run = self.board.run_of(model)
        cell = int(self.board.cells().reshape(self.board.grid.shape)[model, problem, sample])
        label, given_by = run.labels.get(key, (None, None))
        known = {"key": key._asdict(), "cell": cell, "label": label, "label_by": given_by}
        return as_json(known | {"session_log": session_log(run.directory, key).is_file()} | found)

    async def _session_log(self, request: web.Request) -> web.StreamResponse:
        """Return the session log of a sample as text."""
        model, problem, sample = self._cell(request.query)
        path = session_log(self.board.run_of(model).directory, self.board.key(model, problem, sample))
        if not path.is_file():
            return refused(404, "this sample has no session log of an agent")
        headers = {"Content-Encoding": "gzip", "Content-Type": TYPES[".txt"]}
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

    async def _search(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        if text := query.get("text"):
            kind = query.get("in", "answers")
            if kind not in TEXTS or len(text) > _MOST_SEARCHED:
                raise web.HTTPBadRequest(
                    text=f"search in {' or '.join(TEXTS)}, at most {_MOST_SEARCHED} characters"
                )
            return as_json(await with_text(self.board, text, kind))
        outcome, name = query.get("outcome", "failed"), query.get("test", "")
        if outcome not in {"passed", "failed"}:
            raise web.HTTPBadRequest(text="outcome must be passed or failed")
        found = with_test(self.board, self._problem(query), name, passed=outcome == "passed")
        cells = list(islice(found, MOST_FOUND + 1))
        return as_json({"cells": cells[:MOST_FOUND], "more": len(cells) > MOST_FOUND})

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
        return as_json({"label": label})

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


# Addresses below /api/.
ADDRESSES = (
    *("run", "cells", "cells/{column}", "sample", "session-log", "live", "history", "tests", "search"),
    *("labels", "label", "stream"),
)


def viewer_routes(prefix: str, viewer_of: Callable[[web.Request], Awaitable[Viewer]]) -> list[web.RouteDef]:
    """Return all routes of a viewer below a prefix; `viewer_of` returns the viewer for a request."""

    def route(name: str) -> web.RouteDef:
        async def handler(request: web.Request) -> web.StreamResponse:
            return await (await viewer_of(request)).answer(name, request)

        return (web.put if name == "label" else web.get)(f"{prefix}/api/{name}", handler)

    pages = [web.get(f"{prefix}/", page()), web.get(f"{prefix}/page/{{name:.+}}", page())]
    return [*pages, *map(route, ADDRESSES)]


@asynccontextmanager
async def served(viewer: Server, host: str, port: int | None) -> AsyncIterator[int]:
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

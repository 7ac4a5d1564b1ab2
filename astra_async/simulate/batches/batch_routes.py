"""Base class of all batch interfaces: create, list, show and cancel batches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_store import SOME
from astra_async.simulate.service import reset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.simulate.batches.batch_store import Batch, BatchLine, BatchStore
    from astra_async.simulate.service import Service
    from astra_async.types.simulation import BatchFault

_FOR_EVER_S = 86_400.0


class BatchRoutes:
    """Handlers of one interface.

    Attributes:
        family: identifies the interface's batches in the store.
        prefix: start of batch ids.
        follows: name of the query parameter with the batch before a page.
        shows_cancelled: True if the cancel request returns the batch.
        file_type: content type of files.
        missing: body of a 404 response; see also `missing_headers`.
    """

    family: str
    prefix: ClassVar[str] = ""
    follows: ClassVar[str] = ""
    shows_cancelled: ClassVar[bool] = False
    file_type: ClassVar[str] = ""
    missing: ClassVar[Mapping[str, Any]]
    missing_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, store: BatchStore, service: Service) -> None:
        self.store = store
        self.service = service

    async def shown(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        """Return a batch in the interface's JSON form."""
        raise NotImplementedError

    async def created(
        self, request: web.Request, lines: list[BatchLine], about: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Create a batch and return its JSON form, unless the next fault prevents the response."""
        fault: BatchFault = next(self.store.faults, "none")
        if fault == "lost_before":
            reset(request)
            raise web.HTTPBadRequest
        batch = self.store.create(self.family, self.prefix, lines, fault, about)
        if fault == "silent":
            await asyncio.sleep(_FOR_EVER_S)
        if fault == "lost_create":
            reset(request)
        return await self.shown(batch, request)

    async def look(self, request: web.Request) -> web.Response:
        """Return one batch."""
        batch = self.found(request)
        batch.looks += 1
        batch.looks_at_end += batch.has_ended
        self._fail(batch, batch.looks)
        return web.json_response(await self.shown(batch, request))

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a batch."""
        self.store.cancel(self.found(request))
        return await self.look(request) if self.shows_cancelled else web.json_response({})

    async def page(self, request: web.Request) -> web.Response:
        """Return a page of batches, newest first."""
        batches = self.store.of(self.family)
        after, limit = request.query.get(self.follows), int(request.query.get("limit", "20"))
        begin = next((number for number, each in enumerate(batches, 1) if each.id == after), 0)
        page = [await self.shown(batch, request) for batch in batches[begin : begin + limit]]
        ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
        has_more = begin + limit < len(batches)
        return web.json_response({"object": "list", "data": page, "has_more": has_more, **ends})

    def found(self, request: web.Request) -> Batch:
        """Return the batch in the path, updated to the current time. Raises HTTPNotFound."""
        batch = self.store.batches.get(request.match_info["id"].rpartition("/")[2])
        if batch is None:
            raise self.not_found()
        return self.store.refreshed(batch)

    async def file(self, request: web.Request) -> web.Response:
        """Return a file's content."""
        name = request.match_info["name"]
        if name not in self.store.files:
            raise self.not_found()
        owners = (each for each in self.store.batches.values() if name in each.results.values())
        content = self.fetched(next(owners, None), self.store.files[name])
        return web.Response(body=content, content_type=self.file_type)

    def fetched(self, batch: Batch | None, content: bytes) -> bytes:
        """Return a batch file's content for one GET, truncated if the batch has that fault."""
        if batch is None:
            return content
        batch.fetches += 1
        self._fail(batch, batch.fetches)
        is_cut = batch.fault == "cut" and batch.fetches <= SOME
        return content[: len(content) * 2 // 3] if is_cut else content

    def _fail(self, batch: Batch, times: int) -> None:
        """Raise an HTTPException for the first requests if the batch has such a fault."""
        if times <= SOME and batch.fault == "unknown":
            raise self.not_found()
        if times <= SOME and batch.fault == "failing":
            raise web.HTTPServiceUnavailable(text="upstream connect error")

    def not_found(self) -> web.HTTPNotFound:
        """Return a 404 response for a batch or file."""
        text = orjson.dumps(self.missing).decode()
        return web.HTTPNotFound(text=text, content_type="application/json", headers=self.missing_headers)

"""What the handlers of all batch interfaces share: a batch is created, listed, looked at and cancelled."""

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
    """The handlers of one interface.

    Attributes:
        family: tells its batches from those of others.
        prefix: what the ids of its batches begin with.
        follows: what a list's query calls the batch after which a page begins.
        shows_cancelled: who cancels a batch is shown it.
        file_type: the content type of its files.
        missing: the body of the answer where there is no such batch or file; also `missing_headers`.
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
        """A batch as its interface shows it."""
        raise NotImplementedError

    async def created(
        self, request: web.Request, lines: list[BatchLine], about: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The batch of a create as it is shown, where the next fault lets its client know of it."""
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
        """One batch."""
        batch = self.found(request)
        batch.looks += 1
        batch.looks_at_end += batch.has_ended
        self._fail(batch, batch.looks)
        return web.json_response(await self.shown(batch, request))

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel it."""
        self.store.cancel(self.found(request))
        return await self.look(request) if self.shows_cancelled else web.json_response({})

    async def page(self, request: web.Request) -> web.Response:
        """As many batches as are asked for, the newest first."""
        batches = self.store.of(self.family)
        after, limit = request.query.get(self.follows), int(request.query.get("limit", "20"))
        begin = next((number for number, each in enumerate(batches, 1) if each.id == after), 0)
        page = [await self.shown(batch, request) for batch in batches[begin : begin + limit]]
        ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
        has_more = begin + limit < len(batches)
        return web.json_response({"object": "list", "data": page, "has_more": has_more, **ends})

    def found(self, request: web.Request) -> Batch:
        """The batch that the path names, as it stands. Raises HTTPNotFound."""
        batch = self.store.batches.get(request.match_info["id"].rpartition("/")[2])
        if batch is None:
            raise self.not_found()
        return self.store.refreshed(batch)

    async def file(self, request: web.Request) -> web.Response:
        """A file's content."""
        name = request.match_info["name"]
        if name not in self.store.files:
            raise self.not_found()
        owners = (each for each in self.store.batches.values() if name in each.results.values())
        content = self.fetched(next(owners, None), self.store.files[name])
        return web.Response(body=content, content_type=self.file_type)

    def fetched(self, batch: Batch | None, content: bytes) -> bytes:
        """The content of a batch's file as one GET brings it."""
        if batch is None:
            return content
        batch.fetches += 1
        self._fail(batch, batch.fetches)
        is_cut = batch.fault == "cut" and batch.fetches <= SOME
        return content[: len(content) * 2 // 3] if is_cut else content

    def _fail(self, batch: Batch, times: int) -> None:
        """Some first times, where the batch has such a fault. Raises HTTPException."""
        if times <= SOME and batch.fault == "unknown":
            raise self.not_found()
        if times <= SOME and batch.fault == "failing":
            raise web.HTTPServiceUnavailable(text="upstream connect error")

    def not_found(self) -> web.HTTPNotFound:
        """There is no such batch or file."""
        text = orjson.dumps(self.missing).decode()
        return web.HTTPNotFound(text=text, content_type="application/json", headers=self.missing_headers)

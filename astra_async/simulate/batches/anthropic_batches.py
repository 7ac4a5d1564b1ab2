"""Anthropic's Message Batches: counts stand under `processing` until the batch has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_store import Line, created
from astra_async.simulate.wires.claude_messages import Messages
from astra_async.simulate.wires.wire import Detail

if TYPE_CHECKING:
    from astra_async.simulate.batches.batch_store import Batch, BatchStore
    from astra_async.simulate.service import Service

_WIRE = Messages()
_FATES = {"succeeded": "answered", "errored": "errored", "canceled": "cancelled", "expired": "expired"}
_DAY_S = 86_400


class AnthropicBatchRoutes:
    """The handlers."""

    def __init__(self, store: BatchStore, service: Service) -> None:
        self._store = store
        self._service = service

    def add_to(self, router: web.UrlDispatcher, prefix: str) -> None:
        """Serve them below a prefix."""
        base = f"{prefix}/v1/messages/batches"
        router.add_post(base, self._create)
        router.add_get(base, self._list)
        router.add_get(f"{base}/{{id}}", self._look)
        router.add_get(f"{base}/{{id}}/results", self._results)
        router.add_post(f"{base}/{{id}}/cancel", self._cancel)

    async def _create(self, request: web.Request) -> web.Response:
        fields = orjson.loads(await request.read())
        try:
            lines = [self._line(item) for item in fields["requests"]]
        except (LookupError, TypeError) as error:
            return _WIRE.failure("bad_request", Detail(message=f"requests: {error!r}"))
        batch = await created(
            self._store, request, "anthropic", "msgbatch_", lines, {"url": str(request.url)}
        )
        return web.json_response(self._object(batch, request))

    def _line(self, item: dict[str, Any]) -> Line:
        params = item["params"]
        answer = partial(self._service.processed, _WIRE, params)
        return Line(str(item["custom_id"]), len(orjson.dumps(params)) // 4, answer)

    async def _list(self, request: web.Request) -> web.Response:
        batches = self._store.of("anthropic")
        after, limit = request.query.get("after_id"), int(request.query.get("limit", "20"))
        begin = next((number for number, each in enumerate(batches, 1) if each.id == after), 0)
        page = [self._object(batch, request) for batch in batches[begin : begin + limit]]
        ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
        return web.json_response({"data": page, "has_more": begin + limit < len(batches), **ends})

    async def _look(self, request: web.Request) -> web.Response:
        batch = self._store.batches.get(request.match_info["id"])
        return _missing() if batch is None else web.json_response(self._object(batch, request))

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self._store.batches.get(request.match_info["id"])
        if batch is None:
            return _missing()
        self._store.cancel(batch)
        return web.json_response(self._object(batch, request))

    async def _results(self, request: web.Request) -> web.Response:
        batch = self._store.batches.get(request.match_info["id"])
        if batch is None or batch.fault == "vanish":
            return _missing()
        if not self._store.refreshed(batch).has_ended:
            return _WIRE.failure("bad_request", Detail(message="the batch has not ended"))
        lines = batch.having("answered", "errored", "cancelled", "expired")
        return web.Response(body=b"".join(map(_result, lines)), content_type="application/x-jsonl")

    def _object(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        batch = self._store.refreshed(batch)
        ended = batch.has_ended
        counts = {name: sum(line.fate == fate for line in batch.lines) for name, fate in _FATES.items()}
        counts = counts if ended else dict.fromkeys(_FATES, 0)
        at = partial(_time, batch.created_unix)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if batch.canceled_s else "in_progress",
            "request_counts": {"processing": 0 if ended else len(batch.lines), **counts},
            "created_at": at(0),
            "expires_at": at(_DAY_S),
            "ended_at": at(1) if ended else None,
            "archived_at": None,
            "cancel_initiated_at": at(1) if batch.canceled_s else None,
            "results_url": str(
                request.url.with_path(f"/v1/messages/batches/{batch.id}/results").with_query(None)
            )
            if ended
            else None,
        }


def _time(unix: float, later_s: float) -> str:
    return datetime.fromtimestamp(unix + later_s, UTC).isoformat()


def _result(line: Line) -> bytes:
    result: dict[str, Any]
    if line.fate == "answered":
        result = {"type": "succeeded", "message": orjson.Fragment(line.body)}
    elif line.fate == "errored":
        broken = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}
        body = orjson.loads(line.body)
        result = {"type": "errored", "error": body if body.get("type") == "error" else broken}
    else:
        result = {"type": "canceled" if line.fate == "cancelled" else "expired"}
    return orjson.dumps({"custom_id": line.custom_id, "result": result}) + b"\n"


def _missing() -> web.Response:
    return web.json_response(
        {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}}, status=404
    )

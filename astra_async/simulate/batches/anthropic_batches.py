"""Anthropic's Message Batches: all requests count as `processing` until the batch has ended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_routes import BatchRoutes
from astra_async.simulate.batches.batch_store import BatchLine
from astra_async.simulate.wires.converse_stream import Messages
from astra_async.simulate.wires.wire import Detail

if TYPE_CHECKING:
    from astra_async.simulate.batches.batch_store import Batch

_WIRE = Messages()
_FATES = {"succeeded": "answered", "errored": "errored", "canceled": "cancelled", "expired": "expired"}
_DAY_S = 86_400


class AnthropicBatchRoutes(BatchRoutes):
    """Handlers of Anthropic's interface."""

    family, prefix, follows, shows_cancelled = "anthropic", "msgbatch_", "after_id", True
    missing: ClassVar = {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}}

    def add_to(self, router: web.UrlDispatcher, prefix: str) -> None:
        """Add the routes below a prefix."""
        base = f"{prefix}/v1/messages/batches"
        router.add_post(base, self._create)
        router.add_get(base, self.page)
        router.add_get(f"{base}/{{id}}", self.look)
        router.add_get(f"{base}/{{id}}/results", self._results)
        router.add_post(f"{base}/{{id}}/cancel", self.cancel)

    async def _create(self, request: web.Request) -> web.Response:
        fields = orjson.loads(await request.read())
        try:
            lines = [self._line(item) for item in fields["requests"]]
        except (LookupError, TypeError) as error:
            return _WIRE.failure("bad_request", Detail(message=f"requests: {error!r}"))
        return web.json_response(await self.created(request, lines, {}))

    def _line(self, item: dict[str, Any]) -> BatchLine:
        params = item["params"]
        answer = partial(self.service.processed, _WIRE, params)
        return BatchLine(str(item["custom_id"]), len(orjson.dumps(params)) // 4, answer)

    async def _results(self, request: web.Request) -> web.Response:
        batch = self.found(request)
        if batch.fault == "vanish":
            raise self.not_found()
        if not batch.has_ended:
            return _WIRE.failure("bad_request", Detail(message="the batch has not ended"))
        lines = batch.written("answered", "errored", "cancelled", "expired")
        content = self.fetched(batch, b"".join(map(_result, lines)))
        return web.Response(body=content, content_type="application/x-jsonl")

    async def shown(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        """Return a batch; `results_url` is set after its end."""
        results = request.url.with_path(f"/v1/messages/batches/{batch.id}/results").with_query(None)
        ended = batch.has_ended
        counts = {name: sum(line.fate == fate for line in batch.lines) for name, fate in _FATES.items()}
        counts = counts if ended else dict.fromkeys(_FATES, 0)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if batch.canceled_s else "in_progress",
            "request_counts": {"processing": 0 if ended else len(batch.lines), **counts},
            "created_at": batch.at(),
            "expires_at": batch.at(_DAY_S),
            "ended_at": batch.at(1) if ended else None,
            "archived_at": None,
            "cancel_initiated_at": batch.at(1) if batch.canceled_s else None,
            "results_url": str(results) if batch.names_files else None,
        }


def _result(line: BatchLine) -> bytes:
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

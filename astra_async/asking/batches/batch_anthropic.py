"""Anthropic's Message Batches (`POST {base}/v1/messages/batches`): one JSON object with all requests.

Anthropic's batches have no metadata. To find the batch of an intent, candidates are the batches with the same
number of requests that belong to no other intent. The custom_id of the first result identifies the intent, so
a candidate can be checked only after it has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from astra_async.asking.batches.batch_interface import (
    BatchInterface,
    BatchOutcome,
    BatchStatus,
    Gone,
    body_of,
)
from astra_async.asking.providers.connection import join_url, without_version
from astra_async.asking.providers.error_body import ErrorBody
from astra_async.asking.providers.error_meaning import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Json
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelRequest

_PAGE = "100"


class AnthropicBatches(BatchInterface):
    """Anthropic's batch interface for one model."""

    most_requests = 100_000
    most_bytes = 256_000_000
    opening = b'{"requests":['
    between = b","
    closing = b"]}"

    def __init__(self, wire: WireFormat, control: Control) -> None:
        super().__init__(wire, control)
        self._url = join_url(without_version(wire.base), "v1/messages/batches")
        self._first_ids: dict[str, str] = {}  # first custom_id of ended batches, by batch id

    def encode_request(self, custom_id: str, request: ModelRequest) -> bytes:
        """Return one element of `requests`."""
        return orjson.dumps({"custom_id": custom_id, "params": body_of(self.wire, request)})

    async def create(self, path: Path, intent: Intent) -> str:
        """Create the batch and return its id."""
        del intent
        with path.open("rb") as stream:
            headers = {"Content-Type": "application/json"}
            return str((await self.control.ask("POST", self._url, stream, headers=headers))["id"])

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """Find the candidate with the intent's requests. Return None while a candidate has not ended."""
        is_undecided, url = False, self._url.update_query(limit=_PAGE)
        async for batch in self.list_since(intent, url, "data", page_token=("", "after_id")):
            if batch["id"] in known or sum(batch["request_counts"].values()) != len(intent.requests):
                continue
            if batch["processing_status"] != "ended":
                is_undecided = True
            elif await self._is_of(intent, batch):
                return str(batch["id"])
        return None if is_undecided else ""

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch. Counts are available only after its end."""
        batch = await self.control.ask("GET", self._url / batch_id)
        counts = batch.get("request_counts") or {}
        has_ended = batch.get("processing_status") == "ended"
        canceled, expired = counts.get("canceled", 0), counts.get("expired", 0)
        state = str(batch.get("processing_status"))
        if has_ended and (canceled or expired):
            state = "canceled" if canceled else "expired"
        results, succeeded = batch.get("results_url"), int(counts.get("succeeded", 0))
        if has_ended and batch.get("archived_at"):
            raise Gone(f"batch {batch_id} and its results are archived", status=410)
        return BatchStatus(
            state=state,
            has_ended=has_ended,
            done=succeeded + int(counts.get("errored", 0)),
            succeeded=succeeded,
            results=(str(results),) if results else (),
            was_cancelled=bool(canceled or batch.get("cancel_initiated_at")),
            is_partial=bool(canceled or expired),
        )

    async def fetch(self, status: BatchStatus, path: Path) -> None:
        """Download all results."""
        for url in status.results:
            await self.control.save(self.same_origin(url, "results"), path)

    def read(self, line: bytes) -> BatchOutcome:
        """Parse one line: a message, an error, or neither if the request was canceled or expired."""
        found = orjson.loads(line)
        custom_id, result = str(found["custom_id"]), found["result"]
        kind = result["type"]
        if kind == "succeeded":
            return BatchOutcome(custom_id=custom_id, body=result["message"])
        if kind != "errored":
            return BatchOutcome(custom_id=custom_id)
        error = result["error"]
        return BatchOutcome(
            custom_id=custom_id, failure=Failure(body=error, status=ErrorBody.read(error).status)
        )

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch. It ends soon afterwards."""
        await self.control.ask("POST", self._url / batch_id / "cancel")

    async def _is_of(self, intent: Intent, batch: Json) -> bool:
        """Return True if an ended batch contains the intent's requests. The first result is cached."""
        name = str(batch["id"])
        if name not in self._first_ids:
            if not batch.get("results_url"):
                status = 410 if batch.get("archived_at") else 404
                raise Gone(f"batch {name}, which may be this one, has no results to check", status=status)
            line = await self.control.first_line(self.same_origin(batch["results_url"], "results"))
            self._first_ids[name] = str(orjson.loads(line)["custom_id"]) if line else ""
        return self._first_ids[name] in intent.requests

"""Anthropic's Message Batches (`POST {base}/v1/messages/batches`): one JSON object that holds all requests.

A batch carries no mark of ours, and tells whose requests it holds only when it has ended. So what came of an
intent is decided by contents: a candidate is a batch of the right size that no other intent is known to be;
once it has ended, the first of its results tells, for a custom_id belongs to one run and one intent.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
from yarl import URL

from astra_async.asking.batches.batch_interface import (
    CLOCKS_DIFFER_S,
    FileBatches,
    Found,
    Gone,
    Outcome,
    Standing,
    body_of,
    listed,
)
from astra_async.asking.providers.connection import below, without_version
from astra_async.asking.providers.error_meaning import Failure
from astra_async.errors import RequestRejected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Json, Reader
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelRequest

_PAGE = "100"
_STATUSES: Mapping[Any, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


class AnthropicBatches(FileBatches):
    """Batches of one model."""

    most_requests = 100_000
    most_bytes = 256_000_000
    opening: bytes = b'{"requests":['
    between: bytes = b","
    closing: bytes = b"]}"

    def __init__(self, wire: WireFormat, control: Control) -> None:
        self.control = control
        self._wire = wire
        self._url = below(without_version(wire.base), "v1/messages/batches")
        self._first_ids: dict[str, str] = {}  # of ended batches that were looked into

    def row(self, custom_id: str, request: ModelRequest) -> bytes:
        """One element of `requests`."""
        return orjson.dumps({"custom_id": custom_id, "params": body_of(self._wire, request)})

    async def upload(self, path: Path, token: str) -> str:
        """Nothing is uploaded before the create."""
        del path, token
        return ""

    async def create(self, path: Path, intent: Intent) -> str:
        """The batch's id."""
        del intent
        with path.open("rb") as stream:
            headers = {"Content-Type": "application/json"}
            return str((await self.control.ask("POST", self._url, stream, headers=headers))["id"])

    async def find(self, intent: Intent, known: frozenset[str]) -> Found:
        """The candidate whose contents are the intent's; undecided while one has not ended."""
        earliest = datetime.fromisoformat(intent.at).timestamp() - CLOCKS_DIFFER_S
        is_undecided = False
        async for batch in listed(self.control, self._url.update_query(limit=_PAGE), "data", _next_page):
            if _created(batch) < earliest:
                break
            if batch["id"] in known or sum(batch["request_counts"].values()) != len(intent.requests):
                continue
            if batch["processing_status"] != "ended":
                is_undecided = True
            elif await self._is_of(intent, batch):
                return Found(batch_id=str(batch["id"]))
        return Found(is_undecided=is_undecided)

    async def look(self, batch_id: str) -> Standing:
        """How it stands; counts of what is finished come at its end."""
        batch = await self.control.ask("GET", self._url / batch_id)
        counts = batch.get("request_counts") or {}
        has_ended = batch.get("processing_status") == "ended"
        canceled, expired = counts.get("canceled", 0), counts.get("expired", 0)
        state = str(batch.get("processing_status"))
        if has_ended and (canceled or expired):
            state = "canceled" if canceled else "expired"
        results = batch.get("results_url")
        if has_ended and not results:
            raise Gone(f"batch {batch_id} is archived, and its results with it", status=410)
        return Standing(
            state=state,
            has_ended=has_ended,
            done=int(counts.get("succeeded", 0)) + int(counts.get("errored", 0)),
            results=(str(results),) if results else (),
            was_cancelled=bool(canceled or batch.get("cancel_initiated_at")),
            is_partial=bool(canceled or expired),
        )

    async def fetch(self, standing: Standing, path: Path) -> None:
        """All results in one file."""
        for url in standing.results:
            await self.control.save(self._own(url), path)

    def read(self, line: bytes) -> Outcome:
        """A message, an error, or neither: canceled, expired."""
        found = orjson.loads(line)
        custom_id, result = str(found["custom_id"]), found["result"]
        kind = result["type"]
        if kind == "succeeded":
            return Outcome(custom_id=custom_id, body=result["message"])
        if kind != "errored":
            return Outcome(custom_id=custom_id)
        error = result["error"]
        status = _STATUSES.get((error.get("error") or {}).get("type"), 500)
        return Outcome(custom_id=custom_id, failure=Failure(body=error, status=status))

    def reader(self) -> Reader:
        """The wire format's."""
        return self._wire.reader()

    async def cancel(self, batch_id: str) -> None:
        """It ends soon."""
        await self.control.ask("POST", self._url / batch_id / "cancel")

    async def _is_of(self, intent: Intent, batch: Json) -> bool:
        """Whether an ended batch holds the intent's requests; each is looked into once."""
        name = str(batch["id"])
        if name not in self._first_ids:
            if not batch.get("results_url"):
                raise Gone(f"batch {name}, which may be this one, is archived", status=410)
            line = await self.control.first_line(self._own(batch["results_url"]))
            self._first_ids[name] = str(orjson.loads(line)["custom_id"]) if line else ""
        return self._first_ids[name] in intent.requests

    def _own(self, address: str) -> URL:
        """Where results are, at the host that the key is meant for. Raises RequestRejected."""
        url = URL(address)
        if url.origin() != self._url.origin():
            raise RequestRejected(f"results at another address, {url.host}: the key is not sent there")
        return url


def _created(batch: Json) -> float:
    return datetime.fromisoformat(str(batch["created_at"])).timestamp()


def _next_page(page: Json) -> dict[str, str] | None:
    return {"after_id": str(page["last_id"])} if page.get("has_more") and page.get("last_id") else None

"""Batches of OpenAI and Azure (`POST {base}/files`, `{base}/batches`), for chat completions and Responses.

A batch names its input file and has metadata. Both identify the intent, because each intent has a separate
file. A created batch may still fail in validation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome, BatchStatus, body_of
from astra_async.asking.providers.connection import join_url
from astra_async.asking.providers.error_meaning import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Json
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelRequest

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_MARK = "astra_intent"
_PAGE = "100"
# Error codes of requests that were neither processed nor charged.
_NOT_PROCESSED = frozenset({"batch_expired", "batch_cancelled"})


class OpenAIBatches(BatchInterface):
    """OpenAI's batch interface for one model."""

    most_requests = 50_000
    most_bytes = 200_000_000

    def __init__(self, wire: WireFormat, control: Control) -> None:
        super().__init__(wire, control)
        self._base = wire.base
        self._path = "/v1" + wire.url.path.removeprefix(wire.base.path.rstrip("/"))

    def encode_request(self, custom_id: str, request: ModelRequest) -> bytes:
        """Return one line of the file. For simulated models it names the sample."""
        line: Json = {
            "custom_id": custom_id,
            "method": "POST",
            "url": self._path,
            "body": self._body(request),
        }
        if request.sample_header is not None:
            line["sample"] = request.sample_header
        return orjson.dumps(line)

    async def upload(self, path: Path, token: str) -> str:
        """Upload the file and return its id."""
        with path.open("rb") as stream:
            form = aiohttp.FormData()
            form.add_field("purpose", "batch")
            form.add_field("file", stream, filename=f"{token}.jsonl", content_type="application/jsonl")
            answer = await self.control.ask("POST", join_url(self._base, "files"), form)
        return str(answer["id"])

    async def create(self, path: Path, intent: Intent) -> str:
        """Create the batch and return its id."""
        del path
        fields = {
            "input_file_id": intent.file,
            "endpoint": self._path,
            "completion_window": "24h",
            "metadata": {_MARK: intent.token},
        }
        return str((await self.control.ask("POST", join_url(self._base, "batches"), fields))["id"])

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """Find the batch with the intent's file or token in the list of batches, newest first."""
        del known
        async for batch in self.list_since(intent, join_url(self._base, "batches", limit=_PAGE), "data"):
            mark = (batch.get("metadata") or {}).get(_MARK)
            if batch.get("input_file_id") == intent.file or mark == intent.token:
                return str(batch["id"])
        return ""

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch, with the error if it failed in validation."""
        batch = await self.control.ask("GET", join_url(self._base, f"batches/{batch_id}"))
        state = str(batch.get("status"))
        counts = batch.get("request_counts") or {}
        completed = int(counts.get("completed") or 0)
        files = tuple(filter(None, (batch.get("output_file_id"), batch.get("error_file_id"))))
        failed = state == "failed" and not files
        return BatchStatus(
            state=state,
            has_ended=state in _ENDED,
            done=completed + int(counts.get("failed") or 0),
            succeeded=completed,
            results=files,
            inline=tuple(map(orjson.dumps, batch.get("outputs") or ())),
            failure=_validation_error(batch) if failed else None,
            was_cancelled=state in {"cancelling", "cancelled"},
            is_partial=state in {"expired", "cancelled"},
        )

    async def fetch(self, status: BatchStatus, path: Path) -> None:
        """Download the file of answers, then the file of errors."""
        for name in status.results:
            await self.control.save(join_url(self._base, f"files/{name}/content"), path)

    def read(self, line: bytes) -> BatchOutcome:
        """Parse one line: a response with its status, or an error without a status."""
        found = orjson.loads(line)
        custom_id, error, response = str(found["custom_id"]), found.get("error"), found.get("response")
        if error and error.get("code") in _NOT_PROCESSED:
            return BatchOutcome(custom_id=custom_id)
        if not response:
            return BatchOutcome(custom_id=custom_id, failure=Failure(body={"error": error or {}}, status=500))
        status, body = int(response["status_code"]), response["body"]
        if status != 200:  # noqa: PLR2004 - HTTP
            return BatchOutcome(custom_id=custom_id, failure=Failure(body=body, status=status))
        return BatchOutcome(custom_id=custom_id, body=body)

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch. This takes up to ten minutes."""
        await self.control.ask("POST", join_url(self._base, f"batches/{batch_id}/cancel"))

    def _body(self, request: ModelRequest) -> Json:
        return body_of(self.wire, request)


class AzureBatches(OpenAIBatches):
    """Azure's batch interface, at `{endpoint}/openai/v1`. The model must be a GlobalBatch deployment."""

    lifetime_h = 168  # Azure aims at 24 hours, but batches do not expire

    def __init__(self, wire: WireFormat, control: Control) -> None:
        super().__init__(wire, control)
        self._base = join_url(wire.base, "openai/v1")
        self._path = "/chat/completions"

    def _body(self, request: ModelRequest) -> Json:
        return {"model": self.wire.settings.model, **super()._body(request)}


def _validation_error(batch: Json) -> Failure:
    """Return the first validation error of a batch, in the form of a request's error."""
    errors: list[Any] = []
    with suppress(AttributeError, TypeError):
        errors = batch["errors"].get("data") or []
    first = errors[0] if errors and isinstance(errors[0], dict) else {"message": "validation failed"}
    error = {
        "type": "invalid_request_error",
        **{name: first.get(name) for name in ("code", "message", "param")},
    }
    return Failure(body={"error": error}, status=400)

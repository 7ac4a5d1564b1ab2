"""Gemini's batches (`models/{model}:batchGenerateContent`), with files for requests and results.

Files are used for batches of every size, because inline results can become unretrievable. The display name of
a batch and its input file identify the intent.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome, BatchStatus, body_of
from astra_async.asking.providers.connection import join_url, without_version
from astra_async.asking.providers.error_meaning import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Json
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelRequest

_STATE = "BATCH_STATE_"
_ENDED = frozenset({"succeeded", "failed", "cancelled", "expired"})
_PARTIAL = frozenset({"cancelled", "expired"})  # batches in these states may have no results at all
_PAGE = "100"
# HTTP status by google.rpc code of an error.
_HTTP_OF_RPC: Mapping[Any, int] = {3: 400, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}


class GeminiBatches(BatchInterface):
    """Gemini's batch interface for one model."""

    most_requests = 200_000
    most_bytes = 2_000_000_000
    lifetime_h = 48

    def __init__(self, wire: WireFormat, control: Control) -> None:
        super().__init__(wire, control)
        self._root = without_version(wire.base)
        path, _, _ = wire.url.raw_path.rpartition(":")
        self._create_at = wire.url.with_path(
            f"{path}:batchGenerateContent", encoded=True
        ).without_query_params("alt")
        self._version = path.removeprefix(self._root.path.rstrip("/")).strip("/").partition("/")[0]

    def encode_request(self, custom_id: str, request: ModelRequest) -> bytes:
        """Return one line of the file."""
        return orjson.dumps({"key": custom_id, "request": body_of(self.wire, request)})

    async def upload(self, path: Path, token: str) -> str:
        """Upload the file and return its name, such as `files/abc`."""
        size, kind = str(await asyncio.to_thread(os.path.getsize, path)), "application/jsonl"
        _, headers = await self.control.ask_with_headers(
            "POST",
            join_url(self._root, f"upload/{self._version}/files"),
            {"file": {"display_name": token, "mime_type": kind}},
            headers={
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": size,
                "X-Goog-Upload-Header-Content-Type": kind,
            },
        )
        with path.open("rb") as stream:
            answer = await self.control.ask(
                "POST",
                self.same_origin(headers.get("X-Goog-Upload-URL", ""), "the file"),
                stream,
                headers={"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"},
            )
        return str(answer["file"]["name"])

    async def create(self, path: Path, intent: Intent) -> str:
        """Create the batch and return its name, such as `batches/abc`."""
        del path
        fields = {"batch": {"displayName": intent.token, "inputConfig": {"fileName": intent.file}}}
        return str((await self.control.ask("POST", self._create_at, fields))["name"])

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """Find the batch with the intent's display name or file."""
        del known
        url = join_url(self._root, f"{self._version}/batches", pageSize=_PAGE)
        async for batch in self.list_since(
            intent, url, "operations", page_token=("nextPageToken", "pageToken")
        ):
            about = batch.get("metadata") or {}
            file = (about.get("inputConfig") or {}).get("fileName")
            if about.get("displayName") == intent.token or file == intent.file:
                return str(batch["name"])
        return ""

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch. An expired batch has no results at all."""
        batch = await self.control.ask("GET", join_url(self._root, f"{self._version}/{batch_id}"))
        about = batch.get("metadata") or {}
        state = str(about.get("state") or "unknown").removeprefix(_STATE).lower()
        stats = about.get("batchStats") or {}
        # Gemini sends integers as strings.
        succeeded, failures = (
            int(stats.get(f"{name}RequestCount") or 0) for name in ("successful", "failed")
        )
        output = about.get("output") or batch.get("response") or {}
        file, inline = output.get("responsesFile"), output.get("inlinedResponses") or {}
        failed = state == "failed" and not file
        return BatchStatus(
            state=state,
            has_ended=state in _ENDED,
            done=succeeded + failures,
            succeeded=0 if state in _PARTIAL else succeeded,
            results=(str(file),) if file else (),
            inline=tuple(map(_line, inline.get("inlinedResponses") or ())),
            failure=_validation_error(batch) if failed else None,
            was_cancelled=state == "cancelled",
            is_partial=state in _PARTIAL,
        )

    async def fetch(self, status: BatchStatus, path: Path) -> None:
        """Download the file of results."""
        for name in status.results:
            url = join_url(self._root, f"{self._version}/{name}:download", alt="media")
            await self.control.save(url, path)

    def read(self, line: bytes) -> BatchOutcome:
        """Parse one line: a response or an error."""
        found = orjson.loads(line)
        custom_id, error = str(found["key"]), found.get("error")
        if not error:
            return BatchOutcome(custom_id=custom_id, body=found["response"])
        status = _HTTP_OF_RPC.get(error.get("code"), 500)
        return BatchOutcome(custom_id=custom_id, failure=Failure(body={"error": error}, status=status))

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch. It ends soon afterwards."""
        await self.control.ask("POST", join_url(self._root, f"{self._version}/{batch_id}:cancel"), {})


def _line(inlined: Json) -> bytes:
    """Return an inline result in the form of a line of the result file."""
    key = (inlined.get("metadata") or {}).get("key")
    return orjson.dumps({"key": key, **{name: inlined.get(name) for name in ("response", "error")}})


def _validation_error(batch: Json) -> Failure:
    error = batch.get("error") or {"message": "the batch has failed"}
    return Failure(body={"error": error}, status=_HTTP_OF_RPC.get(error.get("code"), 400))

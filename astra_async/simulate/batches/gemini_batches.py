"""Gemini's files and batches: two-step uploads, long-running operations, results in a file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_routes import BatchRoutes
from astra_async.simulate.batches.batch_store import BatchLine
from astra_async.simulate.wires.generate_content import GenerateContent
from astra_async.simulate.wires.wire import Detail

if TYPE_CHECKING:
    from astra_async.simulate.batches.batch_store import Batch

_WIRE = GenerateContent(stream=False)
_STATES = {
    "validating": "PENDING",
    "in_progress": "RUNNING",
    "canceling": "RUNNING",
    "completed": "SUCCEEDED",
    "failed": "FAILED",
    "expired": "EXPIRED",
    "cancelled": "CANCELLED",
}
_VERSION = "{version:v1|v1beta}"


class GeminiBatchRoutes(BatchRoutes):
    """Handlers of Gemini's interface."""

    family, file_type = "google", "application/jsonl"
    missing: ClassVar = {
        "error": {"code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND"}
    }

    def add_to(self, router: web.UrlDispatcher, prefix: str) -> None:
        """Add the routes below a prefix."""
        router.add_post(f"{prefix}/upload/{_VERSION}/files", self._start)
        router.add_post(f"{prefix}/upload-to/{{name}}", self._upload)
        router.add_post(f"{prefix}/{_VERSION}/models/{{model:[^/:]+}}:batchGenerateContent", self._create)
        router.add_get(f"{prefix}/{_VERSION}/batches", self._list)
        router.add_get(f"{prefix}/{_VERSION}/batches/{{id:[^/:]+}}", self.look)
        router.add_post(f"{prefix}/{_VERSION}/batches/{{id:[^/:]+}}:cancel", self.cancel)
        for place in ("", "/download"):  # the documented path, and that of the SDK
            router.add_get(f"{prefix}{place}/{_VERSION}/files/{{name:[^/:]+}}:download", self.file)

    async def _start(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Goog-Upload-Command") != "start":
            return _WIRE.failure("bad_request", Detail(message="X-Goog-Upload-Command must be start"))
        name = self.store.name("")
        url = request.url.with_path(f"/upload-to/{name}").with_query(None)
        headers = {"X-Goog-Upload-URL": str(url), "X-Goog-Upload-Status": "active"}
        return web.json_response({}, headers=headers)

    async def _upload(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        content = self.store.files.get(name, b"") + await request.read()
        self.store.files[name] = content
        final = "finalize" in request.headers.get("X-Goog-Upload-Command", "")
        about = {"name": f"files/{name}", "sizeBytes": str(len(content)), "state": "ACTIVE"}
        headers = {"X-Goog-Upload-Status": "final" if final else "active"}
        return web.json_response({"file": about} if final else {}, headers=headers)

    async def _create(self, request: web.Request) -> web.Response:
        fields = orjson.loads(await request.read()).get("batch") or {}
        file = str((fields.get("inputConfig") or {}).get("fileName") or "")
        content = self.store.files.get(file.removeprefix("files/"))
        if content is None:
            return _WIRE.failure("bad_request", Detail(message=f"no such file: {file}"))
        model = request.match_info["model"]
        try:
            lines = [self._line(model, line) for line in content.splitlines() if line.strip()]
        except (ValueError, LookupError, TypeError) as error:
            return _WIRE.failure("bad_request", Detail(message=f"the file cannot be read: {error!r}"))
        about = {
            "model": f"models/{model}",
            **{n: fields[n] for n in ("displayName", "inputConfig") if n in fields},
        }
        return web.json_response(await self.created(request, lines, about))

    def _line(self, model: str, line: bytes) -> BatchLine:
        fields = orjson.loads(line)
        answer = partial(self.service.processed, _WIRE, fields["request"], None, model)
        return BatchLine(str(fields["key"]), len(line) // 4, answer)

    async def _list(self, request: web.Request) -> web.Response:
        batches, begin = self.store.of(self.family), int(request.query.get("pageToken", "0"))
        end = begin + int(request.query.get("pageSize", "20"))
        following = {"nextPageToken": str(end)} if end < len(batches) else {}
        page = [await self.shown(each, request) for each in batches[begin:end]]
        return web.json_response({"operations": page, **following})

    async def shown(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        """Return an operation; an expired one has no results."""
        del request
        stats = {
            "requestCount": str(len(batch.lines)),
            "successfulRequestCount": str(sum(line.fate == "answered" for line in batch.lines)),
            "failedRequestCount": str(sum(line.fate == "errored" for line in batch.lines)),
        }
        about = {
            **batch.about,
            "name": f"batches/{batch.id}",
            "createTime": batch.at(),
            "state": f"BATCH_STATE_{_STATES[batch.phase]}",
            "batchStats": stats,
        }
        body: dict[str, Any] = {"name": f"batches/{batch.id}", "metadata": about, "done": batch.has_ended}
        if batch.phase == "failed":
            body["error"] = {"code": 3, "message": "The file is not valid.", "status": "INVALID_ARGUMENT"}
        elif batch.names_files and batch.phase in {"completed", "cancelled"}:
            if not batch.results:
                content = b"".join(map(_result, batch.written("answered", "errored")))
                self.store.keep_results(batch, "batch-", {"file": content})
            about["output"] = {"responsesFile": f"files/{batch.results['file']}"}
        return body


def _result(line: BatchLine) -> bytes:
    if line.fate == "answered":
        return orjson.dumps({"key": line.custom_id, "response": orjson.Fragment(line.body)}) + b"\n"
    error = orjson.loads(line.body)["error"]
    code = 13 if line.status == 500 else 3  # noqa: PLR2004 - HTTP
    return orjson.dumps({"key": line.custom_id, "error": {"code": code, "message": error["message"]}}) + b"\n"

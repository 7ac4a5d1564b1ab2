"""Batch interfaces of OpenAI, and of Azure below /openai/v1."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_routes import BatchRoutes
from astra_async.simulate.batches.batch_store import BatchLine
from astra_async.simulate.wires.chat import AzureChatCompletions, ChatCompletions, Responses
from astra_async.simulate.wires.request_parsing import InvalidRequest
from astra_async.simulate.wires.wire import Detail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.simulate.batches.batch_store import Batch
    from astra_async.simulate.wires.wire import Wire

_CHAT = ChatCompletions()
_STATES = {"canceling": "cancelling"}
_OVER = (
    "Enqueued token limit reached for {model} in organization org-simulated."
    " Limit: {limit:,} enqueued tokens."
    " Please try again once some in_progress batches have been completed."
)


class OpenAIBatchRoutes(BatchRoutes):
    """Handlers of OpenAI's interface."""

    family, prefix, follows, shows_cancelled = "openai", "batch_", "after", True
    file_type = "application/octet-stream"
    missing: ClassVar = {
        "error": {"message": "No such object.", "type": "invalid_request_error", "param": "id", "code": None}
    }
    wires: ClassVar[Mapping[str, Wire]] = {"/v1/chat/completions": _CHAT, "/v1/responses": Responses()}

    def add_to(self, router: web.UrlDispatcher, prefix: str) -> None:
        """Add the routes below a prefix."""
        router.add_post(f"{prefix}/files", self._upload)
        router.add_get(f"{prefix}/files/{{name}}/content", self.file)
        router.add_post(f"{prefix}/batches", self._create)
        router.add_get(f"{prefix}/batches", self.page)
        router.add_get(f"{prefix}/batches/{{id}}", self.look)
        router.add_post(f"{prefix}/batches/{{id}}/cancel", self.cancel)

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        found = form.get("file")
        if not isinstance(found, web.FileField) or form.get("purpose") != "batch":
            return _bad("'file' and purpose 'batch' are required")
        content = found.file.read()
        about = {"id": self.store.keep("file-", content), "filename": found.filename, "bytes": len(content)}
        fixed = {"object": "file", "purpose": "batch", "status": "processed", "created_at": 0}
        return web.json_response(about | fixed)

    async def _create(self, request: web.Request) -> web.Response:
        fields = orjson.loads(await request.read())
        content = self.store.files.get(fields.get("input_file_id", ""))
        if (
            content is None
            or fields.get("completion_window") != "24h"
            or fields.get("endpoint") not in self.wires
        ):
            return _bad("input_file_id, endpoint and completion_window '24h' are required")
        try:
            lines = [self._line(line, fields["endpoint"]) for line in content.splitlines() if line.strip()]
        except (InvalidRequest, ValueError, LookupError, TypeError) as error:
            return _bad(f"the file cannot be read: {error!r}")
        about = {name: fields.get(name) for name in ("input_file_id", "endpoint", "metadata")}
        return web.json_response(await self.created(request, lines, about))

    def _line(self, line: bytes, endpoint: str) -> BatchLine:
        fields = orjson.loads(line)
        if fields["method"] != "POST" or fields["url"] != endpoint or "stream" in fields["body"]:
            raise InvalidRequest("method, url or body")
        answer = partial(self.service.processed, self.wires[endpoint], fields["body"], fields.get("sample"))
        return BatchLine(str(fields["custom_id"]), len(line) // 4, answer)

    async def shown(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        """Return a batch; counts of finished requests are zero until its end."""
        del request
        files = self._files(batch)
        done = batch.having("answered") if batch.has_ended else []
        return {
            "id": batch.id,
            "object": "batch",
            "completion_window": "24h",
            "created_at": int(batch.created_unix),
            "status": _STATES.get(batch.phase, batch.phase),
            "request_counts": {
                "total": len(batch.lines),
                "completed": len(done),
                "failed": len(batch.having("errored")) if batch.has_ended else 0,
            },
            "errors": self._errors(batch),
            **batch.about,
            **files,
        }

    def _errors(self, batch: Batch) -> dict[str, Any] | None:
        if batch.phase != "failed":
            return None
        limit = self.service.settings.batch_enqueued_tokens or 0
        over = batch.why == "token_limit_exceeded"
        message = _OVER.format(model="the model", limit=limit) if over else "The file is not valid JSONL."
        code = batch.why if over else "invalid_json_line"
        error = {"code": code, "message": message, "param": None, "line": None}
        return {"object": "list", "data": [error]}

    def _files(self, batch: Batch) -> dict[str, str | None]:
        """Return the ids of output and error file; created once."""
        if not batch.names_files or batch.phase == "failed":
            return {"output_file_id": None, "error_file_id": None}
        if not batch.results:
            out = b"".join(map(_either, batch.written("answered")))
            errors = b"".join(map(_error, batch.written("errored", "expired", "cancelled")))
            contents = {"output_file_id": out, "error_file_id": errors}
            self.store.keep_results(batch, "file-", {name: each for name, each in contents.items() if each})
        return {name: batch.results.get(name) for name in ("output_file_id", "error_file_id")}


class AzureBatchRoutes(OpenAIBatchRoutes):
    """Handlers of Azure's interface."""

    family = "azure"
    wires: ClassVar = {"/chat/completions": AzureChatCompletions(), "/v1/chat/completions": _CHAT}


def _answer(line: BatchLine) -> bytes:
    response = {"status_code": line.status, "request_id": line.custom_id, "body": orjson.Fragment(line.body)}
    result = {"id": f"batch_req_{line.custom_id}", "custom_id": line.custom_id, "response": response}
    return orjson.dumps(result | {"error": None}) + b"\n"


def _either(line: BatchLine) -> bytes:
    return _answer(line) if line.fate == "answered" else _error(line)


def _error(line: BatchLine) -> bytes:
    if line.fate == "errored":
        return _answer(line)
    code = f"batch_{line.fate}"
    error = {"code": code, "message": "This request could not be executed before the batch ended."}
    result = {"id": f"batch_req_{line.custom_id}", "custom_id": line.custom_id, "response": None}
    return orjson.dumps(result | {"error": error}) + b"\n"


def _bad(message: str) -> web.Response:
    return _CHAT.failure("bad_request", Detail(message=message))

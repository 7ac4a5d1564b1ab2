"""OpenAI's files and batches, and Azure's below /openai/v1."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_store import Line, created
from astra_async.simulate.wires.chat import AzureChatCompletions, ChatCompletions
from astra_async.simulate.wires.responses import Responses
from astra_async.simulate.wires.wire import BadAsk, Detail

if TYPE_CHECKING:
    from astra_async.simulate.batches.batch_store import Batch, BatchStore
    from astra_async.simulate.service import Service
    from astra_async.simulate.wires.wire import Wire

_CHAT = ChatCompletions()
_WIRES: dict[str, Wire] = {"/v1/chat/completions": _CHAT, "/v1/responses": Responses()}
_AZURE_WIRES: dict[str, Wire] = {"/chat/completions": AzureChatCompletions(), "/v1/chat/completions": _CHAT}
_STATES = {"canceling": "cancelling"}
_OVER = (
    "Enqueued token limit reached for {model} in organization org-simulated."
    " Limit: {limit:,} enqueued tokens."
    " Please try again once some in_progress batches have been completed."
)


class OpenAIBatchRoutes:
    """The handlers of one family, `openai` or `azure`."""

    def __init__(self, store: BatchStore, service: Service, family: str) -> None:
        self._store = store
        self._service = service
        self._family = family
        self._wires = _AZURE_WIRES if family == "azure" else _WIRES

    def add_to(self, router: web.UrlDispatcher, prefix: str) -> None:
        """Serve them below a prefix."""
        router.add_post(f"{prefix}/files", self._upload)
        router.add_get(f"{prefix}/files/{{name}}/content", self._content)
        router.add_post(f"{prefix}/batches", self._create)
        router.add_get(f"{prefix}/batches", self._list)
        router.add_get(f"{prefix}/batches/{{id}}", self._look)
        router.add_post(f"{prefix}/batches/{{id}}/cancel", self._cancel)

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        found = form.get("file")
        if not isinstance(found, web.FileField) or form.get("purpose") != "batch":
            return _bad("'file' and purpose 'batch' are required")
        content = found.file.read()
        name = self._store.keep("file-", content)
        body = {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "purpose": "batch",
            "status": "processed",
        }
        return web.json_response(body | {"created_at": 0, "filename": found.filename})

    async def _content(self, request: web.Request) -> web.Response:
        content = self._store.files.get(request.match_info["name"])
        if content is None:
            return _missing(f"No such File object: {request.match_info['name']}")
        return web.Response(body=content, content_type="application/octet-stream")

    async def _create(self, request: web.Request) -> web.Response:
        fields = orjson.loads(await request.read())
        content = self._store.files.get(fields.get("input_file_id", ""))
        if (
            content is None
            or fields.get("completion_window") != "24h"
            or fields.get("endpoint") not in self._wires
        ):
            return _bad("input_file_id, endpoint and completion_window '24h' are required")
        try:
            lines = [self._line(line, fields["endpoint"]) for line in content.splitlines() if line.strip()]
        except (BadAsk, ValueError, LookupError, TypeError) as error:
            return _bad(f"the file cannot be read: {error!r}")
        about = {name: fields.get(name) for name in ("input_file_id", "endpoint", "metadata")}
        batch = await created(self._store, request, self._family, "batch_", lines, about)
        return web.json_response(self._object(batch))

    def _line(self, line: bytes, endpoint: str) -> Line:
        fields = orjson.loads(line)
        if fields["method"] != "POST" or fields["url"] != endpoint or "stream" in fields["body"]:
            raise BadAsk("method, url or body")
        answer = partial(self._service.processed, self._wires[endpoint], fields["body"], fields.get("sample"))
        return Line(str(fields["custom_id"]), len(line) // 4, answer)

    async def _list(self, request: web.Request) -> web.Response:
        batches = self._store.of(self._family)
        after, limit = request.query.get("after"), int(request.query.get("limit", "20"))
        begin = next((number for number, each in enumerate(batches, 1) if each.id == after), 0)
        page = [self._object(batch) for batch in batches[begin : begin + limit]]
        has_more = begin + limit < len(batches)
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return web.json_response({"object": "list", "data": page, "has_more": has_more, **ends})

    async def _look(self, request: web.Request) -> web.Response:
        batch = self._store.batches.get(request.match_info["id"])
        if batch is None:
            return _missing(f"No batch found with id '{request.match_info['id']}'.")
        return web.json_response(self._object(self._store.refreshed(batch)))

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self._store.batches.get(request.match_info["id"])
        if batch is None:
            return _missing(f"No batch found with id '{request.match_info['id']}'.")
        self._store.cancel(batch)
        return web.json_response(self._object(batch))

    def _object(self, batch: Batch) -> dict[str, Any]:
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
        limit = self._store.most_enqueued or 0
        over = batch.why == "token_limit_exceeded"
        message = _OVER.format(model="the model", limit=limit) if over else "The file is not valid JSONL."
        code = batch.why if over else "invalid_json_line"
        error = {"code": code, "message": message, "param": None, "line": None}
        return {"object": "list", "data": [error]}

    def _files(self, batch: Batch) -> dict[str, str | None]:
        """Answers, whatever their status, and the rest in a file of its own; made once."""
        if not batch.has_ended or batch.phase == "failed":
            return {"output_file_id": None, "error_file_id": None}
        if not batch.results:
            out = b"".join(map(_answer, batch.having("answered")))
            errors = b"".join(map(_error, batch.having("errored", "expired", "cancelled")))
            batch.results = {
                name: self._store.keep("file-", content).encode()
                for name, content in (("output_file_id", out), ("error_file_id", errors))
                if content
            }
            if batch.fault == "vanish":
                for name in batch.results.values():
                    del self._store.files[name.decode()]
        found = {name: value.decode() for name, value in batch.results.items()}
        return {name: found.get(name) for name in ("output_file_id", "error_file_id")}


def _answer(line: Line) -> bytes:
    response = {"status_code": line.status, "request_id": line.custom_id, "body": orjson.Fragment(line.body)}
    result = {"id": f"batch_req_{line.custom_id}", "custom_id": line.custom_id, "response": response}
    return orjson.dumps(result | {"error": None}) + b"\n"


def _error(line: Line) -> bytes:
    if line.fate == "errored":
        return _answer(line)
    code = f"batch_{line.fate}"
    error = {"code": code, "message": "This request could not be executed before the batch ended."}
    result = {"id": f"batch_req_{line.custom_id}", "custom_id": line.custom_id, "response": None}
    return orjson.dumps(result | {"error": error}) + b"\n"


def _bad(message: str) -> web.Response:
    return _CHAT.failure("bad_request", Detail(message=message))


def _missing(message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": "id", "code": None}
    return web.json_response({"error": error}, status=404)

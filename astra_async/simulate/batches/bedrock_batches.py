"""Bedrock's batch inference: jobs with requests and results in S3, in the format of each model.

A model is named `anthropic.NAME`, `amazon.nova-NAME` or `openai.NAME`; the prefix determines its format.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from aiohttp import web

from astra_async.simulate.batches.batch_routes import BatchRoutes
from astra_async.simulate.batches.batch_store import BatchLine
from astra_async.simulate.wires.chat import ChatCompletions
from astra_async.simulate.wires.converse_stream import Converse, Messages
from astra_async.simulate.wires.wire import Detail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.simulate.batches.batch_store import Batch
    from astra_async.simulate.wires.wire import Wire

_WIRE = Converse(stream=False)
_FORMS: Mapping[str, Wire] = {"anthropic.": Messages(), "amazon.nova-": _WIRE, "openai.": ChatCompletions()}
_STATES = {
    "validating": "Validating",
    "in_progress": "InProgress",
    "canceling": "Stopping",
    "completed": "Completed",
    "failed": "Failed",
    "expired": "Expired",
    "cancelled": "Stopped",
}
_ARN = "arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/"


class BedrockBatchRoutes(BatchRoutes):
    """Handlers of Bedrock's interface."""

    family = "bedrock"
    missing: ClassVar = {"message": "Could not find the job."}
    missing_headers: ClassVar = {"x-amzn-errortype": "ResourceNotFoundException"}

    def add_to(self, router: web.UrlDispatcher, prefix: str) -> None:
        """Add the routes below a prefix."""
        router.add_post(f"{prefix}/model-invocation-job", self._create)
        router.add_get(f"{prefix}/model-invocation-jobs", self._list)
        router.add_get(f"{prefix}/model-invocation-job/{{id:.+}}", self.look)
        router.add_post(f"{prefix}/model-invocation-job/{{id:.+}}/stop", self.cancel)

    async def _create(self, request: web.Request) -> web.Response:
        fields = orjson.loads(await request.read())
        token = fields.get("clientRequestToken")
        for batch in self.store.of(self.family):
            if token and batch.about["clientRequestToken"] == token:
                return web.json_response({"jobArn": _ARN + batch.id})
        try:
            model, uri = str(fields["modelId"]), str(fields["inputDataConfig"]["s3InputDataConfig"]["s3Uri"])
            content = await self._read(uri)
            lines = [self._line(model, line) for line in content.splitlines() if line.strip()]
        except (ValueError, LookupError, TypeError) as error:
            return _WIRE.failure("bad_request", Detail(message=f"the job cannot be read: {error!r}"))
        about = {name: fields.get(name) for name in ("jobName", "clientRequestToken", "modelId", "roleArn")}
        about |= {name: fields[name] for name in ("inputDataConfig", "outputDataConfig")}
        job = await self.created(request, lines, about)
        return web.json_response({"jobArn": job["jobArn"]})

    def _line(self, model: str, line: bytes) -> BatchLine:
        fields = orjson.loads(line)
        form = next(name for name in _FORMS if name in model)
        profile = model.rpartition(form)[2]
        answer = partial(self.service.processed, _FORMS[form], fields["modelInput"], None, profile)
        return BatchLine(str(fields["recordId"]), len(line) // 4, answer)

    async def _list(self, request: web.Request) -> web.Response:
        wanted = request.query.get("nameContains", "")
        jobs = [await self.shown(batch, request) for batch in self.store.of(self.family)]
        return web.json_response(
            {"invocationJobSummaries": [job for job in jobs if wanted in job["jobName"]]}
        )

    async def shown(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        """Return a job; after its end, write its results to S3."""
        del request
        if batch.has_ended and batch.phase != "failed" and not batch.results:
            out = str(batch.about["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"]).rstrip("/")
            batch.results = {"folder": f"{out}/{batch.id}"}
            if batch.fault != "vanish":
                await self._write(batch)
        message = {"message": "The file is not valid."} if batch.phase == "failed" else {}
        return {
            **batch.about,
            **message,
            "jobArn": _ARN + batch.id,
            "status": _STATES[batch.phase],
            "submitTime": batch.at(),
        }

    async def _write(self, batch: Batch) -> None:
        """Write the results and the manifest to S3."""
        source = str(batch.about["inputDataConfig"]["s3InputDataConfig"]["s3Uri"])
        counts = {"totalRecordCount": len(batch.lines), "processedRecordCount": len(batch.having("answered"))}
        contents = {
            f"{source.rpartition('/')[2]}.out": b"".join(map(_result, batch.written("answered", "errored"))),
            "manifest.json.out": orjson.dumps(counts),
        }
        async with self._client() as client:
            for name, content in contents.items():
                await client.put_object(**_place(f"{batch.results['folder']}/{name}"), Body=content)

    async def _read(self, uri: str) -> bytes:
        async with self._client() as client:
            answer = await client.get_object(**_place(uri))
            return bytes(await answer["Body"].read())

    def _client(self) -> Any:
        import aioboto3

        session = aioboto3.Session("simulated", "simulated", region_name="us-east-1")
        return session.client("s3", endpoint_url=self.service.settings.batch_s3_endpoint)


def _place(uri: str) -> dict[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": key}


def _result(line: BatchLine) -> bytes:
    if line.fate == "answered":
        return orjson.dumps({"recordId": line.custom_id, "modelOutput": orjson.Fragment(line.body)}) + b"\n"
    error = {"errorCode": line.status, "errorMessage": "The model could not process this record."}
    return orjson.dumps({"recordId": line.custom_id, "error": error}) + b"\n"

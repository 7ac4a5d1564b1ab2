"""Amazon Bedrock's batch inference (`POST {base}/model-invocation-job`), with files in S3.

Requests have the model's native format instead of Converse's: Claude's Messages, Nova's messages, or OpenAI's
chat completions. The name and the client token of a job identify the intent. A second create with the same
client token returns the same job.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from astra_async.asking.batches.batch_interface import (
    BatchInterface,
    BatchOutcome,
    BatchStatus,
    Gone,
    body_of,
)
from astra_async.asking.providers.anthropic import Anthropic, MessageReader
from astra_async.asking.providers.aws import endpoint_of, region_of
from astra_async.asking.providers.bedrock import ConverseReader
from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.connection import address, join_url
from astra_async.asking.providers.error_meaning import Failure
from astra_async.asking.providers.openai_chat import chat_input_fields, chat_options
from astra_async.asking.providers.request_fields import drop_none, merge_fields, system_and_messages
from astra_async.errors import ConfigError, ProjectError, ProviderError, TransientError
from astra_async.problems.fetch.cache import TransientFetchError
from astra_async.problems.fetch.locations import S3Object
from astra_async.problems.fetch.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Json, Reader
    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelRequest, ModelSettings

_ENDED = frozenset({"Completed", "PartiallyCompleted", "Failed", "Stopped", "Expired"})
_PARTIAL = frozenset({"PartiallyCompleted", "Stopped", "Expired"})
_CLAUDE_VERSION = "bedrock-2023-05-31"
_OWN_FIELDS = "additionalModelRequestFields"
_PAGE = "100"


class BedrockBatches(BatchInterface):
    """Bedrock's batch interface for one model. The settings `batch_s3` and `batch_role` are required.

    Raises:
        ConfigError: one of these settings is missing, or the model's native format is not supported.
    """

    most_requests = 50_000
    most_bytes = 1_000_000_000
    lifetime_h = 168

    def __init__(self, wire: WireFormat, control: Control) -> None:
        super().__init__(wire, control)
        self._settings = settings = wire.settings
        self._role, self._bucket, self._prefix = _place(settings)
        self._form = _form_of(settings)
        self._claude = _claude(settings, control.environ) if self._form is MessageReader else None
        own = settings.endpoint or settings.base_url
        region = region_of(settings.name, control.environ, default="us-east-1" if own else None)
        base = own or endpoint_of("bedrock", region, control.environ)
        self._base = address(base, where=f"endpoint of {settings.name}")
        self._objects = ObjectStore(control.s3)

    @classmethod
    def check(cls, settings: ModelSettings) -> None:
        """Check that batch_s3 and batch_role are set and the model's native format is supported."""
        _place(settings)
        _form_of(settings)

    def encode_request(self, custom_id: str, request: ModelRequest) -> bytes:
        """Return one line of the file."""
        return orjson.dumps({"recordId": custom_id, "modelInput": self._body(request)})

    async def upload(self, path: Path, token: str) -> str:
        """Upload the file to S3 and return the object's key."""
        key = f"{self._prefix}{token}.jsonl"
        await self._s3(self._objects.send(S3Object(bucket=self._bucket, key=key), path))
        return key

    async def create(self, path: Path, intent: Intent) -> str:
        """Create the job and return its ARN."""
        del path
        fields = {
            "jobName": intent.token,
            "clientRequestToken": intent.token,
            "modelId": self._settings.model,
            "roleArn": self._role,
            "inputDataConfig": {
                "s3InputDataConfig": {"s3Uri": self._uri(intent.file), "s3InputFormat": "JSONL"}
            },
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": self._uri(f"{self._prefix}out/")}},
        }
        job = await self.control.ask("POST", join_url(self._base, "model-invocation-job"), fields)
        return str(job["jobArn"])

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """Find the job with the intent's name."""
        del known
        asked = {"maxResults": _PAGE, "nameContains": intent.token, "sortOrder": "Descending"}
        url = join_url(self._base, "model-invocation-jobs", **asked)
        pages = ("nextToken", "nextToken")
        async for job in self.list_since(intent, url, "invocationJobSummaries", page_token=pages):
            if job.get("jobName") == intent.token:
                return str(job["jobArn"])
        return ""

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the state of a job. Counts are not available, except in a manifest after its end."""
        job = await self.control.ask("GET", self._at(batch_id))
        state = str(job.get("status"))
        name = str(job["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]).rpartition("/")[2]
        failed = state == "Failed"
        out = f"{self._prefix}out/{batch_id.rpartition('/')[2]}/{name}.out"
        return BatchStatus(
            state=state,
            has_ended=state in _ENDED,
            results=(out,) if state in _ENDED and not failed else (),
            failure=Failure(body={"error": {"message": job.get("message") or "the job failed"}}, status=400)
            if failed
            else None,
            was_cancelled=state in {"Stopping", "Stopped"},
            is_partial=state in _PARTIAL,
        )

    async def fetch(self, status: BatchStatus, path: Path) -> None:
        """Download the results. A job that was stopped early may have no results."""
        for key in status.results:
            try:
                await self._s3(self._objects.save(S3Object(bucket=self._bucket, key=key), path))
            except Gone:
                if not status.is_partial:
                    raise

    def read(self, line: bytes) -> BatchOutcome:
        """Parse one line: an answer in the model's native format, or an error."""
        found = orjson.loads(line)
        custom_id, error = str(found["recordId"]), found.get("error")
        if not error:
            return BatchOutcome(custom_id=custom_id, body=found["modelOutput"])
        status = int(error.get("errorCode") or 500)
        body = {"error": {"message": error.get("errorMessage") or "", "code": None}}
        return BatchOutcome(custom_id=custom_id, failure=Failure(body=body, status=status))

    def reader(self) -> Reader:
        """Return a reader of the model's native format."""
        return self._form()

    async def cancel(self, batch_id: str) -> None:
        """Stop a job. It ends soon afterwards."""
        await self.control.ask("POST", self._at(batch_id) / "stop", {})

    async def close(self) -> None:
        """Close the connections to S3."""
        await self._objects.close()

    def _body(self, request: ModelRequest) -> Json:
        settings = self._settings
        own = settings.extra_body.get(_OWN_FIELDS)
        if self._claude is not None:
            body = body_of(self._claude, request) | {"anthropic_version": _CLAUDE_VERSION}
            del body["model"]
        elif self._form is ConverseReader:
            body = {"schemaVersion": "messages-v1", **body_of(self.wire, request)}
            own = body.pop(_OWN_FIELDS, None)
        else:
            body = chat_options(settings, None) | chat_input_fields(
                request, *system_and_messages(request, settings)
            )
            body = drop_none(body | {"max_completion_tokens": settings.max_tokens})
            del body["stream"]
        return merge_fields(body, own or {})

    def _uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    def _at(self, batch_id: str) -> Any:
        return join_url(self._base, f"model-invocation-job/{quote(batch_id, safe='')}")

    async def _s3(self, work: Any) -> None:
        """Await an operation on S3 and convert its errors to ProviderErrors."""
        try:
            await work
        except TransientFetchError as error:
            raise TransientError(f"{self._settings.name}: {error}") from error
        except ProjectError as error:
            kind = Gone if "no such object" in str(error) else ProviderError
            raise kind(f"{self._settings.name}: {error}", status=404 if kind is Gone else 400) from error


def _place(settings: ModelSettings) -> tuple[str, str, str]:
    """Return the role, the bucket and the prefix. Raises ConfigError if a setting is missing."""
    bucket, _, prefix = (settings.batch_s3 or "").removeprefix("s3://").partition("/")
    if not settings.batch_role or not bucket or not (settings.batch_s3 or "").startswith("s3://"):
        raise ConfigError(
            f"{settings.name}: Bedrock's batches need S3: set batch_s3 = 's3://BUCKET/PREFIX' and"
            " batch_role = 'arn:aws:iam::ACCOUNT:role/NAME' in [[models]]"
        )
    return settings.batch_role, bucket, prefix.rstrip("/") + "/" if prefix else ""


def _form_of(settings: ModelSettings) -> type[Reader]:
    """Return the reader of the model's native format. Raises ConfigError if batches are not supported."""
    if settings.service_tier or settings.extra_body.keys() - {_OWN_FIELDS}:
        raise ConfigError(
            f"{settings.name}: Bedrock's batches support no service_tier, and only {_OWN_FIELDS} in"
            " extra_body: unset the other settings"
        )
    forms = {"anthropic.": MessageReader, "amazon.nova": ConverseReader, "openai.": ChatReader}
    for name, form in forms.items():
        if name in settings.model:
            return form
    supported = ", ".join(forms)
    raise ConfigError(f"{settings.name}: batches are supported only for {supported}; remove `batch`")


def _claude(settings: ModelSettings, environ: Mapping[str, str]) -> Anthropic:
    own = replace(settings, base_url=None, endpoint=None, extra_headers={}, extra_body={})
    return Anthropic(own, None, environ=environ)

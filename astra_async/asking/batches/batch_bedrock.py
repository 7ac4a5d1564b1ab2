"""Amazon Bedrock's batch inference (`POST {base}/model-invocation-job`), from and into S3.

Its bodies are the models' own and not Converse's: Claude's Messages, Nova's, OpenAI's chat completions. A
job's name and its client token are its intent; a create with the same token is the same job.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome, Gone, Standing, body_of
from astra_async.asking.providers.anthropic import Anthropic, MessageReader
from astra_async.asking.providers.aws import endpoint_of, region_of
from astra_async.asking.providers.bedrock import ConverseReader
from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.connection import address, below
from astra_async.asking.providers.error_meaning import Failure
from astra_async.asking.providers.openai_chat import chat_input_fields, chat_options
from astra_async.asking.providers.request_fields import laid_over, set_fields, spoken
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
    """Jobs of one model; `batch_s3` and `batch_role` say where its files lie and who may read them.

    Raises:
        ConfigError: one of them is not set, or the form of the model's own bodies is not known here.
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
        """Refuse a model without a place for its files, or whose own bodies are not known."""
        _place(settings)
        _form_of(settings)

    def row(self, custom_id: str, request: ModelRequest) -> bytes:
        """A line of the file."""
        return orjson.dumps({"recordId": custom_id, "modelInput": self._body(request)})

    async def upload(self, path: Path, token: str) -> str:
        """The object's key."""
        key = f"{self._prefix}{token}.jsonl"
        await self._s3(self._objects.send(S3Object(bucket=self._bucket, key=key), path))
        return key

    async def create(self, path: Path, intent: Intent) -> str:
        """The job's ARN."""
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
        job = await self.control.ask("POST", below(self._base, "model-invocation-job"), fields)
        return str(job["jobArn"])

    async def find(self, intent: Intent, known: frozenset[str]) -> str | None:
        """The job of that name."""
        del known
        asked = {"maxResults": _PAGE, "nameContains": intent.token, "sortOrder": "Descending"}
        url = below(self._base, "model-invocation-jobs", **asked)
        pages = ("nextToken", "nextToken")
        async for job in self.newer(intent, url, "invocationJobSummaries", page_token=pages):
            if job.get("jobName") == intent.token:
                return str(job["jobArn"])
        return ""

    async def look(self, batch_id: str) -> Standing:
        """How it stands; counts are in no answer, only in a manifest at its end."""
        job = await self.control.ask("GET", self._at(batch_id))
        state = str(job.get("status"))
        name = str(job["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]).rpartition("/")[2]
        failed = state == "Failed"
        out = f"{self._prefix}out/{batch_id.rpartition('/')[2]}/{name}.out"
        return Standing(
            state=state,
            has_ended=state in _ENDED,
            results=(out,) if state in _ENDED and not failed else (),
            failure=Failure(body={"error": {"message": job.get("message") or "it has failed"}}, status=400)
            if failed
            else None,
            was_cancelled=state in {"Stopping", "Stopped"},
            is_partial=state in _PARTIAL,
        )

    async def fetch(self, standing: Standing, path: Path) -> None:
        """The object of results; a job that was stopped before its first may have none."""
        for key in standing.results:
            try:
                await self._s3(self._objects.save(S3Object(bucket=self._bucket, key=key), path))
            except Gone:
                if not standing.is_partial:
                    raise

    def read(self, line: bytes) -> BatchOutcome:
        """The model's own answer, or an error."""
        found = orjson.loads(line)
        custom_id, error = str(found["recordId"]), found.get("error")
        if not error:
            return BatchOutcome(custom_id=custom_id, body=found["modelOutput"])
        status = int(error.get("errorCode") or 500)
        body = {"error": {"message": error.get("errorMessage") or "", "code": None}}
        return BatchOutcome(custom_id=custom_id, failure=Failure(body=body, status=status))

    def reader(self) -> Reader:
        """That of the model's own form."""
        return self._form()

    async def cancel(self, batch_id: str) -> None:
        """It stops soon."""
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
            body = chat_options(settings, None) | chat_input_fields(request, *spoken(request, settings))
            body = set_fields(body | {"max_completion_tokens": settings.max_tokens})
            del body["stream"]
        return laid_over(body, own or {})

    def _uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    def _at(self, batch_id: str) -> Any:
        return below(self._base, f"model-invocation-job/{quote(batch_id, safe='')}")

    async def _s3(self, work: Any) -> None:
        """What S3 refuses, as the pool knows it."""
        try:
            await work
        except TransientFetchError as error:
            raise TransientError(f"{self._settings.name}: {error}") from error
        except ProjectError as error:
            kind = Gone if "no such object" in str(error) else ProviderError
            raise kind(f"{self._settings.name}: {error}", status=404 if kind is Gone else 400) from error


def _place(settings: ModelSettings) -> tuple[str, str, str]:
    """The role, the bucket and the prefix. Raises ConfigError."""
    bucket, _, prefix = (settings.batch_s3 or "").removeprefix("s3://").partition("/")
    if not settings.batch_role or not bucket or not (settings.batch_s3 or "").startswith("s3://"):
        raise ConfigError(
            f"{settings.name}: Bedrock's batches lie in S3: set batch_s3 = 's3://BUCKET/PREFIX' and"
            " batch_role = 'arn:aws:iam::ACCOUNT:role/NAME' in [[models]]"
        )
    return settings.batch_role, bucket, prefix.rstrip("/") + "/" if prefix else ""


def _form_of(settings: ModelSettings) -> type[Reader]:
    """What reads the answers of a model's own interface. Raises ConfigError."""
    if settings.service_tier or settings.extra_body.keys() - {_OWN_FIELDS}:
        raise ConfigError(
            f"{settings.name}: a batch takes neither service_tier nor extra_body but {_OWN_FIELDS}"
        )
    forms = {"anthropic.": MessageReader, "amazon.nova": ConverseReader, "openai.": ChatReader}
    for name, form in forms.items():
        if name in settings.model:
            return form
    raise ConfigError(f"{settings.name}: batches are known here for {', '.join(forms)}; leave out `batch`")


def _claude(settings: ModelSettings, environ: Mapping[str, str]) -> Anthropic:
    own = replace(settings, base_url=None, endpoint=None, extra_headers={}, extra_body={})
    return Anthropic(own, None, environ=environ)

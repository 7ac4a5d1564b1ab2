"""The vendors' own clients (extra `sdks`) drive the simulated batches, which ours are tried against."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from batch_runs import AWS, BUCKET, Simulated, s3_endpoint, simulated_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours
REASON = "the vendors' clients are an extra: pip install 'astra_async[sdks]'"
MESSAGES = [{"role": "user", "content": "Add a field."}]
IDS = ["a1", "a2", "a3"]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=REASON)


def ended(look: Callable[[], Any], state: Callable[[Any], str], end: str) -> Any:
    for _ in range(600):
        found = look()
        if state(found) == end:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{state(look())} instead of {end}")


def a_file(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "requests.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("interface", ["/v1/chat/completions", "/v1/responses"])
def test_openais_client_runs_a_batch(tmp_path: Path, interface: str) -> None:
    bodies = {
        "/v1/chat/completions": {"model": "steady", "messages": MESSAGES},
        "/v1/responses": {"model": "steady", "input": "Add a field."},
    }
    rows = [
        {"custom_id": name, "method": "POST", "url": interface, "body": bodies[interface]} for name in IDS
    ]
    with (
        Simulated() as server,
        library("openai").OpenAI(base_url=server.server.base_url, api_key="k", max_retries=0) as client,
    ):
        with a_file(tmp_path, rows).open("rb") as stream:
            file = client.files.create(file=stream, purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint=interface, completion_window="24h", metadata={"astra_intent": "t"}
        )
        assert [each.metadata for each in client.batches.list()] == [{"astra_intent": "t"}]
        batch = ended(lambda: client.batches.retrieve(batch.id), lambda each: each.status, "completed")
        assert (batch.request_counts.completed, batch.input_file_id) == (3, file.id)
        lines = client.files.content(batch.output_file_id).text.splitlines()
        assert sorted(json.loads(line)["custom_id"] for line in lines) == IDS


def test_openais_client_cancels_a_batch(tmp_path: Path) -> None:
    row = {
        "custom_id": "a",
        "method": "POST",
        "url": "/v1/responses",
        "body": {"model": "steady", "input": "x"},
    }
    with (
        Simulated(batch_delay_s=5.0) as server,
        library("openai").OpenAI(base_url=server.server.base_url, api_key="k", max_retries=0) as client,
    ):
        with a_file(tmp_path, [row]).open("rb") as stream:
            file = client.files.create(file=stream, purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
        )
        assert client.batches.cancel(batch.id).status == "cancelling"
        ended(lambda: client.batches.retrieve(batch.id), lambda each: each.status, "cancelled")


def test_anthropics_client_runs_a_batch() -> None:
    params = {"model": "steady", "max_tokens": 1000, "messages": MESSAGES}
    with (
        Simulated() as server,
        library("anthropic").Anthropic(base_url=server.server.root_url, api_key="k", max_retries=0) as client,
    ):
        batches = client.messages.batches
        batch = batches.create(requests=[{"custom_id": name, "params": params} for name in IDS])
        assert batch.request_counts.processing == 3
        assert [each.id for each in batches.list()] == [batch.id]
        batch = ended(lambda: batches.retrieve(batch.id), lambda each: each.processing_status, "ended")
        assert batch.request_counts.succeeded == 3
        results = list(batches.results(batch.id))
        assert sorted(each.custom_id for each in results) == IDS
        assert all(each.result.message.usage.output_tokens for each in results)


def test_anthropics_client_sees_what_expired_and_what_failed() -> None:
    params = {"model": "steady", "max_tokens": 1000, "messages": MESSAGES}
    requests = [{"custom_id": f"a{number}", "params": params} for number in range(6)]
    with (
        Simulated(batch_faults=("expire", "errors")) as server,
        library("anthropic").Anthropic(base_url=server.server.root_url, api_key="k", max_retries=0) as client,
    ):
        batches = client.messages.batches
        for kind, count in (("expired", 3), ("errored", 2)):
            batch = batches.create(requests=requests)
            ended(partial(batches.retrieve, batch.id), lambda each: each.processing_status, "ended")
            assert [each.result.type for each in batches.results(batch.id)].count(kind) == count


def test_geminis_client_runs_a_batch(tmp_path: Path) -> None:
    genai = library("google.genai")
    contents = [{"role": "user", "parts": [{"text": "Add a field."}]}]
    rows = [{"key": name, "request": {"contents": contents}} for name in IDS]
    with Simulated() as server:
        # Below /v1 the simulated server's batches are OpenAI's.
        options = {"base_url": server.server.root_url, "api_version": "v1beta"}
        client = genai.Client(api_key="k", http_options=options)
        file = client.files.upload(
            file=str(a_file(tmp_path, rows)), config={"display_name": "t", "mime_type": "application/jsonl"}
        )
        batch = client.batches.create(model="steady", src=file.name, config={"display_name": "t"})
        assert [each.display_name for each in client.batches.list()] == ["t"]
        batch = ended(
            lambda: client.batches.get(name=batch.name), lambda each: each.state.name, "JOB_STATE_SUCCEEDED"
        )
        lines = client.files.download(file=batch.dest.file_name).decode().splitlines()
        assert sorted(json.loads(line)["key"] for line in lines) == IDS


def test_boto3_runs_a_job() -> None:
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1000, "messages": MESSAGES}
    rows = "".join(json.dumps({"recordId": name, "modelInput": body}) + "\n" for name in IDS)
    with simulated_for("bedrock/anthropic.steady") as server:
        boto3 = library("boto3")
        s3 = boto3.client("s3", endpoint_url=s3_endpoint(), **AWS)
        s3.put_object(Bucket=BUCKET, Key="in/rows.jsonl", Body=rows.encode())
        client = boto3.client("bedrock", endpoint_url=server.server.root_url, **AWS)
        fields = {
            "jobName": "t",
            "clientRequestToken": "astra-token",
            "modelId": "anthropic.steady",
            "roleArn": "arn:aws:iam::123456789012:role/batches",
            "inputDataConfig": {"s3InputDataConfig": {"s3Uri": f"s3://{BUCKET}/in/rows.jsonl"}},
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"s3://{BUCKET}/out/"}},
        }
        arn = client.create_model_invocation_job(**fields)["jobArn"]
        assert client.create_model_invocation_job(**fields)["jobArn"] == arn
        (job,) = client.list_model_invocation_jobs(nameContains="t")["invocationJobSummaries"]
        assert job["jobArn"] == arn
        look = partial(client.get_model_invocation_job, jobIdentifier=arn)
        ended(look, lambda found: found["status"], "Completed")
        folder = f"out/{arn.rpartition('/')[2]}"
        out = s3.get_object(Bucket=BUCKET, Key=f"{folder}/rows.jsonl.out")["Body"].read().splitlines()
        assert sorted(json.loads(line)["recordId"] for line in out) == IDS
        manifest = s3.get_object(Bucket=BUCKET, Key=f"{folder}/manifest.json.out")["Body"].read()
        assert json.loads(manifest)["processedRecordCount"] == 3
        s3.close()
        client.close()

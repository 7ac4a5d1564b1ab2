"""A batch has ended when its results are there: files that are named late, cut or unknown, and the advice."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from batch_runs import MODELS, PLANNED, BatchRun, Simulated, simulated_for

from astra_async.asking.batches.batch_gemini import GeminiBatches
from astra_async.asking.batches.batch_openai import OpenAIBatches
from astra_async.asking.providers import parse_spec, wire_format
from astra_async.types import ModelSettings

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome

SOON = {"batch_settled_s": 0.1}  # promised results are looked for a second
BY_FILES = [spec for spec in MODELS if not spec.startswith("bedrock")]


def whole(run: BatchRun) -> bool:
    return len(run.keys()) == len(set(run.keys())) == PLANNED


def paid_once(run: BatchRun, server: Simulated) -> bool:
    return whole(run) and server.created == 1 and server.processed == PLANNED


def heal(server: Simulated) -> None:
    """From now on the batches have no fault."""
    for batch in server.server.batches.batches.values():
        batch.fault, batch.results = "none", {}  # files are written anew


CASES = [(spec, fault) for spec in BY_FILES for fault in ("late", "cut", "unknown", "failing")]
CASES += [(spec, fault) for spec in MODELS if spec not in BY_FILES for fault in ("unknown", "failing")]


@pytest.mark.long
@pytest.mark.first(fault=lambda fault, **_: fault)
@pytest.mark.parametrize(("spec", "fault"), CASES)
def test_a_fault_that_passes_costs_nothing(tmp_path: Path, spec: str, fault: str) -> None:
    with simulated_for(spec, batch_faults=(fault,)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert paid_once(run, server)


@pytest.mark.long
@pytest.mark.first(spec=lambda spec: spec)
@pytest.mark.parametrize("spec", ["openai/steady", "anthropic/steady", "gemini/steady"])
def test_an_answer_counts_although_a_failure_of_its_request_stands_before_it(
    tmp_path: Path, spec: str
) -> None:
    with simulated_for(spec, batch_faults=("tries",)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert paid_once(run, server)


@pytest.mark.long
@pytest.mark.first(fault=lambda fault, **_: fault)
@pytest.mark.parametrize("fault", ["never", "short"])
@pytest.mark.parametrize("spec", ["openai/steady", "anthropic/steady", "gemini/steady"])
def test_results_that_are_promised_are_never_asked_and_paid_again(
    tmp_path: Path, spec: str, fault: str
) -> None:
    with simulated_for(spec, batch_faults=(fault,)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec, settings=SOON)
        for _ in range(2):
            said = run.finish(1)
            assert "of its reported results are missing" in said
            assert "not sent again while it may produce results" in said
            assert "asks once more" not in said
            assert len(run.keys()) == (0 if fault == "never" else PLANNED - 1)
        heal(server)
        run.finish()
        assert paid_once(run, server)


@pytest.mark.long
@pytest.mark.first
def test_only_an_unknown_batch_whose_time_is_over_may_be_written_off_at_once(tmp_path: Path) -> None:
    with Simulated(batch_faults=("vanish",)) as server:
        run = BatchRun(folder=tmp_path, server=server, settings=SOON)
        said = run.finish(1)
        over = re.search(r"If results are still missing after (\S+ \S+) UTC,", said)
        assert over
        left = datetime.strptime(over[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC) - datetime.now(UTC)
        assert timedelta(hours=23) < left < timedelta(hours=24)
        log = run.out / "batches.jsonl"
        early = (datetime.now(UTC) - timedelta(hours=25)).isoformat().replace("+00:00", "Z")
        log.write_bytes(re.sub(rb'"at":"[^"]+"', b'"at":"' + early.encode() + b'"', log.read_bytes()))
        said = run.finish(1)
        assert "still missing" not in said
        assert re.search(r"the batch expired at .* UTC: give it up with `astra batches \S+ --forget", said)
        assert server.created == 1


class Told:
    """A provider's answer to the one request that is made."""

    def __init__(self, batch: dict[str, Any]) -> None:
        self.batch = batch

    async def ask(self, *_: Any) -> dict[str, Any]:
        return self.batch


def inline(made_by: type[BatchInterface], spec: str, batch: dict[str, Any]) -> list[BatchOutcome]:
    provider, model = parse_spec(spec)
    settings = ModelSettings(
        name=spec, spec=spec, provider=provider, model=model, base_url="http://127.0.0.1:1"
    )
    interface = made_by(wire_format(settings, {"GEMINI_API_KEY": "k"}), Told(batch))  # type: ignore[arg-type]
    standing = asyncio.run(interface.status("b1"))
    assert standing.has_ended
    return [interface.read(line) for line in standing.inline]


def test_results_in_the_answer_itself_are_read() -> None:
    answered = {"custom_id": "a1", "response": {"status_code": 200, "body": {"id": "x"}}}
    refused = {"custom_id": "a2", "response": {"status_code": 400, "body": {"error": {}}}}
    batch = {"status": "completed", "request_counts": {}, "outputs": [answered, refused]}
    first, second = inline(OpenAIBatches, "openai-compatible/x", batch)
    assert (first.custom_id, first.body) == ("a1", {"id": "x"})
    assert second.failure is not None
    responses = [
        {"metadata": {"key": "a1"}, "response": {"candidates": []}},
        {"metadata": {"key": "a2"}, "error": {"code": 13, "message": "m"}},
    ]
    about = {
        "state": "BATCH_STATE_SUCCEEDED",
        "output": {"inlinedResponses": {"inlinedResponses": responses}},
    }
    first, second = inline(GeminiBatches, "gemini/x", {"metadata": about})
    assert (first.custom_id, first.body) == ("a1", {"candidates": []})
    assert second.failure is not None


@pytest.mark.long
@pytest.mark.first
def test_a_server_without_batches_is_told_at_once(tmp_path: Path) -> None:
    with Simulated() as server:
        address = f"{server.server.root_url}/nowhere"
        run = BatchRun(
            folder=tmp_path, server=server, settings={"base_url": address, "batch_settled_s": 60.0}
        )
        assert "404" in run.finish(1)
        assert server.created == 0

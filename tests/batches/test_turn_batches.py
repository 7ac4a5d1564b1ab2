"""Further turns in batches: each turn is a batch of its own, and none goes while others are being tested."""

from __future__ import annotations

import asyncio
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome, BatchStatus
from astra_async.asking.batches.batch_log import BatchLog
from astra_async.asking.batches.batch_pool import BatchPool
from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.errors import PoolUnusable
from astra_async.types import ModelSettings
from fakes import TESTS, CountingSandbox, xml_answer
from in_memory import run_in_memory

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.providers.answer import Reader
    from astra_async.running.runner import Runner
    from astra_async.types import ModelRequest

SAMPLES = 6
SETTINGS = ModelSettings(name="m", spec="openai/m", provider="openai", model="m")


class InstantBatches(BatchInterface):
    """A provider whose batches have ended when they are first looked at; a turn passes one test more."""

    most_requests, most_bytes = 1000, 10**9
    control: Control

    def __init__(self) -> None:
        self.files: list[bytes] = []
        self.batches: list[list[dict[str, Any]]] = []

    def encode_request(self, custom_id: str, request: ModelRequest) -> bytes:
        return orjson.dumps({"id": custom_id, "turn": request.key.turn})

    async def upload(self, path: Path, token: str) -> str:
        self.files.append(await asyncio.to_thread(path.read_bytes))
        return str(len(self.files) - 1)

    async def create(self, path: Path, intent: Intent) -> str:
        rows = self.files[int(intent.file)].splitlines()
        self.batches.append([orjson.loads(row) for row in rows if row])
        return str(len(self.batches) - 1)

    async def find(self, intent: Intent, known: frozenset[str]) -> str:
        return ""

    async def status(self, batch_id: str) -> BatchStatus:
        return BatchStatus(state="completed", has_ended=True, results=(batch_id,))

    async def fetch(self, standing: BatchStatus, path: Path) -> None:
        lines = [orjson.dumps(row) + b"\n" for row in self.batches[int(standing.results[0])]]
        await asyncio.to_thread(path.write_bytes, b"".join(lines))

    def read(self, line: bytes) -> BatchOutcome:
        row = orjson.loads(line)
        message = {"content": xml_answer(TESTS - 2 + row["turn"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        body = {"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        return BatchOutcome(custom_id=row["id"], body=body)

    def reader(self) -> Reader:
        return ChatReader()

    async def cancel(self, batch_id: str) -> None:
        raise AssertionError(batch_id)


@pytest.mark.parametrize("turns", [1, 3])
async def test_each_turn_is_a_batch_of_its_own(tmp_path: Path, turns: int) -> None:
    provider = InstantBatches()

    async def run() -> Runner:
        with closing(BatchLog(tmp_path, "run")) as log:
            pool = BatchPool(SETTINGS, provider, log, answered=(), price=lambda _: 0.0)

            def opened(runner: Runner) -> None:
                pool.expect(partial(runner.is_grading, "m"))

            runner = await run_in_memory(
                tmp_path,
                {"m": pool},
                CountingSandbox(),
                problem_ids=("p", "q"),
                samples=SAMPLES,
                turns=turns,
                on_open=opened,
            )
            await pool.close()
            return runner

    runner = await run()
    sizes = [len(rows) for rows in provider.batches]
    numbers = [{row["turn"] for row in rows} for rows in provider.batches]
    passed_all_after = 2
    assert sizes == [2 * SAMPLES] * (1 + min(turns, passed_all_after))
    assert numbers == [{number} for number in range(len(sizes))]
    assert (runner.tally.final, runner.tally.turns.final) == (2 * SAMPLES, sum(sizes[1:]))


class Refusing(InstantBatches):
    """Takes no file of this key's."""

    async def upload(self, path: Path, token: str) -> str:
        raise PoolUnusable("m: HTTP 401: check the API key", status=401)


async def test_a_key_that_is_refused_ends_the_model_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    async def run() -> Runner:
        with closing(BatchLog(tmp_path, "run")) as log:
            pool = BatchPool(SETTINGS, Refusing(), log, answered=(), price=lambda _: 0.0)
            runner = await run_in_memory(
                tmp_path, {"m": pool}, CountingSandbox(), problem_ids=("p",), samples=SAMPLES
            )
            await pool.close()
            return runner

    runner = await run()
    assert str(runner.dead["m"]) == "m: HTTP 401: check the API key"
    assert runner.tally.missing.total() == SAMPLES
    assert not list((tmp_path / "batches").iterdir())

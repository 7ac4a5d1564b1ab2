"""One monstrous answer neither fails nor slows the others: the event loop stays free."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import orjson
import pytest

from fakes import CountingSandbox, ScriptedPool, completion, xml_answer
from in_memory import run_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.types import Completion, Format, ModelRequest

MEGABYTE = 2**20
MONSTERS: dict[str, tuple[Format, Callable[[], str]]] = {
    "10 MB file": ("xml", lambda: xml_answer("3" + " " * 10 * MEGABYTE)),
    "10 MB of talk": ("xml", lambda: "I would rather talk about the weather. " * (10 * MEGABYTE // 39)),
    "10 MB of opened files": ("xml", lambda: '<solution><file path="a"><![CDATA[' * (10 * MEGABYTE // 34)),
    "10 MB of closing marks": ("xml", lambda: "<solution>" + "]]></file>" * MEGABYTE),
    "10 MB of lines": (
        "xml",
        lambda: '<solution><file path="src/answer.txt">3\n' + "x\n" * 5 * MEGABYTE + "</file></solution>",
    ),
    "10 MB of text that is no ASCII": ("xml", lambda: xml_answer("3\n" + "\U0001f600" * 2_600_000)),
    "100,000 small files": (
        "xml",
        lambda: (
            "<solution>" + "".join(f'<file path="f{n}">{n}</file>' for n in range(100_000)) + "</solution>"
        ),
    ),
    "JSON opened 100,000 times": ("json", lambda: '{"a":' * 100_000),
    "JSON of unclosed strings": ("json", lambda: '{"' + '\\"a\': "' * 30_000),
    "JSON list opened 1,000,000 times": ("json", lambda: "[" * MEGABYTE),
    "JSON with a raw 10 MB string": ("json", lambda: '{"src/answer.txt": "3' + "\n" * 10 * MEGABYTE + '"}'),
}
LONGEST_S = 0.3  # any of these, parsed in place, takes seconds
OTHERS = 24


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("name", MONSTERS)
async def test_a_monstrous_answer_does_not_hold_up_the_others(tmp_path: Path, name: str) -> None:
    fmt, made = MONSTERS[name]
    monster = made()
    small = xml_answer(2) if fmt == "xml" else '{"src/answer.txt": "2\\n"}'

    async def answer(request: ModelRequest) -> Completion:
        if request.key.sample == 0:
            return completion(monster)
        await asyncio.sleep(0.02 * request.key.sample)
        return completion(small)

    longest_s = await longest_stay(tmp_path, ScriptedPool(answer), fmt)
    lines = [orjson.loads(line) for line in (tmp_path / "results.jsonl").read_bytes().splitlines()]
    assert {line["sample"] for line in lines} == set(range(OTHERS + 1))
    assert {line["passed"] for line in lines if line["sample"]} == {2}
    assert longest_s < LONGEST_S


async def longest_stay(path: Path, pool: ScriptedPool, fmt: Format) -> float:
    """Run the samples; returns the most CPU time that the event loop spent between two ticks.

    CPU time of its thread and no lag: what else the machine does is not counted.
    """
    longest_s = 0.0

    async def tick() -> None:
        nonlocal longest_s
        while True:
            before_s = time.thread_time()
            await asyncio.sleep(0.005)
            longest_s = max(longest_s, time.thread_time() - before_s)

    ticking = asyncio.create_task(tick())
    await run_in_memory(
        path, {"m": pool}, CountingSandbox(), problem_ids=("p",), samples=OTHERS + 1, formats=(fmt,)
    )
    ticking.cancel()
    await asyncio.wait({ticking})
    return longest_s

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from astra_async.lenient import LenientParser
from astra_async.solution import parse_leniently
from astra_async.types import Solution, Unusable

FILES = {"src/app.js": "const a = 1;\nmodule.exports = a;\n", "README.md": "# A\n"}
BROKEN = json.dumps(FILES)[:-1] + ",}"


def test_the_helper_process_reads_as_the_parser_does() -> None:
    found = asyncio.run(LenientParser().parse(BROKEN, "json", "stop"))
    assert found == parse_leniently(BROKEN, "json", "stop")
    assert isinstance(found, Solution)
    assert dict(found.files) == FILES


def test_an_answer_that_cannot_be_read_comes_back_with_its_reason() -> None:
    found = asyncio.run(LenientParser().parse("no files here", "json", "stop"))
    assert isinstance(found, Unusable)
    assert found.failure == "format_error"


def test_a_lone_surrogate_survives_the_way_to_the_helper() -> None:
    found = asyncio.run(LenientParser().parse(BROKEN + "\ud800", "json", "stop"))
    assert isinstance(found, Solution | Unusable)


def test_a_pathological_answer_blocks_neither_the_loop_nor_the_run() -> None:
    async def ticks_meanwhile() -> tuple[int, Solution | Unusable]:
        task = asyncio.create_task(LenientParser().parse('{"' * 100_000, "json", "stop"))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return ticks, await task

    ticks, found = asyncio.run(ticks_meanwhile())
    assert isinstance(found, Unusable)
    assert ticks > 1


def test_cancelled_helpers_leave_no_process_behind() -> None:
    async def start_and_cancel() -> None:
        parser = LenientParser()
        tasks = [asyncio.create_task(parser.parse('{"' * 50_000, "json", "stop")) for _ in range(3)]
        await asyncio.sleep(0.5)
        assert children()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(start_and_cancel())
    assert children() == []


def children() -> list[str]:
    return [
        pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()
    ]

"""Several tasks whose results are all needed: one that fails cancels its siblings and keeps its error."""

from __future__ import annotations

import asyncio

import pytest

from astra_async.errors import EngineUnavailable
from astra_async.testing.validation import together


async def test_results_come_in_the_order_of_their_coroutines() -> None:
    async def late(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    assert (await together(late(seconds) for seconds in (0.02, 0.0, 0.01))) == [0.02, 0.0, 0.01]


async def test_siblings_of_one_that_fails_are_cancelled_before_its_error_is_told() -> None:
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("sibling")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise EngineUnavailable("no engine answers")

    with pytest.raises(EngineUnavailable, match="no engine answers"):
        await together([endless(), fails(), endless()])
    assert ended == ["sibling", "sibling"]

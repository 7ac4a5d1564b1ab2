"""Silence is judged by what could be heard: a process that stood still has not listened."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from provider_calls import call, settings

from astra_async.asking.providers.attempt_timeout import AttemptTimeout
from nasty_server import NastyServer, answers

if TYPE_CHECKING:
    from collections.abc import Coroutine


pytestmark = pytest.mark.alone


async def waited(
    work: Coroutine[object, object, object], *, silence_s: float, whole_s: float
) -> AttemptTimeout:
    timeout = AttemptTimeout(silence_s=silence_s, whole_s=whole_s)
    with pytest.raises(TimeoutError):
        async with timeout:
            await work
    return timeout


async def test_silence_and_an_end_that_never_comes_are_told_apart() -> None:
    silent = await waited(asyncio.sleep(9), silence_s=0.05, whole_s=5)
    endless = await waited(asyncio.sleep(9), silence_s=5, whole_s=0.05)
    assert (silent.is_too_long, endless.is_too_long) == (False, True)


async def test_whoever_is_heard_is_not_silent() -> None:
    async with AttemptTimeout(silence_s=0.6, whole_s=60) as timeout:
        for _ in range(16):
            await asyncio.sleep(0.05)
            timeout.record_data()


async def test_a_process_that_stood_still_looks_again_before_it_calls_an_answer_late() -> None:
    async with AttemptTimeout(silence_s=0.1, whole_s=0.2):
        time.sleep(1.3)
        await asyncio.sleep(0.3)


async def test_an_answer_that_came_while_the_process_stood_still_is_taken() -> None:
    async def check(server: NastyServer) -> None:
        asking = asyncio.create_task(call(settings(base_url=server.base_url, timeout_s=0.8)))
        while not server.asked:
            await asyncio.sleep(0.01)
        time.sleep(2.0)
        assert (await asking).text == "whole"

    with NastyServer(lambda _, __: answers("whole", after_s=0.5)) as server:
        (await check(server))
        assert server.asked.total() == 1

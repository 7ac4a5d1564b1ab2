"""Calls of cached conversations overtake other calls, without starving them."""

import asyncio
import random
from dataclasses import replace

from limited_provider import answer, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.throttle import Pool
from astra_async.types import CallWatch, Completion, Exchange, ModelRequest, SampleKey


class Noting:
    """Provider that answers after a second and records the order of requests."""

    charges_max_tokens = False
    cached_input_is_exempt = True

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        self.sent.append(f"{request.key.sample}.{request.key.turn}")
        watch.first_token()
        await asyncio.sleep(1)
        return answer()

    async def close(self) -> None:
        pass


def going_on(sample: int, turns: int) -> ModelRequest:
    earlier = tuple(
        Exchange(answer="a", feedback="f", sha256=f"{sample}.{turn}") for turn in range(1, turns + 1)
    )
    key = SampleKey("m", "xml", "p", sample).at(turns)
    return replace(request(sample, cache=True), key=key, earlier=earlier, goes_on=True)


def pool_of(provider: Noting, loop: VirtualLoop) -> Pool:
    return Pool(
        settings(max_in_flight=1), provider, price=lambda _: 0.0, clock=loop.time, rng=random.Random(0)
    )


async def in_line(pool: Pool, requests: list[ModelRequest]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in requests:
            group.create_task(pool.call(each))
            await asyncio.sleep(0)


def test_a_cached_conversation_overtakes_calls_without_starving_them() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        provider = Noting()
        pool = pool_of(provider, loop)
        await pool.call(request(0, cache=True))
        await in_line(pool, [request(1, cache=True), request(2, cache=True), going_on(0, 1)])
        await pool.close()
        return provider.sent

    # 1 is on its way when the turn comes; 2 only waits.
    assert run(main) == ["0.0", "1.0", "0.1", "2.0"]


def test_a_waiting_call_is_overtaken_by_at_most_a_thousand_conversations() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        provider = Noting()
        pool = pool_of(provider, loop)
        await pool.call(request(0, cache=True))
        first = request(8, "other")
        await in_line(pool, [first, request(9, "other"), *[going_on(1, 1)] * 1100])
        await pool.close()
        return provider.sent

    assert 500 < run(main).index("9.0") < 1030


def test_a_conversation_that_is_no_longer_cached_waits_in_order() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        provider = Noting()
        pool = pool_of(provider, loop)
        await pool.call(request(0, cache=True))
        await asyncio.sleep(400)
        await in_line(pool, [request(1), request(2), going_on(0, 1)])
        await pool.close()
        return provider.sent

    assert run(main) == ["0.0", "1.0", "2.0", "0.1"]


def test_a_second_turn_uses_the_cache_of_the_first_turn() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        provider = Noting()
        pool = pool_of(provider, loop)
        await pool.call(going_on(0, 1))
        await in_line(pool, [request(1, "q"), request(2, "q"), going_on(5, 2), going_on(0, 2)])
        await pool.close()
        return provider.sent

    assert run(main) == ["0.1", "1.0", "0.2", "2.0", "5.2"]

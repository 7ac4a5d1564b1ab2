"""Rule 13: one request warms the prompt cache, the others follow."""

import asyncio
import random

import pytest
from limited_provider import answer, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.throttle import Pool, PoolEvent
from astra_async.errors import ProviderError, TransientError
from astra_async.types import CallWatch, Completion, ModelRequest, Usage


class Caching:
    """Provider that counts reads and writes of its cache. A prompt is cached once its answer has begun."""

    charges_max_tokens = False
    cached_input_is_exempt = True

    def __init__(self, first_token_s: float = 2.0) -> None:
        self.first_token_s = first_token_s
        self.sent: list[tuple[float, str]] = []
        self.warm: dict[str, float] = {}
        self.writes = self.reads = 0
        self.errors: list[ProviderError] = []
        self.min_prompt = 0

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        now = asyncio.get_running_loop().time
        sha = request.prompt_sha256
        self.sent.append((now() - 1000, sha))
        error = self.errors.pop(0) if self.errors else None
        cached = now() < self.warm.get(sha, 0)
        if error is not None:
            await asyncio.sleep(0.5)
            raise error
        await asyncio.sleep(self.first_token_s)
        cacheable = len(request.prompt) >= self.min_prompt
        self.reads += cached
        self.writes += cacheable and not cached
        if cacheable:
            self.warm[sha] = now() + 300
        watch.first_token()
        await asyncio.sleep(10)
        written = 1000 if cacheable and not cached else 0
        return answer(
            Usage(
                input_tokens=1000,
                cached_tokens=1000 if cached else 0,
                cache_write_tokens=written,
                output_tokens=10,
            )
        )

    async def close(self) -> None:
        pass


def pool_of(
    provider: Caching, loop: VirtualLoop, events: list[PoolEvent] | None = None, **limits: float
) -> Pool:
    return Pool(
        settings(**limits),
        provider,
        price=lambda _: None,
        on_event=(lambda _: None) if events is None else events.append,
        clock=loop.time,
        rng=random.Random(0),
    )


async def call_all(pool: Pool, count: int, problems: int = 1, *, cache: bool = True) -> None:
    await asyncio.gather(*(pool.call(request(i, f"p{i % problems}", cache=cache)) for i in range(count)))


def test_one_request_writes_the_cache_and_the_others_read_it() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        await call_all(pool_of(provider, loop), 32)
        assert (provider.writes, provider.reads) == (1, 31)
        assert sorted(at for at, _ in provider.sent)[1] == pytest.approx(2.0, abs=0.01)

    run(main)


def test_each_problem_has_a_separate_leader() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        await call_all(pool_of(provider, loop), 40, problems=4)
        assert (provider.writes, provider.reads) == (4, 36)
        assert {sha for at, sha in provider.sent if at < 1.5} == {"p0", "p1", "p2", "p3"}

    run(main)


def test_requests_without_caching_do_not_wait_for_a_leader() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        await call_all(pool_of(provider, loop), 4, cache=False)
        assert [at for at, _ in provider.sent] == [0, 0, 0, 0]

    run(main)


def test_when_the_leader_fails_the_next_one_leads_at_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Caching()
        provider.errors = [TransientError("reset")]
        await call_all(pool_of(provider, loop, events), 8)
        assert provider.writes == 1
        assert [at for at, _ in provider.sent][:2] == pytest.approx([0.0, 0.5], abs=0.01)
        assert "leader_failed" in [e.kind for e in events]

    run(main)


def test_when_the_leader_is_cancelled_the_next_one_leads() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        pool = pool_of(provider, loop)
        leader = asyncio.create_task(pool.call(request(0, cache=True)))
        followers = asyncio.create_task(call_all(pool, 5))
        await asyncio.sleep(1)
        leader.cancel()
        await followers
        assert provider.writes == 1
        assert (pool.state.in_flight, pool.state.waiting) == (0, 0)

    run(main)


def test_followers_are_sent_after_thirty_seconds_without_a_first_token() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching(first_token_s=100.0)
        await call_all(pool_of(provider, loop), 4)
        assert sorted(at for at, _ in provider.sent) == pytest.approx([0, 30, 30, 30], abs=3)

    run(main)


def test_a_cache_unread_for_five_minutes_needs_a_new_leader() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        pool = pool_of(provider, loop)
        await call_all(pool, 4)
        await asyncio.sleep(299)
        await call_all(pool, 4)
        assert (provider.writes, provider.reads) == (2, 6)

    run(main)


def test_a_prompt_too_short_for_the_cache_has_only_one_leader() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        provider.min_prompt = 10**9
        pool = pool_of(provider, loop)
        await call_all(pool, 4)
        await asyncio.sleep(600)
        provider.sent.clear()
        await call_all(pool, 3)
        times = [at for at, _ in provider.sent]
        assert max(times) - min(times) < 0.2

    run(main)


def test_warm_prompts_reserve_no_input_if_cached_reads_are_exempt() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        pool = pool_of(provider, loop, input_tokens_per_minute=1000)
        await call_all(pool, 20)
        assert loop.time() < 1100  # 20 x 1,000 tokens would take 20 minutes

    run(main)


def test_a_cancelled_follower_is_forgotten() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Caching()
        pool = pool_of(provider, loop)
        tasks = [asyncio.create_task(pool.call(request(i, cache=True))) for i in range(4)]
        await asyncio.sleep(1)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(provider.sent) == 3
        assert (pool.state.in_flight, pool.state.waiting) == (0, 0)

    run(main)

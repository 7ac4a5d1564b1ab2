"""Whole runs against servers that limit for real, in virtual time.

130 calls at 5 requests (or 5,000 tokens) a second, answers after 2 s: at best 28 s.
"""

import asyncio
import random
from dataclasses import dataclass

import pytest
from limited_provider import Kind, Limit, LimitedProvider, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.throttle import Pool, PoolEvent, PoolState
from astra_async.errors import PoolUnusable, RateLimited
from astra_async.types import CallWatch, Completion, ModelRequest

IDEAL_S = 28.0
ANNOUNCED = {
    "requests": {"requests_per_minute": 300.0},
    "tokens": {"input_tokens_per_minute": 240_000.0, "output_tokens_per_minute": 60_000.0},
}


@dataclass(frozen=True)
class Outcome:
    took_s: float
    rejections: int
    state: PoolState
    events: list[PoolEvent]


def play(
    kind: Kind,
    *,
    dimension: str = "requests",
    headers: bool = False,
    configured: bool = False,
    phase_s: float = 0.0,
    hint_s: float | None = 1.0,
    count: int = 130,
    seed: int = 0,
) -> Outcome:
    async def main(loop: VirtualLoop) -> Outcome:
        limit = Limit(kind, 5 if dimension == "requests" else 5000, phase_s=phase_s)
        provider = LimitedProvider(
            loop.time,
            limit,
            dimension="requests" if dimension == "requests" else "tokens",
            announces=headers,
            hint_s=hint_s,
        )
        events: list[PoolEvent] = []
        pool = Pool(
            settings(**(ANNOUNCED[dimension] if configured else {})),
            provider,
            price=lambda _: None,
            on_event=events.append,
            clock=loop.time,
            rng=random.Random(seed),
        )
        begun_at = loop.time()
        await asyncio.gather(*(pool.call(request(i, f"p{i % 10}")) for i in range(count)))
        return Outcome(loop.time() - begun_at, len(provider.rejections), pool.state, events)

    return run(main)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dimension", ["requests", "tokens"])
@pytest.mark.parametrize(
    ("kind", "phase_s"),
    [
        ("bucket", 0.0),
        ("sliding window", 0.0),
        ("fixed window", 0.2),
        ("fixed window", 0.5),
        ("fixed window", 0.8),
    ],
)
def test_an_unknown_limit_is_found_with_few_rejections(
    kind: Kind, phase_s: float, dimension: str, seed: int
) -> None:
    outcome = play(kind, dimension=dimension, phase_s=phase_s, seed=seed)
    assert outcome.took_s <= 1.16 * IDEAL_S
    assert outcome.rejections <= 5


def test_nine_of_ten_runs_are_near_the_ideal_for_any_start_of_windows() -> None:
    # The unlucky ones have the end of a window in the middle of the first burst.
    outcomes = [play("fixed window", phase_s=phase / 30) for phase in range(30)]
    near = [o for o in outcomes if o.took_s <= 1.15 * IDEAL_S and o.rejections <= 5]
    assert len(near) >= 27
    assert max(o.took_s for o in outcomes) <= 1.4 * IDEAL_S
    assert max(o.rejections for o in outcomes) <= 16


@pytest.mark.parametrize("dimension", ["requests", "tokens"])
@pytest.mark.parametrize("kind", ["bucket", "sliding window", "fixed window"])
def test_a_limit_announced_in_headers_is_never_violated(kind: Kind, dimension: str) -> None:
    outcome = play(kind, dimension=dimension, headers=True)
    assert outcome.rejections == 0
    assert outcome.took_s <= 1.1 * IDEAL_S


@pytest.mark.parametrize("dimension", ["requests", "tokens"])
@pytest.mark.parametrize("kind", ["bucket", "sliding window", "fixed window"])
def test_a_limit_in_the_settings_is_never_violated(kind: Kind, dimension: str) -> None:
    outcome = play(kind, dimension=dimension, configured=True)
    assert outcome.rejections == 0
    assert outcome.took_s <= 1.1 * IDEAL_S


def test_a_hint_that_covers_only_the_next_request_suffices() -> None:
    outcome = play("bucket", hint_s=0.2)
    assert outcome.took_s <= 1.12 * IDEAL_S
    assert outcome.rejections <= 18


def test_a_limit_without_any_hint_is_found() -> None:
    outcome = play("bucket", hint_s=None, count=600)
    assert outcome.took_s <= 1.3 * (600 / 5 + 2)
    assert outcome.rejections <= 15


def test_a_long_run_stays_near_the_limit() -> None:
    outcome = play("sliding window", count=3000)
    assert outcome.took_s <= 1.1 * (3000 / 5 + 2)
    assert outcome.rejections <= 25
    assert outcome.state.send_rate == pytest.approx(5, rel=0.1)


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize(("share", "most_s"), [(0.01, 120), (0.0, 50), (0.0025, 70), (0.05, 450)])
def test_stray_rejections_do_not_bring_a_pool_down(share: float, most_s: float) -> None:
    class Stray(LimitedProvider):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            if self._rng.random() < share:
                await asyncio.sleep(0.002)
                raise RateLimited("429: a stray one", hint_s=0.3)
            return await super().complete(request, watch)

    async def main(loop: VirtualLoop) -> None:
        provider = Stray(loop.time, latency_s=3.0, spread=0.5)
        pool = Pool(
            settings(max_in_flight=256),
            provider,
            price=lambda _: None,
            clock=loop.time,
            rng=random.Random(0),
        )
        begun_at = loop.time()
        await asyncio.gather(*(pool.call(request(i)) for i in range(2000)))
        assert loop.time() - begun_at < most_s

    run(main)


@pytest.mark.parametrize("kind", ["fixed window", "sliding window"])
def test_a_minute_window_with_hints_of_one_second_is_used_fully(kind: Kind) -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = LimitedProvider(loop.time, Limit(kind, 5, window_s=60.0))
        pool = Pool(settings(), provider, price=lambda _: None, clock=loop.time, rng=random.Random(0))
        begun_at = loop.time()
        await asyncio.gather(*(pool.call(request(i)) for i in range(3000)))
        assert loop.time() - begun_at < 60 + 1.3 * (3000 - 300) / 5
        assert len(provider.rejections) < 0.06 * 3000

    run(main)


def test_without_any_limit_concurrency_reaches_the_maximum() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = LimitedProvider(loop.time, latency_s=5.0, network_s=0.0)
        pool = Pool(
            settings(max_in_flight=256), provider, price=lambda _: None, clock=loop.time, rng=random.Random(0)
        )
        begun_at = loop.time()
        await asyncio.gather(*(pool.call(request(i)) for i in range(4000)))
        assert provider.most_in_flight == 256
        assert loop.time() - begun_at < 4000 / 256 * 5 + 45

    run(main)


def test_a_quick_server_is_not_slowed_down_by_the_opening() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = LimitedProvider(loop.time, latency_s=0.003, network_s=0.001)
        pool = Pool(settings(), provider, price=lambda _: None, clock=loop.time, rng=random.Random(0))
        begun_at = loop.time()
        await asyncio.gather(*(pool.call(request(i)) for i in range(2080)))
        assert loop.time() - begun_at < 1.0

    run(main)


def test_many_rejections_hold_no_slot_and_all_calls_are_answered() -> None:
    class Storm(LimitedProvider):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            if self._clock() < 1030:
                await asyncio.sleep(0.05)
                raise RateLimited("429", hint_s=2.0)
            return await super().complete(request, watch)

    async def main(loop: VirtualLoop) -> None:
        provider = Storm(loop.time, latency_s=0.5)
        pool = Pool(settings(), provider, price=lambda _: None, clock=loop.time, rng=random.Random(0))
        outcomes = await asyncio.gather(*(pool.call(request(i)) for i in range(512)))
        assert len(outcomes) == 512
        assert pool.state.rate_limited < 100
        assert loop.time() < 1120

    run(main)


def test_a_refused_pool_and_a_limited_one_leave_a_healthy_one_alone() -> None:
    class Refused(LimitedProvider):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            raise PoolUnusable("401: the key is refused", status=401)

    async def main(loop: VirtualLoop) -> None:
        def pool_of(provider: LimitedProvider) -> Pool:
            return Pool(settings(), provider, price=lambda _: None, clock=loop.time, rng=random.Random(0))

        refused, limited, healthy = (
            pool_of(Refused(loop.time)),
            pool_of(LimitedProvider(loop.time, Limit("bucket", 1))),
            pool_of(LimitedProvider(loop.time)),
        )
        slow = asyncio.gather(*(limited.call(request(i)) for i in range(100)))
        lost = await asyncio.gather(*(refused.call(request(i)) for i in range(50)), return_exceptions=True)
        assert all(isinstance(o, PoolUnusable) for o in lost)
        await asyncio.gather(*(healthy.call(request(i)) for i in range(200)))
        assert loop.time() < 1020
        await slow
        assert loop.time() < 1130

    run(main)

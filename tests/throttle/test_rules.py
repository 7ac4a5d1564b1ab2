"""Rules of the throttle, numbered as in docs/development/throttle.md."""

import asyncio
import itertools
import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from limited_provider import Limit, LimitedProvider, answer, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.throttle import Pool, PoolEvent
from astra_async.errors import (
    ConfigError,
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    TransientError,
)
from astra_async.types import CallWatch, Completion, ModelRequest, RateLimits, RateWindow, Usage

Behaviour = Callable[[ModelRequest, int], ProviderError | None]


class Scripted:
    """Provider that answers after `latency_s`, unless `behaviour` returns an error for this request."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self, behaviour: Behaviour = lambda _request, _number: None, latency_s: float = 1.0) -> None:
        self.behaviour = behaviour
        self.latency_s = latency_s
        self.sent: list[tuple[float, int]] = []
        self.in_flight = self.most_in_flight = 0
        self.limits: RateLimits | None = None

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        self.sent.append((asyncio.get_running_loop().time() - 1000, request.key.sample))
        error = self.behaviour(request, len(self.sent) - 1)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.limits is not None:
                watch.limits(self.limits)
            if error is not None:
                await asyncio.sleep(0.01)
                raise error
            await asyncio.sleep(self.latency_s)
            return answer()
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        pass

    def times(self) -> list[float]:
        return [at for at, _ in self.sent]


def pool_of(provider: Scripted | LimitedProvider, loop: VirtualLoop, **changes: float) -> Pool:
    return logged_pool(provider, loop, [], **changes)


def logged_pool(
    provider: Scripted | LimitedProvider, loop: VirtualLoop, events: list[PoolEvent], **changes: float
) -> Pool:
    return Pool(
        settings(**changes),
        provider,
        price=lambda _: None,
        on_event=events.append,
        clock=loop.time,
        rng=random.Random(0),
    )


async def call_all(pool: Pool, count: int, problems: int = 1) -> list[Completion | BaseException]:
    calls = (pool.call(request(i, f"p{i % problems}")) for i in range(count))
    return await asyncio.gather(*calls, return_exceptions=True)


def once(error: ProviderError, *numbers: int) -> Behaviour:
    return lambda _request, number: error if number in numbers else None


def test_rule_1_a_paused_pool_does_not_delay_another_pool() -> None:
    async def main(loop: VirtualLoop) -> None:
        slow = Scripted(once(RateLimited("429", hint_s=300.0), 0))
        quick = Scripted()
        slow_pool, quick_pool = pool_of(slow, loop), pool_of(quick, loop)
        waiting = asyncio.create_task(call_all(slow_pool, 5))
        await asyncio.sleep(0.5)
        await call_all(quick_pool, 50)
        assert loop.time() < 1020
        assert slow_pool.state.paused_for_s > 250
        assert quick_pool.state.paused_for_s == 0
        await waiting

    run(main)


def test_rule_2_announced_requests_are_spread_evenly() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(latency_s=0.1)
        await call_all(pool_of(provider, loop, requests_per_minute=120), 20)
        times = provider.times()
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert min(gaps) > 0.49
        assert max(gaps) < 0.52

    run(main)


@pytest.mark.parametrize("limit", [0.0, -5.0, float("nan"), float("inf")])
def test_rule_2_an_invalid_limit_is_a_configuration_error(limit: float) -> None:
    async def main(loop: VirtualLoop) -> None:
        with pytest.raises(ConfigError, match="requests_per_minute"):
            pool_of(Scripted(), loop, requests_per_minute=limit)

    run(main)


def test_rule_5_a_limit_in_the_first_headers_is_kept_from_then_on() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(latency_s=0.1)
        provider.limits = RateLimits(requests=RateWindow(limit=60, remaining=55, reset_s=5))
        pool = pool_of(provider, loop)
        await call_all(pool, 12)
        gaps = [later - earlier for earlier, later in pairwise(provider.times()[4:])]
        assert min(gaps) > 1.0
        assert [b.dimension for b in pool.state.buckets] == ["requests"]
        assert pool.state.buckets[0].limit_per_minute == 60

    run(main)


def test_rule_6_concurrency_begins_at_eight_and_doubles_in_clean_rounds() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(latency_s=2.0)
        pool = pool_of(provider, loop, max_in_flight=64)
        calls = asyncio.create_task(call_all(pool, 300))
        limits, seen = [], []
        for _ in range(6):
            await asyncio.sleep(1.9)
            limits.append(pool.state.limit)
            seen.append(provider.in_flight)
            await asyncio.sleep(0.1)
        await calls
        assert limits[0] == 8
        assert all(before <= after <= 2 * before for before, after in itertools.pairwise(limits))
        assert seen[-1] > 26
        assert provider.most_in_flight == 64

    run(main)


def test_rule_6_concurrency_grows_before_slow_first_tokens_arrive() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(latency_s=15.0)
        pool = pool_of(provider, loop, max_in_flight=64)
        begun_at = loop.time()
        await call_all(pool, 32)
        assert loop.time() - begun_at < 27

    run(main)


def test_rule_8_a_burst_of_rejections_without_a_rate_causes_one_pause_and_no_cut() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Scripted(lambda _, number: RateLimited("429", hint_s=1.0) if number < 4 else None)
        pool = logged_pool(provider, loop, events)
        await call_all(pool, 8)
        assert [e.kind for e in events].count("rate_limited") == 4
        assert [e.kind for e in events if e.kind in ("cut", "paused")] == ["paused"]

    run(main)


def test_rule_7_a_single_overload_delays_one_call_and_three_cut_and_pause() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Scripted(once(Overloaded("529"), 0))
        await call_all(logged_pool(provider, loop, events), 8)
        assert {e.kind for e in events} == {"overloaded"}
        events.clear()
        provider = Scripted(once(Overloaded("529"), 0, 1, 2))
        await call_all(logged_pool(provider, loop, events), 8)
        assert [e.kind for e in events].count("cut") == 1
        assert "paused" in [e.kind for e in events]

    run(main)


def test_rule_7_transport_errors_below_a_fifth_cut_nothing() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Scripted(lambda _request, number: TransientError("reset") if number % 10 == 9 else None)
        await call_all(logged_pool(provider, loop, events), 200)
        assert "retry" in [e.kind for e in events]
        assert "cut" not in [e.kind for e in events]

    run(main)


def test_rule_8_a_pause_delays_every_call_until_the_hint_is_over() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Scripted(once(RateLimited("429: slow down", hint_s=30.0), 0), latency_s=0.1)
        pool = logged_pool(provider, loop, events)
        calls = asyncio.create_task(call_all(pool, 20))
        await asyncio.sleep(1)
        assert pool.state.held_by == "pause"
        assert pool.state.pause_reason == "429: slow down"
        assert 28 < pool.state.paused_for_s < 31
        await calls
        times = provider.times()
        assert not [at for at in times if 0.02 < at < 30.0]
        assert [e.kind for e in events if e.kind in ("paused", "resumed")] == ["paused", "resumed"]

    run(main)


def test_rule_8_a_hint_over_ten_minutes_parks_the_pool_and_says_so() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Scripted(once(RateLimited("429", hint_s=900.0), 0))
        outcomes = await call_all(logged_pool(provider, loop, events), 3)
        assert all(isinstance(o, Completion) for o in outcomes)
        assert [e.seconds for e in events if e.kind == "parked"] == [900.0]
        assert loop.time() > 1900

    run(main)


def test_rule_8_a_hint_longer_than_a_call_may_wait_ends_the_pool_at_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(once(RateLimited("429: limit per day", hint_s=5 * 3600.0), 0))
        outcomes = await call_all(pool_of(provider, loop), 30)
        assert loop.time() < 1002
        assert isinstance(outcomes[0], PoolUnusable)
        assert "wait 5.0 hours" in str(outcomes[0])
        assert "429: limit per day" in str(outcomes[0])
        assert sum(isinstance(o, Completion) for o in outcomes) == 3  # these were in flight

    run(main)


def test_rule_9_a_pool_reopens_slowly_if_no_rate_is_known() -> None:
    async def main(loop: VirtualLoop) -> None:
        # Rejected before anything was accepted: no pace can be learned from that.
        provider = Scripted(once(RateLimited("429", hint_s=10.0), *range(4)), latency_s=0.001)
        pool = pool_of(provider, loop)
        await call_all(pool, 100)
        times = provider.times()
        reopened_at = min(at for at in times if at > 5)
        counts = [sum(1 for at in times if k <= at - reopened_at < k + 1) for k in range(4)]
        assert counts[0] == 4
        assert counts[1] <= 8
        assert counts[2] <= 16

    run(main)


def test_rule_10_without_a_retry_budget_a_failed_job_goes_to_the_tail_but_is_not_lost() -> None:
    async def main(loop: VirtualLoop) -> None:
        tried: set[int] = set()

        def first_time(request: ModelRequest, _number: int) -> ProviderError | None:
            sample = request.key.sample
            if sample >= 12 or sample in tried:
                return None
            tried.add(sample)
            return TransientError("500")

        provider = Scripted(first_time, latency_s=0.001)
        outcomes = await call_all(pool_of(provider, loop, max_in_flight=1, requests_per_minute=600), 100)
        assert all(isinstance(o, Completion) for o in outcomes)
        order = [sample for _, sample in provider.sent]
        assert set(order[-2:]) == {10, 11}  # the budget of 10 was used up
        assert max(len(order) - 1 - order[::-1].index(sample) for sample in range(10)) < 60

    run(main)


def test_rule_12_a_failed_pool_does_not_end_another_pool() -> None:
    async def main(loop: VirtualLoop) -> None:
        dead = pool_of(Scripted(once(PoolUnusable("no credit"), 0)), loop)
        alive = pool_of(Scripted(), loop)
        lost, kept = await asyncio.gather(call_all(dead, 20), call_all(alive, 20))
        assert all(isinstance(o, Completion) for o in kept)
        assert sum(isinstance(o, PoolUnusable) for o in lost) == 17

    run(main)


def test_rule_15_a_long_wait_costs_no_wake_ups() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(once(RateLimited("429", hint_s=590.0), 0))
        pool = pool_of(provider, loop)
        calls = asyncio.create_task(call_all(pool, 500))
        await asyncio.sleep(20)
        wake_ups = 0
        pump = pool._pump

        def counted() -> None:
            nonlocal wake_ups
            wake_ups += 1
            pump()

        pool._pump = counted  # type: ignore[method-assign]
        await asyncio.sleep(560)
        assert wake_ups <= 1
        pool._pump = pump  # type: ignore[method-assign]
        await calls

    run(main)


def test_rule_15_the_state_names_what_delays_the_first_call() -> None:
    async def main(loop: VirtualLoop) -> None:
        cases = {
            "concurrency": pool_of(Scripted(latency_s=60.0), loop, max_in_flight=1),
            "requests": pool_of(Scripted(latency_s=60.0), loop, requests_per_minute=6),
            "input tokens": pool_of(Scripted(latency_s=60.0), loop, input_tokens_per_minute=60),
            "output tokens": pool_of(Scripted(latency_s=60.0), loop, output_tokens_per_minute=60),
        }
        for reason, pool in cases.items():
            calls = asyncio.create_task(call_all(pool, 3))
            await asyncio.sleep(0.1)
            assert pool.state.held_by == reason
            assert pool.state.waiting == 2
            calls.cancel()
            await asyncio.gather(calls, return_exceptions=True)
            assert pool.state.waiting == pool.state.in_flight == 0
            assert pool.state.held_by is None

    run(main)


def test_rule_16_a_call_that_waits_for_its_retry_holds_no_slot() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Scripted(once(TransientError("reset"), 0), latency_s=0.001)
        pool = pool_of(provider, loop, max_in_flight=1)
        await call_all(pool, 5)
        order = [sample for _, sample in provider.sent]
        assert order == [0, 1, 2, 3, 4, 0]

    run(main)


def test_rule_17_a_rate_is_learned_and_concurrency_is_not_cut() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = LimitedProvider(loop.time, Limit("bucket", 5))
        pool = logged_pool(provider, loop, events)
        await call_all(pool, 130)
        assert "paced" in [e.kind for e in events]
        assert "cut" not in [e.kind for e in events]
        assert pool.state.send_rate == pytest.approx(5, rel=0.15)

    run(main)


def test_rule_17_a_rate_is_learned_despite_announced_limits() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = LimitedProvider(loop.time, Limit("bucket", 2), latency_s=5.0)
        pool = pool_of(provider, loop, requests_per_minute=1200)
        await call_all(pool, 200)
        assert pool.state.send_rate is not None
        assert len(provider.rejections) < 20
        assert loop.time() - 1000 < 1.1 * (200 / 2 + 5)

    run(main)


def test_a_missing_usage_is_estimated_for_tokens_and_cost() -> None:
    class Silent(Scripted):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            watch.first_token()
            return answer(Usage(), text="x" * 32)

    async def main(loop: VirtualLoop) -> None:
        pool = Pool(
            settings(),
            Silent(),
            price=lambda usage: float((usage.input_tokens or 0) + (usage.output_tokens or 0)),
            clock=loop.time,
        )
        completion = await pool.call(request(prompt="x" * 3200))
        assert completion.cost_usd == 1260
        assert pool.state.output_tokens == 10
        assert completion.usage == Usage()

    run(main)


def test_stop_fails_waiting_calls_and_completes_requests_in_flight() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Scripted(latency_s=10.0)
        pool = logged_pool(provider, loop, events, max_in_flight=2)
        calls = asyncio.create_task(call_all(pool, 5))
        await asyncio.sleep(1)
        pool.stop()
        outcomes = await calls
        assert [isinstance(o, Completion) for o in outcomes] == [True, True, False, False, False]
        assert [e.kind for e in events] == ["stopped"]

    run(main)

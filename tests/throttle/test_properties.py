"""Invariants for any order of events: limits are kept, no slot is lost, all calls end."""

import asyncio
import random
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from limited_provider import answer, request
from limited_provider import settings as model_settings
from virtual_time import Deadlock, VirtualLoop, run

from astra_async.asking.throttle import Budget, Pool
from astra_async.errors import (
    AstraError,
    Overloaded,
    PoolUnusable,
    RateLimited,
    RequestRejected,
    TransientError,
    TruncatedStream,
)
from astra_async.types import CallWatch, Completion, ModelRequest, RateLimits, RateWindow, Usage

HOUR_S = 3600.0


@dataclass(frozen=True)
class Act:
    """Behavior of one attempt."""

    kind: str
    after_s: float
    hint_s: float | None


@dataclass(frozen=True)
class Play:
    """One call: its arrival, its cancellation if any, and the behavior of its attempts."""

    comes_s: float
    cancelled_s: float | None
    problem: int
    cache: bool
    acts: tuple[Act, ...]


ACTS = st.builds(
    Act,
    kind=st.sampled_from(
        ["answer"] * 4
        + ["stream", "rate limit", "overload", "reset", "cut", "rejected", "broken", "no usage", "headers"]
    ),
    after_s=st.sampled_from([0.0, 0.001, 0.5, 2.0, 40.0]),
    hint_s=st.sampled_from([None, 0.0, 0.3, 1.0, 30.0, 700.0]),
)
PLAYS = st.builds(
    Play,
    comes_s=st.sampled_from([0.0, 0.0, 0.1, 3.0, 50.0]),
    cancelled_s=st.one_of(st.none(), st.none(), st.sampled_from([0.0, 0.0011, 0.5, 2.0, 10.0, 100.0])),
    problem=st.integers(0, 2),
    cache=st.booleans(),
    acts=st.lists(ACTS, max_size=8).map(tuple),
)


class Actor:
    """Provider that performs the acts of each call in turn, then answers, and checks the limits."""

    charges_max_tokens = False
    cached_input_is_exempt = True

    def __init__(self, plays: list[Play], loop: VirtualLoop) -> None:
        self.loop = loop
        self.acts = {i: list(play.acts) for i, play in enumerate(plays)}
        self.sends: list[float] = []
        self.attempts: dict[int, int] = {}
        self.in_flight = self.most_in_flight = 0

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        sample = request.key.sample
        self.sends.append(self.loop.time())
        self.attempts[sample] = self.attempts.get(sample, 0) + 1
        acts = self.acts.get(sample)
        act = acts.pop(0) if acts else Act("answer", 0.5, None)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._play(act, watch)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        pass

    async def _play(self, act: Act, watch: CallWatch) -> Completion:
        if act.kind in ("stream", "cut"):
            watch.first_token()
            watch.streamed(100)
        await asyncio.sleep(act.after_s)
        match act.kind:
            case "rate limit":
                raise RateLimited("429", hint_s=act.hint_s)
            case "overload":
                raise Overloaded("529", hint_s=act.hint_s)
            case "reset":
                raise TransientError("reset")
            case "cut":
                raise TruncatedStream("cut", usage=Usage(input_tokens=100, output_tokens=50))
            case "rejected":
                raise RequestRejected("400")
            case "broken":
                raise ZeroDivisionError
            case "no usage":
                return answer(Usage())
            case "headers":
                watch.limits(RateLimits(requests=RateWindow(limit=1200, remaining=7, reset_s=3)))
        return answer()


def price(usage: Usage) -> float | None:
    return ((usage.input_tokens or 0) + (usage.output_tokens or 0)) / 1000


async def one(pool: Pool, number: int, play: Play) -> Completion | BaseException:
    await asyncio.sleep(play.comes_s)
    call = asyncio.create_task(pool.call(request(number, f"p{play.problem}", cache=play.cache)))
    if play.cancelled_s is not None:
        asyncio.get_running_loop().call_later(play.cancelled_s, call.cancel)
    (outcome,) = await asyncio.gather(call, return_exceptions=True)
    return outcome


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plays=st.lists(PLAYS, min_size=1, max_size=25),
    max_in_flight=st.sampled_from([1, 2, 5, 64]),
    per_minute=st.sampled_from([None, 30.0, 300.0, 6000.0]),
    ceiling_usd=st.sampled_from([None, 3.0, 1000.0]),
    seed=st.integers(0, 3),
)
def test_limits_hold_and_nothing_is_lost_in_any_order_of_events(
    plays: list[Play], max_in_flight: int, per_minute: float | None, ceiling_usd: float | None, seed: int
) -> None:
    async def main(loop: VirtualLoop) -> None:
        actor = Actor(plays, loop)
        budget = None if ceiling_usd is None else Budget(ceiling_usd)
        pool = Pool(
            model_settings(max_in_flight=max_in_flight, requests_per_minute=per_minute, max_tokens=60),
            actor,
            price=price,
            budget=budget,
            clock=loop.time,
            rng=random.Random(seed),
        )
        outcomes = await asyncio.wait_for(
            asyncio.gather(*(one(pool, i, play) for i, play in enumerate(plays))), 12 * HOUR_S
        )
        check_outcomes(outcomes, actor)
        check_limits(actor, max_in_flight, per_minute)
        state = pool.state
        assert (state.in_flight, state.waiting) == (0, 0)
        if budget is not None:
            assert budget.reserved_usd == 0
            assert budget.spent_usd <= budget.ceiling_usd + 1e-9
        if state.dead is None and not (budget and budget.spent_usd > 0.5 * budget.ceiling_usd):
            assert (await pool.call(request(999, "fresh"))).attempts == 1
        await pool.close()

    run(main)


def check_outcomes(outcomes: list[Completion | BaseException], actor: Actor) -> None:
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, Completion):
            assert outcome.attempts == actor.attempts[number]
        else:
            assert isinstance(outcome, (AstraError, asyncio.CancelledError, ZeroDivisionError))


def check_limits(actor: Actor, max_in_flight: int, per_minute: float | None) -> None:
    assert actor.most_in_flight <= max_in_flight
    if per_minute is not None:
        for window_s in (1.0, 60.0):
            for i, begin in enumerate(actor.sends):
                inside = sum(1 for at in actor.sends[i:] if at < begin + window_s)
                assert inside < per_minute / 60 * window_s + 1


@settings(deadline=None)
@given(
    data=st.lists(st.tuples(st.floats(0, 30), st.booleans()), min_size=20, max_size=60),
    seed=st.integers(0, 100),
)
def test_calls_that_are_not_cancelled_are_answered_in_order_of_arrival(
    data: list[tuple[float, bool]], seed: int
) -> None:
    async def main(loop: VirtualLoop) -> None:
        order: list[int] = []

        class Ordered(Actor):
            async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
                order.append(request.key.sample)
                return await super().complete(request, watch)

        pool = Pool(
            model_settings(max_in_flight=2),
            Ordered([], loop),
            price=price,
            clock=loop.time,
            rng=random.Random(seed),
        )
        plays = [
            Play(comes_s=0.0, cancelled_s=at if cancelled else None, problem=0, cache=False, acts=())
            for at, cancelled in data
        ]
        await asyncio.gather(*(one(pool, i, play) for i, play in enumerate(plays)))
        assert order == sorted(order)
        assert set(order) >= {i for i, (_, cancelled) in enumerate(data) if not cancelled}

    run(main)


def test_a_thousand_cancellations_at_admission_lose_no_slot() -> None:
    async def main(loop: VirtualLoop) -> None:
        actor = Actor([], loop)
        pool = Pool(model_settings(max_in_flight=3), actor, price=price, clock=loop.time)
        rng = random.Random(7)
        for _ in range(40):
            tasks = [asyncio.create_task(pool.call(request(i))) for i in range(25)]
            for task in rng.sample(tasks, 20):
                loop.call_later(rng.choice([0.0, 0.5, 0.5, 1.0, 1.5]), task.cancel)
            await asyncio.gather(*tasks, return_exceptions=True)
            assert (pool.state.in_flight, pool.state.waiting) == (0, 0)
        assert actor.most_in_flight <= 3
        assert not isinstance(pool.state.dead, PoolUnusable)

    run(main)


def test_the_virtual_loop_detects_a_program_that_waits_forever() -> None:
    async def main(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock):
        run(main)

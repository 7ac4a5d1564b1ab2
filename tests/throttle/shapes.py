"""Servers with various kinds of limits in virtual time, to compare a pool with the ideal client."""

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from limited_provider import answer, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.throttle import Account, Pool
from astra_async.errors import ProviderError, RateLimited, TransientError
from astra_async.types import CallWatch, Completion, ModelRequest, RateLimits, Usage

SIZES = (400, 700, 1000, 1300, 1600)  # tokens of a request where tokens are limited: 1,000 on average
GONE_AT_S = WATCHED_S = 300.0


class Shape(Protocol):
    def wait_s(self, amount: float, in_flight: int, now: float) -> float:
        """0 lets a request in, else how long it would have to wait."""


class Bucket:
    """Token bucket of `rate` requests per second with bursts of `burst`; 1 allows no bursts."""

    def __init__(self, rate: float | Callable[[float], float], burst: float) -> None:
        self._rate = rate
        self._burst = self._level = burst
        self._begun_at: float | None = None
        self._at = 0.0

    def wait_s(self, amount: float, in_flight: int, now: float) -> float:
        del in_flight
        if self._begun_at is None:
            self._begun_at = self._at = now
        rate = self._rate(now - self._begun_at) if callable(self._rate) else self._rate
        self._level = min(self._burst, self._level + (now - self._at) * rate)
        self._at = now
        needed = min(amount, self._burst)
        if self._level >= needed - 1e-9:
            self._level -= amount
            return 0
        return max(1e-3, (needed - self._level) / rate)


class Window:
    """At most `most` requests in a fixed or sliding window of `window_s` seconds."""

    def __init__(self, most: float, window_s: float, *, fixed: bool, phase_s: float = 0.0) -> None:
        self._most, self._window_s, self._fixed, self._phase_s = most, window_s, fixed, phase_s
        self._log: deque[tuple[float, float]] = deque()

    def wait_s(self, amount: float, in_flight: int, now: float) -> float:
        del in_flight
        begin = now - self._window_s
        if self._fixed:
            begin = (now + self._phase_s) // self._window_s * self._window_s - self._phase_s
        while self._log and self._log[0][0] <= begin:
            self._log.popleft()
        if sum(used for _, used in self._log) + amount <= self._most:
            self._log.append((now, amount))
            return 0
        oldest = begin if self._fixed else self._log[0][0]
        return max(1e-3, oldest + self._window_s - now)


class AtOnce:
    """At most `most` requests in flight."""

    def __init__(self, most: int) -> None:
        self._most = most

    def wait_s(self, amount: float, in_flight: int, now: float) -> float:
        del amount, now
        return 0 if in_flight < self._most else 1.0


class Lifted:
    """Limit that is lifted at `GONE_AT_S` for `away_s` seconds."""

    def __init__(self, shape: Shape, away_s: float) -> None:
        self._shape, self._away_s = shape, away_s
        self._begun_at: float | None = None

    def wait_s(self, amount: float, in_flight: int, now: float) -> float:
        self._begun_at = now if self._begun_at is None else self._begun_at
        if 0 <= now - self._begun_at - GONE_AT_S < self._away_s:
            return 0
        return self._shape.wait_s(amount, in_flight, now)


class Strays:
    """Random rejection of a share of all requests, without a limit."""

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._rng = share, random.Random(seed)

    def wait_s(self, amount: float, in_flight: int, now: float) -> float:
        del amount, in_flight, now
        return 0.3 if self._rng.random() < self._share else 0


Hint = float | str | None  # seconds that a rejection names; "whole": what is true, in whole seconds


class ShapedProvider:
    """Provider behind a limit; counts its rejections."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self, loop: VirtualLoop, shape: Shape, scenario: "Scenario", seed: int) -> None:
        self.rejected = 0
        self.rejected_at: list[float] = []
        self._loop, self._shape, self._scenario = loop, shape, scenario
        self._rng = random.Random(seed)
        self._in_flight = 0

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        scenario = self._scenario
        await asyncio.sleep(0.001 * self._rng.uniform(1, 3))
        tokens = self._rng.choice(SIZES) if scenario.tokens else 1
        wait_s = self._shape.wait_s(tokens, self._in_flight, self._loop.time())
        if wait_s > 0:
            self.rejected += 1
            self.rejected_at.append(self._loop.time())
            if scenario.resets:
                raise TransientError("connection reset by peer")
            hint_s = max(1, math.ceil(wait_s)) if scenario.hint == "whole" else scenario.hint
            raise RateLimited("429", hint_s=None if hint_s is None else float(hint_s))
        self._in_flight += 1
        try:
            spread = scenario.spread * self._rng.uniform(-1, 1)
            if scenario.first_token_s is not None:
                await asyncio.sleep(scenario.first_token_s)
                watch.first_token()
            await asyncio.sleep(scenario.latency_s * (1 + spread))
        finally:
            self._in_flight -= 1
        return answer(Usage(input_tokens=tokens, cached_tokens=0, output_tokens=tokens // 4))

    async def close(self) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Scenario of `count` calls. `ideal_s` is the time that a client with perfect knowledge needs."""

    shape: Callable[[int], Shape]
    count: int
    ideal_s: float
    hint: Hint = "whole"
    latency_s: float = 2.0
    spread: float = 0.0
    tokens: bool = False
    pools: int = 1
    account: bool = False  # they are models of one process, and not processes
    apart_s: float = 0.0  # from one pool's first call to the next one's
    share: float | None = None  # of all calls that are the first pool's; equal shares without
    resets: bool = False  # what is above the limit loses its connection
    first_token_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Played:
    took_s: float
    rejected: int
    pools: list[Pool] = field(repr=False)


def play(scenario: Scenario, seed: int) -> Played:
    async def main(loop: VirtualLoop) -> Played:
        provider = ShapedProvider(loop, scenario.shape(seed), scenario, seed)
        account = Account()
        pools = [
            Pool(
                settings(max_in_flight=256),
                provider,
                price=lambda _: None,
                account=account if scenario.account else None,
                clock=loop.time,
                rng=random.Random(7 * seed + number),
            )
            for number in range(scenario.pools)
        ]
        begun_at = loop.time()

        async def call(i: int) -> None:
            number = _pool_of(i, scenario)
            await asyncio.sleep(number * scenario.apart_s)
            await pools[number].call(request(i, f"p{i % 10}"))

        await asyncio.gather(*(call(i) for i in range(scenario.count)))
        return Played(took_s=loop.time() - begun_at, rejected=provider.rejected, pools=pools)

    return run(main)


def _pool_of(i: int, scenario: "Scenario") -> int:
    if scenario.share is None:
        return i % scenario.pools
    return 0 if i < scenario.share * scenario.count else 1 + i % (scenario.pools - 1)


class _Deaf:
    """CallWatch that ignores all reports."""

    def limits(self, limits: RateLimits) -> None:
        pass

    def first_token(self) -> None:
        pass

    def streamed(self, characters: int) -> None:
        pass


def play_naive(scenario: Scenario, seed: int) -> Played:
    """Baseline client: 8 requests in flight for each pool, exponential backoff with jitter."""

    async def main(loop: VirtualLoop) -> Played:
        provider = ShapedProvider(loop, scenario.shape(seed), scenario, seed)
        rng = random.Random(seed)
        slots = [asyncio.Semaphore(8) for _ in range(scenario.pools)]
        begun_at = loop.time()

        async def call(i: int) -> None:
            number = _pool_of(i, scenario)
            await asyncio.sleep(number * scenario.apart_s)
            async with slots[number]:
                for failures in range(10_000):
                    try:
                        await provider.complete(request(i, f"p{i % 10}"), _Deaf())
                    except ProviderError:
                        await asyncio.sleep(min(60.0, 2.0**failures) * rng.uniform(0.5, 1.5))
                    else:
                        return

        await asyncio.gather(*(call(i) for i in range(scenario.count)))
        return Played(took_s=loop.time() - begun_at, rejected=provider.rejected, pools=[])

    return run(main)


@dataclass(frozen=True, kw_only=True)
class Returned:
    """Count rejections in the five minutes before a limit is lifted and after it returns."""

    before: int
    after: int
    send_rate: float | None


def play_lifted(scenario: Scenario, away_s: float, *, in_flight: int, seed: int) -> Returned:
    """Run `in_flight` callers until `WATCHED_S` after the limit returns."""

    async def main(loop: VirtualLoop) -> Returned:
        provider = ShapedProvider(loop, Lifted(scenario.shape(seed), away_s), scenario, seed)
        pool = Pool(
            settings(max_in_flight=in_flight),
            provider,
            price=lambda _: None,
            clock=loop.time,
            rng=random.Random(seed),
        )
        back_at = loop.time() + GONE_AT_S + away_s

        async def ask(number: int) -> None:
            while loop.time() < back_at + WATCHED_S:
                await pool.call(request(number, f"p{number % 10}"))

        await asyncio.gather(*map(ask, range(in_flight)))
        after = sum(back_at <= at < back_at + WATCHED_S for at in provider.rejected_at)
        before = sum(at < back_at - away_s for at in provider.rejected_at)
        return Returned(before=before, after=after, send_rate=pool.state.send_rate)

    return run(main)


def _windows_s(most: float, window_s: float, count: int) -> float:
    """The ideal in fixed windows, the first of which is half over, and the last answer's two seconds."""
    return window_s / 2 + (math.ceil(count / most) - 2) * window_s + 2


def _slow_in_between(seconds: float) -> float:
    return 1.0 if 30 <= seconds <= 75 else 5.0


def _halving(seconds: float) -> float:
    return 5.0 if seconds // 20 % 2 == 0 else 2.5


_IDEAL_CHANGING_S = 75 + (300 - 5 - 30 * 5 - 45) / 5 + 2

SCENARIOS: dict[str, Scenario] = {
    "bucket 5/s": Scenario(shape=lambda _: Bucket(5, 5), count=130, ideal_s=27, hint=1.0),
    "bucket 5/s, no hint": Scenario(shape=lambda _: Bucket(5, 5), count=300, ideal_s=61, hint=None),
    "bucket 5/s, answers after 20 s": Scenario(
        shape=lambda _: Bucket(5, 5), count=300, ideal_s=79, hint=1.0, latency_s=20, spread=0.5
    ),
    "bucket 1/s": Scenario(shape=lambda _: Bucket(1, 1), count=100, ideal_s=101, hint=1.0),
    "leaky 2/s, hint in seconds": Scenario(shape=lambda _: Bucket(2, 1), count=64, ideal_s=34),
    "leaky 2/s, no hint": Scenario(shape=lambda _: Bucket(2, 1), count=200, ideal_s=102, hint=None),
    "leaky 2/s, answers after 20 s": Scenario(
        shape=lambda _: Bucket(2, 1), count=200, ideal_s=120, latency_s=20, spread=0.5
    ),
    "fixed 20 per 15 s": Scenario(
        shape=lambda seed: Window(20, 15, fixed=True, phase_s=7.5 + seed / 8),
        count=120,
        ideal_s=_windows_s(20, 15, 120),
    ),
    "sliding 30 per 20 s": Scenario(shape=lambda _: Window(30, 20, fixed=False), count=150, ideal_s=82),
    "tokens 5,000/s, unannounced": Scenario(
        shape=lambda _: Bucket(5000, 5000), count=130, ideal_s=27, hint=1.0, tokens=True
    ),
    "tokens 60,000 per minute, unannounced": Scenario(
        shape=lambda seed: Window(60_000, 60, fixed=True, phase_s=30 + seed / 2),
        count=300,
        ideal_s=_windows_s(60, 60, 300),
        tokens=True,
    ),
    "4 at once": Scenario(shape=lambda _: AtOnce(4), count=112, ideal_s=56, hint=1.0),
    "4 at once, answers after 20 s": Scenario(
        shape=lambda _: AtOnce(4), count=112, ideal_s=560, hint=1.0, latency_s=20, spread=0.5
    ),
    "20 at once, no hint": Scenario(
        shape=lambda _: AtOnce(20), count=600, ideal_s=150, hint=None, latency_s=5, spread=0.5
    ),
    "5/s, then 1/s, then 5/s": Scenario(
        shape=lambda _: Bucket(_slow_in_between, 5), count=300, ideal_s=_IDEAL_CHANGING_S, hint=1.0
    ),
    "two processes, bucket 5/s": Scenario(
        shape=lambda _: Bucket(5, 5), count=260, ideal_s=53, hint=1.0, pools=2
    ),
    "two processes, 8 at once": Scenario(shape=lambda _: AtOnce(8), count=260, ideal_s=65, hint=1.0, pools=2),
}
# Limits that pools share, that lost connections tell, or that change.
SHARED: dict[str, Scenario] = {
    "two models, one account's 5/s": Scenario(
        shape=lambda _: Bucket(5, 5), count=260, ideal_s=53, hint=1.0, pools=2, account=True, apart_s=10
    ),
    "two models, one account's 5/s, no hint": Scenario(
        shape=lambda _: Bucket(5, 5), count=260, ideal_s=53, hint=None, pools=2, account=True
    ),
    "two models, 10 s answers, one account's 5/s": Scenario(
        shape=lambda _: Bucket(5, 5),
        count=260,
        ideal_s=61,
        hint=1.0,
        pools=2,
        account=True,
        latency_s=10,
        spread=0.5,
    ),
    "a small model beside a large one, 5/s": Scenario(
        shape=lambda _: Bucket(5, 5),
        count=260,
        ideal_s=53,
        hint=1.0,
        pools=2,
        account=True,
        share=0.85,
        apart_s=5,
    ),
    "6 connections, by resets": Scenario(shape=lambda _: AtOnce(6), count=150, ideal_s=50, resets=True),
    "6 connections, by resets, answers after 20 s": Scenario(
        shape=lambda _: AtOnce(6), count=150, ideal_s=500, resets=True, latency_s=20, spread=0.5
    ),
    "20 connections, by resets": Scenario(shape=lambda _: AtOnce(20), count=600, ideal_s=60, resets=True),
    "5/s, halved and doubled every 20 s": Scenario(
        shape=lambda _: Bucket(_halving, 5), count=200, ideal_s=52.5, hint=1.0
    ),
    "5/s, halved and doubled every 20 s, no hint": Scenario(
        shape=lambda _: Bucket(_halving, 5), count=200, ideal_s=52.5, hint=None
    ),
    "four processes, bucket 4/s": Scenario(
        shape=lambda _: Bucket(4, 4), count=260, ideal_s=66, hint=1.0, pools=4
    ),
}
# What no client can know or avoid: shown in the table, held by wider limits.
HARD: dict[str, Scenario] = {
    "fixed 300 per minute, asks to wait 1 s": Scenario(
        shape=lambda seed: Window(300, 60, fixed=True, phase_s=30 + seed / 2),
        count=1500,
        ideal_s=_windows_s(300, 60, 1500),
        hint=1.0,
    ),
    "fixed 20 per 15 s, no hint": Scenario(
        shape=lambda seed: Window(20, 15, fixed=True, phase_s=7.5 + seed / 8),
        count=120,
        ideal_s=_windows_s(20, 15, 120),
        hint=None,
    ),
    "sliding 30 per 20 s, no hint": Scenario(
        shape=lambda _: Window(30, 20, fixed=False), count=150, ideal_s=82, hint=None
    ),
    "leaky 20/s, hint in seconds": Scenario(shape=lambda _: Bucket(20, 1), count=1000, ideal_s=52),
    "two processes, leaky 4/s": Scenario(shape=lambda _: Bucket(4, 1), count=260, ideal_s=67, pools=2),
    "two models, one account's leaky 5/s": Scenario(
        shape=lambda _: Bucket(5, 1), count=260, ideal_s=54, hint=1.0, pools=2, account=True
    ),
    "two models, one account's 300 a minute, sliding": Scenario(
        shape=lambda _: Window(300, 60, fixed=False), count=900, ideal_s=122, hint=1.0, pools=2, account=True
    ),
    "four processes, leaky 4/s": Scenario(
        shape=lambda _: Bucket(4, 1), count=260, ideal_s=67, hint=1.0, pools=4
    ),
    "stray rejections, 1 %": Scenario(
        shape=lambda seed: Strays(0.01, seed), count=2000, ideal_s=35, latency_s=3, spread=0.5
    ),
}

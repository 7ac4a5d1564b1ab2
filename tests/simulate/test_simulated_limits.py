from __future__ import annotations

from dataclasses import dataclass

import orjson
import pytest
from simulated_client import PROMPT, chat, running

from astra_async.simulate.limits import Clocks, RateLimiter, SimulatedCache
from astra_async.simulate.wires.chat import go_duration
from astra_async.types.simulation import SimulationSettings


@dataclass
class Time:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    @property
    def clocks(self) -> Clocks:
        return Clocks(monotonic=self, unix=self)


def limits(
    requests: float | None = None, tokens: float | None = None, burst_s: float = 5
) -> SimulationSettings:
    return SimulationSettings(
        speed=0, faults=False, requests_per_minute=requests, tokens_per_minute=tokens, burst_s=burst_s
    )


def test_a_burst_is_admitted_up_to_the_bucket_and_then_at_the_rate() -> None:
    time = Time()
    limiter = RateLimiter(limits(requests=60), time.clocks)
    assert [limiter.admit("steady", 1) is None for _ in range(12)] == [True] * 5 + [False] * 7
    time.now += 3
    assert [limiter.admit("steady", 1) is None for _ in range(5)] == [True] * 3 + [False] * 2
    admitted = 0
    for _ in range(1000):
        time.now += 0.1
        admitted += limiter.admit("steady", 1) is None
    assert admitted == 100


def test_who_waits_as_told_is_admitted_and_who_comes_earlier_is_not() -> None:
    time = Time()
    limiter = RateLimiter(limits(requests=7), time.clocks)
    assert limiter.admit("steady", 1) is None
    rejected = limiter.admit("steady", 1)
    assert rejected is not None
    time.now += rejected.wait_s - 0.001
    early = limiter.admit("steady", 1)
    assert early is not None
    assert early.announced
    time.now += 0.001
    assert limiter.admit("steady", 1) is None


def test_what_was_sent_before_the_pause_was_known_is_no_violation() -> None:
    time = Time()
    limiter = RateLimiter(limits(requests=60, burst_s=1), time.clocks)
    assert limiter.admit("steady", 1) is None
    burst = [limiter.admit("steady", 1) for _ in range(20)]
    assert not any(rejected is None or rejected.announced for rejected in burst)


def test_models_have_limits_of_their_own() -> None:
    limiter = RateLimiter(limits(requests=60, burst_s=1), Time().clocks)
    assert limiter.admit("steady", 1) is None
    assert limiter.admit("steady", 1) is not None
    assert limiter.admit("weak", 1) is None


def test_a_request_above_the_bucket_drives_it_negative_and_one_above_the_limit_never_fits() -> None:
    time = Time()
    limiter = RateLimiter(limits(tokens=6000, burst_s=10), time.clocks)
    assert limiter.admit("steady", 3000) is None
    later = limiter.admit("steady", 100)
    assert later is not None
    assert later.wait_s == pytest.approx(21)
    never = limiter.admit("steady", 6001)
    assert never is not None
    assert never.never


def test_a_rejected_request_takes_nothing() -> None:
    time = Time()
    limiter = RateLimiter(limits(requests=60, tokens=600, burst_s=10), time.clocks)
    assert limiter.admit("steady", 90) is None
    assert limiter.admit("steady", 50) is not None
    assert [window.remaining for window in limiter.windows("steady")] == [9, 10]
    assert limiter.admit("steady", 10) is None


async def test_the_server_counts_rejections_and_violations() -> None:
    time = Time()

    async with running(limits(requests=60), clocks=time.clocks) as place:
        heard = [await chat(place, f"7/xml/shop/{n}") for n in range(8)]
        assert [one.status for one in heard] == [200] * 5 + [429] * 3
        assert (place[0].counters.rejected, place[0].counters.violations) == (3, 0)
        time.now += 0.5
        assert (await chat(place, "7/xml/shop/8")).status == 429
        assert (place[0].counters.rejected, place[0].counters.violations) == (4, 1)
        time.now += 0.5
        assert (await chat(place, "7/xml/shop/8")).status == 200
        assert place[0].counters.violations == 1


async def test_openais_headers_and_bodies_announce_the_limit() -> None:
    time = Time()

    async with running(limits(requests=60, tokens=100_000), clocks=time.clocks) as place:
        first = await chat(place, "7/xml/shop/0", max_tokens=1000)
        for number in range(1, 5):
            await chat(place, f"7/xml/shop/{number}", max_tokens=1000)
        rejected = await chat(place, "7/xml/shop/9", max_tokens=1000)
    assert first.headers["x-ratelimit-limit-requests"] == "60"
    assert first.headers["x-ratelimit-remaining-requests"] == "4"
    assert first.headers["x-ratelimit-reset-requests"] == "1s"
    assert first.headers["x-ratelimit-limit-tokens"] == "100000"
    used = 8333 - int(first.headers["x-ratelimit-remaining-tokens"])
    assert used == pytest.approx(1000 + len(PROMPT) / 3.6, abs=2)
    error = orjson.loads(rejected.body)["error"]
    assert error["code"] == "rate_limit_exceeded"
    assert "Please try again in" in error["message"]
    assert float(rejected.headers["retry-after-ms"]) >= 1000 * 0.95


async def test_a_request_above_the_token_limit_is_too_large() -> None:
    async with running(limits(tokens=5000)) as place:
        heard = await chat(place, max_tokens=32_000)
    assert heard.status == 429
    assert "Request too large" in orjson.loads(heard.body)["error"]["message"]
    assert "retry-after" not in heard.headers


async def test_without_limits_nothing_is_announced() -> None:
    async with running() as place:
        heard = await chat(place)
    assert not [name for name in heard.headers if "ratelimit" in name.lower()]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.02, "20ms"),
        (0.9999, "1s"),
        (1.5, "1.5s"),
        (59.9999, "1m0s"),
        (360, "6m0s"),
        (3723, "1h2m3s"),
    ],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


def test_a_prompt_leaves_the_cache_five_minutes_after_its_last_use() -> None:
    time = Time()
    cache = SimulatedCache(300, time)
    assert cache.cached_tokens("steady", "p", 5000) == 0
    cache.warm("steady", "p")
    time.now += 299
    assert cache.cached_tokens("steady", "p", 5000) == 4992
    time.now += 299
    assert cache.cached_tokens("steady", "p", 5000) == 4992
    assert cache.cached_tokens("weak", "p", 5000) == 0
    time.now += 300
    assert cache.cached_tokens("steady", "p", 5000) == 0

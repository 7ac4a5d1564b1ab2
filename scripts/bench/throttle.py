"""130 calls against real HTTP servers that allow 5 requests, or 5,000 tokens, in a second.

Each server answers after 2 s and rejects what is above its limit with 429 and `retry-after: 1`; the ideal
is 28 s. Three ways of counting (a bucket, windows of whole seconds, any second) times three ways of
knowing: nothing, the headers of the responses, the settings. The scenarios begin one after the other and
run beside each other, each with a server and a pool of its own, over the provider that real runs use.
A busy machine shows in the strict windows: 20 ms of jitter are one rejection. Then: CPU of admission, and
limits of many other shapes that nobody announces, in virtual time (see tests/throttle/shapes.py).

    scripts/bench/run throttle [--calls 130] [--latency 2.0] [--apart 1.3] [--seeds 8] [--only-shapes]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import deque
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import orjson
import uvloop
from aiohttp import web

from astra_async.asking.providers import open_provider
from astra_async.asking.throttle import Pool
from astra_async.types import Completion, ModelRequest, ModelSettings, RateLimits, SampleKey, Usage

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "throttle"))
from shapes import HARD, SCENARIOS, SHARED, play, play_naive

if TYPE_CHECKING:
    from astra_async.types import CallWatch

COUNTING = ("bucket", "whole seconds", "any second")
KNOWN = ("nothing", "headers", "settings")
PER_SECOND = 5
INPUT_TOKENS, MAX_TOKENS = 800, 200
PROMPT = "const express = require('express');\n" * 72
ADMISSION_CALLS, ADMISSION_IN_FLIGHT = 20_000, 512


@dataclass(frozen=True)
class Scenario:
    """One server and what its client is told."""

    dimension: str
    counting: str
    known: str


class LimitedServer:
    """Chat completions under a limit; `violations` are the requests it had to reject."""

    def __init__(self, scenario: Scenario, latency_s: float) -> None:
        self.violations = 0
        self._scenario = scenario
        self._latency_s = latency_s
        self._cost = 1 if scenario.dimension == "requests" else INPUT_TOKENS + MAX_TOKENS
        self._most = float(PER_SECOND * self._cost)
        self._level, self._at = self._most, time.monotonic()
        self._log: deque[float] = deque()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        await request.read()
        if self._remaining() < self._cost - 1e-9:
            self.violations += 1
            error = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}
            headers = {"retry-after": "1", **self._headers()}
            return web.json_response(error, status=429, headers=headers)
        self._level -= self._cost
        self._log.append(time.monotonic())
        await asyncio.sleep(self._latency_s)
        return web.Response(body=ANSWER, headers={"content-type": "text/event-stream", **self._headers()})

    def _remaining(self) -> float:
        now = time.monotonic()
        if self._scenario.counting == "bucket":
            self._level = min(self._most, self._level + (now - self._at) * self._most)
            self._at = now
            return self._level
        begin = float(int(now)) if self._scenario.counting == "whole seconds" else now - 1
        while self._log and self._log[0] < begin:
            self._log.popleft()
        return self._most - self._cost * len(self._log)

    def _headers(self) -> dict[str, str]:
        if self._scenario.known != "headers":
            return {}
        dimension = self._scenario.dimension
        return {
            f"x-ratelimit-limit-{dimension}": f"{self._most * 60:.0f}",
            f"x-ratelimit-remaining-{dimension}": f"{max(0.0, self._remaining()):.0f}",
            f"x-ratelimit-reset-{dimension}": "1s",
        }


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=130)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--apart", type=float, default=1.3, help="seconds between two beginnings")
    parser.add_argument("--seeds", type=int, default=8, help="runs of each shape")
    parser.add_argument("--only-shapes", action="store_true")
    options = parser.parse_args()
    if not options.only_shapes:
        uvloop.run(limited_runs(options))
        uvloop.run(admission())
    shapes(range(options.seeds))


def shapes(seeds: range) -> None:
    """Medians and worst of all seeds: time as a part of the ideal, rejections as a part of the answers.

    The second line of each shape is a naive client: 8 in flight, exponential back-off.
    """
    print(f"\n{'limit, not announced':47} {'of ideal':>9} {'worst':>6} {'rejected':>9} {'worst':>6}")
    for name, scenario in {**SCENARIOS, **SHARED, **HARD}.items():
        for who, client in ((name, play), ("  naive", play_naive)):
            played = [client(scenario, seed) for seed in seeds]
            took = [each.took_s / scenario.ideal_s for each in played]
            rejected = [each.rejected / scenario.count for each in played]
            print(
                f"{who:47} {median(took):9.2f} {max(took):6.2f} {median(rejected):9.1%} {max(rejected):6.1%}"
            )


async def limited_runs(options: argparse.Namespace) -> None:
    """Every scenario, beside each other."""
    ideal_s = (options.calls - PER_SECOND) / PER_SECOND + 1 + options.latency
    print(f"{options.calls} calls, ideal {ideal_s:.0f} s")
    print(
        f"{'limit':9} {'counted by':14} {'known from':10} {'seconds':>8} {'of ideal':>9} {'rejections':>11}"
    )
    scenarios = [Scenario(*each) for each in product(("requests", "tokens"), COUNTING, KNOWN)]
    runs = await asyncio.gather(*(limited_run(each, i, options) for i, each in enumerate(scenarios)))
    for scenario, (took_s, violations) in zip(scenarios, runs, strict=True):
        print(
            f"{scenario.dimension:9} {scenario.counting:14} {scenario.known:10}"
            f" {took_s:8.1f} {took_s / ideal_s:9.0%} {violations:11}"
        )


async def limited_run(scenario: Scenario, number: int, options: argparse.Namespace) -> tuple[float, int]:
    """(seconds, rejections) of one scenario."""
    await asyncio.sleep(number * options.apart)
    server = LimitedServer(scenario, options.latency)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    settings = model_settings(scenario, f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    provider = open_provider(settings, environ={})
    pool = Pool(settings, provider, price=lambda _: None)
    begun_at = time.monotonic()
    await asyncio.gather(*(pool.call(request(number)) for number in range(options.calls)))
    took_s = time.monotonic() - begun_at
    await pool.close()
    await provider.close()
    await runner.cleanup()
    return took_s, server.violations


def model_settings(scenario: Scenario, base_url: str) -> ModelSettings:
    """Settings of the client; limits only if that is where they are known from."""
    told = scenario.known == "settings"
    requests = 60.0 * PER_SECOND if told and scenario.dimension == "requests" else None
    tokens = told and scenario.dimension == "tokens"
    return ModelSettings(
        name="toy",
        spec="openai-compatible/toy",
        provider="openai-compatible",
        model="toy",
        base_url=base_url,
        max_tokens=MAX_TOKENS,
        requests_per_minute=requests,
        input_tokens_per_minute=60.0 * PER_SECOND * INPUT_TOKENS if tokens else None,
        output_tokens_per_minute=60.0 * PER_SECOND * MAX_TOKENS if tokens else None,
    )


def request(number: int) -> ModelRequest:
    """A sample of one of ten problems."""
    problem = f"p{number % 10}"
    return ModelRequest(key=SampleKey("toy", "xml", problem, number), prompt=PROMPT, prompt_sha256=problem)


class Instant:
    """A provider that answers in the next turn of the loop, with 50 events."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """The same answer at once."""
        del request
        watch.first_token()
        for _ in range(50):
            watch.streamed(60)
        await asyncio.sleep(0)
        return Completion(
            text="done",
            finish_reason="stop",
            usage=Usage(input_tokens=INPUT_TOKENS, cached_tokens=0, output_tokens=MAX_TOKENS),
            returned_model="toy",
            ttft_s=0.0,
            latency_s=0.0,
        )

    async def close(self) -> None:
        """Nothing is open."""


class Deaf:
    """A watch that does nothing: the provider's own cost."""

    def limits(self, limits: RateLimits) -> None:
        """Not sent."""

    def first_token(self) -> None:
        """Not wanted."""

    def streamed(self, characters: int) -> None:
        """Not wanted."""


async def admission() -> None:
    """CPU that a call spends in the throttle, with 512 in flight."""
    bare_s = await spent_s(Instant(), None)
    print(f"\nCPU of the throttle per call, {ADMISSION_IN_FLIGHT} in flight:")
    for name, limits in (("no limits", (None, None, None)), ("three buckets", (6e7, 6e10, 6e9))):
        settings = ModelSettings(
            name="toy",
            spec="toy/toy",
            provider="toy",
            model="toy",
            max_in_flight=ADMISSION_IN_FLIGHT,
            requests_per_minute=limits[0],
            input_tokens_per_minute=limits[1],
            output_tokens_per_minute=limits[2],
        )
        cpu_s = await spent_s(Instant(), settings) - bare_s
        print(f"  {name:14} {1e6 * cpu_s / ADMISSION_CALLS:6.1f} us")


async def spent_s(provider: Instant, settings: ModelSettings | None) -> float:
    """CPU seconds of all calls, through a pool if there are settings for one."""
    pool = Pool(settings, provider, price=lambda _: 0.001) if settings else None
    requests = iter([request(number) for number in range(ADMISSION_CALLS)])

    async def worker() -> None:
        for each in requests:
            await (pool.call(each) if pool else provider.complete(each, Deaf()))

    begun_s = time.process_time()
    await asyncio.gather(*(worker() for _ in range(ADMISSION_IN_FLIGHT)))
    return time.process_time() - begun_s


def chunk(**fields: object) -> bytes:
    """One event of a chat completion."""
    return b"data: " + orjson.dumps({"id": "c", "model": "toy", **fields}) + b"\n\n"


ANSWER = (
    chunk(choices=[{"index": 0, "delta": {"content": "done"}, "finish_reason": None}])
    + chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    + chunk(choices=[], usage={"prompt_tokens": INPUT_TOKENS, "completion_tokens": MAX_TOKENS})
    + b"data: [DONE]\n\n"
)

if __name__ == "__main__":
    main()

"""Provider that enforces a rate limit and counts rejections, for tests in virtual time."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Literal

from astra_async.errors import RateLimited
from astra_async.types import (
    CallWatch,
    Completion,
    ModelRequest,
    ModelSettings,
    RateLimits,
    RateWindow,
    SampleKey,
    Usage,
)

Kind = Literal["bucket", "fixed window", "sliding window"]


class Limit:
    """Rate limit of `per_second` units, enforced in windows of `window_s` by one of three algorithms."""

    def __init__(self, kind: Kind, per_second: float, window_s: float = 1.0, phase_s: float = 0.0) -> None:
        self.kind = kind
        self.per_second = per_second
        self.window_s = window_s
        self.most = per_second * window_s
        self._phase_s = phase_s
        self._level, self._at = self.most, 0.0
        self._log: deque[tuple[float, float]] = deque()

    def admit(self, amount: float, now: float) -> bool:
        if self.remaining(now) < amount - 1e-9:
            return False
        self._level -= amount
        self._log.append((now, amount))
        return True

    def remaining(self, now: float) -> float:
        if self.kind == "bucket":
            self._level = min(self.most, self._level + (now - self._at) * self.per_second)
            self._at = now
            return self._level
        begin = now - self.window_s
        if self.kind == "fixed window":
            begin = ((now - self._phase_s) // self.window_s) * self.window_s + self._phase_s - 1e-12
        while self._log and self._log[0][0] <= begin:
            self._log.popleft()
        return self.most - sum(amount for _, amount in self._log)

    def reset_s(self, now: float) -> float:
        if self.kind == "bucket":
            return (self.most - self.remaining(now)) / self.per_second
        return self.window_s


class LimitedProvider:
    """Provider that answers after `latency_s`, and rejects at once with `hint_s` above its limit."""

    def __init__(
        self,
        clock: Callable[[], float],
        limit: Limit | None = None,
        *,
        dimension: Literal["requests", "tokens"] = "requests",
        announces: bool = False,
        latency_s: float = 2.0,
        hint_s: float | None = 1.0,
        tokens: tuple[int, int] = (800, 200),
        spread: float = 0.0,
        network_s: float = 0.001,
    ) -> None:
        self.charges_max_tokens = False
        self.cached_input_is_exempt = False
        self.rejections: list[float] = []
        self.sends: list[float] = []
        self.in_flight = self.most_in_flight = 0
        self._clock = clock
        self._limit = limit
        self._dimension = dimension
        self._announces = announces
        self._latency_s = latency_s
        self._hint_s = hint_s
        self._tokens = tokens
        self._spread = spread
        self._network_s = network_s
        self._rng = random.Random(1)

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._complete(watch)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        pass

    async def _complete(self, watch: CallWatch) -> Completion:
        await asyncio.sleep(self._network_s * self._rng.uniform(1, 3))
        now = self._clock()
        amount = 1 if self._dimension == "requests" else sum(self._tokens)
        if self._limit is not None and not self._limit.admit(amount, now):
            self.rejections.append(now)
            self._announce(watch)
            raise RateLimited("429: too many requests", hint_s=self._hint_s)
        self.sends.append(now)
        await asyncio.sleep(self._latency_s * (1 + self._spread * self._rng.uniform(-1, 1)))
        self._announce(watch)
        return answer(Usage(input_tokens=self._tokens[0], cached_tokens=0, output_tokens=self._tokens[1]))

    def _announce(self, watch: CallWatch) -> None:
        if self._announces and self._limit is not None:
            now = self._clock()
            window = RateWindow(
                limit=self._limit.per_second * 60,
                remaining=max(0.0, float(int(self._limit.remaining(now) + 1e-9))),
                reset_s=self._limit.reset_s(now),
            )
            watch.limits(
                RateLimits(requests=window) if self._dimension == "requests" else RateLimits(tokens=window)
            )


def answer(usage: Usage | None = None, text: str = "done") -> Completion:
    return Completion(
        text=text,
        finish_reason="stop",
        usage=usage or Usage(input_tokens=100, cached_tokens=0, output_tokens=10),
        returned_model="m",
        ttft_s=None,
        latency_s=1.0,
    )


def settings(**changes: float | str | None) -> ModelSettings:
    values: dict[str, object] = {"name": "m", "spec": "test/m", "provider": "test", "model": "m"}
    return ModelSettings(**{**values, **changes})  # type: ignore[arg-type]


def request(sample: int = 0, problem: str = "p", *, cache: bool = False, prompt: str = "") -> ModelRequest:
    return ModelRequest(
        key=SampleKey("m", "xml", problem, sample),
        prompt=prompt or f"the problem {problem} " + "x" * 2500,
        prompt_sha256=problem,
        cache=cache,
    )

"""Pool against a local HTTP server that enforces a rate limit."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Iterable

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from limited_provider import answer, request, settings

from astra_async.asking.throttle import Pool
from astra_async.errors import PoolUnusable, ProviderError, RateLimited, TransientError
from astra_async.types import CallWatch, Completion, ModelRequest, RateLimits, RateWindow, Usage
from whole_runs import Beside

pytestmark = pytest.mark.alone

OK, TOO_MANY, UNAUTHORIZED = 200, 429, 401


class LimitedServer:
    """Limit of requests per second in a sliding window; requests above it are violations."""

    def __init__(self, per_second: int, *, latency_s: float, announces: bool = False) -> None:
        self.per_second = per_second
        self.latency_s = latency_s
        self.announces = announces
        self.violations = 0
        self.key_is_good = True
        self.faults: deque[str] = deque()
        self._accepted: deque[float] = deque()

    async def answer(self, _request: web.Request) -> web.StreamResponse:
        now = time.monotonic()
        while self._accepted and self._accepted[0] <= now - 1:
            self._accepted.popleft()
        if not self.key_is_good:
            return web.json_response({"error": "no such key"}, status=UNAUTHORIZED)
        if len(self._accepted) >= self.per_second:
            self.violations += 1
            return web.json_response({}, status=TOO_MANY, headers={"retry-after": "1", **self._headers()})
        self._accepted.append(now)
        if self.faults and self.faults.popleft() == "reset":
            assert _request.transport is not None
            _request.transport.abort()
        await asyncio.sleep(self.latency_s)
        return web.json_response({"input": 700, "output": 20}, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        if not self.announces:
            return {}
        left = max(0, self.per_second - len(self._accepted))
        return {"limit": str(60 * self.per_second), "remaining": str(left), "reset": "1"}


class HttpProvider:
    """Minimal Provider for that server."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        try:
            async with self._session.post(self._url, data=request.prompt) as response:
                headers = response.headers
                if "limit" in headers:
                    window = RateWindow(
                        limit=float(headers["limit"]),
                        remaining=float(headers["remaining"]),
                        reset_s=float(headers["reset"]),
                    )
                    watch.limits(RateLimits(requests=window))
                if response.status != OK:
                    raise failure(response.status, headers.get("retry-after"))
                watch.first_token()
                tokens = await response.json()
        except ClientError as error:
            raise TransientError(f"connection: {type(error).__name__}") from error
        return answer(Usage(input_tokens=tokens["input"], cached_tokens=0, output_tokens=tokens["output"]))

    async def close(self) -> None:
        pass


def failure(status: int, retry_after: str | None) -> ProviderError:
    if status == TOO_MANY:
        return RateLimited("429", hint_s=float(retry_after or 0))
    return PoolUnusable(f"{status}", status=status)


def play(server: LimitedServer, count: int, faults: Iterable[str] = ()) -> tuple[list[object], float]:
    """Return the outcomes of `count` calls, and the seconds that they would take without other load."""

    async def main() -> tuple[list[object], float]:
        app = web.Application()
        app.router.add_post("/", server.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.faults.extend(faults)
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        session = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=600))
        async with session:
            pool = Pool(settings(), HttpProvider(session, url), price=lambda _: 0.0, rng=random.Random(1))
            with Beside() as beside:
                begun_at = time.monotonic()
                calls = (pool.call(request(i, f"p{i % 5}")) for i in range(count))
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
                took_s = time.monotonic() - begun_at
            assert (pool.state.in_flight, pool.state.waiting) == (0, 0)
            await pool.close()
        await runner.cleanup()
        return list(outcomes), beside.alone_s(took_s)

    return asyncio.run(main())


def test_a_limit_in_real_headers_is_kept() -> None:
    server = LimitedServer(20, latency_s=0.1, announces=True)
    outcomes, took_s = play(server, 60)
    assert all(isinstance(o, Completion) for o in outcomes)
    assert server.violations <= 5  # on a busy machine requests arrive in the second after their own
    assert took_s < 1.5 * (60 / 20 + 0.1)


def test_an_unknown_limit_costs_few_violations() -> None:
    server = LimitedServer(20, latency_s=0.1)
    outcomes, took_s = play(server, 60)
    assert all(isinstance(o, Completion) for o in outcomes)
    assert server.violations <= 12
    assert took_s < 2.5 * (60 / 20 + 0.1)


def test_a_quick_server_without_a_limit_is_used_at_full_speed() -> None:
    server = LimitedServer(10**6, latency_s=0.0)
    outcomes, took_s = play(server, 1000)
    assert all(isinstance(o, Completion) for o in outcomes)
    assert took_s < 4.0


def test_lost_connections_are_retried() -> None:
    server = LimitedServer(10**6, latency_s=0.0)
    outcomes, _ = play(server, 20, faults=["reset", "", "reset"])
    assert all(isinstance(o, Completion) for o in outcomes)
    attempts = [o.attempts for o in outcomes if isinstance(o, Completion)]
    assert sum(attempts) == 22


def test_a_refused_key_ends_all_calls_at_once() -> None:
    server = LimitedServer(10**6, latency_s=0.0)
    server.key_is_good = False
    outcomes, took_s = play(server, 500)
    assert all(isinstance(o, PoolUnusable) for o in outcomes)
    assert took_s < 3.0


@pytest.mark.parametrize("count", [1, 3])
def test_a_few_calls_take_no_longer_than_necessary(count: int) -> None:
    _, took_s = play(LimitedServer(5, latency_s=0.2), count)
    assert took_s < 0.9

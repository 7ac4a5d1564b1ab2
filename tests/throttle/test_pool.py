"""Life cycle of a call: order, retries, giving up, cancellation, failure of the pool."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest
from limited_provider import answer, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.providers.error_meaning import Failure, classify
from astra_async.asking.throttle import Budget, Pool, PoolEvent
from astra_async.errors import (
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    RequestRejected,
    TransientError,
    TruncatedStream,
)
from astra_async.types import CallWatch, Completion, ModelRequest, RateLimits, RateWindow, Usage
from astra_async.types.agents import NativeBody

Behaviour = Callable[[ModelRequest, float], ProviderError | Completion]


class Script:
    """Provider that plays given outcomes in turn, then answers. Records requests and times."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self, *outcomes: ProviderError | Completion, latency_s: float = 1.0) -> None:
        self.outcomes = list(outcomes)
        self.latency_s = latency_s
        self.sent: list[tuple[float, int]] = []
        self.in_flight = 0
        self.streams_first = False

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        self.sent.append((asyncio.get_running_loop().time(), request.key.sample))
        outcome = self.outcomes.pop(0) if self.outcomes else answer()
        self.in_flight += 1
        try:
            if self.streams_first:
                watch.first_token()
                watch.streamed(320)
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    async def close(self) -> None:
        pass


def pool_of(
    provider: Script, loop: VirtualLoop, events: list[PoolEvent] | None = None, **limits: float
) -> Pool:
    return Pool(
        settings(**limits),
        provider,
        price=dollar_a_token,
        on_event=(lambda _: None) if events is None else events.append,
        clock=loop.time,
        rng=random.Random(0),
    )


def dollar_a_token(usage: Usage) -> float | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return float(usage.input_tokens + usage.output_tokens)


def one_call(
    outcomes: Sequence[ProviderError | Completion], check: Callable[[Script, float], None] | None = None
) -> Completion:
    async def main(loop: VirtualLoop) -> Completion:
        provider = Script(*outcomes)
        pool = pool_of(provider, loop)
        begun_at = loop.time()
        try:
            return await pool.call(request())
        finally:
            assert pool.state.in_flight == pool.state.waiting == 0
            if check:
                check(provider, loop.time() - begun_at)
            await pool.close()

    return run(main)


def test_a_call_returns_the_answer_with_attempts_and_cost() -> None:
    completion = one_call([answer()])
    assert completion.attempts == 1
    assert completion.cost_usd == 110.0


def test_attempts_and_cost_include_failed_attempts() -> None:
    failed = TransientError("cut", usage=Usage(input_tokens=100, output_tokens=5))
    completion = one_call([failed, answer()])
    assert completion.attempts == 2
    assert completion.cost_usd == 215.0


def test_an_estimated_cost_is_marked_as_estimated() -> None:
    assert not one_call([answer()]).cost_estimated
    assert one_call([replace(answer(), usage=Usage())]).cost_estimated
    half_told = TransientError("cut", usage=Usage(input_tokens=50))
    assert one_call([half_told, answer()]).cost_estimated
    with pytest.raises(RequestRejected) as caught:
        one_call([half_told, RequestRejected("no")])
    assert caught.value.cost_estimated


def test_a_lost_connection_gets_six_attempts() -> None:
    with pytest.raises(TransientError) as caught:
        one_call([TransientError("reset") for _ in range(6)])
    assert caught.value.attempts == 6
    assert caught.value.cost_usd == 0.0
    assert one_call([TransientError("reset") for _ in range(5)]).attempts == 6


def test_a_stream_cut_after_tokens_gets_two_attempts() -> None:
    billed = Usage(input_tokens=100, output_tokens=1)
    with pytest.raises(TruncatedStream) as caught:
        one_call([TruncatedStream("cut", usage=billed) for _ in range(2)])
    assert caught.value.attempts == 2
    assert caught.value.cost_usd == 202.0


def test_a_stream_cut_before_any_token_gets_six_attempts() -> None:
    assert one_call([TruncatedStream("cut") for _ in range(5)]).attempts == 6


@pytest.mark.parametrize(("by_agent", "attempts"), [(False, 2), (True, 4)])
def test_overloads_in_mid_stream_do_not_end_an_agents_work(attempts: int, *, by_agent: bool) -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(*[Overloaded("overloaded_error in mid-stream") for _ in range(3)])
        provider.streams_first = True
        asked = replace(request(), native=NativeBody(fields={}, headers={})) if by_agent else request()
        with nullcontext() if by_agent else pytest.raises(Overloaded):
            await pool_of(provider, loop).call(asked)
        assert len(provider.sent) == attempts

    run(main)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "malformed_model_output", "repetition"])
def test_a_generation_that_failed_at_the_provider_is_repeated_once(reason: str) -> None:
    broken = replace(answer(), finish_reason="other", native_finish_reason=reason)
    mended = one_call([broken])
    assert (mended.attempts, mended.finish_reason, mended.cost_usd) == (2, "stop", 220.0)
    kept = one_call([broken, broken, broken])
    assert (kept.attempts, kept.native_finish_reason, kept.cost_usd) == (2, reason, 220.0)
    unknown = one_call([replace(broken, native_finish_reason="new_word")])
    assert unknown.attempts == 1


def test_a_request_that_timed_out_is_repeated_once_and_its_cost_is_estimated() -> None:
    """Regression: a slow model received six requests, and their cost was not counted."""

    def timed_out() -> TransientError:
        error = TransientError("no data for 300 s (timeout_s in [[models]])")
        error.may_be_billed = True
        return error

    with pytest.raises(TransientError) as caught:
        one_call([timed_out() for _ in range(6)])
    assert caught.value.attempts == 2
    assert (caught.value.cost_usd or 0) > 0
    assert caught.value.cost_estimated
    answered = one_call([timed_out()])
    assert (answered.attempts, answered.cost_estimated) == (2, True)


def test_rate_limits_do_not_count_as_failures() -> None:
    completion = one_call([RateLimited("429", hint_s=7.0) for _ in range(20)])
    assert completion.attempts == 21


def test_a_call_gives_up_after_half_an_hour_of_rate_limits() -> None:
    def check(provider: Script, took_s: float) -> None:
        assert 1800 <= took_s < 1800 + 120

    with pytest.raises(RateLimited) as caught:
        one_call([RateLimited("429", hint_s=60.0) for _ in range(100)], check)
    assert caught.value.attempts > 20


def test_a_rejected_request_is_raised_at_once() -> None:
    with pytest.raises(RequestRejected) as caught:
        one_call([RequestRejected("400: unknown parameter", status=400)])
    assert caught.value.attempts == 1


@pytest.mark.parametrize("reason", ["length", "refusal", "content_filter", "context_exceeded"])
def test_an_answer_is_a_result_and_never_retried(reason: str) -> None:
    result = Completion(
        text="",
        finish_reason=reason,  # type: ignore[arg-type]
        usage=Usage(input_tokens=1, output_tokens=0),
        returned_model="m",
        ttft_s=None,
        latency_s=1.0,
    )
    completion = one_call([result])
    assert (completion.finish_reason, completion.attempts) == (reason, 1)


def test_calls_are_answered_in_order_of_arrival() -> None:
    async def main(loop: VirtualLoop) -> list[int]:
        provider = Script()
        pool = pool_of(provider, loop, max_in_flight=1)
        await asyncio.gather(*(pool.call(request(i)) for i in range(20)))
        return [sample for _, sample in provider.sent]

    assert run(main) == list(range(20))


def test_a_refused_key_ends_all_calls_of_the_pool_at_once() -> None:
    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        provider = Script(PoolUnusable("401: the key is refused", status=401), latency_s=5.0)
        pool = pool_of(provider, loop, events, max_in_flight=1)
        begun_at = loop.time()
        outcomes = await asyncio.gather(*(pool.call(request(i)) for i in range(50)), return_exceptions=True)
        assert loop.time() - begun_at == pytest.approx(5.0)
        assert all(isinstance(o, PoolUnusable) and o.status == 401 for o in outcomes)
        assert len({id(o) for o in outcomes}) == 50
        assert [e.kind for e in events] == ["pool_failed"]
        assert pool.state.dead == "401: the key is refused"
        with pytest.raises(PoolUnusable):
            await pool.call(request())
        assert len(provider.sent) == 1

    run(main)


def test_a_failed_pool_wakes_a_call_that_waits_for_its_retry() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(Overloaded("529"), Overloaded("529"), PoolUnusable("no credit"), latency_s=0.001)
        pool = pool_of(provider, loop)
        first = asyncio.create_task(pool.call(request(0)))
        second = asyncio.create_task(pool.call(request(1)))
        await asyncio.sleep(0.01)
        third = asyncio.create_task(pool.call(request(2)))
        outcomes = await asyncio.gather(first, second, third, return_exceptions=True)
        assert all(isinstance(o, PoolUnusable) for o in outcomes)
        assert loop.time() < 1000.1

    run(main)


def test_requests_in_flight_when_the_pool_fails_keep_their_answers() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(answer(), PoolUnusable("spend limit"), answer())
        pool = pool_of(provider, loop)
        outcomes = await asyncio.gather(*(pool.call(request(i)) for i in range(3)), return_exceptions=True)
        assert [isinstance(o, Completion) for o in outcomes] == [True, False, True]

    run(main)


def test_a_cancelled_call_in_flight_frees_its_slot() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(latency_s=100.0)
        pool = pool_of(provider, loop, max_in_flight=1)
        first = asyncio.create_task(pool.call(request(0)))
        second = asyncio.create_task(pool.call(request(1)))
        await asyncio.sleep(1)
        first.cancel()
        await second
        assert first.cancelled()
        assert loop.time() == pytest.approx(1101)
        assert (pool.state.in_flight, pool.state.waiting) == (0, 0)

    run(main)


def test_a_cancelled_waiting_call_leaves_the_queue() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(latency_s=1.0)
        pool = pool_of(provider, loop, max_in_flight=1)
        tasks = [asyncio.create_task(pool.call(request(i))) for i in range(3)]
        await asyncio.sleep(0.5)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [sample for _, sample in provider.sent] == [0, 2]
        assert pool.state.waiting == 0

    run(main)


def test_a_call_cancelled_when_it_is_admitted_frees_its_slot() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(latency_s=1.0)
        pool = pool_of(provider, loop, max_in_flight=1)

        async def first_then_cancel() -> None:
            await pool.call(request(0))
            assert pool.state.in_flight == 1  # the second has its turn, and its task has not run yet
            second.cancel()

        first = asyncio.create_task(first_then_cancel())
        second = asyncio.create_task(pool.call(request(1)))
        await asyncio.wait([first, second])
        await first
        assert second.cancelled()
        assert len(provider.sent) == 1
        assert (pool.state.in_flight, pool.state.waiting) == (0, 0)
        await pool.call(request(2))

    run(main)


def test_a_leader_cancelled_when_it_is_admitted_frees_its_budget_and_followers() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(latency_s=1.0)
        budget = Budget(1e6)
        pool = Pool(
            settings(max_in_flight=1),
            provider,
            price=dollar_a_token,
            budget=budget,
            clock=loop.time,
            rng=random.Random(0),
        )

        async def first_then_cancel() -> None:
            await pool.call(request(0, "other"))
            assert pool.state.in_flight == 1
            leader.cancel()

        first = asyncio.create_task(first_then_cancel())
        leader = asyncio.create_task(pool.call(request(1, cache=True)))
        follower = asyncio.create_task(pool.call(request(2, cache=True)))
        await first
        await follower
        assert leader.cancelled()
        assert loop.time() == pytest.approx(1002, abs=0.2)
        assert budget.reserved_usd == 0
        assert budget.spent_usd == 220

    run(main)


def test_a_fault_in_the_provider_itself_frees_the_slot() -> None:
    class Broken(Script):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            raise ZeroDivisionError

    async def main(loop: VirtualLoop) -> None:
        pool = pool_of(Broken(), loop)
        with pytest.raises(ZeroDivisionError):
            await pool.call(request())
        assert pool.state.in_flight == 0

    run(main)


def ask_all(provider: Script, count: int, prompts: int) -> tuple[list[object], list[PoolEvent], float]:
    """Run calls of several prompts. Return their outcomes, the events of the pool and the seconds taken."""

    async def main(loop: VirtualLoop) -> tuple[list[object], list[PoolEvent], float]:
        events: list[PoolEvent] = []
        pool = pool_of(provider, loop, events)
        calls = (pool.call(request(i, f"p{i % prompts}")) for i in range(count))
        outcomes: list[object] = list(await asyncio.gather(*calls, return_exceptions=True))
        return outcomes, events, loop.time() - 1000

    return run(main)


def test_an_outage_ends_the_pool_after_thirty_requests_and_four_minutes() -> None:
    provider = Script(*(TransientError("connection refused") for _ in range(10_000)), latency_s=0.01)
    outcomes, events, took_s = ask_all(provider, 500, 5)
    assert sum(isinstance(o, PoolUnusable) for o in outcomes) >= 480
    assert events[-1].kind == "pool_failed"
    assert "connection refused" in events[-1].detail
    assert len(provider.sent) <= 30
    assert 180 < took_s < 400


class Judging(Script):
    """Provider whose outcome depends on the request and on the seconds since the test began."""

    def __init__(self, behaviour: Behaviour, *, limits: RateLimits | None = None) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.limits = limits

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        now = asyncio.get_running_loop().time()
        self.sent.append((now, request.key.sample))
        if self.limits is not None:
            watch.limits(self.limits)
        outcome = self.behaviour(request, now - 1000)
        if isinstance(outcome, ProviderError):
            await asyncio.sleep(0.05)
            raise outcome
        await asyncio.sleep(2.0)
        return outcome


@pytest.mark.parametrize("kind", [RateLimited, Overloaded])
@pytest.mark.parametrize("hint_s", [None, 0.0, 1.0, 60.0])
@pytest.mark.parametrize("blocks", [1, 25])
def test_a_provider_that_only_rejects_ends_the_pool_after_half_an_hour(
    kind: type[ProviderError], hint_s: float | None, blocks: int
) -> None:
    provider = Judging(lambda _request, _s: kind("HTTP 429: no more", hint_s=hint_s))

    async def main(loop: VirtualLoop) -> None:
        events: list[PoolEvent] = []
        pool = pool_of(provider, loop, events)
        calls = (pool.call(request(i, f"p{i // blocks % 8}")) for i in range(200))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert 1800 <= loop.time() - 1000 < 1800 + 120
        assert sum(isinstance(o, PoolUnusable) for o in outcomes) > 190
        assert "all requests were rejected for 30 minutes" in str(pool.state.dead)
        assert "HTTP 429: no more" in str(pool.state.dead)
        assert [e.kind for e in events].count("pool_failed") == 1

    run(main)
    assert len(provider.sent) < 300


def test_an_accepted_request_between_rejections_keeps_the_pool_alive() -> None:
    few = iter(range(3))
    storms = Judging(
        lambda _request, s: (
            answer() if s > 3000 or (1500 < s < 1700 and next(few, None) is not None) else RateLimited("429")
        )
    )
    outcomes, _, took_s = ask_all(storms, 100, 8)
    assert took_s > 3000
    assert not any(isinstance(o, PoolUnusable) for o in outcomes)


@pytest.mark.parametrize("kind", [RateLimited, Overloaded])
@pytest.mark.parametrize("hint_s", [None, 20.0])
def test_a_prompt_that_is_always_rejected_fails_only_its_samples(
    kind: type[ProviderError], hint_s: float | None
) -> None:
    too_large = Judging(
        lambda request, _: kind("429", hint_s=hint_s) if request.prompt_sha256 == "p0" else answer()
    )

    async def main(loop: VirtualLoop) -> tuple[list[object], float]:
        pool = pool_of(too_large, loop)
        calls = (pool.call(request(i, f"p{i // 32}")) for i in range(9 * 32))
        return list(await asyncio.gather(*calls, return_exceptions=True)), loop.time() - 1000

    outcomes, took_s = run(main)
    assert all(isinstance(o, kind) for o in outcomes[:32])
    assert all(isinstance(o, Completion) for o in outcomes[32:])
    assert took_s < 3600


def test_a_long_answer_in_flight_prevents_giving_up() -> None:
    class OneAtATime(Script):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            if self.in_flight:
                raise RateLimited("429: one at a time", hint_s=60.0)
            self.in_flight += 1
            watch.first_token()
            await asyncio.sleep(2400)
            self.in_flight -= 1
            return answer()

    async def main(loop: VirtualLoop) -> None:
        pool = pool_of(OneAtATime(), loop)
        calls = [asyncio.create_task(pool.call(request(i, f"p{i}"))) for i in range(12)]
        await asyncio.sleep(2450)
        assert pool.state.calls_ok == 1
        assert pool.state.dead is None
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    run(main)


REFUSALS = {
    "a firewall's page": Failure(status=403, body="<html><h1>Request blocked.</h1></html>"),
    "a filter nobody knows": Failure(
        status=400, body={"error": {"type": "invalid_request_error", "message": "We cannot help with that."}}
    ),
    "no permission": Failure(status=403, body={"error": {"code": "permission-denied", "message": "denied"}}),
}


@pytest.mark.parametrize("failure", REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("refused_problems", [1, 9])
def test_refusals_end_the_pool_only_if_all_prompts_are_refused(
    failure: Failure, refused_problems: int
) -> None:
    def behave(request: ModelRequest, _s: float) -> ProviderError | Completion:
        if int(request.prompt_sha256[1:]) >= refused_problems:
            return answer()
        error = classify(failure, settings())
        assert isinstance(error, ProviderError)
        return error

    outcomes, _, _ = ask_all(Judging(behave), 9 * 32, 9)
    answered = sum(isinstance(o, Completion) for o in outcomes)
    assert answered == (9 - refused_problems) * 32
    assert any(isinstance(o, PoolUnusable) for o in outcomes) == (refused_problems == 9)


@pytest.mark.parametrize("limit", [1.0, 100.0])
def test_an_announced_limit_below_one_request_admits_one_at_a_time_and_is_reported_once(
    limit: float,
) -> None:
    limits = RateLimits(tokens=RateWindow(limit=limit, remaining=0.0, reset_s=1.0))
    outcomes, events, took_s = ask_all(Judging(lambda _request, _s: answer(), limits=limits), 40, 4)
    assert all(isinstance(o, Completion) for o in outcomes)
    assert took_s < 100
    assert [e.detail for e in events] == [f"one at a time: {limit:g} tokens a minute are announced"]


def test_a_configured_limit_below_one_request_is_kept() -> None:
    async def main(loop: VirtualLoop) -> None:
        pool = pool_of(Script(), loop, output_tokens_per_minute=5)
        await asyncio.gather(*(pool.call(request(i)) for i in range(3)))
        assert loop.time() - 1000 > 120

    run(main)


def test_an_outage_of_two_minutes_fails_no_call_and_costs_few_requests() -> None:
    class Away(Script):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            self.sent.append((asyncio.get_running_loop().time(), request.key.sample))
            await asyncio.sleep(0.5)
            if 1003 < asyncio.get_running_loop().time() < 1123:
                raise TransientError("502: bad gateway", status=502)
            return answer()

    provider = Away()
    outcomes, _, _ = ask_all(provider, 300, 5)
    assert sum(isinstance(o, TransientError) for o in outcomes) <= 3
    assert sum(1010 < at < 1123 for at, _ in provider.sent) <= 12


@pytest.mark.parametrize(
    "heard", [RateLimited("429", hint_s=0.5), RequestRejected("400: too long", status=400)]
)
def test_a_response_between_failures_ends_an_outage(heard: ProviderError) -> None:
    provider = Script(*([TransientError("reset")] * 4 + [heard]) * 30, latency_s=0.01)
    outcomes, _, _ = ask_all(provider, 200, 5)
    assert not any("no longer answers" in str(o) for o in outcomes)


def test_if_every_stream_breaks_the_pool_ends_before_every_call_is_billed_twice() -> None:
    provider = Script(*(TransientError("cut") for _ in range(2000)), latency_s=1.0)
    provider.streams_first = True
    outcomes, _, _ = ask_all(provider, 1000, 5)
    assert isinstance(outcomes[-1], PoolUnusable)
    assert len(provider.sent) < 400  # of two thousand


def test_one_prompt_that_breaks_the_server_does_not_end_the_pool_and_soon_gets_one_attempt() -> None:
    provider = Script(*(TransientError("500") for _ in range(64 * 6)), latency_s=0.01)
    outcomes, events, _ = ask_all(provider, 64, 1)
    assert not any(isinstance(o, PoolUnusable) for o in outcomes)
    assert not any(e.kind == "pool_failed" for e in events)
    assert len(provider.sent) <= 60 + 64


def refused(message: str, *, meets_all: bool = False, likeness: str = "") -> RequestRejected:
    error = RequestRejected(message, status=400)
    error.meets_all, error.likeness = meets_all, likeness
    return error


def test_ten_equal_refusals_of_all_prompts_end_the_pool() -> None:
    provider = Script(
        *(refused(f"400: no such parameter (request {i})", likeness="400 no such") for i in range(500)),
        latency_s=0.05,
    )
    outcomes, events, _ = ask_all(provider, 256, 5)
    assert len(provider.sent) <= 10 + 8  # those in flight when the tenth came back
    assert isinstance(outcomes[-1], PoolUnusable)
    assert "every request is refused for the same reason: 400: no such parameter" in next(
        e.detail for e in events if e.kind == "pool_failed"
    )


def test_with_one_prompt_only_an_error_that_concerns_all_requests_ends_the_pool() -> None:
    alone = Script(*(refused("400: this prompt", likeness="x") for _ in range(64)))
    outcomes, _, _ = ask_all(alone, 64, 1)
    assert not any(isinstance(o, PoolUnusable) for o in outcomes)
    assert len(alone.sent) == 64
    everybody = Script(*(refused("400: api-version", meets_all=True, likeness="x") for _ in range(64)))
    outcomes, _, _ = ask_all(everybody, 64, 1)
    assert isinstance(outcomes[-1], PoolUnusable)
    assert len(everybody.sent) <= 18


def test_refusals_of_one_agents_requests_do_not_end_the_pool() -> None:
    """Several agents on one problem do not end the pool: that needs equal refusals of three prompts."""

    async def main(loop: VirtualLoop) -> None:
        pool = pool_of(Script(*(refused("400: no id", likeness="x") for _ in range(30))), loop)
        body = NativeBody(fields={})
        for number in range(30):
            with pytest.raises(RequestRejected):
                await pool.call(replace(request(number % 3), native=body, prompt_sha256=str(number)))

    run(main)


def test_different_refusals_or_refusals_between_answers_do_not_end_the_pool() -> None:
    mixed = [refused(f"400: {i}", likeness=str(i % 4)) for i in range(40)]
    outcomes, _, _ = ask_all(Script(*mixed), 40, 5)
    assert not any(isinstance(o, PoolUnusable) for o in outcomes)
    between = [refused("400", likeness="x") if i % 8 else answer() for i in range(80)]
    outcomes, _, _ = ask_all(Script(*between), 80, 5)
    assert not any(isinstance(o, PoolUnusable) for o in outcomes)


@pytest.mark.parametrize("error", [RateLimited, Overloaded, TransientError])
def test_an_error_after_billed_text_is_paid_for_at_most_twice(error: type[ProviderError]) -> None:
    class Breaks(Script):
        async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
            self.sent.append((asyncio.get_running_loop().time(), request.key.sample))
            watch.first_token()
            watch.streamed(400)
            await asyncio.sleep(0.1)
            raise error("in mid-stream")

    provider = Breaks()
    outcomes, _, _ = ask_all(provider, 6, 6)
    assert len(provider.sent) == 12
    assert all(isinstance(o, ProviderError) and o.attempts == 2 for o in outcomes)
    assert all(isinstance(o, ProviderError) and o.cost_usd for o in outcomes)


def test_the_state_has_counts_of_calls_retries_and_tokens() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider = Script(RateLimited("429", hint_s=2.0), TransientError("reset"), answer())
        pool = pool_of(provider, loop, requests_per_minute=600)
        await pool.call(request())
        state = pool.state
        assert (state.calls_ok, state.rate_limited, state.retries) == (1, 1, 2)
        assert (state.input_tokens, state.output_tokens, state.cost_usd) == (100, 10, 110.0)
        assert [b.dimension for b in state.buckets] == ["requests"]
        assert state.tokens_per_minute > 0

    run(main)

"""Rule 14: a ceiling on the cost, with requests in flight at their worst case."""

import asyncio
import random

import pytest
from limited_provider import answer, request, settings
from virtual_time import VirtualLoop, run

from astra_async.asking.throttle import Budget, Pool
from astra_async.errors import BudgetExhausted, ConfigError, ProviderError, TransientError
from astra_async.types import CallWatch, Completion, ModelRequest, Usage


class Priced:
    """Provider that answers after a second and sums its charges."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self, output_tokens: int = 10, latency_s: float = 1.0) -> None:
        self.output_tokens = output_tokens
        self.latency_s = latency_s
        self.charged_usd = 0.0
        self.worst_usd = 0.0
        self.in_flight = 0
        self.errors: list[ProviderError] = []

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        self.in_flight += 1
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        if self.errors:
            raise self.errors.pop()
        self.charged_usd += (100 + self.output_tokens) / 1000
        return answer(Usage(input_tokens=100, cached_tokens=0, output_tokens=self.output_tokens))

    async def close(self) -> None:
        pass


def price(usage: Usage) -> float | None:
    return ((usage.input_tokens or 0) + (usage.output_tokens or 0)) / 1000


def pool_of(provider: Priced, loop: VirtualLoop, budget: Budget, max_tokens: int = 100) -> Pool:
    return Pool(
        settings(max_tokens=max_tokens),
        provider,
        price=price,
        budget=budget,
        clock=loop.time,
        rng=random.Random(0),
    )


def small(sample: int) -> ModelRequest:
    return request(sample, prompt="x" * 200)  # at worst 100 tokens


async def outcomes_of(pool: Pool, count: int) -> list[Completion | BaseException]:
    return await asyncio.gather(*(pool.call(small(i)) for i in range(count)), return_exceptions=True)


def test_spending_never_exceeds_the_ceiling_and_uses_most_of_it() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider, budget = Priced(), Budget(2.0)
        outcomes = await outcomes_of(pool_of(provider, loop, budget), 100)
        assert 1.75 < provider.charged_usd <= 2.0
        assert budget.spent_usd == pytest.approx(provider.charged_usd)
        assert budget.reserved_usd == 0
        assert {type(o) for o in outcomes} == {Completion, BudgetExhausted}

    run(main)


def test_requests_in_flight_count_at_their_worst_case() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider, budget = Priced(latency_s=5.0), Budget(1.0)
        pool = pool_of(provider, loop, budget)
        calls = asyncio.create_task(outcomes_of(pool, 50))
        await asyncio.sleep(4)
        assert provider.in_flight == 5  # 0.20 each
        assert pool.state.held_by == "budget"
        assert budget.reserved_usd == pytest.approx(1.0)
        await calls

    run(main)


def test_the_message_names_the_ceiling_and_the_remedy() -> None:
    async def main(loop: VirtualLoop) -> None:
        with pytest.raises(BudgetExhausted, match=r"\$0\.01 .*raise --budget-usd above 0\.20") as raised:
            await pool_of(Priced(), loop, Budget(0.01)).call(small(0))
        assert raised.value.raise_to_usd == 0.4

    run(main)


def test_a_settlement_in_one_pool_admits_a_call_in_another() -> None:
    async def main(loop: VirtualLoop) -> None:
        budget = Budget(0.35)
        slow, quick = Priced(latency_s=30.0), Priced(latency_s=0.1)
        first = asyncio.create_task(pool_of(slow, loop, budget).call(small(0)))
        await asyncio.sleep(0.01)
        await pool_of(quick, loop, budget).call(small(1))
        assert loop.time() == pytest.approx(1030.1, abs=0.05)
        await first

    run(main)


def test_a_failed_attempt_frees_its_reservation() -> None:
    async def main(loop: VirtualLoop) -> None:
        provider, budget = Priced(), Budget(0.35)
        provider.errors = [TransientError("reset") for _ in range(3)]
        completion = await pool_of(provider, loop, budget).call(small(0))
        assert completion.attempts == 4
        assert budget.spent_usd == pytest.approx(0.11)

    run(main)


def test_a_cancelled_call_frees_its_reservation() -> None:
    async def main(loop: VirtualLoop) -> None:
        budget = Budget(0.25)
        pool = pool_of(Priced(latency_s=100.0), loop, budget)
        first = asyncio.create_task(pool.call(small(0)))
        second = asyncio.create_task(pool.call(small(1)))
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.sleep(1)
        assert pool.state.in_flight == 1
        assert (await second).attempts == 1

    run(main)


def test_the_cost_of_earlier_invocations_counts() -> None:
    async def main(loop: VirtualLoop) -> None:
        outcomes = await outcomes_of(pool_of(Priced(), loop, Budget(2.0, spent_usd=1.75)), 5)
        assert sum(isinstance(o, Completion) for o in outcomes) == 1

    run(main)


def test_a_budget_without_a_price_is_a_configuration_error_with_the_remedy() -> None:
    async def main(loop: VirtualLoop) -> None:
        with pytest.raises(ConfigError, match="price_input and price_output"):
            Pool(settings(), Priced(), price=lambda _: None, budget=Budget(1.0), clock=loop.time)

    run(main)


@pytest.mark.parametrize("ceiling", [0.0, -1.0, float("nan"), float("inf")])
def test_a_ceiling_must_be_above_zero(ceiling: float) -> None:
    with pytest.raises(ConfigError, match="--budget-usd"):
        Budget(ceiling)

"""Rule 3: token estimates of requests."""

import pytest
from limited_provider import LimitedProvider, request

from astra_async.asking.throttle.estimate import Estimator
from astra_async.types import Usage


def estimator(*, charges: bool = False, exempt: bool = False, max_tokens: int = 8000) -> Estimator:
    provider = LimitedProvider(lambda: 0.0)
    provider.charges_max_tokens, provider.cached_input_is_exempt = charges, exempt
    return Estimator(max_tokens, provider)


def test_a_first_guess_is_bytes_by_3_2_and_a_quarter_more() -> None:
    demand = estimator().demand(request(prompt="x" * 3200), warm=False)
    assert demand.input_tokens == pytest.approx(1250)
    assert demand.guessed


def test_bytes_count_and_not_characters() -> None:
    demand = estimator().demand(request(prompt="€" * 3200), warm=False)
    assert demand.input_tokens == pytest.approx(3750)


def test_other_prompts_are_estimated_from_the_average_of_counted_ones() -> None:
    known = estimator()
    known.learn(request(problem="a", prompt="x" * 1000), Usage(input_tokens=400, output_tokens=10))
    known.learn(request(problem="b", prompt="x" * 3000), Usage(input_tokens=800, output_tokens=10))
    demand = known.demand(request(problem="c", prompt="x" * 2000), warm=False)
    assert demand.input_tokens == pytest.approx(600)
    assert not demand.guessed


def test_a_prompt_that_was_counted_is_known_exactly() -> None:
    known = estimator()
    known.learn(request(problem="a"), Usage(input_tokens=777, output_tokens=10))
    assert known.demand(request(problem="a"), warm=False).input_tokens == 777


def test_output_is_max_tokens_if_the_provider_charges_max_tokens() -> None:
    known = estimator(charges=True)
    known.learn(request(), Usage(input_tokens=1, output_tokens=10))
    assert known.demand(request(), warm=False).output_tokens == 8000


def test_output_is_the_ninetieth_percentile_of_earlier_outputs() -> None:
    known = estimator()
    for tokens in range(1, 101):
        known.learn(request(), Usage(input_tokens=1, output_tokens=tokens))
    assert known.demand(request(), warm=False).output_tokens == 90


def test_the_percentile_forgets_old_outputs() -> None:
    known = estimator()
    for tokens in [5000] * 500 + [10] * 200:
        known.learn(request(), Usage(input_tokens=1, output_tokens=tokens))
    assert known.demand(request(), warm=False).output_tokens == 10


def test_exempt_cached_input_reserves_nothing() -> None:
    known = estimator(exempt=True)
    known.learn(request(), Usage(input_tokens=1000, cached_tokens=990, output_tokens=1))
    assert known.demand(request(), warm=True).input_tokens == 10
    assert known.demand(request(), warm=False).input_tokens == 1000
    elsewhere = estimator(exempt=False)
    elsewhere.learn(request(), Usage(input_tokens=1000, cached_tokens=990, output_tokens=1))
    assert elsewhere.demand(request(), warm=True).input_tokens == 1000


def test_used_tokens_exclude_exempt_tokens() -> None:
    used = estimator(exempt=True).learn(
        request(), Usage(input_tokens=1000, cached_tokens=900, output_tokens=50)
    )
    assert used is not None
    assert (used.input_tokens, used.output_tokens) == (100, 50)


def test_without_a_usage_the_used_tokens_are_unknown() -> None:
    assert estimator().learn(request(), Usage(output_tokens=3)) is None


def test_missing_counts_are_estimated_from_the_prompt_and_the_characters() -> None:
    filled = estimator().fill(None, request(prompt="x" * 3200), characters=320)
    assert (filled.input_tokens, filled.output_tokens) == (1250, 100)
    partly = estimator().fill(Usage(input_tokens=7), request(), characters=320)
    assert (partly.input_tokens, partly.output_tokens) == (7, 100)


def test_the_worst_case_is_two_bytes_a_token_until_the_prompt_was_counted() -> None:
    known = estimator()
    known.learn(request(problem="a", prompt="x" * 4000), Usage(input_tokens=1000, output_tokens=10))
    assert known.worst(request(problem="b", prompt="x" * 4000)) == Usage(
        input_tokens=2000, output_tokens=8000
    )
    assert known.worst(request(problem="a")) == Usage(input_tokens=1000, output_tokens=8000)

"""The cost of a call is that of what was served and reported, not of what was asked for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from bedrock_server import frame
from provider_calls import KEYS, request, settings
from recorded import chat_chunk, gemini_chunk
from wire_server import Reply, named, serving, sse

from astra_async.asking.providers import open_provider
from astra_async.asking.providers.models import cost_usd
from astra_async.asking.throttle import Pool
from astra_async.asking.throttle.retry import CallHistory
from astra_async.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

PROMPT = "Add a field to the model, please. " * 400
TOKENS = Usage(input_tokens=4000, output_tokens=500)
OWN: dict[str, Any] = {"price_input": 1.0, "price_output": 2.0}
OWN_USD = 4000e-6 + 2 * 500e-6


def asked(spec: str, stream: bytes, headers: Mapping[str, str] | None = None, **fields: Any) -> Completion:
    """One answer through the pool, at the prices that a run uses."""

    async def run() -> Completion:
        async with serving(Reply(pieces=[stream], headers=dict(headers or {}))) as server:
            chosen = settings(spec, base_url=server.base_url, **fields)
            provider = open_provider(chosen, environ=KEYS)
            pool = Pool(chosen, provider, price=partial(cost_usd, chosen))
            try:
                return await pool.call(request(PROMPT))
            finally:
                await pool.close()
                await provider.close()

    return asyncio.run(run())


def chat(usage: dict[str, Any] | None = None, **chunk: Any) -> bytes:
    counts = {"prompt_tokens": 4000, "completion_tokens": 500, **(usage or {})}
    return sse(chat_chunk({"content": "42"}, **chunk), chat_chunk({}, "stop", usage=counts), "[DONE]")


def responses(usage: dict[str, Any] | None = None, **fields: Any) -> bytes:
    counts = {"input_tokens": 4000, "output_tokens": 500, **(usage or {})}
    said = [{"type": "message", "content": [{"type": "output_text", "text": "42"}]}]
    whole = {"status": "completed", "model": "m", "output": said, "usage": counts, **fields}
    return named({"type": "response.completed", "response": whole})


def messages(
    start: dict[str, Any], end: dict[str, Any], *, text: str = "42", reason: str = "end_turn"
) -> bytes:
    said = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}] if text else []
    return named(
        {"type": "message_start", "message": {"model": "m", "usage": start}},
        *said,
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": end},
        {"type": "message_stop"},
    )


def gemini(**usage: Any) -> bytes:
    counts = {"promptTokenCount": 4000, "candidatesTokenCount": 500, **usage}
    return sse(gemini_chunk({"text": "42"}, usageMetadata=counts), gemini_chunk(finish="STOP"))


def converse(**metadata: Any) -> bytes:
    return (
        frame("contentBlockDelta", {"delta": {"text": "42"}})
        + frame("messageStop", {"stopReason": "end_turn"})
        + frame("metadata", {"usage": {"inputTokens": 4000, "outputTokens": 500}, **metadata})
    )


CLAUDE = {"input_tokens": 4000, "output_tokens": 1}
END = {"output_tokens": 500}
HAIKU = "bedrock/anthropic.claude-3-haiku-20240307-v1:0"


@pytest.mark.parametrize(
    ("spec", "stream", "headers", "times"),
    [
        ("openai/gpt-5", chat(service_tier="priority"), {}, 2.0),
        ("openai/gpt-5", chat(service_tier="flex"), {}, 0.5),
        ("openai/gpt-5", chat(service_tier="default"), {}, 1.0),
        ("openai-responses/gpt-5", responses(service_tier="priority"), {}, 2.0),
        ("gemini/gemini-3-flash-preview", gemini(trafficType="ON_DEMAND"), {}, 1.0),
        ("gemini/gemini-3-flash-preview", gemini(serviceTier="STANDARD"), {}, 1.0),
        ("anthropic/claude-sonnet-4-5", messages({**CLAUDE, "service_tier": "batch"}, END), {}, 1.0),
    ],
)  # fmt: skip
def test_the_served_tier_decides_the_price(
    spec: str, stream: bytes, headers: dict[str, str], times: float
) -> None:
    standard = cost_usd(settings(spec), TOKENS)
    assert standard is not None
    answer = asked(spec, stream, headers, service_tier="auto" if times != 1 else None)
    assert answer.cost_usd == pytest.approx(times * standard)
    assert not answer.cost_estimated


def test_fast_inference_of_claude_has_its_own_price() -> None:
    stream = messages({**CLAUDE, "speed": "fast"}, END)
    spec = "anthropic/claude-opus-4-8"
    standard = cost_usd(settings(spec), TOKENS)
    assert standard is not None
    answer = asked(spec, stream)
    assert answer.cost_usd is not None
    assert answer.cost_usd > 1.5 * standard
    assert (answer.usage.service_tier, answer.cost_estimated) == ("fast", False)


@pytest.mark.parametrize(
    ("spec", "stream", "headers", "tier"),
    [
        ("gemini/gemini-3-flash-preview", gemini(), {"x-gemini-service-tier": "Flex"}, "flex"),
        ("gemini/gemini-3-flash-preview", gemini(trafficType="ON_DEMAND_FLEX"), {}, "flex"),
        ("gemini/gemini-3-flash-preview", gemini(serviceTier="PRIORITY"), {}, "priority"),
        ("anthropic/claude-opus-4-8", messages({**CLAUDE, "service_tier": "priority"}, END), {}, "priority"),
        ("openai/gpt-4o-mini", chat(service_tier="scale"), {}, "scale"),
        (HAIKU, converse(serviceTier={"type": "priority"}), {}, "priority"),
        (HAIKU, converse(performanceConfig={"latency": "optimized"}), {}, "optimized"),
    ],
)  # fmt: skip
def test_a_tier_without_a_price_makes_the_cost_an_estimate(
    spec: str, stream: bytes, headers: dict[str, str], tier: str
) -> None:
    answer = asked(spec, stream, headers)
    assert answer.cost_usd == pytest.approx(cost_usd(settings(spec), TOKENS))
    assert (answer.cost_estimated, answer.unpriced_tier) == (True, tier)


def test_own_prices_are_those_of_the_tier_that_is_asked_for() -> None:
    same = asked("openai/gpt-5", chat(service_tier="priority"), service_tier="priority", **OWN)
    other = asked("openai/gpt-5", chat(service_tier="default"), service_tier="priority", **OWN)
    assert same.cost_usd == other.cost_usd == pytest.approx(OWN_USD)
    assert (same.cost_estimated, other.cost_estimated) == (False, True)
    assert other.unpriced_tier == "default"


UPSTREAM = {"upstream_inference_cost": 0.03}
REPORTED = [
    ("openai-compatible/m", chat({"cost": 0.0125}), {}, 0.0125),
    ("openai-compatible/m", chat({"cost": 0.0}), {}, 0.0),
    ("openai-compatible/m", chat({"cost": 0.001, "cost_details": UPSTREAM}), {}, 0.031),
    ("openai-compatible/m", chat({"cost": 0.02, "is_byok": False, "cost_details": UPSTREAM}), {}, 0.02),
    ("openai-compatible/m", chat({"cost": 0.02, "cost_details": dict.fromkeys(UPSTREAM)}), {}, 0.02),
    ("openai-compatible/m", chat({"cost_in_usd_ticks": 37_756_000}), {}, 0.0037756),
    ("openai-responses/m", responses({"cost_in_usd_ticks": 37_756_000}), {}, 0.0037756),
    ("openai-compatible/m", chat({"cost": {"total_cost": 0.006}}), {}, 0.006),
    ("openai-compatible/m", chat({"estimated_cost": 0.0004}), {}, 0.0004),
    ("openai-compatible/m", chat(), {"x-litellm-response-cost": "0.0042"}, 0.0042),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "stream", "headers", "usd"), REPORTED)
def test_a_reported_cost_is_the_cost(spec: str, stream: bytes, headers: dict[str, str], usd: float) -> None:
    answer = asked(spec, stream, headers)
    assert answer.cost_usd == pytest.approx(usd)
    assert answer.usage.reported_usd == pytest.approx(usd)
    own = asked(spec, stream, headers, **OWN)
    assert own.cost_usd == own.priced_usd == pytest.approx(OWN_USD)


@pytest.mark.parametrize("cost", ["0.0125", -1, float("1e300"), True, {"sum": 1}, [1], None])
def test_a_reported_cost_that_cannot_be_true_is_ignored(cost: object) -> None:
    answer = asked("openai-compatible/m", chat({"cost": cost, "cost_details": "none"}), **OWN)
    assert answer.usage.reported_usd is None
    assert answer.cost_usd == pytest.approx(OWN_USD)


@pytest.mark.parametrize("text", ["0.0", "None", "", "nan"])
def test_litellms_header_of_a_stream_says_nothing(text: str) -> None:
    assert asked("openai-compatible/m", chat(), {"x-litellm-response-cost": text}).cost_usd is None


def test_a_zero_in_a_later_event_removes_no_count() -> None:
    stream = messages(
        {"input_tokens": 5000, "cache_read_input_tokens": 300}, {"input_tokens": 0, "output_tokens": 500}
    )
    usage = asked("anthropic/m", stream).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (5300, 300, 500)
    zero = chat_chunk({}, usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
    usage = asked("openai/m", chat().replace(b"data: [DONE]", sse(zero, "[DONE]"))).usage
    assert (usage.input_tokens, usage.output_tokens) == (4000, 500)
    late = sse(gemini_chunk(usageMetadata={"promptTokenCount": 0, "candidatesTokenCount": 0}))
    usage = asked("gemini/m", gemini() + late).usage
    assert (usage.input_tokens, usage.output_tokens) == (4000, 500)
    late = frame("metadata", {"usage": {"inputTokens": 0, "outputTokens": 0}})
    usage = asked("bedrock/m", converse() + late).usage
    assert (usage.input_tokens, usage.output_tokens) == (4000, 500)


def test_input_that_a_later_event_splits_is_not_counted_twice() -> None:
    end = {"input_tokens": 8, "cache_read_input_tokens": 4992, "output_tokens": 500}
    usage = asked("anthropic/m", messages({"input_tokens": 5000, "output_tokens": 1}, end)).usage
    assert (usage.input_tokens, usage.cached_tokens) == (5000, 4992)


@pytest.mark.parametrize("output", [0, 1, None])
def test_a_refusal_of_claude_before_any_output_is_free(output: int | None) -> None:
    answer = asked(
        "anthropic/claude-sonnet-4-5", messages(CLAUDE, {"output_tokens": output}, text="", reason="refusal")
    )
    assert answer.finish_reason == "refusal"
    assert (answer.cost_usd, answer.cost_estimated) == (0.0, False)


def test_a_refusal_of_claude_after_output_is_paid_for() -> None:
    stream = messages(CLAUDE, {"output_tokens": 500}, text="First, ", reason="refusal")
    assert asked("anthropic/claude-sonnet-4-5", stream).cost_usd == pytest.approx(
        cost_usd(settings("anthropic/claude-sonnet-4-5"), TOKENS)
    )


ITERATION = {"input_tokens": 23_000, "output_tokens": 1000, "cache_read_input_tokens": 0}


@pytest.mark.parametrize(
    ("iterations", "tokens"),
    [
        ([{**ITERATION, "type": "compaction", "input_tokens": 180_000, "output_tokens": 3500},
          {**ITERATION, "type": "message"}], (203_000, 4500)),
        ([{**ITERATION, "type": "message"},
          {**ITERATION, "type": "advisor_message", "cache_read_input_tokens": 500}], (46_500, 2000)),
        ([{**ITERATION, "type": "message", "output_tokens": 0}, {**ITERATION, "type": "fallback_message"}],
         (23_000, 1000)),
        ([{**ITERATION, "type": "message", "output_tokens": 7}, {**ITERATION, "type": "fallback_message"}],
         (46_000, 1007)),
        ([], (23_000, 1000)),
        (None, (23_000, 1000)),
    ],
)  # fmt: skip
def test_all_iterations_of_a_request_are_billed(
    iterations: list[dict[str, Any]] | None, tokens: tuple[int, int]
) -> None:
    end = {"output_tokens": 1000, "iterations": iterations}
    usage = asked("anthropic/m", messages({**ITERATION, "output_tokens": 1}, end)).usage
    assert (usage.input_tokens, usage.output_tokens) == tokens


def test_an_estimated_cost_stays_one() -> None:
    answer = Completion(text="", finish_reason="stop", usage=Usage(), returned_model="", unpriced_tier="x")
    assert CallHistory().complete(answer, Usage()).cost_estimated
    assert not CallHistory().complete(replace(answer, unpriced_tier=""), Usage()).cost_estimated

"""What is paid for: nothing that was refused, nothing without content, all else at a true price."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest
from bedrock_server import frame
from hypothesis import given
from hypothesis import strategies as st
from provider_calls import KEYS, Watch, call, request, settings
from recorded import RECORDED, chat_chunk, gemini_chunk
from wire_server import Reply, named, serving, sse

from astra_async.asking.providers import open_provider
from astra_async.asking.providers.answer import Json, Reader, StreamFault
from astra_async.asking.providers.reception import Reception
from astra_async.asking.throttle import Budget, Pool
from astra_async.errors import BudgetExhausted, Overloaded, ProviderError, TransientError
from astra_async.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.types import ModelRequest, ModelSettings

PROMPT = "Add a field to the model, please. " * 40
TEXT = "const answer = 42; // and so on\n" * 40
SPECS = [recorded.spec for recorded in RECORDED]
NAMES = {spec.partition("/")[0]: spec for spec in SPECS}


def price(usage: Usage) -> float | None:
    """A dollar for a million tokens."""
    assert usage.input_tokens is not None
    assert usage.output_tokens is not None
    return (usage.input_tokens + usage.output_tokens) / 1e6


async def asked(
    chosen: ModelSettings, requests: list[ModelRequest], *, budget: Budget | None = None
) -> list[Completion | BaseException]:
    """What a pool makes of requests, one after the other."""
    provider = open_provider(chosen, environ=KEYS)
    pool = Pool(chosen, provider, price=price, budget=budget, rng=random.Random(0))
    try:
        return [(await asyncio.gather(pool.call(each), return_exceptions=True))[0] for each in requests]
    finally:
        await pool.close()
        await provider.close()


def against(spec: str, *replies: Reply, count: int = 1, **fields: Any) -> list[Completion | BaseException]:
    async def run() -> list[Completion | BaseException]:
        async with serving(*replies) as server:
            chosen = settings(spec, base_url=server.base_url, max_tokens=2000, **fields)
            return await asked(chosen, [request(PROMPT)] * count)

    return asyncio.run(run())


# --- a fault that a reader raises --------------------------------------------------------------------------

SETS: dict[str, Callable[[Reader], None]] = {
    "reason": lambda reader: setattr(reader, "reason", "stop"),
    "done": lambda reader: setattr(reader, "done", True),
    "text": lambda reader: reader.transcript.add("half an answer"),
    "begun": lambda reader: setattr(reader.transcript, "begun", True),
    "counts": lambda reader: setattr(reader, "counts", {"x": 1}),
    "model": lambda reader: setattr(reader, "model", "m"),
}


class Odd(Reader):
    """Does what an event names, in its order, and then fails if the event says so."""

    def feed(self, event: Json | None) -> None:
        for name in (event or {}).get("sets", ()):
            SETS[name](self)
        if "fails" in (event or {}):
            raise StreamFault({"error": {"message": "broke off"}}) if event["fails"] == "fault" else KeyError  # type: ignore[index]

    def usage(self) -> Usage:
        return Usage()


@given(
    before=st.lists(st.sampled_from(["text", "begun", "counts", "model"]), max_size=3),
    sets=st.permutations(list(SETS)).flatmap(lambda all_of: st.integers(0, 6).map(lambda n: all_of[:n])),
    how=st.sampled_from(["fault", "shape"]),
)
def test_no_fault_is_swallowed_whatever_the_event_had_set_before(
    before: list[str], sets: list[str], how: str
) -> None:
    reader = Odd()
    reader.take({"sets": before})
    with pytest.raises((StreamFault, KeyError)):
        reader.take({"sets": sets, "fails": how})
    assert reader.answer() is None
    assert not reader.done
    reception = Reception(settings(), Watch(), Odd())
    reception.reader.take({"sets": before})
    with pytest.raises(StreamFault) as caught:
        reception.take([b'{"sets": ["text", "reason", "done"], "fails": "fault"}'])
    with pytest.raises(TransientError, match="broke off"):
        reception.broken(caught.value)


def test_an_answer_that_had_ended_before_a_fault_is_whole() -> None:
    reader = Odd()
    reader.take({"sets": ["text"]})
    reader.take({"sets": ["reason"]})
    with pytest.raises(StreamFault):
        reader.take({"sets": ["counts"], "fails": "fault"})
    answer = reader.answer()
    assert answer is not None
    assert answer.finish_reason == "stop"


# --- refusals ----------------------------------------------------------------------------------------------


def refusal(spec: str, code: str, message: str) -> Reply:
    headers = {"x-amzn-errortype": "ValidationException"} if spec.startswith("bedrock") else {}
    body = f'{{"message": "{message}", "error": {{"code": "{code}", "message": "{message}"}}}}'
    if spec.startswith("bedrock"):
        body = f'{{"message": "{message}"}}'
    return Reply(status=400, pieces=[body.encode()], headers=headers, content_type="application/json")


@pytest.mark.parametrize("spec", SPECS)
def test_a_refused_request_costs_nothing(spec: str) -> None:
    (came,) = against(spec, refusal(spec, "context_length_exceeded", "prompt is too long"))
    assert isinstance(came, Completion), came
    assert came.finish_reason == "context_exceeded"
    assert (came.cost_usd, came.cost_estimated) == (0.0, False)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.startswith("bedrock")])
def test_a_filtered_prompt_costs_nothing(spec: str) -> None:
    (came,) = against(spec, refusal(spec, "content_filter", "no"))
    assert isinstance(came, Completion), came
    assert came.finish_reason == "content_filter"
    assert (came.cost_usd, came.cost_estimated) == (0.0, False)


def test_what_a_refusal_teaches_is_not_that_prompts_are_free() -> None:
    """The next request's worst case still counts its prompt."""
    refused = refusal("openai/toy", "context_length_exceeded", "too long")
    plain = Reply(pieces=[sse(chat_chunk({"content": TEXT}, "stop"), "[DONE]")])
    _, came = against("openai/toy", refused, plain, count=2)
    assert isinstance(came, Completion)
    assert came.cost_estimated
    assert (came.cost_usd or 0) > (len(PROMPT) + len(TEXT)) / 6 / 1e6


# --- no content --------------------------------------------------------------------------------------------

OVERLOADED = {"message": "Overloaded", "type": "overloaded_error", "code": "overloaded_error"}
CHAT_START = chat_chunk(
    {"role": "assistant", "content": ""}, usage={"prompt_tokens": 400, "completion_tokens": 1}
)
START = {"model": "toy-1", "usage": {"input_tokens": 400, "output_tokens": 1}}
EMPTY = {  # a beginning without any content, with counts, and then an error
    "openai": sse(CHAT_START, {"error": OVERLOADED}),
    "openai-compatible": sse(CHAT_START, {"error": OVERLOADED}),
    "azure": sse(CHAT_START, {"error": OVERLOADED}),
    "openai-responses": named(
        {"type": "response.created", "response": START}, {"type": "error", "error": OVERLOADED}
    ),
    "anthropic": named(
        {"type": "message_start", "message": START}, {"type": "ping"}, {"type": "error", "error": OVERLOADED}
    ),
    "gemini": sse(
        gemini_chunk(usageMetadata={"promptTokenCount": 400, "candidatesTokenCount": 1}),
        {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded"}},
    ),
    "bedrock": frame("messageStart", {"role": "assistant"})
    + frame("metadata", {"usage": {"inputTokens": 400, "outputTokens": 1}})
    + frame("serviceUnavailableException", {"message": "Overloaded"}, message="exception"),
}


@pytest.mark.parametrize("name", sorted(EMPTY))
async def test_without_content_no_text_was_bought(name: str) -> None:
    async def run() -> ProviderError:
        async with serving(Reply(pieces=[EMPTY[name]])) as server:
            with pytest.raises(Overloaded) as caught:
                await call(settings(NAMES[name], base_url=server.base_url))
            return caught.value

    assert (await run()).usage is None


def test_a_stream_that_fails_before_any_content_is_asked_again_as_often_as_any_other() -> None:
    recorded = next(each for each in RECORDED if each.spec == "anthropic/toy")
    failing = Reply(pieces=[EMPTY["anthropic"].replace(b"overloaded_error", b"api_error")])
    (came,) = against("anthropic/toy", failing, failing, failing, Reply(pieces=[recorded.stream]))
    assert isinstance(came, Completion), came
    assert came.attempts == 4
    assert came.cost_usd == pytest.approx(price(came.usage))


async def test_a_failed_response_that_says_what_it_cost_is_paid_for() -> None:
    """Hidden reasoning is billed although nothing of it is seen."""
    failed = {"status": "failed", "error": {"code": "server_error", "message": "x"}}
    usage = {"input_tokens": 400, "output_tokens": 5000}
    stream = named({"type": "response.failed", "response": {**failed, "usage": usage}})

    async def run() -> ProviderError:
        async with serving(Reply(pieces=[stream])) as server:
            with pytest.raises(TransientError) as caught:
                await call(settings("openai-responses/toy", base_url=server.base_url))
            return caught.value

    assert (await run()).usage == Usage(input_tokens=400, output_tokens=5000)


# --- counts that cannot be true ----------------------------------------------------------------------------


def chat(prompt: Any, output: Any) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    return sse(chat_chunk({"content": TEXT}), chat_chunk({}, "stop", usage=usage), "[DONE]")


def responses(prompt: Any, output: Any) -> bytes:
    usage = {"input_tokens": prompt, "output_tokens": output}
    said = [{"type": "message", "content": [{"type": "output_text", "text": TEXT}]}]
    whole = {"status": "completed", "model": "m", "output": said, "usage": usage}
    return named({"type": "response.completed", "response": whole})


def messages(prompt: Any, output: Any) -> bytes:
    return named(
        {
            "type": "message_start",
            "message": {"model": "m", "usage": {"input_tokens": prompt, "output_tokens": 1}},
        },
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": TEXT}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            **({} if output is None else {"usage": {"output_tokens": output}}),
        },
        {"type": "message_stop"},
    )


def gemini(prompt: Any, output: Any) -> bytes:
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": output}
    return sse(gemini_chunk({"text": TEXT}), gemini_chunk(finish="STOP", usageMetadata=usage))


def converse(prompt: Any, output: Any) -> bytes:
    return (
        frame("contentBlockDelta", {"delta": {"text": TEXT}})
        + frame("messageStop", {"stopReason": "end_turn"})
        + frame("metadata", {"usage": {"inputTokens": prompt, "outputTokens": output}})
    )


STREAMS: dict[str, Callable[[Any, Any], bytes]] = {
    **dict.fromkeys(("openai", "openai-compatible", "azure"), chat),
    "openai-responses": responses,
    "anthropic": messages,
    "gemini": gemini,
    "bedrock": converse,
}


@pytest.mark.parametrize("name", sorted(STREAMS))
@pytest.mark.parametrize("counts", [(0, 0), (0, None), (1, 1), (None, None), (0, 400), (400, 0), (400, None)])
def test_text_that_nobody_counted_is_estimated_and_says_so(
    name: str, counts: tuple[int | None, int | None]
) -> None:
    (came,) = against(NAMES[name], Reply(pieces=[STREAMS[name](*counts)]))
    assert isinstance(came, Completion), came
    assert came.text == TEXT
    assert came.cost_estimated
    assert came.usage.input_tokens in {None, 400}
    assert came.usage.output_tokens in {None, 400}
    assert 300e-6 < (came.cost_usd or 0) < 2000e-6  # some 700 tokens


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_true_counts_are_the_price(name: str) -> None:
    (came,) = against(NAMES[name], Reply(pieces=[STREAMS[name](400, 300)]))
    assert isinstance(came, Completion), came
    assert not came.cost_estimated
    assert came.cost_usd == pytest.approx(700e-6)


@pytest.mark.parametrize("name", sorted(STREAMS))
@pytest.mark.parametrize("counts", [(0, 0), (1, 1), (None, None)])
async def test_the_budget_bounds_a_server_that_counts_nothing(
    name: str, counts: tuple[int | None, int | None]
) -> None:
    async def run() -> tuple[list[Completion | BaseException], Budget]:
        budget = Budget(0.01)
        async with serving(Reply(pieces=[STREAMS[name](*counts)])) as server:
            chosen = settings(NAMES[name], base_url=server.base_url, max_tokens=2000)
            return await asked(chosen, [request(PROMPT)] * 40, budget=budget), budget

    came, budget = await run()
    answers = [each for each in came if isinstance(each, Completion)]
    assert 5 <= len(answers) <= 20
    assert isinstance(came[-1], BudgetExhausted)
    assert budget.spent_usd <= 0.01
    assert budget.spent_usd == pytest.approx(sum(each.cost_usd or 0 for each in answers))


def test_an_answer_of_one_character_over_and_over_is_estimated_at_its_limit() -> None:
    """Its tokens are longer than any text's: the estimate never passes what was asked for at most."""
    usage = {"prompt_tokens": 400, "completion_tokens": 700}
    stream = sse(chat_chunk({"content": " " * 70_000}), chat_chunk({}, "length", usage=usage), "[DONE]")
    (came,) = against("openai/toy", Reply(pieces=[stream]))
    assert isinstance(came, Completion)
    assert came.cost_usd == pytest.approx(2400e-6)

from __future__ import annotations

import asyncio
import random
import time

import aiohttp
import orjson
import pytest
from simulated_client import PROMPT, QUIET, chat, chat_body, running

from astra_async.errors import ConfigError
from astra_async.simulate.profiles import PROFILES
from astra_async.simulate.server import SimulatedServer
from astra_async.types.simulation import SimulationSettings
from waiting import PATIENCE_S, cpu_within


async def test_a_streamed_answer_has_role_text_finish_usage_and_done() -> None:
    async with running() as place:
        heard = await chat(place)
    assert (heard.status, heard.done, heard.finish) == (200, True, "stop")
    assert heard.headers["content-type"].startswith("text/event-stream")
    assert heard.events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "src/shop.js" in heard.text
    assert heard.usage is not None
    assert heard.usage["prompt_tokens"] == -(-len(PROMPT) * 10 // 36)
    reasoning = heard.usage["completion_tokens_details"]["reasoning_tokens"]
    assert heard.usage["completion_tokens"] - reasoning == -(-len(heard.text) * 10 // 36)
    assert heard.events[-1]["choices"] == []
    assert all(event["model"] == "steady" for event in heard.events)


async def test_chunks_have_the_size_that_was_set() -> None:
    async with running(SimulationSettings(speed=0, faults=False, chunk_characters=25)) as place:
        heard = await chat(place)
    pieces = [choice["delta"].get("content", "") for e in heard.events for choice in e["choices"]]
    sizes = [len(piece) for piece in pieces if piece]
    assert set(sizes[:-1]) == {25}
    assert sizes[-1] <= 25


async def test_usage_is_sent_only_where_it_was_asked_for() -> None:
    async with running() as place:
        heard = await chat(place, stream_options={})
    assert heard.usage is None
    assert heard.done


async def test_an_answer_that_is_not_streamed_says_the_same() -> None:
    async with running() as place:
        streamed = await chat(place)
        whole = orjson.loads((await chat(place, stream=False)).body)
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"]["content"] == streamed.text
    assert whole["usage"]["completion_tokens"] == (streamed.usage or {})["completion_tokens"]


async def test_a_sample_gets_the_same_answer_twice_in_any_order_and_after_a_restart() -> None:
    samples = [f"7/{fmt}/shop/{number}" for fmt in ("xml", "json") for number in range(8)]

    async def ask_all(order: list[str]) -> dict[str, str]:
        async with running() as place:
            heard = await asyncio.gather(*(chat(place, sample, model="erratic") for sample in order))
        return {sample: one.text + one.refusal for sample, one in zip(order, heard, strict=True)}

    first = await ask_all(samples)
    shuffled = random.Random(1).sample(samples, len(samples))
    assert await ask_all(shuffled) == first
    assert await ask_all(samples + samples) == first
    assert len(set(first.values())) > 4


async def test_a_problem_may_be_named_in_any_script() -> None:
    async with running() as place:
        heard = await chat(place, "7/xml/größe/文字/0")
    assert "src/shop.js" in heard.text


async def test_another_seed_gives_other_answers() -> None:
    async with running() as place:
        one = [(await chat(place, f"1/xml/shop/{n}", model="erratic")).text for n in range(10)]
        two = [(await chat(place, f"2/xml/shop/{n}", model="erratic")).text for n in range(10)]
    assert one != two


async def test_clients_without_the_header_get_the_same_set_of_samples_in_any_order() -> None:

    async def texts() -> list[str]:
        async with running() as place:
            heard = await asyncio.gather(*(chat(place, None, model="erratic") for _ in range(12)))
        return sorted(one.text for one in heard)

    first = await texts()
    assert await texts() == first
    assert len(set(first)) > 4


async def test_a_seed_in_the_body_fixes_the_answer() -> None:
    async with running() as place:
        texts = [(await chat(place, None, model="erratic", seed=5)).text for _ in range(4)]
        other = [(await chat(place, None, model="erratic", seed=n)).text for n in range(10)]
    assert len(set(texts)) == 1
    assert len(set(other)) > 3


async def test_an_unknown_problem_gets_a_polite_answer_without_files() -> None:
    async with running() as place:
        heard = await chat(place, "7/xml/unknown-1/0")
        headless = await chat(place, None, prompt="Hello?")
    assert heard.finish == headless.finish == "stop"
    assert heard.text == headless.text
    assert "<" not in heard.text
    assert "{" not in heard.text


async def test_max_tokens_cuts_an_answer_and_says_length() -> None:
    async with running() as place:
        whole = await chat(place, model="erratic")
        cut = await chat(place, model="erratic", max_tokens=50)
    assert (cut.finish, cut.done) == ("length", True)
    assert cut.text == whole.text[:180]
    assert cut.usage is not None
    assert cut.usage["completion_tokens"] == 50


async def test_refusals_come_as_a_refusal_or_as_a_content_filter() -> None:
    async with running() as place:
        heard = [await chat(place, f"7/xml/shop/{n}", model="refuser") for n in range(80)]
    spoken = [one for one in heard if one.refusal]
    filtered = [one for one in heard if one.finish == "content_filter"]
    assert spoken
    assert filtered
    assert all((one.text, one.finish, one.done) == ("", "stop", True) for one in spoken)
    assert all((one.text, one.done) == ("", True) for one in filtered)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"model": "gpt-0"}, 404, "model_not_found"),
        ({"messages": []}, 400, None),
        ({"messages": [{"role": "user", "content": 3}]}, 400, None),
        ({"max_tokens": -1}, 400, None),
        ({"model": "weak", "messages": [{"content": "x" * 200_000}]}, 400, "context_length_exceeded"),
    ],
)
async def test_a_wrong_request_gets_the_providers_error_body(
    body: dict[str, object], status: int, code: str | None
) -> None:
    async with running() as (server, session):
        url = f"{server.base_url}/chat/completions"
        async with session.post(url, json=chat_body() | body) as response:
            error = (await response.json())["error"]
    assert (response.status, error["code"]) == (status, code)
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff"])
async def test_a_body_that_is_no_object_is_a_bad_request(body: bytes) -> None:
    async with running() as (server, session):
        async with session.post(f"{server.base_url}/chat/completions", data=body) as response:
            assert (await response.json())["error"]["type"] == "invalid_request_error"
        assert response.status == 400


async def test_a_broken_header_is_a_bad_request() -> None:
    async with running() as place:
        heard = await chat(place, "7/xml/shop/x")
    assert heard.status == 400
    assert b"x-astra-sample" in heard.body


async def test_a_denied_key_and_a_used_up_quota_are_told_apart() -> None:
    settings = SimulationSettings(speed=0, faults=False, denied={"weak": "key", "erratic": "quota"})

    async with running(settings) as place:
        key = await chat(place, model="weak")
        quota = await chat(place, model="erratic")
        healthy = await chat(place, model="steady")
    assert (key.status, orjson.loads(key.body)["error"]["code"]) == (401, "invalid_api_key")
    assert (quota.status, orjson.loads(quota.body)["error"]["code"]) == (429, "insufficient_quota")
    assert "retry-after" not in quota.headers
    assert healthy.done


async def test_the_same_prompt_is_cached_once_its_first_answer_streams() -> None:
    async with running() as place:
        cached = [
            ((await chat(place, f"7/xml/shop/{n}")).usage or {})["prompt_tokens_details"]["cached_tokens"]
            for n in range(3)
        ]
        other = await chat(place, prompt="Another shop. " * 400)
        short = [await chat(place, prompt="A shop.") for _ in range(2)]
    assert cached[0] == 0
    assert cached[1] == cached[2] > 1024
    assert (other.usage or {})["prompt_tokens_details"]["cached_tokens"] == 0
    assert (short[1].usage or {})["prompt_tokens_details"]["cached_tokens"] == 0


async def test_the_models_are_listed() -> None:
    async with running() as (server, session), session.get(f"{server.base_url}/models") as response:
        models = {model["id"] for model in (await response.json())["data"]}
    assert models == set(PROFILES)


async def test_azure_names_the_model_in_the_path_and_sends_its_filter_first() -> None:
    async with running() as (server, session):
        url = f"{server.root_url}/openai/deployments/steady/chat/completions?api-version=2024-10-21"
        body = chat_body()
        del body["model"]
        async with session.post(url, json=body, headers={"api-key": "k"}) as response:
            text = await response.text()
    first = orjson.loads(text.split("\n", 1)[0].removeprefix("data: "))
    assert first["choices"] == []
    assert "prompt_filter_results" in first
    assert text.endswith("data: [DONE]\n\n")


async def test_a_taken_port_is_one_clear_line() -> None:
    server = await SimulatedServer.start(settings=QUIET)
    try:
        with pytest.raises(ConfigError, match="choose another port"):
            await SimulatedServer.start(port=server.port)
    finally:
        await server.stop()


async def test_a_client_that_goes_away_ends_its_stream() -> None:
    async with running(SimulationSettings(speed=0.2, faults=False)) as (server, session):
        url = f"{server.base_url}/chat/completions"
        async with session.post(url, json=chat_body(model="weak")) as response:
            await response.content.readany()
        async with asyncio.timeout(PATIENCE_S):
            while not server.counters.disconnected:
                await asyncio.sleep(0.005)
        assert server.counters.answered == 0


async def test_stopping_cuts_running_streams_and_frees_the_port() -> None:
    server = await SimulatedServer.start(settings=SimulationSettings(speed=3, faults=False))
    async with aiohttp.ClientSession() as session:
        url = f"{server.base_url}/chat/completions"
        response = await session.post(url, json=chat_body())
        await server.stop()
        with pytest.raises(aiohttp.ClientError):
            await response.read()
        response.release()
    again = await SimulatedServer.start(port=server.port, settings=QUIET)
    await again.stop()


async def test_a_call_costs_little() -> None:
    async with running() as place:
        await chat(place)
        # Both sides of the wire and this test's reader; measured 1 ms each, the server alone 0.3 ms.
        with cpu_within(200 * 0.005):
            for number in range(200):
                assert (await chat(place, f"7/xml/shop/{number}")).status == 200


async def test_a_stream_takes_its_time_when_speed_is_not_zero() -> None:
    settings = SimulationSettings(speed=0.05, faults=False)

    async with running(settings) as (server, session):
        url = f"{server.base_url}/chat/completions"
        start = time.monotonic()
        headers = {"x-astra-sample": "7/xml/shop/0"}
        async with session.post(url, json=chat_body(), headers=headers) as response:
            arrivals = [time.monotonic() - start async for _ in response.content.iter_any()]
    assert len(arrivals) > 2
    assert 0.05 < arrivals[0] < arrivals[-1]

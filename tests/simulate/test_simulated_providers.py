"""Both sides of the wire: our own providers against the simulated server, written independently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from simulated_client import PROMPT, SHOP, running

from astra_async.asking.providers import open_provider
from astra_async.errors import (
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    TransientError,
    TruncatedStream,
)
from astra_async.simulate.draws import SampleName
from astra_async.simulate.model_answers import draw_answer
from astra_async.simulate.profiles import PROFILES
from astra_async.types import Completion, ModelRequest, ModelSettings, RateLimits, SampleKey
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from astra_async.simulate.server import SimulatedServer
    from astra_async.types.simulation import FaultKind

PROVIDERS = (
    "simulated",
    "openai",
    "openai-compatible",
    "openai-responses",
    "anthropic",
    "gemini",
    "azure",
    "bedrock",
)
# Without a seed and a header the server numbers samples itself; these providers cannot name one.
KEYS = {
    "OPENAI_API_KEY": "k",
    "ANTHROPIC_API_KEY": "k",
    "GEMINI_API_KEY": "k",
    "AZURE_OPENAI_API_KEY": "k",
    "AWS_ACCESS_KEY_ID": "k",
    "AWS_SECRET_ACCESS_KEY": "k",
    "AWS_REGION": "eu-west-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Watch:
    def __init__(self) -> None:
        self.tokens = 0
        self.announced: list[RateLimits] = []

    def limits(self, limits: RateLimits) -> None:
        self.announced.append(limits)

    def first_token(self) -> None:
        self.tokens += 1

    def streamed(self, characters: int) -> None:
        assert characters >= 0


async def complete(
    server: SimulatedServer, provider: str, model: str = "erratic", watch: Watch | None = None, calls: int = 1
) -> list[Completion]:
    spec = f"{provider}/{model}"
    settings = ModelSettings(
        name=spec, spec=spec, provider=provider, model=model, base_url=server.base_url, max_tokens=32_000
    )
    request = ModelRequest(key=SampleKey(spec, "xml", "shop", 0), prompt=PROMPT, prompt_sha256="0" * 64)
    opened = open_provider(settings, environ=KEYS)
    try:
        return [await opened.complete(request, watch or Watch()) for _ in range(calls)]
    finally:
        await opened.close()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_provider_reads_what_the_server_says(provider: str) -> None:
    watch = Watch()
    async with running() as (server, _):
        (completion,) = await complete(server, provider, watch=watch)
    assert watch.tokens == 1
    assert completion.finish_reason == "stop"
    assert "module.exports" in completion.text
    assert completion.usage.input_tokens == -(-len(PROMPT) * 10 // 36)
    assert completion.usage.output_tokens == -(-len(completion.text) * 10 // 36)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_provider_tells_refusals_from_answers(provider: str) -> None:
    async def scenario() -> list[Completion]:
        async with running() as (server, _):
            return await complete(server, provider, "refuser", calls=40)

    completions = await scenario()
    reasons = {completion.finish_reason for completion in completions}
    assert reasons <= {"stop", "length", "refusal", "content_filter"}
    assert reasons & {"refusal", "content_filter"}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("rate_limit", RateLimited),
        ("server_error", TransientError),
        ("unavailable", Overloaded),
        ("overloaded", Overloaded),
        ("cut", TruncatedStream),
        ("reset", TransientError),
        ("stall", TransientError),
        ("stream_error", ProviderError),
    ],
)
async def test_a_provider_names_every_fault(
    provider: str, kind: FaultKind, expected: type[ProviderError]
) -> None:
    settings = SimulationSettings(speed=0, fault_rate=1, fault_kinds=(kind,), stall_s=0.05)

    async with running(settings) as (server, _):
        with pytest.raises(expected):
            await complete(server, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("denial", ["key", "quota"])
async def test_a_provider_gives_up_on_a_denied_account(provider: str, denial: str) -> None:
    settings = SimulationSettings(speed=0, faults=False, denied={"weak": "key", "refuser": "quota"})
    model = "weak" if denial == "key" else "refuser"

    async with running(settings) as (server, _):
        with pytest.raises(PoolUnusable):
            await complete(server, provider, model)


async def test_the_simulated_provider_gets_the_answer_of_its_header() -> None:
    async def scenario() -> str:
        async with running() as (server, _):
            spec = "simulated/erratic"
            settings = ModelSettings(
                name=spec, spec=spec, provider="simulated", model="erratic", base_url=server.base_url
            )
            opened = open_provider(settings, environ={})
            request = ModelRequest(
                key=SampleKey(spec, "json", "shop", 5),
                prompt=PROMPT,
                prompt_sha256="0" * 64,
                sample_header="7/json/shop/5",
            )
            try:
                return (await opened.complete(request, Watch())).text
            finally:
                await opened.close()

    expected = draw_answer(PROFILES["erratic"], SampleName("7", "json", "shop", 5), SHOP)
    assert (await scenario()) == expected.text

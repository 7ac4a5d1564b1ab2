"""What the tests of all wire formats share: settings, a request, a watch that remembers, one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.asking.providers import open_provider, parse_spec
from astra_async.types import ModelRequest, ModelSettings, SampleKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Completion, RateLimits

KEYS = {
    "OPENAI_API_KEY": "sk-test-0123456789abcdef",
    "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef",
    "GEMINI_API_KEY": "AIzaTest0123456789abcdef",
    "AZURE_OPENAI_API_KEY": "azure0123456789abcdef",
    "AWS_ACCESS_KEY_ID": "AKIATEST0123456789AB",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-0123456789abcdef",
    "AWS_REGION": "us-east-1",
}


class Watch:
    """Remembers what a provider told its pool."""

    def __init__(self) -> None:
        self.announced: list[RateLimits] = []
        self.first_tokens = 0
        self.characters = 0

    def limits(self, limits: RateLimits) -> None:
        self.announced.append(limits)

    def first_token(self) -> None:
        self.first_tokens += 1

    def streamed(self, characters: int) -> None:
        self.characters += characters


def settings(spec: str = "openai-compatible/toy", **fields: Any) -> ModelSettings:
    provider, model = parse_spec(spec)
    return ModelSettings(**{"name": spec, "spec": spec, "provider": provider, "model": model, **fields})


def request(prompt: str = "Add a field.", **fields: Any) -> ModelRequest:
    return ModelRequest(key=SampleKey("m", "xml", "p", 0), prompt=prompt, prompt_sha256="ab" * 32, **fields)


async def call(
    chosen: ModelSettings,
    asked: ModelRequest | None = None,
    *,
    watch: Watch | None = None,
    environ: Mapping[str, str] = KEYS,
) -> Completion:
    """One attempt through the front door."""
    provider = open_provider(chosen, environ=environ)
    try:
        return await provider.complete(asked or request(), watch or Watch())
    finally:
        await provider.close()

"""Model calls: what is sent and how, what comes back, and the Protocol of a provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types.samples import SampleKey

FinishReason = Literal["stop", "length", "refusal", "content_filter", "context_exceeded"]
Thinking = Literal["adaptive", "off"]
MaxTokensField = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call. `input_tokens` includes cached ones, `output_tokens` includes reasoning."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """One model of a run: what is sent, where, and the limits of its pool (`[[models]]` in TOML).

    `name` is what every record calls it. None (or nothing in it) means: not set, leave it out of the request.
    Prices are US dollars per million tokens; limits are per minute. docs/models.md says what each becomes in
    each wire format.

    `thinking_budget` is in tokens. `max_tokens_field` names the field of chat completions that carries
    `max_tokens`. `extra_headers` (values may quote `${VARIABLE}`) and `extra_body` (laid over the body, table
    by table) are open: what they hold is sent as it is.
    """

    name: str
    spec: str
    provider: str
    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    endpoint: str | None = None
    api_version: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    thinking: Thinking | None = None
    thinking_budget: int | None = None
    system_prompt: str | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    service_tier: str | None = None
    organization: str | None = None
    project: str | None = None
    max_tokens_field: MaxTokensField | None = None
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    context_length: int | None = None
    requests_per_minute: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    max_in_flight: int = 256
    timeout_s: float = 600.0
    price_input: float | None = None
    price_cached_input: float | None = None
    price_cache_write: float | None = None
    price_output: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One conversation to open. `cache` asks for prompt-cache markers: a reuse is expected soon."""

    key: SampleKey
    prompt: str
    prompt_sha256: str
    seed: int | None = None
    sample_header: str | None = None  # x-astra-sample, for simulated models only
    cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One finished answer, whatever it says. `latency_s` and `ttft_s` are the final attempt's.

    `attempts` and `cost_usd` cover all attempts; `cost_usd` is None when no price is known, and
    `cost_estimated` says that the provider left out tokens of an attempt, which were then estimated.
    `repairs` names what was mended before recording (`surrogate`).
    """

    text: str
    finish_reason: FinishReason
    usage: Usage
    returned_model: str
    ttft_s: float | None
    latency_s: float
    attempts: int = 1
    cost_usd: float | None = None
    cost_estimated: bool = False
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWindow:
    """One dimension of a provider's announced limit; `reset_s` is seconds from the response."""

    limit: float | None = None
    remaining: float | None = None
    reset_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """What the headers of one response announced, per-minute windows only."""

    requests: RateWindow | None = None
    tokens: RateWindow | None = None
    input_tokens: RateWindow | None = None
    output_tokens: RateWindow | None = None


class CallWatch(Protocol):
    """What a provider tells its pool while an attempt runs."""

    def limits(self, limits: RateLimits) -> None:
        """Rate-limit headers of this attempt's response, also of an error response."""

    def first_token(self) -> None:
        """The answer has begun to stream: a prompt cache is readable from now on."""

    def streamed(self, characters: int) -> None:
        """So many more characters of the answer have arrived."""


class Provider(Protocol):
    """One wire format, bound to one model: turns a request into a Completion, or raises ProviderError.

    One call is one attempt: retries belong to the pool. Cancellation closes the connection.
    """

    charges_max_tokens: bool  # the provider counts max_tokens against its limits at admission
    cached_input_is_exempt: bool  # cached reads do not count against input limits

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its terminal marker."""
        ...

    async def close(self) -> None:
        """Release connections."""

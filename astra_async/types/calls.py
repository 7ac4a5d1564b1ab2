"""Requests to models, their responses, the settings of a model, and the Protocol of a provider."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - evaluated at run time to check settings
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from annotated_types import Ge, Gt, Interval, MinLen

from astra_async.types.declarations import Address, Positive, Price, Setting, Whole, Word

if TYPE_CHECKING:
    from astra_async.types.agents import AgentWork, Dialogue, NativeBody, ToolCall
    from astra_async.types.samples import AnswerKey
    from astra_async.usage import Usage

# `other`: the provider's reason is unknown, or means that the output is damaged.
FinishReason = Literal["stop", "length", "refusal", "content_filter", "context_exceeded", "other"]
Role = Literal["user", "assistant"]
Thinking = Literal["adaptive", "off"]
MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
DEFAULT_MAX_TOKENS = 32_768  # if the model allows it
# Reasons of a generation that failed at the provider, in addition to `malformed...` (Gemini, Bedrock). The
# first three are Gemini's, the last one is vLLM's.
_BROKEN = frozenset({"unexpected_tool_call", "too_many_tool_calls", "image_recitation", "repetition"})
Asked = partial(Setting, asked=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings of one model: requests, server and limits of its pool (`[[models]]` in TOML).

    None or an empty value means not set: the field is omitted from the request. Prices are US dollars per
    million tokens. Limits are per minute. docs/models.md shows the field of each wire format.

    `extra_headers` and `extra_body` accept any keys and are sent unchanged, except that `${VARIABLE}` is
    replaced. `extra_body` is merged into the body, table by table.
    """

    name: Annotated[str, MinLen(1), Setting("Name of the model in all records. Default: the spec.")]
    spec: Annotated[str, MinLen(1), Asked("Provider and model, such as openai/gpt-4o.")]
    provider: str
    model: str
    base_url: Annotated[Address, Setting("Address of the server.")] = None
    api_key_env: Annotated[Word, Setting("Environment variable with the API key.")] = None
    endpoint: Annotated[Word, Setting("Azure: address of the resource.")] = None
    api_version: Annotated[Word, Asked("Azure, Anthropic, Gemini: version of the interface.")] = None
    temperature: Annotated[float | None, Ge(0), Asked("Sampling temperature.")] = None
    max_tokens: Annotated[
        Whole, Asked("Maximum length of an answer in tokens. Default: the model's maximum, at most 32,768.")
    ] = None
    reasoning_effort: Annotated[
        Word, Asked("Reasoning effort in the provider's spelling: low, medium, high ...")
    ] = None
    thinking: Annotated[
        Thinking | None, Asked("Claude, Gemini, Nova: thinking is chosen by the model (adaptive), or off.")
    ] = None
    thinking_budget: Annotated[
        int | None, Ge(0), Asked("Claude, Gemini: maximum number of tokens for thinking.")
    ] = None
    system_prompt: Annotated[str | None, Asked("Text of the system message.")] = None
    top_p: Annotated[
        float | None,
        Interval(ge=0, le=1),
        Asked("Sample from the most likely tokens with this total probability."),
    ] = None
    top_k: Annotated[Whole, Asked("Sample from this number of most likely tokens.")] = None
    stop: Annotated[tuple[str, ...], Asked("Texts that end an answer.")] = ()
    service_tier: Annotated[Word, Asked("Service tier in the provider's spelling: flex, priority ...")] = None
    organization: Annotated[Word, Asked("OpenAI: organization that is charged.")] = None
    project: Annotated[Word, Asked("OpenAI: project that is charged.")] = None
    max_tokens_field: Annotated[
        MaxTokensField | None, Asked("Name of the field for max_tokens in chat completions.")
    ] = None
    extra_headers: Annotated[
        Mapping[str, str], Asked("Additional headers; `${VARIABLE}` in a value is replaced.")
    ] = field(default_factory=dict)
    extra_body: Annotated[Mapping[str, Any], Asked("Additional fields, merged into the request's body.")] = (
        field(default_factory=dict)
    )
    context_length: Annotated[Whole, Setting("Context window of the model: tokens of prompt and answer.")] = (
        None
    )
    requests_per_minute: Annotated[Positive, Setting("Maximum number of requests per minute.")] = None
    input_tokens_per_minute: Annotated[Positive, Setting("Maximum number of input tokens per minute.")] = None
    output_tokens_per_minute: Annotated[Positive, Setting("Maximum number of output tokens per minute.")] = (
        None
    )
    max_in_flight: Annotated[int, Ge(1), Setting("Maximum number of requests in flight.")] = 256
    timeout_s: Annotated[float, Gt(0), Setting("Maximum time without data from the server, in seconds.")] = (
        600.0
    )
    batch: Annotated[bool, Setting("Send requests as batches: half the price, up to a day.")] = False
    batch_enqueued_tokens: Annotated[
        Whole, Setting("Maximum input tokens in open batches. Default: learned from refusals.")
    ] = None
    batch_settled_s: Annotated[
        float, Gt(0), Setting("Seconds to search for a batch before it counts as never created.")
    ] = 60.0
    batch_s3: Annotated[Word, Setting("Bedrock: s3://bucket/prefix for the files of batches.")] = None
    batch_role: Annotated[Word, Setting("Bedrock: ARN of the role that reads and writes these files.")] = None
    price_input: Annotated[Price, Setting("Price of input, in USD per million tokens.")] = None
    price_cached_input: Annotated[
        Price, Setting("Price of input from the provider's cache, in USD per million tokens.")
    ] = None
    price_cache_write: Annotated[
        Price, Setting("Price of writing to the provider's cache, in USD per million tokens.")
    ] = None
    price_output: Annotated[Price, Setting("Price of output, in USD per million tokens.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Earlier answer of a conversation and its feedback; `sha256` covers the conversation up to here."""

    answer: str
    feedback: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Request for one answer: the prompt and the earlier exchanges of the conversation.

    An agent's call has a `dialogue` or a `native` body instead of a prompt.

    Attributes:
        prompt_sha256: hash of the prompt, or of an agent's whole call.
        cache: set a cache marker on the prompt, because another request will use it soon.
        goes_on: set a cache marker at the end, because the sample's next turn will use the conversation.
        before_sha256: hash of the agent's previous call.
        input_bytes: size of an agent's call.
        fresh_bytes: bytes of `input_bytes` that the previous call did not have.
        max_tokens: limit that the agent requests; None: the limit of the settings.
    """

    key: AnswerKey
    prompt: str
    prompt_sha256: str
    earlier: tuple[Exchange, ...] = ()
    seed: int | None = None
    sample_header: str | None = None  # x-astra-sample, for simulated models only
    cache: bool = False
    goes_on: bool = False
    dialogue: Dialogue | None = None
    native: NativeBody | None = None
    before_sha256: str = ""
    input_bytes: int = 0
    fresh_bytes: int = 0
    max_tokens: int | None = None

    @property
    def by_agent(self) -> bool:
        """Return True for a request of an agent, whose answer keeps tool calls and the native form."""
        return self.dialogue is not None or self.native is not None

    @property
    def task(self) -> str:
        """Return the key of the task: the prompt's hash, or the problem's id for an agent."""
        return self.key.problem_id if self.by_agent else self.prompt_sha256

    @property
    def goes_alone(self) -> bool:
        """Return True if no other sample shares the conversation, so no request warms its cache."""
        return bool(self.earlier) or self.by_agent

    @property
    def messages(self) -> tuple[tuple[Role, str], ...]:
        """Return (role, text) of all messages, from the prompt to the latest feedback."""
        messages: list[tuple[Role, str]] = [("user", self.prompt)]
        for each in self.earlier:
            messages += [("assistant", each.answer), ("user", each.feedback)]
        return tuple(messages)

    @property
    def sha256(self) -> str:
        """Return the hash of the whole input (for a first answer: the prompt's hash)."""
        return self.earlier[-1].sha256 if self.earlier else self.prompt_sha256

    @property
    def begun_sha256(self) -> str:
        """Return the hash of the part that may be cached: the conversation up to the previous turn."""
        if self.by_agent:
            return self.before_sha256
        return self.earlier[-2].sha256 if len(self.earlier) > 1 else self.prompt_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One complete answer.

    Attributes:
        native_finish_reason: the provider's word for the end; empty if the provider sent none.
        reasoning: for an answer without text, the text that arrived instead (at most 65,536 characters).
        ttft_s: seconds to the first token of the final attempt; None for a batch.
        latency_s: seconds to the last byte of the final attempt; None for a batch.
        attempts: number of all attempts.
        cost_usd: cost of all attempts; None if no price is known.
        cost_estimated: True if the provider omitted tokens, or no price is known for `unpriced_tier`.
        disbelieved_input_tokens: impossible reported count, which `usage` omits.
        unpriced_tier: service tier that served the request, if its price is unknown.
        priced_usd: cost of the final attempt by known prices, if the provider reports a cost.
        repairs: repairs before recording (`surrogate`).
        via: "batch" for an answer from a batch.
        calls: tool calls of an agent's response.
        native: an agent's response in the provider's interface, as without streaming.
    """

    text: str
    finish_reason: FinishReason
    usage: Usage
    returned_model: str
    native_finish_reason: str = ""
    reasoning: str = ""
    ttft_s: float | None = None
    latency_s: float | None = None
    attempts: int = 1
    cost_usd: float | None = None
    cost_estimated: bool = False
    disbelieved_input_tokens: int | None = None
    unpriced_tier: str = ""
    priced_usd: float | None = None
    repairs: tuple[str, ...] = ()
    via: Literal["batch"] | None = None
    agent: AgentWork | None = None  # only for the answer of an agent: all its calls together
    calls: tuple[ToolCall, ...] = ()
    native: Any = None

    @property
    def is_broken(self) -> bool:
        """Return True if the generation failed at the provider; such a request is repeated once."""
        reason = self.native_finish_reason.lower()
        return self.finish_reason == "other" and (reason.startswith("malformed") or reason in _BROKEN)


# A window of one minute refills within this time. Longer windows (hour, day) are ignored.
LONGEST_RESET_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWindow:
    """Announced limit of one dimension; `reset_s` is in seconds from the response."""

    limit: float | None = None
    remaining: float | None = None
    reset_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """Limits in the headers of one response, only windows of one minute."""

    requests: RateWindow | None = None
    tokens: RateWindow | None = None
    input_tokens: RateWindow | None = None
    output_tokens: RateWindow | None = None


class CallWatch(Protocol):
    """Callbacks from a provider to its pool during an attempt."""

    def limits(self, limits: RateLimits) -> None:
        """Receive the rate-limit headers of the response, also of an error response."""

    def first_token(self) -> None:
        """Signal the first token; from now on the prompt cache can be read."""

    def streamed(self, characters: int) -> None:
        """Add the number of characters that have arrived."""


class Provider(Protocol):
    """One wire format for one model: returns a Completion for a request, or raises ProviderError.

    One call is one attempt; the pool retries. Cancellation closes the connection.
    """

    charges_max_tokens: bool  # the provider counts max_tokens against its limits at admission
    cached_input_is_exempt: bool  # cached reads do not count against input limits

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its end mark."""
        ...

    async def close(self) -> None:
        """Release connections."""

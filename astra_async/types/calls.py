"""Model calls: what is sent and how, what comes back, and the Protocol of a provider."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time, by whoever checks a setting
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from annotated_types import Ge, Gt, Interval, MinLen

from astra_async.types.declarations import Address, Positive, Price, Setting, Whole, Word

if TYPE_CHECKING:
    from astra_async.types.agents import AgentWork, Dialogue, NativeBody, ToolCall
    from astra_async.types.samples import AnswerKey
    from astra_async.usage import Usage

# `other`: the provider's reason has no known meaning, or it says that the output is broken.
FinishReason = Literal["stop", "length", "refusal", "content_filter", "context_exceeded", "other"]
Role = Literal["user", "assistant"]
Thinking = Literal["adaptive", "off"]
MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
DEFAULT_MAX_TOKENS = 32_768  # where the model allows it
# Ends of a generation that failed at its provider, beside `malformed...` of Gemini and Bedrock: Gemini's
# (the first three) and vLLM's.
_BROKEN = frozenset({"unexpected_tool_call", "too_many_tool_calls", "image_recitation", "repetition"})
Asked = partial(Setting, asked=True)


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

    name: Annotated[str, MinLen(1), Setting("What every record calls it; the spec if not set.")]
    spec: Annotated[str, MinLen(1), Asked("provider/model, such as openai/gpt-4o.")]
    provider: str
    model: str
    base_url: Annotated[Address, Setting("Address of its server.")] = None
    api_key_env: Annotated[Word, Setting("Variable that holds its API key.")] = None
    endpoint: Annotated[Word, Setting("Azure: the resource's address.")] = None
    api_version: Annotated[Word, Asked("Azure, Anthropic, Gemini: the interface's version.")] = None
    temperature: Annotated[float | None, Ge(0), Asked("Sampling temperature.")] = None
    max_tokens: Annotated[
        Whole, Asked("Longest answer; the model's own maximum, 32,768 at most, if not set.")
    ] = None
    reasoning_effort: Annotated[Word, Asked("As the provider spells it: low, medium, high ...")] = None
    thinking: Annotated[Thinking | None, Asked("Claude, Gemini, Nova: left to the model, or off.")] = None
    thinking_budget: Annotated[int | None, Ge(0), Asked("Claude, Gemini: tokens for thinking.")] = None
    system_prompt: Annotated[str | None, Asked("Sent as the system's message.")] = None
    top_p: Annotated[float | None, Interval(ge=0, le=1), Asked("Share of likely tokens to sample from.")] = (
        None
    )
    top_k: Annotated[Whole, Asked("Count of likely tokens to sample from.")] = None
    stop: Annotated[tuple[str, ...], Asked("Texts that end an answer.")] = ()
    service_tier: Annotated[Word, Asked("As the provider spells it: flex, priority ...")] = None
    organization: Annotated[Word, Asked("OpenAI: who is charged.")] = None
    project: Annotated[Word, Asked("OpenAI: project that is charged.")] = None
    max_tokens_field: Annotated[
        MaxTokensField | None, Asked("Field of chat completions that carries max_tokens.")
    ] = None
    extra_headers: Annotated[
        Mapping[str, str], Asked("Headers, sent as they are; `${VARIABLE}` is replaced.")
    ] = field(default_factory=dict)
    extra_body: Annotated[Mapping[str, Any], Asked("Laid over the request's body, table by table.")] = field(
        default_factory=dict
    )
    context_length: Annotated[Whole, Setting("Tokens of prompt and answer together.")] = None
    requests_per_minute: Annotated[Positive, Setting("Most requests a minute.")] = None
    input_tokens_per_minute: Annotated[Positive, Setting("Most input tokens a minute.")] = None
    output_tokens_per_minute: Annotated[Positive, Setting("Most output tokens a minute.")] = None
    max_in_flight: Annotated[int, Ge(1), Setting("Most calls at once.")] = 256
    timeout_s: Annotated[float, Gt(0), Setting("Longest silence of one call, in seconds.")] = 600.0
    batch: Annotated[bool, Setting("Send its calls as batches: half the price, within a day.")] = False
    batch_enqueued_tokens: Annotated[
        Whole, Setting("Most input tokens in batches at once; learned from refusals if not set.")
    ] = None
    batch_settled_s: Annotated[
        float, Gt(0), Setting("Seconds of looking, then a batch that is not found was never created.")
    ] = 60.0
    batch_s3: Annotated[Word, Setting("Bedrock: s3://bucket/prefix for what goes in and comes out.")] = None
    batch_role: Annotated[Word, Setting("Bedrock: ARN of the role that reads and writes there.")] = None
    price_input: Annotated[Price, Setting("USD per million tokens.")] = None
    price_cached_input: Annotated[
        Price, Setting("USD per million tokens read from the provider's cache.")
    ] = None
    price_cache_write: Annotated[
        Price, Setting("USD per million tokens written to the provider's cache.")
    ] = None
    price_output: Annotated[Price, Setting("USD per million tokens.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An earlier answer of a conversation, and what was said to it; `sha256` covers everything up to here."""

    answer: str
    feedback: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One conversation to open, or to go on with: `earlier` holds what was said since the prompt.

    `cache` asks for prompt-cache markers: a reuse of the prompt is expected soon. `goes_on`: so is one of the
    whole conversation, by the sample's next turn.

    An agent's call has a `dialogue` or a `native` body in place of a prompt; `prompt_sha256` is then that of
    all of it, `before_sha256` that of the agent's call before, `input_bytes` its size, of which `fresh_bytes`
    were not in the call before; `max_tokens` is what the agent asks for, else the settings'.
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
        """Whether an agent asks: its answer is kept with its calls, as the provider sent it."""
        return self.dialogue is not None or self.native is not None

    @property
    def task(self) -> str:
        """What it is about: an agent's many bodies are about one problem, as one prompt is."""
        return self.key.problem_id if self.by_agent else self.prompt_sha256

    @property
    def goes_alone(self) -> bool:
        """Whether it is a conversation that no other sample has: it waits for no other to warm a cache."""
        return bool(self.earlier) or self.by_agent

    @property
    def messages(self) -> tuple[tuple[Role, str], ...]:
        """Who said what, from the prompt to what is to be answered now."""
        messages: list[tuple[Role, str]] = [("user", self.prompt)]
        for each in self.earlier:
            messages += [("assistant", each.answer), ("user", each.feedback)]
        return tuple(messages)

    @property
    def sha256(self) -> str:
        """A hash of the whole input: the prompt's for a first answer."""
        return self.earlier[-1].sha256 if self.earlier else self.prompt_sha256

    @property
    def begun_sha256(self) -> str:
        """The hash of what an earlier request left in the prompt cache: the conversation one turn ago."""
        if self.by_agent:
            return self.before_sha256
        return self.earlier[-2].sha256 if len(self.earlier) > 1 else self.prompt_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One finished answer, whatever it says. `latency_s` and `ttft_s` are the final attempt's.

    `via` is "batch" for one that came out of a batch: it has neither of these times. `attempts` and
    `cost_usd` cover all attempts; `cost_usd` is None when no price is known. `cost_estimated` says that the
    provider left out tokens of an attempt, which were then estimated, or that no price is known for
    `unpriced_tier`, the service tier that served the request. `priced_usd` is the final attempt's cost by own
    or listed prices if the provider reports a cost. `disbelieved_input_tokens` is the reported count; it is
    recorded if `usage` leaves it out because it cannot be true. `repairs` names what was repaired before
    recording (`surrogate`). `native_finish_reason` is the provider's own word for the end, empty if it gave
    none. `reasoning` is kept of an answer without text: what arrived instead, up to 65,536 characters.

    Of an agent's call `calls` are those of tools, and `native` is the answer as an object of the interface
    that it came by: what a request without streaming would have got.
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
    agent: AgentWork | None = None  # of what an agent left: all of its calls together
    calls: tuple[ToolCall, ...] = ()
    native: Any = None

    @property
    def is_broken(self) -> bool:
        """Whether the provider says that its own generation failed: such a request is repeated once."""
        reason = self.native_finish_reason.lower()
        return self.finish_reason == "other" and (reason.startswith("malformed") or reason in _BROKEN)


# A window of a minute never needs longer to refill; one that does is of an hour or a day, and says nothing.
LONGEST_RESET_S = 90.0


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

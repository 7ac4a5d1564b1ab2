"""Token estimates for requests, calibrated by earlier answers (rule 3), and the state of the prompt cache."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.types import DEFAULT_MAX_TOKENS, Usage

if TYPE_CHECKING:
    from astra_async.asking.throttle.rates import Dimension
    from astra_async.types import ModelRequest, Provider

BYTES_PER_TOKEN = 3.2
# Margin until a provider reports the first exact count. A large reservation is corrected afterwards, a small
# reservation exceeds the limit.
_UNCALIBRATED = 1.25
_WORST_BYTES_PER_TOKEN = 2.0
# Text averages 3 to 5 bytes a token, and only repeated characters exceed 40. A reported count that implies
# more bytes a token is replaced by an estimate.
_MOST_BYTES_PER_TOKEN = 40.0
_FIRST_OUTPUT_GUESS = 1_000
_OUTPUTS_KEPT = 200
_PERCENTILE = 0.9
_PROMPTS_KEPT = 4_096
CACHE_LIFETIME_S = 300.0  # Anthropic's default, the shortest documented lifetime; every read renews it.


@dataclass(frozen=True, slots=True)
class Demand:
    """Tokens that one request uses of the limits. `guessed` is True until an answer was counted."""

    input_tokens: float
    output_tokens: float
    guessed: bool = False

    def of(self, dimension: Dimension) -> float:
        """Return the amount in one dimension."""
        if dimension == "requests":
            return 1.0
        if dimension == "input_tokens":
            return self.input_tokens
        if dimension == "output_tokens":
            return self.output_tokens
        return self.input_tokens + self.output_tokens


class Estimator:
    """Estimator of tokens, from the prompts and answers of one pool.

    Without a provider (in batches), no provider-specific rule about max_tokens or cached input applies.
    """

    def __init__(self, max_tokens: int | None, provider: Provider | None = None) -> None:
        self._max_tokens = max_tokens or DEFAULT_MAX_TOKENS
        self._charges_max_tokens = provider is not None and provider.charges_max_tokens
        self._exempt = provider is not None and provider.cached_input_is_exempt
        self._prompts: dict[str, _Prompt] = {}
        self._counted_bytes = 0
        self._counted_tokens = 0
        self._recent: deque[int] = deque()
        self._sorted: list[int] = []

    def demand(self, request: ModelRequest, *, warm: bool) -> Demand:
        """Return the tokens to reserve; `warm` if the prompt is in the provider's cache."""
        prompt = self._prompt(request)
        tokens = self._input(prompt)
        if warm and self._exempt:
            tokens -= self._cached(request, prompt, tokens)
        guessed = not self._charges_max_tokens and not (self._counted_tokens and self._sorted)
        return Demand(tokens, self._output(request), guessed)

    def worst(self, request: ModelRequest) -> Usage:
        """Return an upper bound of the billed usage, with nothing cached."""
        prompt = self._prompt(request)
        bound = max(self._input(prompt), prompt.size_bytes / _WORST_BYTES_PER_TOKEN)
        tokens = round(bound) if prompt.tokens is None else prompt.tokens
        return Usage(input_tokens=tokens, output_tokens=request.max_tokens or self._max_tokens)

    def typical(self, request: ModelRequest) -> Usage:
        """Return the usage of a request whose answer was lost, with the 90th percentile of outputs."""
        tokens = round(self._input(self._prompt(request)))
        return Usage(input_tokens=tokens, output_tokens=round(self._output(request)))

    def fill(self, usage: Usage | None, request: ModelRequest, characters: int) -> Usage:
        """Return the usage, with missing counts estimated from bytes and characters."""
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            return usage
        known = usage or Usage()
        tokens, streamed = known.input_tokens, known.output_tokens
        guess = round(characters / BYTES_PER_TOKEN)
        most = request.max_tokens or self._max_tokens
        if characters <= most * _MOST_BYTES_PER_TOKEN:  # otherwise the server ignores max_tokens
            guess = min(guess, most)
        return replace(
            known,
            input_tokens=round(self._input(self._prompt(request))) if tokens is None else tokens,
            output_tokens=guess if streamed is None else streamed,
        )

    def plausible(self, usage: Usage | None, request: ModelRequest, characters: int) -> Usage | None:
        """Return the usage with implausible counts replaced by None.

        Servers that do not count tokens report 0 or 1, and some servers leave out cached input. A usage of 0
        is plausible if no text was received.
        """
        if usage is None or not (characters or usage.input_tokens or usage.output_tokens):
            return usage
        inputs, outputs = usage.input_tokens, usage.output_tokens
        if inputs is not None and inputs * _MOST_BYTES_PER_TOKEN < self._prompt(request).size_bytes:
            inputs = None
        if outputs is not None and outputs * _MOST_BYTES_PER_TOKEN < characters:
            outputs = None
        if (inputs, outputs) == (usage.input_tokens, usage.output_tokens):
            return usage
        return replace(usage, input_tokens=inputs, output_tokens=outputs)

    def learn(self, request: ModelRequest, usage: Usage) -> Demand | None:
        """Calibrate by the usage of an answer. Return what counts against the limits, None if unknown."""
        if usage.input_tokens:
            prompt = self._prompt(request)
            if prompt.tokens is None:  # The average counts each prompt once.
                self._counted_bytes += prompt.size_bytes
                self._counted_tokens += usage.input_tokens
            prompt.tokens = usage.input_tokens
            prompt.cached = usage.cached_tokens if usage.cached_tokens is not None else prompt.cached
        if usage.output_tokens:
            # Both hold the latest counts: `_recent` in the order of arrival, `_sorted` in ascending order.
            self._recent.append(usage.output_tokens)
            insort(self._sorted, usage.output_tokens)
            if len(self._recent) > _OUTPUTS_KEPT:
                del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        exempt = (usage.cached_tokens or 0) if self._exempt else 0
        return Demand(max(0, usage.input_tokens - exempt), usage.output_tokens)

    def _cached(self, request: ModelRequest, prompt: _Prompt, tokens: float) -> float:
        """Return the input tokens read from the cache: as counted, or all except the latest messages."""
        if request.by_agent:
            return tokens * (1 - request.fresh_bytes / max(1, prompt.size_bytes))
        if request.earlier:
            last = request.earlier[-1]
            fresh = _size_bytes(last.answer) + _size_bytes(last.feedback)
            return tokens * (1 - fresh / prompt.size_bytes)
        return tokens if prompt.cached is None else min(tokens, prompt.cached)

    def _prompt(self, request: ModelRequest) -> _Prompt:
        """Return the size and counts of a prompt. Conversations are not stored: each is sent only once."""
        if request.by_agent:
            return _Prompt(request.input_bytes)
        if request.earlier:
            return _Prompt(sum(_size_bytes(text) for _, text in request.messages))
        known = self._prompts.get(request.prompt_sha256)
        if known is None:
            while len(self._prompts) >= _PROMPTS_KEPT:
                del self._prompts[next(iter(self._prompts))]
            known = self._prompts[request.prompt_sha256] = _Prompt(_size_bytes(request.prompt))
        return known

    def _input(self, prompt: _Prompt) -> float:
        if prompt.tokens is not None:
            return prompt.tokens
        if self._counted_bytes and self._counted_tokens:
            return prompt.size_bytes * self._counted_tokens / self._counted_bytes
        return prompt.size_bytes / BYTES_PER_TOKEN * _UNCALIBRATED

    def _output(self, request: ModelRequest) -> float:
        if self._charges_max_tokens:
            return request.max_tokens or self._max_tokens
        if not self._sorted:
            return min(self._max_tokens, _FIRST_OUTPUT_GUESS)
        return self._sorted[int(_PERCENTILE * (len(self._sorted) - 1))]


class PromptCache:
    """Prompts and conversations in the provider's cache, keyed by their hashes (rule 13)."""

    def __init__(self) -> None:
        self._warm_until: dict[str, float] = {}
        self._uncacheable: set[str] = set()

    def is_warm(self, prompt_sha256: str, now: float) -> bool:
        """Return True if a request sent now would read the cache."""
        return now < self._warm_until.get(prompt_sha256, 0.0)

    def needs_leader(self, prompt_sha256: str, now: float) -> bool:
        """Return True if a request sent now would write the prompt to the cache."""
        return not (self.is_warm(prompt_sha256, now) or prompt_sha256 in self._uncacheable)

    def record_warm(self, prompt_sha256: str, until: float) -> None:
        """Record that the cache holds a prompt until the given time."""
        # Reinsert the prompt at the end, as the most recently used one.
        until = max(until, self._warm_until.pop(prompt_sha256, 0.0))
        while len(self._warm_until) >= _PROMPTS_KEPT:
            del self._warm_until[next(iter(self._warm_until))]
        self._warm_until[prompt_sha256] = until

    def record_uncacheable(self, prompt_sha256: str) -> None:
        """Record that a request wrote nothing to the cache because the prompt is too short."""
        if len(self._uncacheable) < _PROMPTS_KEPT:
            self._uncacheable.add(prompt_sha256)
            self._warm_until.pop(prompt_sha256, None)


@dataclass(slots=True)
class _Prompt:
    """Size of one prompt and the latest token counts from the provider."""

    size_bytes: int
    tokens: int | None = None
    cached: int | None = None


def _size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

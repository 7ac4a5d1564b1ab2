"""Classification of a provider's error: a ProviderError to raise, or the finish reason of a result.

`error_body` parses the body, `error_rules` is the table of rules, and `rate_limits` finds the time to wait.
The throttle's `RetryPolicy` acts on the result. If an error names a setting of the model, the message says
how to change the setting.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from astra_async.asking.providers.error_body import HTML_PAGE, ErrorBody
from astra_async.asking.providers.error_rules import LOWER_MAX_TOKENS, QUOTA, first_rule
from astra_async.asking.providers.rate_limits import body_hint_s, exhausted_reset_s, header_hint_s
from astra_async.errors import Overloaded, PoolUnusable, RateLimited, RequestRejected, TransientError
from astra_async.redaction import one_line
from astra_async.types import MaxTokensField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.errors import ProviderError
    from astra_async.types import FinishReason, ModelSettings, RateLimits


_LONGEST = 2000
_NOT_FOUND = 404
_API_VERSION = re.compile(r"api[- _]versions?", re.IGNORECASE)
# Errors with these codes, or about these parameters, concern one prompt: other prompts may succeed.
_PROMPT_CODES = frozenset(
    {"invalid_prompt", "string_above_max_length", "request_too_large", "moderation_blocked"}
)
_PROMPT_PARAMETERS = ("message", "input", "content", "prompt")  # prefixes
# Names that providers use in errors, by name of our setting.
_PARAMETERS = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
    "service_tier": ("service_tier", "serviceTier"),
    "thinking": ("thinking", "thinking.type", "thinking.type.enabled", "thinking.type.disabled",
                 "thinking.type.adaptive", "adaptive thinking"),
    "thinking_budget": ("budget_tokens", "thinking.type.enabled", "thinking.budget_tokens",
                        "thinking.enabled.budget_tokens",
                        "thinkingBudget", "thinking_budget"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens",
                   "maxTokens"),
    "reasoning_effort": ("reasoning_effort", "reasoning.effort", "output_config", "output_config.effort",
                         "effort", "effort parameter", "reasoning", "thinkingConfig", "thinking_config",
                         "thinkingLevel", "thinking_level", "reasoningConfig"),
    "seed": ("random_seed", "seed"),
    "system_prompt": ("system", "instructions", "systemInstruction", "system_instruction"),
}  # fmt: skip


def setting_remedy(body: ErrorBody, settings: ModelSettings) -> str:
    """Return the remedy for a refused request if its error names a setting, else an empty string."""
    message = body.message[:_LONGEST]
    if _is_about_version(body, settings):
        return "set api_version in [[models]] to a version that the message names"
    if named := _named(body):  # prefer a setting that the user has set
        ours = next((name for name in named if _is_set(settings, name)), named[0])
        return _change(ours, settings, message)
    return ""


def meets_all(body: ErrorBody, status: int, settings: ModelSettings) -> bool:
    """Return True if a refusal concerns all requests: it names the address, the API version or a setting.

    Other refusals may concern one prompt only, because filters and firewalls use many different texts.
    """
    if body.codes & _PROMPT_CODES:
        return False
    if body.param:
        return not body.param.startswith(_PROMPT_PARAMETERS)
    if status == _NOT_FOUND or _is_about_version(body, settings):
        return True
    # max_tokens is excluded because the prompt determines which value fits.
    return any(_is_set(settings, name) for name in _named(body) if name != "max_tokens")


def _is_about_version(body: ErrorBody, settings: ModelSettings) -> bool:
    return settings.provider == "azure" and bool(_API_VERSION.search(body.message[:_LONGEST]))


def _named(body: ErrorBody) -> list[str]:
    message = body.message[:_LONGEST]
    return [
        ours
        for ours, theirs in _PARAMETERS.items()
        if body.param in theirs or any(_quotes(message, name) for name in theirs)
    ]


def _is_set(settings: ModelSettings, name: str) -> bool:
    return getattr(settings, name, None) not in (None, ())


def _quotes(message: str, name: str) -> bool:
    """Return True if a message names a parameter. A bare word would match prose (`the effort failed`)."""
    if " " in name:
        return name in message
    return bool(re.search(rf"[`'\".]{re.escape(name)}(?!\w)|(?<!\w){re.escape(name)}(?::| is )", message))


def _change(name: str, settings: ModelSettings, message: str) -> str:
    model = settings.model
    if name == "seed":
        return f"{model} rejects `seed`: run without --seed"
    if name == "max_tokens":
        wanted = next(
            (field for field in get_args(MaxTokensField) if f"se '{field}' instead" in message), None
        )
        if wanted and settings.max_tokens_field != wanted:
            return f'set max_tokens_field = "{wanted}" in [[models]]'
        return f"{model} rejects max_tokens = {settings.max_tokens}: set another one in [[models]]"
    if not _is_set(settings, name):
        return f"{model} rejects its value of `{name}`: set another one in [[models]]"
    return f"{model} rejects `{name}`: unset it in [[models]], or set another value"


_NO_HEADERS: Mapping[str, str] = {}
_LONGEST_UNRECOGNIZED = 2000
_NUMBERS = re.compile(r"\b[0-9a-f]{8}[-0-9a-f]{9,}|\b\w*\d[\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Error response or error in a stream, not classified yet.

    Attributes:
        body: decoded JSON, or text.
        status: HTTP status; None for an error in a stream, after HTTP 200.
        headers: response headers.
        limits: rate limits in the headers.
        hint_s: seconds to wait, if the wire format found them in a header of its provider.
    """

    body: Any
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    limits: RateLimits | None = None
    hint_s: float | None = None


_TIMED_OUT = (504, 524)  # a proxy gave up, but the server behind it may have processed the request


def classify(
    failure: Failure, settings: ModelSettings, *, now: datetime | None = None
) -> ProviderError | FinishReason:
    """Classify an error. Return the exception to raise, or the finish reason if it counts as a result."""
    body = ErrorBody.read(failure.body)
    status = failure.status or body.status
    rule, numbers = first_rule(body, status)
    means, remedy = rule.means, rule.remedy
    if means == "context_exceeded" and _fits_alone(numbers, settings.max_tokens or 0):
        means, remedy = RequestRejected, LOWER_MAX_TOKENS
    if isinstance(means, str) and means != QUOTA:
        return means
    hint_s = _hint_s(failure, body, now or datetime.now(UTC))
    kind = _kind(means, remedy, hint_s, failure.headers.get("x-should-retry"))
    setting = "" if rule.known or kind is not RequestRejected else setting_remedy(body, settings)
    text = one_line(body.message).removeprefix(f"{settings.name}: ")
    if failure.body and not (rule.known or setting):
        text = f"unrecognized: {text if HTML_PAGE in body.codes else _whole(failure.body)}"
    name = f" {body.code}" if body.code else ""
    where = f"HTTP {status}{name}" if failure.status else f"error in the stream{name or f' {status}'}"
    line = ": ".join(filter(None, (settings.name, one_line(where), setting or remedy, text)))
    error = kind(line, status=status, code=body.code)
    error.hint_s = hint_s if kind in {RateLimited, Overloaded} else None
    error.reply = one_line(body.message)
    error.likeness = likeness(f"HTTP {status} {body.code or ''}", body.message)
    is_about_prompt = rule.is_of_item or remedy == LOWER_MAX_TOKENS
    of_all = kind is RequestRejected and not is_about_prompt and meets_all(body, status, settings)
    error.meets_all = kind is PoolUnusable or of_all
    error.may_be_billed = kind is TransientError and status in _TIMED_OUT
    return error


def likeness(kind: str, text: str) -> str:
    """Return the text without numbers and request ids, which is equal for errors with the same cause."""
    return f"{kind}: {_NUMBERS.sub('#', one_line(text))}"


def _kind(
    means: type[ProviderError] | Literal["quota"], remedy: str, hint_s: float | None, should_retry: str | None
) -> type[ProviderError]:
    """Return the class of the error. The header x-should-retry (OpenAI, Anthropic) may override it."""
    if means == QUOTA:
        return PoolUnusable if hint_s is None else RateLimited
    if should_retry == "false" and means in {RateLimited, Overloaded, TransientError}:
        return RequestRejected
    if should_retry == "true" and means is RequestRejected and remedy != LOWER_MAX_TOKENS:
        return TransientError
    return means


def _fits_alone(numbers: Mapping[str, int], max_tokens: int) -> bool:
    """Return True if, by the numbers in the message, the prompt without max_tokens fits into the window."""
    if len(numbers) < 2:  # noqa: PLR2004 - the prompt and the window
        return False
    prompt = numbers["p"] if "p" in numbers else numbers["a"] - max_tokens
    window = numbers["w"] if "w" in numbers else numbers["r"] + max_tokens
    return prompt < window


def _hint_s(failure: Failure, body: ErrorBody, now: datetime) -> float | None:
    hints = (
        failure.hint_s,
        header_hint_s(failure.headers, now),
        header_hint_s(body.headers, now),
        body_hint_s(body.details, body.message),
        exhausted_reset_s(failure.limits),
    )
    return next((hint for hint in hints if hint is not None), None)


def _whole(body: Any) -> str:
    try:
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = str(type(body).__name__)
    return one_line(text, length=_LONGEST_UNRECOGNIZED)

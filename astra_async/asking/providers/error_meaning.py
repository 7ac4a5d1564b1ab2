"""One place that says what a provider's error means: which ProviderError, or which result.

Where a 429 is handled: its meaning here (`classify`), how long to wait in `rate_limits`, what its body
says in `error_body` and `error_rules`; the throttle's `RetryPolicy` acts on it.

Tables: OpenAI's error codes, Anthropic's error types, google.rpc codes with their details, Bedrock's
exception names; each falls back to the HTTP status. A content filter that blocked the prompt and a prompt
longer than the context window are the model's results (a FinishReason), everything else is raised.
Never decided by text alone where a code exists; sentences are read only for what has no code of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_args

from astra_async.asking.providers.error_body import ErrorBody
from astra_async.asking.providers.error_rules import FILTERED, QUOTA_IS_USED_UP, UNUSABLE, overflow
from astra_async.asking.providers.rate_limits import body_hint_s, exhausted_reset_s, header_hint_s
from astra_async.errors import (
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    RequestRejected,
    TransientError,
)
from astra_async.redaction import one_line
from astra_async.types import MaxTokensField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason, ModelSettings, RateLimits

PROXY_WANTS_CREDENTIALS = (
    "a proxy wants credentials: put user and password before its host in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
)

_NO_HEADERS: Mapping[str, str] = {}

_KIND_OF_STATUS: dict[int, type[ProviderError]] = {
    401: PoolUnusable,
    402: PoolUnusable,
    403: RequestRejected,  # a key's, or one prompt's: firewalls and filters say so, too
    407: PoolUnusable,
    408: TransientError,
    409: TransientError,
    424: TransientError,  # Bedrock: the model itself failed
    425: TransientError,
    429: RateLimited,
    498: Overloaded,  # Groq: flex capacity is used up
    499: TransientError,
    503: Overloaded,
    529: Overloaded,
}
_PASSING = (RateLimited, Overloaded, TransientError)
# Redirects are not followed, and like a wrong method they meet every request.
_STATUS_OF_ADDRESS = frozenset({301, 302, 303, 307, 308, 405})
_NOT_FOUND_CODES = frozenset({"NotFoundError", "not_found_error", "NOT_FOUND", "ResourceNotFoundException"})
_OVERLOAD_CODES = frozenset({"server_is_overloaded", "overloaded_error", "engine_overloaded_error"})

# A 4xx of these says that this one prompt is at fault: other prompts may be answered.
_PROMPT_CODES = frozenset(
    {"invalid_prompt", "string_above_max_length", "request_too_large", "moderation_blocked"}
)
_PROMPT_PARAMETERS = ("message", "input", "content", "prompt")  # how they begin

# How our settings are called in the bodies that providers quote.
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
_KEY_CODES = frozenset({"API_KEY_INVALID", "UnrecognizedClientException", "ExpiredTokenException"})
_CHECK_QUOTA = "check quota, billing and spend limits"
_REMEDY_OF_STATUS = {
    **dict.fromkeys(_STATUS_OF_ADDRESS, "check base_url"),
    401: "check the API key",
    403: "this key may not use this model",
    404: "check the model's name and your access to it",
    407: PROXY_WANTS_CREDENTIALS,
}
_NUMBERS = re.compile(r"\b[0-9a-f]{8}[-0-9a-f]{9,}|\b\w*\d[\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as it arrived. `status` is None when it came in mid-stream, after HTTP 200.

    `body` is decoded JSON where it was JSON, else text. `hint_s`: seconds to wait, which a wire format read
    out of headers of its own.
    """

    body: Any
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    limits: RateLimits | None = None
    hint_s: float | None = None


def classify(
    failure: Failure, settings: ModelSettings, *, now: datetime | None = None
) -> ProviderError | FinishReason:
    """What the error means for the pool: an exception to raise, or the finish reason of a result."""
    body = ErrorBody.read(failure.body)
    status = failure.status or body.status
    if body.flagged or FILTERED.meets(body, status):
        return "content_filter"
    over = overflow(body, status, settings.max_tokens)
    if over == "prompt":
        return "context_exceeded"
    kind = RequestRejected if over else _kind(body, status, failure.headers)
    remedy = _LOWER_MAX_TOKENS if over else _remedy(kind, body, status, settings)
    line = _line(settings, body, status, remedy, failure)
    error = kind(line, status=status, code=body.code)
    if isinstance(error, RateLimited | Overloaded):
        error.hint_s = _hint_s(failure, body, now or datetime.now(UTC))
    error.reply = one_line(body.message)
    error.likeness = likeness(f"HTTP {status} {body.code or ''}", body.message)
    of_all = kind is RequestRejected and not over and _is_of_all(body, status, settings)
    error.meets_all = kind is PoolUnusable or of_all
    return error


def likeness(kind: str, text: str) -> str:
    """What errors that say the same have in common: the words, without numbers and names of requests."""
    return f"{kind}: {_NUMBERS.sub('#', one_line(text))}"


def parse_body(body: bytes) -> Any:
    """An error's body: JSON where it is, else its text."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_API_VERSION = re.compile(r"api[- _]versions?", re.IGNORECASE)
_LOWER_MAX_TOKENS = (
    "prompt and max_tokens together pass the context window: set a lower max_tokens in [[models]]"
)


def _kind(body: ErrorBody, status: int, headers: Mapping[str, str]) -> type[ProviderError]:
    spent = body.daily or UNUSABLE.meets(body, status) or QUOTA_IS_USED_UP.meets(body, status)
    if spent or status in _STATUS_OF_ADDRESS:
        return PoolUnusable
    again = headers.get("x-should-retry")
    others = TransientError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else RequestRejected
    kind = _KIND_OF_STATUS.get(status, others)
    if status == HTTPStatus.NOT_FOUND and body.codes & _NOT_FOUND_CODES:
        kind = PoolUnusable  # the model's name: the same for every request
    if status == HTTPStatus.TOO_MANY_REQUESTS and "request too large" in body.message[:2000].lower():
        kind = RequestRejected
    if status == HTTPStatus.PAYMENT_REQUIRED and "retry-after" in headers:
        kind = RateLimited
    if body.codes & _OVERLOAD_CODES:
        kind = Overloaded
    if again == "false" and kind in _PASSING:
        return RequestRejected
    if again == "true" and kind is RequestRejected:
        return TransientError
    return kind


def _hint_s(failure: Failure, body: ErrorBody, now: datetime) -> float | None:
    hints = (
        failure.hint_s,
        header_hint_s(failure.headers, now),
        body_hint_s(body.details, body.message),
        exhausted_reset_s(failure.limits),
    )
    return next((hint for hint in hints if hint is not None), None)


def _is_of_all(body: ErrorBody, status: int, settings: ModelSettings) -> bool:
    """Whether a refusal names what all requests share: the address, the API's version, a setting.

    Whatever else it says, it may say of this one prompt: filters and firewalls have words that nobody lists.
    """
    if body.codes & _PROMPT_CODES:
        return False
    if body.param:
        return not body.param.startswith(_PROMPT_PARAMETERS)
    if status == HTTPStatus.NOT_FOUND or _is_of_the_version(body, settings):
        return True
    named = set(_named(body)) - {"max_tokens"}  # whether they fit is a question of the prompt as well
    return any(getattr(settings, name, None) not in (None, ()) for name in named)


def _remedy(kind: type[ProviderError], body: ErrorBody, status: int, settings: ModelSettings) -> str:
    if kind is PoolUnusable:
        return _pool_remedy(body, status)
    if kind is not RequestRejected:
        return ""
    if status == HTTPStatus.FORBIDDEN:
        return "a filter refuses this prompt, or this key may not use this model"
    message = body.message[:2000]
    if _is_of_the_version(body, settings):
        return "set api_version in [[models]] to one that the message names"
    if named := _named(body):  # of several the one that the user has set
        ours = next((name for name in named if getattr(settings, name, None) not in (None, ())), named[0])
        return _parameter_remedy(ours, settings, message)
    return "check base_url and the model's name" if status == HTTPStatus.NOT_FOUND else ""


def _is_of_the_version(body: ErrorBody, settings: ModelSettings) -> bool:
    return settings.provider == "azure" and bool(_API_VERSION.search(body.message[:2000]))


def _named(body: ErrorBody) -> list[str]:
    """Our settings that the error names."""
    message = body.message[:2000]
    return [
        ours
        for ours, theirs in _PARAMETERS.items()
        if body.param in theirs or any(_quotes(message, name) for name in theirs)
    ]


def _quotes(message: str, name: str) -> bool:
    """Whether a message names a parameter; a bare word would match prose (`the effort failed`)."""
    if " " in name:
        return name in message
    return bool(re.search(rf"[`'\".]{re.escape(name)}(?!\w)|(?<!\w){re.escape(name)}(?::| is )", message))


def _parameter_remedy(name: str, settings: ModelSettings, message: str) -> str:
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
    if getattr(settings, name) in (None, ()):
        return f"{model} rejects its value of `{name}`: set another one in [[models]]"
    return f"{model} rejects `{name}`: unset it in [[models]], or set another value"


def _pool_remedy(body: ErrorBody, status: int) -> str:
    if body.daily:
        return "the quota of the day is used up: resume tomorrow, or raise it"
    if body.codes & _KEY_CODES:
        return "check the API key"
    if status == HTTPStatus.FORBIDDEN and QUOTA_IS_USED_UP.meets(body, status):
        return _CHECK_QUOTA
    return _REMEDY_OF_STATUS.get(status, _CHECK_QUOTA)


def _line(settings: ModelSettings, body: ErrorBody, status: int, remedy: str, failure: Failure) -> str:
    name = f" {body.code}" if body.code else ""
    where = f"HTTP {status}{name}" if failure.status else f"error in mid-stream{name or f' {status}'}"
    text = one_line(body.message).removeprefix(f"{settings.name}: ")
    return ": ".join(part for part in (settings.name, one_line(where), remedy, text) if part)

"""The one shape that all error bodies are brought to, whoever sent them.

OpenAI, Azure and Gemini nest (`{"error": {...}}`), Anthropic nests with a type beside it, vLLM and Bedrock
are flat, Gemini wraps in a list of one, some send a bare sentence; codes stand one level down as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from astra_async.asking.providers.answer import label

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a code or type stands for when no HTTP status says it, as for errors in mid-stream.
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "slow_down": 429,
    "too_many_requests": 429,
    "overloaded_error": 529,
    "server_is_overloaded": 503,
    "engine_overloaded_error": 503,
    "server_overloaded": 503,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "content_filter": 400,
    "context_length_exceeded": 400,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "DEADLINE_EXCEEDED": 504,
    "INTERNAL": 500,
    "CANCELLED": 499,
    "ThrottlingException": 429,
    "ModelNotReadyException": 429,
    "ModelTimeoutException": 408,
    "ModelErrorException": 424,
    "ModelStreamErrorException": 424,
    "InternalServerException": 500,
    "ServiceUnavailableException": 503,
    "ValidationException": 400,
    "ResourceNotFoundException": 404,
    "AccessDeniedException": 403,
}

_NO_CODE = re.compile(r"\d*|error")  # a number repeats the status, and `error` says that there is one
_MESSAGE = ("message", "detail", "Message")
_STATUS = re.compile(r"[3-5][0-9]{2}")

_OVERFLOW_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
)

# In the sentences below <p> is the prompt's tokens, <a> all tokens asked for, <w> the window, <r> what
# some versions of vLLM call the window: what max_tokens leaves of it, or the window itself.
_SENTENCES = (
    # OpenAI, vLLM, DeepSeek, SGLang
    r"maximum context length \w\w <w>.{0,60}?requested (?:a total of )?<a> tokens.{0,9}?\W<p> (?:in|tokens)",
    r"maximum context length \w\w <w>.{0,120}?(?:resulted in|contains|least|passed) <p> (?:input )?tokens",
    r"maximum context length \w\w <r>.{0,60}?request has <p> input tokens",
    r"maximum context length \w\w <w>.{0,60}?requested about <a> tokens \(<p> of text input",  # OpenRouter
    r"maximum context length \w\w <w>.{0,60}?requested (?:about )?<a> ",
    # Anthropic
    r"prompt is too long: <p> tokens > <w>",
    r"exceed context limit: <p> \+ \d{1,9} > <w>",
    # Gemini
    r"input token count \(?<p>\)? exceeds the maximum number of tokens allowed \(?<w>",
    # SGLang, Mistral, xAI, llama.cpp
    r"input \(<p> tokens\) is longer than the model's context length \(<w>",
    r"[Pp]rompt contains <p> tokens.{0,80}?too large for model with <w>",
    r"maximum prompt length is <w> but the request contains <p>",
    r"request \(<p> tokens\) exceeds the available context size \(<w>",
    # TGI and Together, Cohere, Fireworks, LM Studio
    r"`inputs` must have less than <w> tokens\. Given: <p>",
    r"`inputs` tokens \+ `max_new_tokens` must be <= <w>\. Given: <p> `inputs`",
    r"tokens in the prompt cannot exceed <w>.{0,40}received <p>",
    r"prompt is too long: <p>, model maximum context length: <w>",
    r"keep the first <p> tokens when.{0,60}context length of only <w> tokens",
)
_NUMBER = {f"<{name}>": rf"(?P<{name}>\d[\d,]{{0,11}})" for name in "pawr"}
_PROMPT_ALONE = (  # no numbers, but the sentence speaks of the input only (Bedrock, Gemini, Anthropic)
    "prompt is too long",
    "input is too long for requested model",
    "input length exceeds context window",
    "input token count exceeds the maximum",
    "exceeds the available context size",  # llama.cpp
    "your input exceeds the context window",
    "prompt exceeds max length",
    "please reduce the length of the prompt",
    "reduce the length of the messages",
    "number of input tokens exceeds maximum length",  # Nova
    "range of input length should be",  # Alibaba
    "initial prompt is greater than the context length",  # LM Studio
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """What an error says. `code` is its first name, `codes` all of them; `status` is what it stands for.

    `daily`: a quota of the day is used up; `flagged`: moderation refused the prompt.
    """

    message: str
    code: str | None
    codes: frozenset[str]
    status: int
    param: str
    details: Any
    daily: bool
    flagged: bool

    @classmethod
    def read(cls, body: Any) -> ErrorBody:
        """Read any decoded body; what is missing is empty, nothing is raised."""
        if isinstance(body, list) and body:
            body = body[0]
        error = body.get("error", body) if isinstance(body, dict) else body
        error = {"message": error} if isinstance(error, str) else error
        error = _unwrapped(error) if isinstance(error, dict) else {}
        names = [error.get("code"), error.get("type"), error.get("status"), *_inner_codes(error)]
        names += [body.get("error_type"), body.get("type")] if isinstance(body, dict) else []
        codes = [label(name) for name in names if isinstance(name, str) and not _NO_CODE.fullmatch(name)]
        metadata = error["metadata"] if isinstance(error.get("metadata"), dict) else {}
        message = next((error[name] for name in _MESSAGE if error.get(name)), "")
        return cls(
            message=message if isinstance(message, str) else _as_text(message),
            code=codes[0] if codes else None,
            codes=frozenset(codes),
            status=_status_in(error, codes),
            param=label(error.get("param")),
            details=error.get("details"),
            daily=_daily_quota(error.get("details")),
            # OpenRouter: 403 with the reasons for which the input was flagged.
            flagged="flagged_input" in metadata or bool(metadata.get("reasons")),
        )


def overflow(
    codes: frozenset[str], message: str, *, max_tokens: int | None
) -> Literal["prompt", "max_tokens"] | None:
    """`prompt`: too long by itself; `max_tokens`: only together with max_tokens; None: something else.

    Args:
        codes: every code and type in the error.
        message: the error's sentence.
        max_tokens: what the request asked for, to be taken off where only the sum is told.
    """
    message = message[:2000]
    found = next((found for shape in _shapes() if (found := shape.search(message))), None)
    if found:
        numbers = {name: int(text.replace(",", "")) for name, text in found.groupdict().items()}
        prompt = numbers["p"] if "p" in numbers else numbers["a"] - (max_tokens or 0)
        window = numbers["w"] if "w" in numbers else numbers["r"] + (max_tokens or 0)
        return "prompt" if prompt >= window else "max_tokens"
    lower = message.lower()
    if codes & _OVERFLOW_CODES or any(sentence in lower for sentence in _PROMPT_ALONE):
        return "prompt"
    return "max_tokens" if "max_tokens" in lower and "exceed context limit" in lower else None


def _unwrapped(error: dict[str, Any]) -> dict[str, Any]:
    """Without the errors round it that gateways send; what they say beside it stays."""
    while not any(error.get(name) for name in _MESSAGE):
        match error.get("error"):
            case dict(inner):
                error = {**error, "error": None, **inner}
            case str(text):
                return {**error, "message": text}
            case _:
                break
    return error


def _as_text(message: object) -> str:
    """What stands where a sentence should: FastAPI sends a list."""
    try:
        return str(message)
    except (ValueError, RecursionError):  # too many digits, too deeply nested
        return ""


def _inner_codes(error: Mapping[str, Any]) -> list[Any]:
    """Codes one level down: Azure's innererror, Anthropic's details, Gemini's ErrorInfo.reason."""
    codes: list[Any] = []
    for key in ("innererror", "inner_error", "details"):
        inner = error.get(key)
        for part in inner if isinstance(inner, list) else [inner]:
            if isinstance(part, dict):
                codes += [part.get("code"), part.get("error_code"), part.get("reason")]
    return codes


def _status_in(error: Mapping[str, Any], codes: list[str]) -> int:
    """The status that an error in mid-stream stands for: a number in it, else its code's, else 500."""
    for value in (error.get("code"), error.get("status"), error.get("status_code")):
        if isinstance(value, int | str) and _STATUS.fullmatch(str(value)):
            return int(value)
    return next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), 500)


def _daily_quota(details: Any) -> bool:
    """Gemini: a quota per day, or one of zero, does not come back while anyone waits."""
    for detail in details if isinstance(details, list) else []:
        violations = detail.get("violations") if isinstance(detail, dict) else None
        for violation in violations if isinstance(violations, list) else []:
            if isinstance(violation, dict) and (
                "PerDay" in str(violation.get("quotaId")) or str(violation.get("quotaValue")) == "0"
            ):
                return True
    return False


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    shapes = []
    for sentence in _SENTENCES:
        shape = sentence
        for mark, group in _NUMBER.items():
            shape = shape.replace(mark, group)
        shapes.append(re.compile(shape))
    return tuple(shapes)

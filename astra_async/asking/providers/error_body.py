"""The one shape that all error bodies are brought to, whoever sent them.

OpenAI, Azure and Gemini nest (`{"error": {...}}`), Anthropic nests with a type beside it, vLLM and Bedrock
are flat, Gemini wraps in a list of one, some send a bare sentence; codes stand one level down as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


_ERROR_STATUS = range(300, 600)


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
        error = error if isinstance(error, dict) else {}
        names = [error.get("code"), error.get("type"), error.get("status"), *_inner_codes(error)]
        codes = [label(name) for name in names if isinstance(name, str) and name not in {"", "error"}]
        message = error.get("message") or error.get("detail") or error.get("Message") or ""
        return cls(
            message=message if isinstance(message, str) else str(message)[:1000],
            code=codes[0] if codes else None,
            codes=frozenset(codes),
            status=_status_in(error, codes),
            param=label(error.get("param")),
            details=error.get("details"),
            daily=_daily_quota(error.get("details")),
            flagged=_moderated(error.get("metadata")),
        )


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
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if isinstance(number, int) and number in _ERROR_STATUS:
            return number
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


def _moderated(metadata: Any) -> bool:
    """OpenRouter: 403 with the reasons for which the input was flagged."""
    return isinstance(metadata, dict) and ("flagged_input" in metadata or bool(metadata.get("reasons")))

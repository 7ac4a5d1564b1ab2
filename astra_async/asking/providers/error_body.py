"""The one shape that all error bodies are brought to, whoever sent them.

OpenAI, Azure and Gemini nest (`{"error": {...}}`), Anthropic nests with a type beside it, vLLM and Bedrock
are flat, Gemini wraps in a list of one, some send a bare sentence; codes stand one level down as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.asking.providers.answer import label

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a code or type stands for when no HTTP status says it, as for errors in mid-stream.
_CODES_OF_STATUS = {
    400: (
        *("invalid_request_error", "invalid_prompt", "content_filter", "context_length_exceeded"),
        *("INVALID_ARGUMENT", "FAILED_PRECONDITION", "ValidationException"),
    ),
    401: ("authentication_error", "invalid_api_key", "UNAUTHENTICATED"),
    402: ("billing_error",),
    403: ("permission_error", "PERMISSION_DENIED", "AccessDeniedException"),
    404: ("not_found_error", "model_not_found", "NOT_FOUND", "ResourceNotFoundException"),
    408: ("ModelTimeoutException",),
    413: ("request_too_large",),
    424: ("ModelErrorException", "ModelStreamErrorException"),
    429: (
        *("rate_limit_exceeded", "rate_limit_error", "insufficient_quota", "slow_down", "too_many_requests"),
        *("RESOURCE_EXHAUSTED", "ThrottlingException", "ModelNotReadyException"),
    ),
    499: ("CANCELLED",),
    500: ("api_error", "server_error", "INTERNAL", "InternalServerException"),
    503: (
        *("server_is_overloaded", "engine_overloaded_error", "server_overloaded", "UNAVAILABLE"),
        "ServiceUnavailableException",
    ),
    504: ("timeout_error", "DEADLINE_EXCEEDED"),
    529: ("overloaded_error",),
}
_STATUS_OF_CODE = {code: status for status, codes in _CODES_OF_STATUS.items() for code in codes}

_NO_CODE = re.compile(r"\d*|error")  # a number repeats the status, and `error` says that there is one
_MESSAGE = ("message", "detail", "Message")
_STATUS = re.compile(r"[3-5][0-9]{2}")


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


def _unwrapped(error: dict[str, Any]) -> dict[str, Any]:
    """Without the errors round it that routers send; what they say beside it stays."""
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
        for part in _objects(error.get(key)):
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
    violations = (each for detail in _objects(details) for each in _objects(detail.get("violations")))
    return any(
        "PerDay" in str(each.get("quotaId")) or str(each.get("quotaValue")) == "0" for each in violations
    )


def _objects(found: object) -> list[dict[str, Any]]:
    """What of a list, or of what stands in its place, is an object."""
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]

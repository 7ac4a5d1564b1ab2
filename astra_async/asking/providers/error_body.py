"""Parsing of error bodies into one structure.

Errors are nested (`{"error": {...}}`: OpenAI, Azure, Gemini, Anthropic), flat (vLLM, Bedrock, Mistral), a
list (Gemini, FastAPI), a sentence (Ollama, xAI), an SSE event or an HTML page (Cloudflare). Routers wrap the
error of the provider as an object, as JSON in `metadata.raw` (OpenRouter) or as JSON within a sentence
(LiteLLM). The message is taken from the innermost error, the codes from all layers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.asking.providers.answer import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# HTTP status of errors in a stream, which arrive after HTTP 200, by their code.
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

# Codes that this module adds for facts without a code.
HTML_PAGE, FLAGGED, DAILY_QUOTA = "<html page>", "<flagged>", "<daily quota>"

_TEXT_KEYS = ("message", "Message", "msg", "detail", "status_msg", "error_msg", "error", "title")
_CODE_KEYS = ("code", "type", "status", "error_type", "error_code", "errorCode", "reason", "__type")
_STATUS_KEYS = ("code", "status", "status_code", "statusCode", "http_code")
_NO_CODE = re.compile(r"\d*|error|none|null|about:blank", re.IGNORECASE)  # a number repeats the status
_STATUS = re.compile(r"[3-5][0-9]{2}")
_MOST_LAYERS, _LONGEST_PREFIX, _LONGEST_PAGE = 8, 300, 20_000
_DECODER = json.JSONDecoder()
# Names that routers put before the message: `litellm.BadRequestError: XaiException - `.
_PREFIX = re.compile(
    r"\A(?:[\w.]{0,60}(?:Error|Exception)[\w.]{0,60}(?::| -) *|<\d{3}> ?|Error code: \d{3} - |\[\d{4}\]\[)+"
)
_LITELLM = re.compile(r"litellm\.(\w+)")
_MARKUP = re.compile(r"<(?:script|style)\b.{0,5000}?</|<[^>]{0,2000}>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """Parsed content of an error.

    Attributes:
        message: message of the innermost error, without prefixed names of exceptions.
        code: the first code.
        codes: all codes of all layers.
        status: status in the body, else the status of a code, else 500.
        param: name of the parameter that caused the error.
        details: Gemini's list of details.
        headers: response headers that a router copied into the body, names in lower case.
    """

    message: str
    code: str | None
    codes: frozenset[str]
    status: int
    param: str
    details: Any
    headers: dict[str, str]

    @classmethod
    def read(cls, body: Any) -> ErrorBody:
        """Parse any decoded body. Never raises; missing parts are empty."""
        layers = _layers(body)[::-1]  # innermost first
        text = next(filter(None, map(_text, layers)), "") or (body if isinstance(body, str) else "")
        added = {HTML_PAGE} if text.lstrip()[:1] == "<" and _MARKUP.match(text.lstrip()) else set()
        text = _page_text(text) if added else text
        codes = [name for layer in layers for name in _codes(layer)]
        codes += _LITELLM.findall(text[:_LONGEST_PREFIX])
        details = next((layer["details"] for layer in layers if layer.get("details")), None)
        metadata = [each["metadata"] for each in layers if isinstance(each.get("metadata"), dict)]
        if any(each.get("reasons") or "flagged_input" in each for each in metadata):
            added.add(FLAGGED)  # OpenRouter: 403 with the reasons of its moderation
        if _is_daily(details):
            added.add(DAILY_QUOTA)
        headers = [each["headers"] for each in metadata if isinstance(each.get("headers"), dict)]
        return cls(
            message=_PREFIX.sub("", text),
            code=codes[0] if codes else None,
            codes=frozenset(codes) | added,
            status=_status(layers[::-1], codes),
            param=next(filter(None, map(_param, layers)), ""),
            details=details,
            headers={name.lower(): str(value) for each in headers for name, value in each.items()},
        )


def parse_body(body: bytes) -> Any:
    """Decode the bytes of a body as JSON, or as text if they are not JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _layers(body: Any) -> list[dict[str, Any]]:
    """Return the objects of a body, outermost first."""
    layers: list[dict[str, Any]] = []
    layer = _object(body)
    while layer is not None and len(layers) < _MOST_LAYERS:
        layers.append(layer)
        layer = next((found for inner in _inner(layer) if (found := _object(inner)) is not None), None)
    return layers


def _inner(layer: dict[str, Any]) -> Iterator[Any]:
    """Yield the values that may contain a nested error, most likely first."""
    metadata = layer.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    yield layer.get("error")
    yield {"message": raw} if isinstance(raw, str) and raw.strip() else raw
    for name in ("errors", "base_resp", "response", "detail", "message"):
        yield layer.get(name)


def _object(value: Any) -> dict[str, Any] | None:
    """Return an object, the first object of a list, or the JSON object within a sentence."""
    if isinstance(value, list):
        value = next((each for each in value if isinstance(each, dict)), None)
    elif isinstance(value, str) and 0 <= (start := value.find("{")) <= _LONGEST_PREFIX:
        try:
            value = _DECODER.raw_decode(value, start)[0]
        except (ValueError, RecursionError):
            return None
        # Other JSON within a sentence may be quoted from the prompt.
        value = value if isinstance(value, dict) and value.keys() & {"error", "message", "detail"} else None
    return value if isinstance(value, dict) and value else None


def _text(layer: dict[str, Any]) -> str:
    return next((text for key in _TEXT_KEYS if isinstance(text := layer.get(key), str) and text.strip()), "")


def _page_text(page: str) -> str:
    """Return the title of an HTML page, or the words of an XML document."""
    page = page[:_LONGEST_PAGE]
    title = _TITLE.search(page)
    return " ".join((title[1] if title else _MARKUP.sub(" ", page)).split())[:_LONGEST_PREFIX]


def _codes(layer: dict[str, Any]) -> list[str]:
    """Return the codes of a layer, including Azure's innererror, Gemini's details, OpenRouter's metadata."""
    nested = (layer.get(key) for key in ("innererror", "inner_error", "details", "metadata"))
    parts = [layer, *(part for each in nested for part in _objects(each))]
    names = (part.get(key) for part in parts for key in _CODE_KEYS)
    return [label(name) for name in names if isinstance(name, str) and not _NO_CODE.fullmatch(name)]


def _status(layers: Iterable[dict[str, Any]], codes: list[str]) -> int:
    for value in (layer.get(key) for layer in layers for key in _STATUS_KEYS):
        if isinstance(value, int | str) and _STATUS.fullmatch(str(value)):
            return int(value)
    return next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), 500)


def _param(layer: dict[str, Any]) -> str:
    """Return the parameter that a layer names: `param`, or the last name of FastAPI's path `loc`."""
    path = layer.get("loc")
    return label(layer.get("param")) or label(path[-1] if isinstance(path, list) and path else "")


def _is_daily(details: Any) -> bool:
    """Return True if a daily or zero quota is exhausted (Gemini), because retryDelay is wrong then."""
    violations = (each for detail in _objects(details) for each in _objects(detail.get("violations")))
    return any(
        "PerDay" in str(each.get("quotaId")) or str(each.get("quotaValue")) == "0" for each in violations
    )


def _objects(found: object) -> list[dict[str, Any]]:
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]

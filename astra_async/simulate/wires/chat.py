"""OpenAI's Chat Completions (also Azure and compatible servers), Responses, and errors of both APIs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from astra_async.response_formats import ChatCompletionFormat, Cut, Json, ResponsesFormat
from astra_async.simulate.wires.request_parsing import InvalidRequest, ParsedRequest, object_in
from astra_async.simulate.wires.wire import Detail, Error, Trouble, Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from astra_async.simulate.limits import LimitWindow


_TOO_LONG = (
    "This model's maximum context length is {0.most_tokens} tokens. However, your messages resulted in"
    " {0.tokens} tokens. Please reduce the length of the messages."
)
_UNKNOWN = "The model `{0.model}` does not exist or you do not have access to it."
_SORRY = "The server had an error while processing your request. Sorry about that!"
_BUSY = "That model is currently overloaded with other requests."
_EXHAUSTED = "You exceeded your current quota, please check your plan and billing details."

_ERRORS: dict[Trouble, Error] = {
    "rate_limit": Error(429, "requests", "", "rate_limit_exceeded"),
    "too_large": Error(429, "tokens", "", "rate_limit_exceeded"),
    "server_error": Error(500, "server_error", _SORRY),
    "overloaded": Error(503, "service_unavailable_error", _BUSY, "server_is_overloaded"),
    "stream_error": Error(500, "server_error", "The server had an error during generation.", "server_error"),
    "bad_request": Error(400, "invalid_request_error", "{0.message}"),
    "context": Error(400, "invalid_request_error", _TOO_LONG, "context_length_exceeded"),
    "unknown_model": Error(404, "invalid_request_error", _UNKNOWN, "model_not_found"),
    "key": Error(401, "invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
    "quota": Error(429, "insufficient_quota", _EXHAUSTED, "insufficient_quota"),
}


class OpenAI(Wire):
    """Errors are `{"error": {message, type, param, code}}`; max_tokens is charged on admission."""

    charges_max_tokens = True
    errors = _ERRORS

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """Return the error body."""
        reply, kind = self.errors[trouble], self.errors[trouble].kind
        if trouble == "rate_limit" and detail.rejected:
            kind = detail.rejected.dimension
        message = self.message(trouble, detail)
        return {"error": {"message": message, "type": kind, "param": None, "code": reply.code}}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Return the pause for a rate limit; other errors have no headers."""
        if trouble != "rate_limit":
            return {}
        # Rounded up, so that a client that waits for this time is not too early.
        return {
            "retry-after": str(math.ceil(detail.wait_s)),
            "retry-after-ms": str(math.ceil(detail.wait_s * 1000)),
        }

    def message(self, trouble: Trouble, detail: Detail) -> str:
        """Return the error message; for a rate limit, it depends on the dimension."""
        if trouble in ("rate_limit", "too_large"):
            return _limit_message(detail)
        return super().message(trouble, detail)

    def limit_headers(self, windows: Iterable[LimitWindow]) -> dict[str, str]:
        """Return `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`; reset is a Go duration."""
        headers = {}
        for window in windows:
            headers[f"x-ratelimit-limit-{window.dimension}"] = f"{window.limit:.0f}"
            headers[f"x-ratelimit-remaining-{window.dimension}"] = f"{window.remaining:.0f}"
            headers[f"x-ratelimit-reset-{window.dimension}"] = self.duration(window.reset_s)
        return headers

    def duration(self, seconds: float) -> str:
        """Return the time until a limit is completely reset."""
        return go_duration(seconds)


class ChatCompletions(ChatCompletionFormat, OpenAI):
    """POST /v1/chat/completions."""

    tool = "function"
    call = "tool_calls"
    tells_refusals = True
    most_tokens = ("max_completion_tokens", "max_tokens")
    seeds = ("seed", "random_seed")
    least_seed = -(2**63)

    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> ParsedRequest:
        """Parse a request; usage is included only if requested."""
        wanted = object_in(body, "stream_options").get("include_usage")
        return replace(super().read(body, path), with_usage=bool(wanted))


class AzureChatCompletions(ChatCompletions):
    """POST /openai/deployments/{deployment}/chat/completions; the deployment is the model."""

    opening = 2

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield Azure's prompt filter result first, in a chunk without choices."""
        verdict = {"prompt_index": 0, "content_filter_results": {}}
        head = {**whole, "object": "chat.completion.chunk", "usage": None}
        yield {**head, "choices": [], "prompt_filter_results": [verdict]}
        yield from super().events(whole, cut)

    def duration(self, seconds: float) -> str:
        """Return whole seconds."""
        return str(math.ceil(seconds))


def go_duration(seconds: float) -> str:
    """Format seconds like Go's time.Duration: `20ms`, `1.5s`, `6m0s`, `1h2m3s`."""
    seconds = math.ceil(seconds * 1000) / 1000
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours}h"] if hours else []
    if hours or minutes:
        parts.append(f"{minutes}m")
    return "".join((*parts, f"{rest:.3f}".rstrip("0").rstrip("."), "s"))


def _limit_message(detail: Detail) -> str:
    again = f"Please try again in {go_duration(detail.wait_s)}."
    rejected = detail.rejected
    if rejected is None:
        return f"Rate limit reached for {detail.model}. {again}"
    unit = "requests per min (RPM)" if rejected.dimension == "requests" else "tokens per min (TPM)"
    figures = f"{detail.model} on {unit}: Limit {rejected.limit:.0f}, Requested {rejected.requested:.0f}."
    if rejected.never:
        return f"Request too large for {figures} The input or output tokens must be reduced."
    return f"Rate limit reached for {figures} {again}"


class Responses(ResponsesFormat, OpenAI):
    """OpenAI's Responses; streams end with response.completed or response.incomplete, without `[DONE]`."""

    messages, system, call = "input", "instructions", "function_call"
    most_tokens = ("max_output_tokens",)
    tells_refusals = True
    opening = 4

    def messages_of(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the messages; the input may also be a string."""
        question = body.get("input")
        return [{"content": question}] if isinstance(question, str) else super().messages_of(body)

    def system_of(self, body: Mapping[str, Any]) -> str:
        """Return the instructions. Raises InvalidRequest."""
        if not isinstance(body.get("instructions") or "", str):
            raise InvalidRequest("instructions must be a string")
        return super().system_of(body)

    def is_own(self, message: Mapping[str, Any]) -> bool:
        """Return True for messages of the model, including items for tool calls and reasoning."""
        return super().is_own(message) or message.get("type") in {"function_call", "reasoning"}

    def stream_error(self, detail: Detail) -> bytes:
        """Return an `error` event, which has its fields at the top level."""
        error = self.error("stream_error", detail)["error"]
        fields = {name: error[name] for name in ("code", "message", "param")}
        return self.encoded({"type": "error", "sequence_number": 0, **fields})

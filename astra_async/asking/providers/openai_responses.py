"""OpenAI's Responses API (`POST {base}/responses`), without server-side storage.

The stream ends with exactly one of `response.completed`, `.incomplete`, `.failed` or `error`; the first
three carry the whole response, whose text outranks the pieces. There is no seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from astra_async.asking.providers.answer import Answer, Json, Reader, StreamFault, count, label
from astra_async.asking.providers.connection import below
from astra_async.asking.providers.openai_chat import OPENAI_BASE_URL, openai_headers, refuse_thinking
from astra_async.asking.providers.rate_limits import openai_limits
from astra_async.asking.providers.request_fields import WireFormat
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason, ModelRequest, ModelSettings, RateLimits

_REASONING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_NO_SUCH = "the Responses interface has no such parameter: unset it, or use openai/..."
_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesReader(Reader):
    """Typed events of one response -> an Answer."""

    def __init__(self) -> None:
        super().__init__()
        self._response: Json = {}

    def feed(self, event: Json | None) -> None:
        """Take one event; unknown ones, and `[DONE]`, say nothing."""
        if event is None:
            return
        kind = event.get("type")
        if kind == "response.output_text.delta":
            self.transcript.add(event["delta"])
        elif kind in _TERMINAL:
            self._end(event["response"])
        elif kind in _REASONING or kind == "response.refusal.delta":
            self.transcript.begun = True
        elif kind == "response.created":
            self._response = event["response"]
        elif kind == "error" or event.get("error"):
            raise StreamFault(event)
        elif event.get("object") == "response":  # a whole answer where a stream was asked for
            self._end(event)

    def usage(self) -> Usage:
        """Tokens of the final response."""
        usage = self._response.get("usage")
        if not isinstance(usage, dict):
            return Usage()
        inputs = usage.get("input_tokens_details") or {}
        return Usage(
            input_tokens=count(usage.get("input_tokens")),
            cached_tokens=count(inputs.get("cached_tokens")),
            cache_write_tokens=count(inputs.get("cache_write_tokens")),
            output_tokens=count(usage.get("output_tokens")),
            reasoning_tokens=count((usage.get("output_tokens_details") or {}).get("reasoning_tokens")),
        )

    def answer(self) -> Answer | None:
        """The answer, once a terminal event has arrived."""
        if not self.done:
            return None
        text, refusal = _output(self._response)
        finish = _finish(self._response)
        if refusal:
            finish, text = "refusal", text or refusal
        return Answer(
            text=text or self.transcript.text(),
            finish_reason=finish,
            usage=self.told(),
            returned_model=label(self._response.get("model")),
        )

    def _end(self, response: Json) -> None:
        self._response = response
        if response.get("status") in {"failed", "cancelled"}:
            body = {"error": response.get("error") or {"message": "the response has failed"}}
            raise StreamFault(body, self.told() if response.get("usage") else None)
        self.done = True


class OpenAIResponses(WireFormat):
    """The wire format of `openai-responses/...`."""

    charges_max_tokens = True
    reader = ResponsesReader
    measured = frozenset({"model", "input", "prompt"})
    takes = frozenset(
        {
            *("system_prompt", "temperature", "top_p", "service_tier", "reasoning_effort"),
            *("organization", "project"),
        }
    )
    meaningless: ClassVar[Mapping[str, str]] = {
        "top_k": _NO_SUCH,
        "stop": _NO_SUCH,
        "max_tokens_field": "it is max_output_tokens: unset it",
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        refuse_thinking(settings)
        super().__init__(settings, settings.base_url or OPENAI_BASE_URL, environ=environ)
        self.url = below(self.base, "responses")
        self.headers = openai_headers(settings, key, environ)

    def body(self, request: ModelRequest) -> Json:
        """The request for one streamed answer."""
        settings = self.settings
        fields: Json = {
            "model": settings.model,
            "input": request.prompt
            if not request.earlier
            else [
                {"role": role, "content": text} for role, text in request.messages
            ],  # nothing of a conversation is stored at the server
            "max_output_tokens": settings.max_tokens,
            "instructions": settings.system_prompt,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "service_tier": settings.service_tier,
            "store": False,
            "stream": True,
            "stream_options": {"include_obfuscation": False},
        }
        if settings.reasoning_effort is not None:
            fields["reasoning"] = {"effort": settings.reasoning_effort}
        if request.cache:
            fields["prompt_cache_key"] = request.prompt_sha256[:64]
        return fields

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """OpenAI's rate-limit headers."""
        return openai_limits(headers)


def _finish(response: Json) -> FinishReason:
    if response.get("status") != "incomplete":
        return "stop"
    reason = (response.get("incomplete_details") or {}).get("reason")
    return "content_filter" if reason == "content_filter" else "length"


def _output(response: Json) -> tuple[str, str]:
    """(text, refusal) of all messages; reasoning items are left out."""
    texts: list[str] = []
    refusals: list[str] = []
    for item in response.get("output") or []:
        if item.get("type") == "message":
            for part in item.get("content") or []:
                if part.get("type") == "output_text":
                    texts.append(part["text"])
                elif part.get("type") == "refusal":
                    refusals.append(part["refusal"])
    return "".join(texts), "".join(refusals)

"""OpenAI's Responses API (`POST {base}/responses`), without server-side storage.

The stream ends with exactly one of `response.completed`, `.incomplete`, `.failed` or `error`; the first
three carry the whole response, whose text outranks the pieces. There is no seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.asking.providers.answer import Answer, Json, Reader, StreamFault, count, label
from astra_async.asking.providers.connection import address, below
from astra_async.asking.providers.openai_chat import OPENAI_BASE_URL, openai_headers, refuse_thinking
from astra_async.asking.providers.rate_limits import openai_limits
from astra_async.asking.providers.request_fields import refuse
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason, ModelRequest, ModelSettings, RateLimits

_REASONING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


class OpenAIResponses:
    """The wire format of `openai-responses/...`.

    Raises:
        ConfigError: the address cannot be used, or a setting has no meaning here.
    """

    charges_max_tokens = True
    cached_input_is_exempt = False

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        refuse_thinking(settings)
        nothing = "the Responses interface has no such parameter: unset it, or use openai/..."
        refuse(settings, top_k=nothing, stop=nothing, max_tokens_field="it is max_output_tokens: unset it")
        base = address(settings.base_url or OPENAI_BASE_URL, where=f"base_url of {settings.name}")
        self.url = below(base, "responses")
        self.headers = openai_headers(settings, key, environ)
        self._settings = settings

    def body(self, request: ModelRequest) -> Json:
        """The request for one streamed answer."""
        settings = self._settings
        fields: Json = {
            "model": settings.model,
            "input": request.prompt if not request.earlier else _items(request),
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

    def reader(self) -> ResponsesReader:
        """A fresh reader for one answer."""
        return ResponsesReader()

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """OpenAI's rate-limit headers."""
        return openai_limits(headers)


def _items(request: ModelRequest) -> list[Json]:
    """A conversation as input items: nothing of it is stored at the server."""
    return [{"role": role, "content": text} for role, text in request.messages]


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
            usage=self.usage(),
            returned_model=label(self._response.get("model")),
        )

    def _end(self, response: Json) -> None:
        self._response = response
        if response.get("status") in {"failed", "cancelled"}:
            raise StreamFault({"error": response.get("error") or {"message": "the response has failed"}})
        self.done = True


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

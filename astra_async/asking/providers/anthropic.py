"""Anthropic's Messages API (`POST {base}/v1/messages`), always streamed.

`input_tokens` on the wire is what neither came from nor went into the prompt cache; a Usage counts all of it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from astra_async.asking.providers.addresses import address, without_version
from astra_async.asking.providers.answer import Answer, Json, StreamFault, Transcript, count, label
from astra_async.asking.providers.exchange import Call
from astra_async.asking.providers.limits import anthropic_limits
from astra_async.asking.providers.openai_chat import encode
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason, ModelRequest, ModelSettings, RateLimits

BASE_URL = "https://api.anthropic.com"
# From 2026-10-21 on every model rejects sampling parameters; under this version older models take them.
DEFAULT_API_VERSION = "2023-06-01"

_FINISH: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class Anthropic:
    """The wire format of `anthropic/...`."""

    charges_max_tokens = False
    cached_input_is_exempt = True

    def __init__(self, settings: ModelSettings, key: str | None) -> None:
        base = address(settings.base_url or BASE_URL, where=f"base_url of {settings.name}")
        self.url = without_version(base) / "v1/messages"
        self.secrets: tuple[str, ...] = (key,) if key else ()
        self._settings = settings
        self._headers = {
            "Content-Type": "application/json",
            "anthropic-version": settings.api_version or DEFAULT_API_VERSION,
        }
        if key:
            self._headers["x-api-key"] = key

    def call(self, request: ModelRequest) -> Call:
        """The request for one streamed answer; the marker asks to cache everything up to the prompt's end."""
        settings = self._settings
        block: Json = {"type": "text", "text": request.prompt}
        if request.cache:
            block["cache_control"] = {"type": "ephemeral"}
        fields: Json = {
            "model": settings.model,
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "messages": [{"role": "user", "content": [block]}],
            "stream": True,
        }
        if settings.reasoning_effort is not None:
            fields["output_config"] = {"effort": settings.reasoning_effort}
        return Call(url=self.url, headers=self._headers, body=encode(fields))

    def reader(self) -> MessageReader:
        """A fresh reader for one answer."""
        return MessageReader()

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Anthropic's rate-limit headers."""
        return anthropic_limits(headers, datetime.now(UTC))


class MessageReader:
    """Events of one message -> an Answer. `message_stop` is the end; unknown events say nothing."""

    __slots__ = ("_model", "_stop", "_usage", "done", "transcript")

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = False
        self._stop: str | None = None
        self._usage: Json = {}
        self._model = ""

    def feed(self, event: Json | None) -> None:
        """Take one event."""
        if event is None:
            return
        kind = event.get("type")
        if kind == "content_block_delta":
            self._delta(event["delta"])
        elif kind == "content_block_start":
            self._delta(event["content_block"])
        elif kind == "message_start":
            self._model = label(event["message"].get("model"))
            self._count(event["message"].get("usage"))
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        elif kind == "error" or event.get("error"):
            raise StreamFault(event)

    def usage(self) -> Usage:
        """Tokens so far: the counts of `message_delta` are cumulative."""
        usage = self._usage
        fresh = count(usage.get("input_tokens"))
        read = count(usage.get("cache_read_input_tokens"))
        written = count(usage.get("cache_creation_input_tokens"))
        return Usage(
            input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
            cached_tokens=read,
            cache_write_tokens=written,
            output_tokens=count(usage.get("output_tokens")),
            reasoning_tokens=count((usage.get("output_tokens_details") or {}).get("thinking_tokens")),
        )

    def answer(self) -> Answer | None:
        """The answer, once `message_stop` has arrived with a reason before it."""
        if not self.done or self._stop is None:
            return None
        text = self.transcript.text()
        finish = _FINISH.get(self._stop, "stop")
        if self._stop == "model_context_window_exceeded" and not text:
            finish = "context_exceeded"
        return Answer(text=text, finish_reason=finish, usage=self.usage(), returned_model=self._model)

    def _delta(self, delta: Json) -> None:
        """A piece of a block, or a block as it starts; all but text is thinking."""
        text = delta.get("text")
        if text and delta.get("type") in {"text_delta", "text"}:
            self.transcript.add(text)
        elif delta.get("type") == "thinking_delta":
            self.transcript.begun = True

    def _count(self, usage: Json | None) -> None:
        self._usage.update({name: value for name, value in (usage or {}).items() if value is not None})

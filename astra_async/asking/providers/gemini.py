"""Gemini's generateContent, streamed (`POST {base}/v1beta/models/{model}:streamGenerateContent?alt=sse`).

There is no end mark: an answer is whole once a chunk had a finishReason and the stream ended. A blocked
prompt is HTTP 200 without candidates: a result. Billed output is candidates plus thoughts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from astra_async.asking.providers.addresses import address, without_version
from astra_async.asking.providers.answer import Answer, Json, StreamFault, Transcript, count, label
from astra_async.asking.providers.exchange import Call
from astra_async.asking.providers.openai_chat import encode
from astra_async.errors import ConfigError
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason, ModelRequest, ModelSettings, RateLimits

BASE_URL = "https://generativelanguage.googleapis.com"

# What is not listed ended by itself: STOP, MALFORMED_..., UNEXPECTED_TOOL_CALL: the text says the rest.
_FINISH: dict[str, FinishReason] = {
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "BLOCKLIST": "content_filter",
    "SPII": "content_filter",
    "LANGUAGE": "content_filter",
}
_UNNAMED = frozenset({"OTHER", "ESCALATION"})  # without any text: declined
_LARGEST_SEED = 2**31 - 1  # the field is an int32


class Gemini:
    """The wire format of `gemini/...`; prompts are cached by the server without a marker."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self, settings: ModelSettings, key: str | None) -> None:
        base = address(settings.base_url or BASE_URL, where=f"base_url of {settings.name}")
        path = f"v1beta/{_resource(settings)}:streamGenerateContent"
        self.url = without_version(base).joinpath(path, encoded=True).with_query(alt="sse")
        self.secrets: tuple[str, ...] = (key,) if key else ()
        self._settings = settings
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["x-goog-api-key"] = key

    def call(self, request: ModelRequest) -> Call:
        """The request for one streamed answer."""
        settings = self._settings
        config: Json = {"maxOutputTokens": settings.max_tokens}
        if settings.temperature is not None:
            config["temperature"] = settings.temperature
        if request.seed is not None:
            config["seed"] = request.seed & _LARGEST_SEED
        if settings.reasoning_effort is not None:
            config["thinkingConfig"] = _thinking(settings.reasoning_effort)
        fields: Json = {
            "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
            "generationConfig": config,
        }
        return Call(url=self.url, headers=self._headers, body=encode(fields))

    def reader(self) -> GeminiReader:
        """A fresh reader for one answer."""
        return GeminiReader()

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:  # noqa: ARG002 - it sends none
        """Gemini announces nothing in headers."""
        return None


class GeminiReader:
    """Chunks of one candidate -> an Answer."""

    __slots__ = ("_blocked", "_finish", "_model", "_usage", "done", "transcript")

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = False  # never: usage may follow the finishReason, only the stream's end is the end
        self._finish: str | None = None
        self._blocked = False
        self._usage: Json = {}
        self._model = ""

    def feed(self, event: Json | None) -> None:
        """Take one chunk."""
        if event is None:
            return
        if "error" in event:
            raise StreamFault(event)
        candidates = event.get("candidates")
        if candidates:
            self._candidate(candidates[0])
        elif (event.get("promptFeedback") or {}).get("blockReason"):
            self._blocked = True
        self._usage = event.get("usageMetadata") or self._usage
        self._model = self._model or label(event.get("modelVersion"))

    def usage(self) -> Usage:
        """Tokens of the last chunk that told them."""
        usage = self._usage
        visible, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
        output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
        return Usage(
            input_tokens=count(usage.get("promptTokenCount")),
            cached_tokens=count(usage.get("cachedContentTokenCount")),
            output_tokens=output,
            reasoning_tokens=thoughts,
        )

    def answer(self) -> Answer | None:
        """The answer, once a finishReason or a blockReason has arrived."""
        if self._finish is None and not self._blocked:
            return None
        text = self.transcript.text()
        finish = _FINISH.get(self._finish or "", "stop")
        if self._blocked or (self._finish in _UNNAMED and not text):
            finish = "content_filter"
        return Answer(text=text, finish_reason=finish, usage=self.usage(), returned_model=self._model)

    def _candidate(self, candidate: Json) -> None:
        for part in (candidate.get("content") or {}).get("parts") or []:
            text = part.get("text")
            if text:
                if part.get("thought"):
                    self.transcript.begun = True
                else:
                    self.transcript.add(text)
        finish = candidate.get("finishReason")
        if finish and finish != "FINISH_REASON_UNSPECIFIED":
            self._finish = finish


def _thinking(effort: str) -> Json:
    """A number is a budget of tokens (Gemini 2.5), a word a level (Gemini 3 and later)."""
    if effort.lstrip("-").isdigit():
        return {"thinkingBudget": int(effort)}
    return {"thinkingLevel": effort.upper()}


def _resource(settings: ModelSettings) -> str:
    """`models/NAME`, or `tunedModels/NAME` as typed; nothing in it may leave the path."""
    model = settings.model
    if "/" not in model:
        model = f"models/{model}"
    if ".." in model or model.count("/") != 1:
        raise ConfigError(f"{settings.name}: {settings.model!r} is no model's name")
    return quote(model, safe="/")

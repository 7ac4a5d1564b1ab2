"""OpenAI chat completions, and every server that speaks them (`POST {base}/chat/completions`).

The reader is tolerant, for vLLM, SGLang, llama.cpp, Ollama, OpenRouter, DeepSeek, Groq, Mistral, xAI and
Together differ in small things: usage in a chunk that also has choices, no `[DONE]`, flat errors, content
as a list of parts, a whole answer where a stream was asked for. An answer has ended when its
`finish_reason` has arrived; `[DONE]` ends the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from astra_async.asking.providers.addresses import address
from astra_async.asking.providers.answer import Answer, Json, StreamFault, Transcript, count, label
from astra_async.asking.providers.exchange import Call
from astra_async.asking.providers.limits import openai_limits
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from astra_async.types import FinishReason, ModelRequest, ModelSettings, RateLimits

OPENAI_BASE_URL = "https://api.openai.com/v1"
# Behind these addresses are OpenAI's own models, of which the newer ones refuse `max_tokens`.
_OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com", ".services.ai.azure.com")

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral: the context window is full
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Zhipu
    "refusal": "refusal",
}
# The server gave up in mid-answer: OpenRouter and Mistral, SGLang and vLLM, DeepSeek, Zhipu.
_BROKEN_OFF = frozenset({"error", "abort", "insufficient_system_resource", "network_error"})


class OpenAIChat:
    """The wire format of OpenAI itself (`openai/...`) and of compatible servers.

    Args:
        settings: of one model; what is None there is left out of the request.
        key: for `Authorization: Bearer`, or None for no header.
        official: OpenAI's own server: newer field names, cache keys, max_tokens charged at admission.
    """

    cached_input_is_exempt = False

    def __init__(self, settings: ModelSettings, key: str | None, *, official: bool) -> None:
        base = address(settings.base_url or OPENAI_BASE_URL, where=f"base_url of {settings.name}")
        self.charges_max_tokens = official
        self.url: URL = base / "chat/completions"
        self.secrets: tuple[str, ...] = (key,) if key else ()
        self._settings = settings
        self._official = official
        host = base.host or ""
        self._newer_names = official or host.endswith(_OPENAI_HOSTS)
        self._mistral = host.endswith(".mistral.ai")
        self._daily_requests = host.endswith(".groq.com")
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def call(self, request: ModelRequest) -> Call:
        """The request for one streamed answer."""
        options: Json | None = {"include_usage": True}
        if self._official:
            # Padding against traffic analysis, half the bytes of a stream of small chunks.
            options = {"include_usage": True, "include_obfuscation": False}
        elif self._mistral:
            options = None  # it refuses the field, and sends usage without being asked
        fields = chat_fields(self._settings, request, options)
        fields["model"] = self._settings.model
        fields["max_completion_tokens" if self._newer_names else "max_tokens"] = self._settings.max_tokens
        fields["random_seed" if self._mistral else "seed"] = request.seed
        if self._official and request.cache:
            fields["prompt_cache_key"] = request.prompt_sha256[:64]
        headers = self._headers
        if request.sample_header is not None:
            headers = {**headers, "x-astra-sample": request.sample_header}
        return Call(url=self.url, headers=headers, body=encode(fields))

    def reader(self) -> ChatReader:
        """A fresh reader for one answer."""
        return ChatReader()

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """OpenAI's rate-limit headers; Groq counts requests per day, which says nothing about a minute."""
        return openai_limits(headers, daily_requests=self._daily_requests)


def chat_fields(settings: ModelSettings, request: ModelRequest, options: Json | None) -> Json:
    """The fields that all servers of this format share; only what the user set."""
    fields: Json = {
        "messages": [{"role": "user", "content": request.prompt}],
        "stream": True,
        "stream_options": options,
    }
    if settings.temperature is not None:
        fields["temperature"] = settings.temperature
    if settings.reasoning_effort is not None:
        fields["reasoning_effort"] = settings.reasoning_effort
    return fields


def encode(fields: Json) -> bytes:
    """A JSON body without the fields that are None."""
    return orjson.dumps({name: value for name, value in fields.items() if value is not None})


class ChatReader:
    """Chunks of one choice -> an Answer."""

    __slots__ = ("_finish", "_model", "_refusal", "_usage", "done", "transcript")

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = False
        self._finish: str | None = None
        self._refusal = Transcript()
        self._usage: Json | None = None
        self._model = ""

    def feed(self, event: Json | None) -> None:
        """Take one chunk; None is `[DONE]`."""
        if event is None:
            self.done = True
            return
        choices = event.get("choices")
        if choices and "error" not in event:
            self._choice(choices[0])
        else:
            self._other(event)
        usage = event.get("usage")
        if usage:
            self._usage = usage
        if not self._model:
            self._model = label(event.get("model"))

    def usage(self) -> Usage:
        """Tokens of the last chunk that told them; gateways repeat a running count."""
        return chat_usage(self._usage)

    def answer(self) -> Answer | None:
        """The answer, once its finish_reason has arrived.

        Some gateways never send one: then usage and `[DONE]` after some text count as an orderly end.
        """
        text = self.transcript.text()
        if self._finish is None and not (self.done and self._usage and text):
            return None
        finish = _FINISH.get(self._finish or "", "stop")
        if self._refusal.begun:
            finish, text = "refusal", text or self._refusal.text()
        elif self._finish == "model_length" and not text:
            finish = "context_exceeded"
        return Answer(text=text, finish_reason=finish, usage=self.usage(), returned_model=self._model)

    def _choice(self, choice: Json) -> None:
        delta = choice.get("delta") or choice.get("message")
        if delta:
            content = delta.get("content")
            if content:
                self.transcript.add(content if type(content) is str else _text_of_parts(content))
            elif delta.get("refusal"):
                self._refusal.add(delta["refusal"])
                self.transcript.begun = True
            elif delta.get("reasoning_content") or delta.get("reasoning"):
                self.transcript.begun = True
        finish = choice.get("finish_reason")
        if finish:
            self._end(finish, choice)

    def _end(self, finish: str, choice: Json) -> None:
        if finish in _BROKEN_OFF:
            raise StreamFault(choice.get("error") or {"message": f"the server broke off: {label(finish)}"})
        self._finish = finish
        if choice.get("usage") and not self._usage:  # Moonshot
            self._usage = choice["usage"]

    def _other(self, event: Json) -> None:
        """Errors in three shapes, and usage in a place of its own (Groq)."""
        if event.get("error") or event.get("object") == "error":
            raise StreamFault(event)
        if event.get("choices"):  # `"error": null` beside them
            self._choice(event["choices"][0])
        groq = event.get("x_groq")
        if groq and groq.get("usage"):
            self._usage = groq["usage"]
        elif "message" in event and "code" in event:
            raise StreamFault(event)


def chat_usage(usage: Json | None) -> Usage:
    """OpenAI's `usage`, with DeepSeek's names for the cache; reasoning is part of the output."""
    if not isinstance(usage, dict):
        return Usage()
    inputs, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    total = count(usage.get("total_tokens"))
    if reasoning and inputs is not None and output is not None and total == inputs + output + reasoning:
        output += reasoning  # xAI counts reasoning beside the completion
    return Usage(
        input_tokens=inputs,
        cached_tokens=count(usage.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cache_write_tokens=_detail(usage, "prompt_tokens_details", "cache_write_tokens"),
        output_tokens=output,
        reasoning_tokens=reasoning,
    )


def _detail(usage: Json, group: str, name: str) -> int | None:
    details: Any = usage.get(group)
    return count(details.get(name)) if isinstance(details, dict) else None


def _text_of_parts(content: Any) -> str:
    """Mistral's list of parts; those that are thinking are not text."""
    return "".join(part["text"] for part in content if part.get("type") == "text")

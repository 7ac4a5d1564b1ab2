"""OpenAI chat completions, Azure's, and every server that speaks them (`POST {base}/chat/completions`).

The reader is tolerant, for vLLM, SGLang, llama.cpp, Ollama, OpenRouter, DeepSeek, Groq, Mistral, xAI and
Together differ in small things: usage in a chunk that also has choices, no `[DONE]`, flat errors, content
as a list of parts, a whole answer where a stream was asked for or after one. An answer has ended when its
`finish_reason` has arrived; `[DONE]` ends the stream.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import orjson

from astra_async.asking.providers.answer import (
    Json,
    Reader,
    StreamFault,
    Transcript,
    count,
    first_choice,
    label,
    output_tokens,
    reason_name,
)
from astra_async.asking.providers.connection import below
from astra_async.asking.providers.deltas import merge
from astra_async.asking.providers.rate_limits import openai_limits
from astra_async.asking.providers.request_fields import WireFormat, refuse, set_fields, tools_of
from astra_async.errors import ConfigError
from astra_async.types import Usage
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Completion, MaxTokensField, ModelRequest, ModelSettings, RateLimits
    from astra_async.types.agents import Message

OPENAI_BASE_URL = "https://api.openai.com/v1"
AZURE_API_VERSION = "2024-10-21"  # the last stable version of the deployments interface
# Behind these addresses `max_tokens` is refused by newer models, or out of date.
_NEWER_HOSTS = (
    *("api.openai.com", ".openai.azure.com", ".services.ai.azure.com"),
    *("api.groq.com", "api.x.ai", "api.cerebras.ai"),
)
NEWER_MODELS = re.compile(r"o[1-9]($|[-.:])|(chat)?gpt-([5-9]|\d\d)", re.IGNORECASE)

_TAKES = frozenset(
    {
        *("system_prompt", "temperature", "top_p", "stop", "service_tier", "reasoning_effort"),
        "max_tokens_field",
    }
)
# The server gave up in mid-answer: OpenRouter and Mistral, SGLang and vLLM, DeepSeek, Zhipu.
_BROKEN_OFF = frozenset({"error", "abort", "cancelled", "insufficient_system_resource", "network_error"})


class ChatReader(Reader):
    """Chunks of one choice -> an Answer."""

    def __init__(self) -> None:
        super().__init__()
        self._refusal = Transcript()
        self._in_pieces = False  # text came as deltas
        self._head: Json = {}
        self._message: Json = {}

    def feed(self, event: Json | None) -> None:
        """Take one chunk; None is `[DONE]`."""
        if event is None:
            self.done = True
            return
        choices = event.get("choices")
        if self.gathers:
            self._head |= event
        if choices and "error" not in event:
            self._choice(first_choice(choices) or {})
        else:
            self._other(event)
        usage = event.get("usage")
        if usage:
            self.counts = usage
        if not self.model:
            self.model = label(event.get("model"))

    def usage(self) -> Usage:
        """Tokens of the last chunk that told them; gateways repeat a running count.

        OpenAI's names, with DeepSeek's and Moonshot's for the cache; reasoning is part of the output (xAI and
        Gemini's gateways count it beside the completion).
        """
        usage = self.counts
        if not isinstance(usage, dict):
            return Usage()
        inputs, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        cached = (
            _detail(usage, "prompt_tokens_details", "cached_tokens"),
            count(usage.get("prompt_cache_hit_tokens")),
            count(usage.get("cached_tokens")),
        )
        return Usage(
            input_tokens=inputs,
            cached_tokens=next((tokens for tokens in cached if tokens is not None), None),
            cache_write_tokens=_detail(usage, "prompt_tokens_details", "cache_write_tokens"),
            output_tokens=output_tokens(count(usage.get("total_tokens")), inputs, output),
            reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        )

    def answer(self) -> Completion | None:
        """The answer, once its finish_reason has arrived."""
        whole = super().answer()
        if whole is not None and self._refusal.begun:
            return replace(whole, finish_reason="refusal", text=whole.text or self._refusal.text())
        return whole

    def gathered(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """The answer as a `chat.completion` with all deltas in one message, and its calls."""
        message = {"role": "assistant", "content": None, **self._message}
        calls = message.get("tool_calls") or []
        for number, call in enumerate(calls):
            call["id"] = call.get("id") or self.made_id(number)
            call.pop("index", None)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.reason or "stop"}
        whole = {**self._head, "object": "chat.completion", "choices": [choice], "usage": self.counts or None}
        return set_fields(whole), tuple(map(_call, calls))

    def _gather(self, message: Json, *, whole: bool) -> None:
        if whole and message.get("tool_calls"):
            self._message.pop("tool_calls", None)
        if whole and message.get("content"):
            self._message.pop("content", None)
        for call in message.get("tool_calls") or ():
            function = call.get("function") or call.get("custom") or {}
            self.transcript.count(function.get("arguments") or function.get("input") or "")
            self.transcript.begun = True
        merge(self._message, message)

    def _choice(self, choice: Json) -> None:
        delta = choice.get("delta")
        if message := delta or choice.get("message"):
            if self.gathers:
                self._gather(message, whole=not delta)
            content = message.get("content")
            if content:
                self._say(content if type(content) is str else _text_of_parts(content), whole=not delta)
            elif message.get("refusal"):
                self._refusal.add(message["refusal"])
                self.transcript.begun = True
            elif message.get("reasoning_content") or message.get("reasoning"):
                self.transcript.begun = True
        finish = choice.get("finish_reason")
        if finish:
            self._end(finish, choice)

    def _say(self, text: str, *, whole: bool) -> None:
        """Text of a delta, or of a message: that is all of it where deltas came before (MiniMax)."""
        if not whole:
            self._in_pieces = True
        elif self._in_pieces and text:
            self.transcript.restate(text)
            return
        self.transcript.add(text)

    def _end(self, finish: str, choice: Json) -> None:
        if reason_name(finish) in _BROKEN_OFF:
            raise StreamFault(choice.get("error") or {"message": f"the server broke off: {label(finish)}"})
        self.reason = finish
        if choice.get("usage") and not self.counts:  # Moonshot
            self.counts = choice["usage"]

    def _other(self, event: Json) -> None:
        """Errors in three shapes, and usage in a place of its own (Groq)."""
        if event.get("error") or event.get("object") == "error":
            raise StreamFault(event)
        if event.get("choices"):  # `"error": null` beside them
            self._choice(first_choice(event["choices"]) or {})
        groq = event.get("x_groq")
        if groq and groq.get("usage"):
            self.counts = groq["usage"]
        elif "message" in event and "code" in event:
            raise StreamFault(event)


class ChatFormat(WireFormat):
    """What all chat completions share."""

    reader = ChatReader
    measured = frozenset({"model", "messages", "prompt"})
    max_tokens_at = (("max_completion_tokens",), ("max_tokens",))

    def __init__(
        self, settings: ModelSettings, base_url: str, *, environ: Mapping[str, str], named: str = "base_url"
    ) -> None:
        refuse_thinking(settings)
        super().__init__(settings, base_url, environ=environ, named=named)

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """What to answer."""
        return chat_input_fields(request, system, messages)

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """The rate-limit headers of OpenAI and its relatives."""
        return openai_limits(headers)


class OpenAIChat(ChatFormat):
    """The wire format of OpenAI itself (`openai/...`) and of compatible servers.

    Args:
        settings: of one model; what is not set there is left out of the request.
        key: for `Authorization: Bearer`, or None for no header.
        environ: OpenAI's own server takes OPENAI_ORG_ID and OPENAI_PROJECT_ID from it.

    Raises:
        ConfigError: as WireFormat, also where a compatible server's address is not given.
    """

    takes = _TAKES | {"top_k", "organization", "project"}

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        if settings.provider != "openai" and settings.base_url is None:
            raise ConfigError(f"{settings.name} needs an address: --base-url URL, or base_url in [[models]]")
        super().__init__(settings, settings.base_url or OPENAI_BASE_URL, environ=environ)
        self._official = settings.provider == "openai"
        host = self.base.host or ""
        self._mistral = host.endswith(".mistral.ai")
        self._daily_requests = host.endswith(".groq.com")
        self._max_tokens_field = settings.max_tokens_field or _max_tokens_field(settings, host)
        if self._official:
            refuse(settings, top_k="OpenAI has no such parameter: unset it")
        self.charges_max_tokens = self._official
        self.url = below(self.base, "chat/completions")
        self.headers = openai_headers(settings, key, environ)

    def options(self, request: ModelRequest) -> Json:
        """How to answer: streamed, with usage."""
        options: Json | None = {"include_usage": True}
        if self._official:
            # Padding against traffic analysis, half the bytes of a stream of small chunks.
            options = {"include_usage": True, "include_obfuscation": False}
        elif self._mistral:
            options = None  # it refuses the field, and sends usage without being asked
        fields = chat_options(self.settings, options)
        fields["model"] = self.settings.model
        fields[self._max_tokens_field] = self.settings.max_tokens
        fields["random_seed" if self._mistral else "seed"] = request.seed
        if self._official and request.cache:
            fields["prompt_cache_key"] = prompt_cache_key(request)
        return fields

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """OpenAI's rate-limit headers; Groq counts requests per day, which says nothing about a minute."""
        return openai_limits(headers, daily_requests=self._daily_requests)


class Azure(ChatFormat):
    """The wire format of `azure/DEPLOYMENT`: Azure's address, key header and filters.

    A prompt that Azure filters comes back as HTTP 400 `content_filter`: a result. Reset headers are whole
    seconds, negative limits mean none (`rate_limits`). Its newer `/openai/v1` interface is that of
    `openai-compatible` with `api_key_env = "AZURE_OPENAI_API_KEY"`.

    The address is `endpoint`, else `base_url`, else AZURE_OPENAI_ENDPOINT; the version `api_version`, else
    OPENAI_API_VERSION, else AZURE_API_VERSION.

    Raises:
        ConfigError: as WireFormat, also where no address is given.
    """

    charges_max_tokens = True
    takes = _TAKES | {"api_version"}
    meaningless: ClassVar[Mapping[str, str]] = {
        "top_k": "OpenAI has no such parameter: unset it",
        "organization": "Azure knows resources and deployments: unset it",
        "project": "Azure knows resources and deployments: unset it",
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        endpoint = settings.endpoint or settings.base_url or environ.get("AZURE_OPENAI_ENDPOINT")
        if not endpoint:
            raise ConfigError(f"{settings.name} needs endpoint in [[models]], or AZURE_OPENAI_ENDPOINT")
        super().__init__(settings, endpoint, environ=environ, named="endpoint")
        version = settings.api_version or environ.get("OPENAI_API_VERSION") or AZURE_API_VERSION
        path = f"openai/deployments/{quote(settings.model, safe='')}/chat/completions"
        self.url = below(self.base, path, **{"api-version": version})
        self.headers = {"api-key": key} if key else {}

    def options(self, request: ModelRequest) -> Json:
        """How to answer; the deployment names the model."""
        fields = chat_options(self.settings, {"include_usage": True})
        fields[self.settings.max_tokens_field or "max_completion_tokens"] = self.settings.max_tokens
        fields["seed"] = request.seed
        return fields


def openai_headers(settings: ModelSettings, key: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Who asks: the key, and at OpenAI the organization and project, from settings or its own variables."""
    official = settings.provider in {"openai", "openai-responses"} and settings.base_url is None
    organization = settings.organization or (environ.get("OPENAI_ORG_ID") if official else None)
    project = settings.project or (environ.get("OPENAI_PROJECT_ID") if official else None)
    named = {
        "Authorization": f"Bearer {key}" if key else None,
        "OpenAI-Organization": organization,
        "OpenAI-Project": project,
    }
    return {name: value for name, value in named.items() if value}


def chat_options(settings: ModelSettings, options: Json | None) -> Json:
    """How to answer, in the fields that all servers of this format share; None where the user set nothing."""
    return {
        "stream": True,
        "stream_options": options,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "stop": list(settings.stop) or None,
        "reasoning_effort": settings.reasoning_effort,
        "service_tier": settings.service_tier,
    }


def chat_input_fields(request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
    """System, messages and tools in chat completions; the result of a call is a message of its own."""
    sent: list[Json] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        sent += _chat_messages(message)
    functions = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in tools_of(request)
    ]
    return {"messages": sent, "tools": functions or None}


def prompt_cache_key(request: ModelRequest) -> str:
    """Requests of one key go where their beginning is cached: those of a prompt, or of an agent's work."""
    if request.by_agent:
        return hashlib.sha256(str(request.key).encode("utf-8", "replace")).hexdigest()
    return request.prompt_sha256[:64]


def _chat_messages(message: Message) -> list[Json]:
    if message.native is not None:
        return [set_fields(message.native["choices"][0]["message"])]
    if message.role == "assistant":
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
        answer = {"role": "assistant", "content": message.text}
        return [{**answer, "content": message.text or None, "tool_calls": calls} if calls else answer]
    results: list[Json] = [
        {"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in message.results
    ]
    return results + ([{"role": "user", "content": message.text}] if message.text or not results else [])


def refuse_thinking(settings: ModelSettings) -> None:
    """OpenAI's models think by effort; every compatible server has a field of its own for it.

    Raises:
        ConfigError: `thinking` or `thinking_budget` is set.
    """
    remedy = "set reasoning_effort instead"
    if settings.provider == "openai-compatible":
        remedy += ", or the server's own field in extra_body"
    refuse(settings, thinking=remedy, thinking_budget=remedy)


def _max_tokens_field(settings: ModelSettings, host: str) -> MaxTokensField:
    """OpenAI's newer models refuse `max_tokens`, whoever passes it on; other servers may know no other."""
    newer = (
        settings.provider == "openai"
        or host.endswith(_NEWER_HOSTS)
        or NEWER_MODELS.match(settings.model.rpartition("/")[2])
    )
    return "max_completion_tokens" if newer else "max_tokens"


def _call(call: Json) -> ToolCall:
    function = call.get("function") or call.get("custom") or {}
    arguments = function.get("arguments", function.get("input")) or ""
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ToolCall(id=call["id"], name=function.get("name") or "", arguments=text)


def _detail(usage: Json, group: str, name: str) -> int | None:
    details: Any = usage.get(group)
    return count(details.get(name)) if isinstance(details, dict) else None


def _text_of_parts(content: Any) -> str:
    """Mistral's list of parts; those that are thinking are not text."""
    return "".join(part["text"] for part in content if part.get("type") == "text")

"""Chat completions of OpenAI, Azure and compatible servers (`POST {base}/chat/completions`)."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.connection import join_url
from astra_async.asking.providers.rate_limits import openai_limits
from astra_async.asking.providers.request_fields import (
    USUAL_SETTINGS,
    WireFormat,
    drop_none,
    refuse,
    tools_of,
)
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.asking.providers.answer import Json
    from astra_async.types import MaxTokensField, ModelRequest, ModelSettings, RateLimits
    from astra_async.types.agents import Message

OPENAI_BASE_URL = "https://api.openai.com/v1"
AZURE_API_VERSION = "2024-10-21"  # the last stable version of the deployments interface
# Hosts whose models refuse `max_tokens`, or whose documentation calls that field deprecated.
_NEWER_HOSTS = (
    *("api.openai.com", ".openai.azure.com", ".services.ai.azure.com"),
    *("api.groq.com", "api.x.ai", "api.cerebras.ai"),
)
NEWER_MODELS = re.compile(r"o[1-9]($|[-.:])|(chat)?gpt-([5-9]|\d\d)", re.IGNORECASE)

# OpenAI's models use reasoning_effort. Compatible servers have different fields for thinking.
_BY_EFFORT = "set reasoning_effort instead"
NO_THINKING: Mapping[str, str] = {"thinking": _BY_EFFORT, "thinking_budget": _BY_EFFORT}
_TAKES = (USUAL_SETTINGS - {"top_k", *NO_THINKING}) | {"max_tokens_field"}


class ChatFormat(WireFormat):
    """Base class of the wire formats for chat completions."""

    reader = ChatReader
    protected_fields = frozenset({"model", "messages", "prompt"})
    max_tokens_at = (("max_completion_tokens",), ("max_tokens",))
    refusal_remedies = NO_THINKING

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """Return system, messages and tools."""
        return chat_input_fields(request, system, messages)

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Parse the rate-limit headers of OpenAI and compatible servers."""
        return openai_limits(headers)


class OpenAIChat(ChatFormat):
    """Wire format of OpenAI (`openai/...`) and of compatible servers.

    Raises:
        ConfigError: see WireFormat; also if the address of a compatible server is missing.
    """

    supported_settings = _TAKES | {"top_k", "organization", "project"}

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        if settings.provider != "openai" and settings.base_url is None:
            raise ConfigError(f"{settings.name} needs an address: --base-url URL, or base_url in [[models]]")
        if settings.provider == "openai-compatible":
            instead = f"{_BY_EFFORT}, or the server's own field in extra_body"
            refuse(settings, thinking=instead, thinking_budget=instead)
        super().__init__(settings, settings.base_url or OPENAI_BASE_URL, environ=environ)
        self._official = settings.provider == "openai"
        host = self.base.host or ""
        self._mistral = host.endswith(".mistral.ai")
        self._daily_requests = host.endswith(".groq.com")
        self._max_tokens_field = settings.max_tokens_field or _max_tokens_field(settings, host)
        if self._official:
            refuse(settings, top_k="OpenAI has no such parameter: unset it")
        self.charges_max_tokens = self._official
        self.url = join_url(self.base, "chat/completions")
        self.headers = openai_headers(settings, key, environ)

    def options(self, request: ModelRequest) -> Json:
        """Return model, limits, sampling, effort and seed, with streaming and usage on."""
        options: Json | None = {"include_usage": True}
        if self._official:
            # Obfuscation is padding against traffic analysis. It can double the bytes of a stream.
            options = {"include_usage": True, "include_obfuscation": False}
        elif self._mistral:
            options = None  # Mistral rejects `stream_options` and always sends usage
        fields = chat_options(self.settings, options)
        fields["model"] = self.settings.model
        fields[self._max_tokens_field] = self.settings.max_tokens
        fields["random_seed" if self._mistral else "seed"] = request.seed
        if self._official and request.cache:
            fields["prompt_cache_key"] = prompt_cache_key(request)
        return fields

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Parse OpenAI's rate-limit headers. Groq's request headers count per day and are ignored."""
        return openai_limits(headers, daily_requests=self._daily_requests)


class Azure(ChatFormat):
    """Wire format of `azure/DEPLOYMENT`, with Azure's address, key header and filters.

    A filtered prompt returns HTTP 400 `content_filter`, which counts as a result. Reset headers are in whole
    seconds, and negative limits mean "no limit" (see `rate_limits`). For Azure's newer `/openai/v1` interface
    use `openai-compatible` with `api_key_env = "AZURE_OPENAI_API_KEY"`.

    The address is `endpoint`, else `base_url`, else AZURE_OPENAI_ENDPOINT. The version is `api_version`, else
    OPENAI_API_VERSION, else AZURE_API_VERSION.

    Raises:
        ConfigError: see WireFormat; also if the address is missing.
    """

    charges_max_tokens = True
    supported_settings = _TAKES | {"api_version"}
    refusal_remedies: ClassVar[Mapping[str, str]] = {
        **NO_THINKING,
        "top_k": "OpenAI has no such parameter: unset it",
        **dict.fromkeys(("organization", "project"), "Azure has resources and deployments: unset it"),
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        endpoint = settings.endpoint or settings.base_url or environ.get("AZURE_OPENAI_ENDPOINT")
        if not endpoint:
            raise ConfigError(f"{settings.name} needs endpoint in [[models]], or AZURE_OPENAI_ENDPOINT")
        super().__init__(settings, endpoint, environ=environ, named="endpoint")
        version = settings.api_version or environ.get("OPENAI_API_VERSION") or AZURE_API_VERSION
        path = f"openai/deployments/{quote(settings.model, safe='')}/chat/completions"
        self.url = join_url(self.base, path, **{"api-version": version})
        self.headers = {"api-key": key} if key else {}

    def options(self, request: ModelRequest) -> Json:
        """Return limits, sampling, effort and seed. The deployment in the URL determines the model."""
        fields = chat_options(self.settings, {"include_usage": True})
        fields[self.settings.max_tokens_field or "max_completion_tokens"] = self.settings.max_tokens
        fields["seed"] = request.seed
        return fields


def openai_headers(settings: ModelSettings, key: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for the key and, at OpenAI, for the organization and project."""
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
    """Return the fields that all servers of this format share; the value None means not set."""
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
    """Return system, messages and tools. Each tool result becomes a separate message."""
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
    """Return the cache key: OpenAI routes requests with one key to the server that caches their prefix.

    Requests of one prompt share a key, and so do all requests of one agent's sample.
    """
    if request.by_agent:
        return hashlib.sha256(str(request.key).encode("utf-8", "replace")).hexdigest()
    return request.prompt_sha256[:64]


def _chat_messages(message: Message) -> list[Json]:
    if message.native is not None:
        return [drop_none(message.native["choices"][0]["message"])]
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


def _max_tokens_field(settings: ModelSettings, host: str) -> MaxTokensField:
    """Return the field for max_tokens: newer OpenAI models refuse `max_tokens`, other servers may need it."""
    newer = (
        settings.provider == "openai"
        or host.endswith(_NEWER_HOSTS)
        or NEWER_MODELS.match(settings.model.rpartition("/")[2])
    )
    return "max_completion_tokens" if newer else "max_tokens"

"""Model providers: one file for each wire format, one for SSE, one for failures, one table of models."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelSettings, Provider


class Known(NamedTuple):
    """What belongs to a provider's name: the variable of its key, and who it is where prices are listed.

    `caches_prompts`: it has a prompt cache, whose reads cost less.
    """

    key_variable: str = ""
    prices: str | None = None
    caches_prompts: bool = False


PROVIDERS: Mapping[str, Known] = {
    "openai": Known("OPENAI_API_KEY", "openai", caches_prompts=True),
    "openai-responses": Known("OPENAI_API_KEY", "openai", caches_prompts=True),
    "anthropic": Known("ANTHROPIC_API_KEY", "anthropic", caches_prompts=True),
    "gemini": Known("GEMINI_API_KEY", "google", caches_prompts=True),
    "bedrock": Known(prices="aws", caches_prompts=True),  # the AWS library finds its credentials
    "azure": Known("AZURE_OPENAI_API_KEY", "azure", caches_prompts=True),
    "openai-compatible": Known("OPENAI_API_KEY"),
    "simulated": Known(),
}


def parse_spec(spec: str) -> tuple[str, str]:
    """`provider/model` -> (provider, model); the model's name may hold slashes itself.

    Raises:
        ConfigError: the provider is unknown, or a part is missing.
    """
    provider, slash, model = spec.strip().partition("/")
    if provider and not slash and provider not in PROVIDERS:
        such = spec if re.fullmatch(r"[\w.:-]+", spec) else "gpt-4o"
        guess = (
            "anthropic" if such.startswith("claude") else "gemini" if such.startswith("gemini") else "openai"
        )
        raise ConfigError(f"model {spec!r}: write provider/model, such as {guess}/{such}")
    if provider not in PROVIDERS:
        raise ConfigError(f"model {spec!r}: unknown provider {provider!r}; known are {', '.join(PROVIDERS)}")
    if not slash or not model:
        raise ConfigError(f"model {spec!r} names no model: write {provider}/NAME")
    return provider, model


def open_provider(
    settings: ModelSettings,
    *,
    session: aiohttp.ClientSession | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Provider:
    """The provider for one model; call it inside a running loop, and close it.

    Args:
        settings: as `models.resolve` returned them, so that max_tokens is what the record says.
        session: shared by all models (`connection.open_session`); without it the provider opens its own.
        environ: where keys, proxies and certificates are named.

    Raises:
        ConfigError: as `check_settings`.
    """
    from astra_async.asking.providers.models import resolve

    settings = resolve(settings)
    if settings.provider == "bedrock":
        from astra_async.asking.providers.bedrock import BedrockProvider

        return BedrockProvider(settings, environ=environ)
    from astra_async.asking.providers.connection import open_session
    from astra_async.asking.providers.exchange import HttpProvider

    wire = _wire_format(settings, environ)
    return HttpProvider(
        settings,
        wire,
        open_session(environ) if session is None else session,
        environ=environ,
        owns_session=session is None,
    )


def check_settings(settings: ModelSettings, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse what cannot be asked before anything else is done: no key or address, an unfit setting.

    Raises:
        ConfigError: names the model, the setting and the remedy.
    """
    from astra_async.asking.providers.models import resolve
    from astra_async.asking.providers.request_fields import extra_body, extra_headers

    settings = resolve(settings)
    if settings.provider == "bedrock":
        from astra_async.asking.providers.bedrock import BedrockProvider

        BedrockProvider(settings, environ=environ)
    else:
        _wire_format(settings, environ)
        extra_headers(settings, environ)
        extra_body(settings, environ)


def _wire_format(settings: ModelSettings, environ: Mapping[str, str]) -> WireFormat:
    from astra_async.asking.providers.models import key_for

    key = key_for(settings, environ)
    match settings.provider:
        case "openai-responses":
            from astra_async.asking.providers.openai_responses import OpenAIResponses

            return OpenAIResponses(settings, key, environ=environ)
        case "anthropic":
            from astra_async.asking.providers.anthropic import Anthropic

            return Anthropic(settings, key)
        case "gemini":
            from astra_async.asking.providers.gemini import Gemini

            return Gemini(settings, key)
        case "azure":
            from astra_async.asking.providers.openai_chat import Azure

            return Azure(settings, key, environ=environ)
        case _:
            from astra_async.asking.providers.openai_chat import OpenAIChat

            if settings.provider != "openai" and settings.base_url is None:
                raise ConfigError(
                    f"{settings.name} needs an address: --base-url URL, or base_url in [[models]]"
                )
            return OpenAIChat(settings, key, environ=environ)

"""Model providers: one file for each wire format, one for SSE, one for failures, one table of models."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from astra_async.asking.providers.request_fields import WireFormat
    from astra_async.types import ModelSettings, Provider
    from astra_async.types.agents import AgentWire


class Known(NamedTuple):
    """What belongs to a provider's name: its class, its key's variable, its name where prices are listed.

    `made_by` is module.Class in this package, a WireFormat, loaded when it is asked. Without a
    `key_variable` no key is looked for. `credentials` are variables, any one of which has what a provider
    without a key wants.
    `address_variables` may name another server, first come first served, as in the provider's own SDKs.
    `speaks` is the interface of agents that it takes as it is.
    `batches` is module.Class in asking.batches, where it has some; `halves`: they cost half for sure.
    """

    made_by: str
    key_variable: str = ""
    prices: str | None = None
    speaks: AgentWire | None = None
    batches: str = ""
    halves: bool = False
    credentials: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()

    @property
    def caches_prompts(self) -> bool:
        """Whether it has a prompt cache, whose reads cost less: all have whose prices are listed."""
        return self.prices is not None


_FILES, _CLAUDE_FILES = "batch_openai.OpenAIBatches", "batch_anthropic.AnthropicBatches"
# With `/v1` at the end, as openai's `_client.py` takes it; the older name is that of openai before 1.0.
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_AWS = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")  # whose credentials `aws` finds
PROVIDERS: Mapping[str, Known] = {
    "openai": Known(
        "openai_chat.OpenAIChat",
        "OPENAI_API_KEY",
        "openai",
        "chat",
        _FILES,
        halves=True,
        address_variables=_OPENAI,
    ),
    "openai-responses": Known(
        "openai_responses.OpenAIResponses",
        "OPENAI_API_KEY",
        "openai",
        "responses",
        _FILES,
        halves=True,
        address_variables=_OPENAI,
    ),
    "anthropic": Known(
        "anthropic.Anthropic",
        "ANTHROPIC_API_KEY",
        "anthropic",
        "messages",
        _CLAUDE_FILES,
        halves=True,
        address_variables=("ANTHROPIC_BASE_URL",),
    ),
    "gemini": Known(
        "gemini.Gemini",
        "GEMINI_API_KEY",
        "google",
        "gemini",
        "batch_gemini.GeminiBatches",
        halves=True,
        address_variables=("GOOGLE_GEMINI_BASE_URL",),
    ),
    "bedrock": Known(
        "bedrock.Bedrock", prices="aws", batches="batch_bedrock.BedrockBatches", credentials=_AWS
    ),
    "azure": Known(
        "openai_chat.Azure",
        "AZURE_OPENAI_API_KEY",
        "azure",
        "chat",
        "batch_openai.AzureBatches",
        halves=True,
        address_variables=("AZURE_OPENAI_ENDPOINT",),
    ),
    "openai-compatible": Known("openai_chat.OpenAIChat", "OPENAI_API_KEY", speaks="chat", batches=_FILES),
    "simulated": Known("openai_chat.OpenAIChat", speaks="chat", batches=_FILES),
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
    from astra_async.asking.providers.connection import open_session
    from astra_async.asking.providers.exchange import HttpProvider

    wire = wire_format(settings, environ)
    return HttpProvider(
        wire.settings,
        wire,
        open_session(environ) if session is None else session,
        environ=environ,
        owns_session=session is None,
    )


def wire_format(settings: ModelSettings, environ: Mapping[str, str]) -> WireFormat:
    """What one model's requests and answers look like, for whoever sends them otherwise than one by one.

    Raises:
        ConfigError: as `check_settings`.
    """
    from astra_async.asking.providers.models import key_for, resolve

    module, _, name = PROVIDERS[settings.provider].made_by.partition(".")
    made_by = getattr(import_module(f"{__name__}.{module}"), name)
    made: WireFormat = made_by(resolve(settings), key_for(settings, environ), environ=environ)
    return made


def check_settings(settings: ModelSettings, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse what cannot be asked before anything else is done: no key, address or proxy, an unfit setting.

    Raises:
        ConfigError: names the model, the setting and the remedy.
    """
    from astra_async.transport import proxy_for

    proxy_for(wire_format(settings, environ).url, environ)

"""Model providers: wire formats, streaming over HTTP, classification of errors, and prices of models."""

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


class ProviderEntry(NamedTuple):
    """Registry entry of one provider.

    Attributes:
        wire_class: WireFormat of the provider as "module.Class" in this package, imported on first use.
        key_variable: environment variable of the API key; empty if the provider needs no key.
        prices: name of the provider in genai-prices, None if that library has no prices for it.
        speaks: interface of agents whose requests the provider accepts unchanged, None for no such interface.
        batches: batch interface as "module.Class" in `asking.batches`, empty if batches are not supported.
        half_price_batches: batches are known to cost half the price.
        credentials: environment variables that hold credentials if there is no key; one of them is enough.
        address_variables: environment variables that replace the server's address, as in the provider's SDK;
            the first one that is set applies.
    """

    wire_class: str
    key_variable: str = ""
    prices: str | None = None
    speaks: AgentWire | None = None
    batches: str = ""
    half_price_batches: bool = False
    credentials: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()

    @property
    def caches_prompts(self) -> bool:
        """True if cached input is cheaper. This applies to all providers with listed prices."""
        return self.prices is not None


_FILES, _CLAUDE_FILES = "batch_openai.OpenAIBatches", "batch_anthropic.AnthropicBatches"
# The address ends with `/v1`, as in openai's `_client.py`. OPENAI_API_BASE is the name in openai before 1.0.
_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_AWS = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")  # read by `aws.Signer`
PROVIDERS: Mapping[str, ProviderEntry] = {
    "openai": ProviderEntry(
        "openai_chat.OpenAIChat",
        "OPENAI_API_KEY",
        "openai",
        "chat",
        _FILES,
        half_price_batches=True,
        address_variables=_OPENAI,
    ),
    "openai-responses": ProviderEntry(
        "openai_responses.OpenAIResponses",
        "OPENAI_API_KEY",
        "openai",
        "responses",
        _FILES,
        half_price_batches=True,
        address_variables=_OPENAI,
    ),
    "anthropic": ProviderEntry(
        "anthropic.Anthropic",
        "ANTHROPIC_API_KEY",
        "anthropic",
        "messages",
        _CLAUDE_FILES,
        half_price_batches=True,
        address_variables=("ANTHROPIC_BASE_URL",),
    ),
    "gemini": ProviderEntry(
        "gemini.Gemini",
        "GEMINI_API_KEY",
        "google",
        "gemini",
        "batch_gemini.GeminiBatches",
        half_price_batches=True,
        address_variables=("GOOGLE_GEMINI_BASE_URL",),
    ),
    "bedrock": ProviderEntry(
        "bedrock.Bedrock", prices="aws", batches="batch_bedrock.BedrockBatches", credentials=_AWS
    ),
    "azure": ProviderEntry(
        "openai_chat.Azure",
        "AZURE_OPENAI_API_KEY",
        "azure",
        "chat",
        "batch_openai.AzureBatches",
        half_price_batches=True,
        address_variables=("AZURE_OPENAI_ENDPOINT",),
    ),
    "openai-compatible": ProviderEntry(
        "openai_chat.OpenAIChat", "OPENAI_API_KEY", speaks="chat", batches=_FILES
    ),
    "simulated": ProviderEntry("openai_chat.OpenAIChat", speaks="chat", batches=_FILES),
}


def parse_spec(spec: str) -> tuple[str, str]:
    """Split `provider/model` into (provider, model). The model's name may contain slashes.

    Raises:
        ConfigError: the provider is unknown, or a part is missing.
    """
    provider, slash, model = spec.strip().partition("/")
    if provider and not slash and provider not in PROVIDERS:
        such = spec if re.fullmatch(r"[\w.:-]+", spec) else "gpt-4o"
        guess = (
            "anthropic" if such.startswith("claude") else "gemini" if such.startswith("gemini") else "openai"
        )
        raise ConfigError(f"model {spec!r}: write provider/model, for example {guess}/{such}")
    if provider not in PROVIDERS:
        raise ConfigError(f"model {spec!r}: unknown provider {provider!r}; use one of {', '.join(PROVIDERS)}")
    if not slash or not model:
        raise ConfigError(f"model {spec!r} has no model name: write {provider}/NAME")
    return provider, model


def open_provider(
    settings: ModelSettings,
    *,
    session: aiohttp.ClientSession | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Provider:
    """Return the provider for one model. Call this inside a running event loop and close the provider.

    Args:
        settings: the result of `models.resolve`, so that records contain the max_tokens that are sent.
        session: session shared by all models (`connection.open_session`); None to open a separate one.
        environ: environment variables with keys, proxies and certificates.

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
    """Return the wire format of one model, for callers such as batches that send requests themselves.

    Raises:
        ConfigError: as `check_settings`.
    """
    from astra_async.asking.providers.models import key_for, resolve

    module, _, name = PROVIDERS[settings.provider].wire_class.partition(".")
    wire_class = getattr(import_module(f"{__name__}.{module}"), name)
    made: WireFormat = wire_class(resolve(settings), key_for(settings, environ), environ=environ)
    return made


def check_settings(settings: ModelSettings, environ: Mapping[str, str] = os.environ) -> None:
    """Check the key, the address, the proxy and all settings of one model before a run starts.

    Raises:
        ConfigError: a check failed; the message names the model, the setting and the remedy.
    """
    from astra_async.transport import proxy_for

    proxy_for(wire_format(settings, environ).url, environ)

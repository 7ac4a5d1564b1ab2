"""Azure OpenAI: chat completions of a deployment, with Azure's address, key header and filters.

A prompt that Azure filters comes back as HTTP 400 `content_filter`: a result. Reset headers are whole
seconds, negative limits mean none (`limits`). Its newer `/openai/v1` interface is that of
`openai-compatible` with `api_key_env = "AZURE_OPENAI_API_KEY"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from astra_async.asking.providers.addresses import address
from astra_async.asking.providers.exchange import Call
from astra_async.asking.providers.limits import openai_limits
from astra_async.asking.providers.openai_chat import ChatReader, chat_fields, encode
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import ModelRequest, ModelSettings, RateLimits

DEFAULT_API_VERSION = "2024-10-21"  # the last stable version of the deployments interface


class Azure:
    """The wire format of `azure/DEPLOYMENT`.

    The address is `endpoint`, else `base_url`, else AZURE_OPENAI_ENDPOINT; the version `api_version`, else
    OPENAI_API_VERSION, else DEFAULT_API_VERSION.

    Raises:
        ConfigError: no address is given.
    """

    charges_max_tokens = True
    cached_input_is_exempt = False

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        endpoint = settings.endpoint or settings.base_url or environ.get("AZURE_OPENAI_ENDPOINT")
        if not endpoint:
            raise ConfigError(f"{settings.name} needs endpoint in [[models]], or AZURE_OPENAI_ENDPOINT")
        base = address(endpoint, where=f"endpoint of {settings.name}")
        version = settings.api_version or environ.get("OPENAI_API_VERSION") or DEFAULT_API_VERSION
        path = f"openai/deployments/{quote(settings.model, safe='')}/chat/completions"
        self.url = base.joinpath(path, encoded=True).with_query({"api-version": version})
        self.secrets: tuple[str, ...] = (key,) if key else ()
        self._settings = settings
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["api-key"] = key

    def call(self, request: ModelRequest) -> Call:
        """The request for one streamed answer; the deployment names the model."""
        fields = chat_fields(self._settings, request, {"include_usage": True})
        fields["max_completion_tokens"] = self._settings.max_tokens
        fields["seed"] = request.seed
        return Call(url=self.url, headers=self._headers, body=encode(fields))

    def reader(self) -> ChatReader:
        """A fresh reader for one answer."""
        return ChatReader()

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Azure's rate-limit headers."""
        return openai_limits(headers)

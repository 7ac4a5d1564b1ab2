"""Azure OpenAI: chat completions of a deployment, with Azure's address, key header and filters.

A prompt that Azure filters comes back as HTTP 400 `content_filter`: a result. Reset headers are whole
seconds, negative limits mean none (`rate_limits`). Its newer `/openai/v1` interface is that of
`openai-compatible` with `api_key_env = "AZURE_OPENAI_API_KEY"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from astra_async.asking.providers.connection import below
from astra_async.asking.providers.openai_chat import ChatReader, chat_fields, refuse_thinking
from astra_async.asking.providers.rate_limits import openai_limits
from astra_async.asking.providers.request_fields import WireFormat
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.asking.providers.answer import Json
    from astra_async.types import ModelRequest, ModelSettings, RateLimits

DEFAULT_API_VERSION = "2024-10-21"  # the last stable version of the deployments interface


class Azure(WireFormat):
    """The wire format of `azure/DEPLOYMENT`.

    The address is `endpoint`, else `base_url`, else AZURE_OPENAI_ENDPOINT; the version `api_version`, else
    OPENAI_API_VERSION, else DEFAULT_API_VERSION.

    Raises:
        ConfigError: as WireFormat, also where no address is given.
    """

    charges_max_tokens = True
    reader = ChatReader
    meaningless: ClassVar[Mapping[str, str]] = {
        "top_k": "OpenAI has no such parameter: unset it",
        "organization": "Azure knows resources and deployments: unset it",
        "project": "Azure knows resources and deployments: unset it",
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        endpoint = settings.endpoint or settings.base_url or environ.get("AZURE_OPENAI_ENDPOINT")
        if not endpoint:
            raise ConfigError(f"{settings.name} needs endpoint in [[models]], or AZURE_OPENAI_ENDPOINT")
        super().__init__(settings, endpoint, named="endpoint")
        refuse_thinking(settings)
        version = settings.api_version or environ.get("OPENAI_API_VERSION") or DEFAULT_API_VERSION
        path = f"openai/deployments/{quote(settings.model, safe='')}/chat/completions"
        self.url = below(self.base, path, **{"api-version": version})
        self.headers = {"api-key": key} if key else {}

    def body(self, request: ModelRequest) -> Json:
        """The request for one streamed answer; the deployment names the model."""
        fields = chat_fields(self.settings, request, {"include_usage": True})
        fields[self.settings.max_tokens_field or "max_completion_tokens"] = self.settings.max_tokens
        fields["seed"] = request.seed
        return fields

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """Azure's rate-limit headers."""
        return openai_limits(headers)

"""Amazon Bedrock's Converse interface through aioboto3: ConverseStream, or Converse for models without it.

The AWS library signs, finds credentials and decodes the event stream; it is told to try once, to leave
silence to `Patience`, and to keep as many connections as the pool may have calls in flight. Fields and
headers that it does not know are laid over the request before it is signed. Bedrock announces no limits and
gives no hint how long to wait.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.asking.providers.answer import Unreadable
from astra_async.asking.providers.anthropic import claude_thinking
from astra_async.asking.providers.connection import address, certificate_bundle, is_local
from astra_async.asking.providers.converse import ConverseReader
from astra_async.asking.providers.error_meaning import Failure
from astra_async.asking.providers.patience import CONNECT_TIMEOUT_S, WHOLE_ATTEMPT_FACTOR
from astra_async.asking.providers.reception import BROKEN, Cut, Reception, Refused
from astra_async.asking.providers.request_fields import extra_body, extra_headers, laid_over, refuse
from astra_async.errors import PoolUnusable, ProviderError
from astra_async.redaction import keep_secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.asking.providers.answer import Json
    from astra_async.types import CallWatch, Completion, ModelRequest, ModelSettings

_MEASURED = frozenset({"modelId", "messages"})
_CACHING = ("anthropic.claude", "amazon.nova")  # other models reject a cache point
_sample_header: ContextVar[str | None] = ContextVar("sample_header", default=None)


class BedrockProvider:
    """A Provider for `bedrock/MODEL-ID`; the client is made on the first call and closed with the provider.

    Args:
        settings: of one model; `endpoint` or `base_url` replaces the region's address.
        environ: AWS_REGION or AWS_DEFAULT_REGION, and AWS_ACCESS_KEY_ID with its companions; what is not
            there is found by the AWS library's own chain (profile, role, instance).

    Raises:
        ConfigError: the address cannot be used, or `reasoning_effort` has no meaning for the model.
    """

    charges_max_tokens = True
    cached_input_is_exempt = True

    def __init__(self, settings: ModelSettings, key: None = None, *, environ: Mapping[str, str]) -> None:  # noqa: ARG002 - its library finds credentials
        self._settings = settings
        self._environ = environ
        endpoint = settings.endpoint or settings.base_url
        self._endpoint = address(endpoint, where=f"endpoint of {settings.name}") if endpoint else None
        self._model_fields = _model_fields(settings)
        self._headers = extra_headers(settings, environ)
        self._body = extra_body(settings, environ, _MEASURED)
        if settings.service_tier is not None:  # unknown to the pinned library
            self._body = laid_over({"serviceTier": {"type": settings.service_tier}}, self._body)
        keep_secrets_of(environ)
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: Any = None
        self._streams = True

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its stop reason and its usage.

        Raises:
            ProviderError: as HttpProvider.complete.
        """
        reception = Reception(self._settings, watch, ConverseReader())
        _sample_header.set(request.sample_header)
        try:
            with _library():
                client = await self._client()
        except BROKEN as error:
            return reception.fallen(error, _trouble)
        return await reception.attempt(self._exchange(client, self._arguments(request), reception), _trouble)

    async def close(self) -> None:
        """Close the client's connections."""
        self._opened = None
        await self._stack.aclose()

    async def _exchange(self, client: Any, arguments: Json, reception: Reception) -> Completion:
        await self._receive(client, arguments, reception)
        return reception.ended("its stop reason")

    async def _receive(self, client: Any, arguments: Json, reception: Reception) -> None:
        if self._streams:
            try:
                with _library():
                    response = await client.converse_stream(**arguments)
            except Refused as refused:
                if not _cannot_stream(refused.failure):
                    raise
                self._streams = False
            else:
                return await _read_stream(response["stream"], reception)
        with _library():
            response = await client.converse(**arguments)
        return reception.feed(response)

    def _arguments(self, request: ModelRequest) -> Json:
        settings = self._settings
        messages: list[Json] = [
            {"role": role, "content": [{"text": text}]} for role, text in request.messages
        ]
        if request.cache and any(family in settings.model for family in _CACHING):
            # The prompt's end, and where a next turn will read it the end of what was said last.
            for place in {0, len(messages) - 1} if request.goes_on else {0}:
                messages[place]["content"].append({"cachePoint": {"type": "default"}})
        limits = {
            "maxTokens": settings.max_tokens,
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "stopSequences": list(settings.stop) or None,
        }
        arguments = {
            "modelId": settings.model,
            "system": [{"text": settings.system_prompt}] if settings.system_prompt else None,
            "messages": messages,
            "inferenceConfig": {name: value for name, value in limits.items() if value is not None},
            "additionalModelRequestFields": self._model_fields or None,
        }
        return {name: value for name, value in arguments.items() if value is not None}

    def _lay_over(self, params: Json, **_: Any) -> None:
        """The library's `before-call`: the request is complete, and not yet signed."""
        if self._body:
            params["body"] = orjson.dumps(laid_over(orjson.loads(params["body"]), self._body))
        params["headers"].update(self._headers)
        sample = _sample_header.get()
        if sample is not None:
            params["headers"]["x-astra-sample"] = sample

    async def _client(self) -> Any:
        async with self._opening:
            if self._opened is None:
                client = await self._stack.enter_async_context(await self._new_client())
                client.meta.events.register("before-call.bedrock-runtime", self._lay_over)
                self._opened = client
        return self._opened

    async def _new_client(self) -> Any:
        import aioboto3
        from aiobotocore.config import AioConfig
        from botocore import UNSIGNED

        get = self._environ.get
        session = aioboto3.Session(
            aws_access_key_id=get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=get("AWS_SESSION_TOKEN"),
            region_name=get("AWS_REGION") or get("AWS_DEFAULT_REGION"),
            botocore_session=_session(),
        )
        # A server on this machine needs no credentials, as with the other wire formats.
        local = self._endpoint is not None and is_local(self._endpoint)
        unsigned = local and not (get("AWS_ACCESS_KEY_ID") or get("AWS_PROFILE"))
        config = AioConfig(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=WHOLE_ATTEMPT_FACTOR * self._settings.timeout_s,  # silence is `patience`'s to judge
            max_pool_connections=self._settings.max_in_flight,
            retries={"total_max_attempts": 1},
            user_agent_extra="astra_async",
            signature_version=UNSIGNED if unsigned else None,
        )
        return session.client(
            "bedrock-runtime",
            region_name="us-east-1" if local and not session.region_name else None,
            endpoint_url=str(self._endpoint) if self._endpoint else None,
            config=config,
            verify=certificate_bundle(self._environ),
        )


def _session() -> Any:
    """The library's own default session, of which all share what was read of the services (0.1 s of CPU)."""
    from aiobotocore.session import get_session

    session = get_session()
    session.register_component("data_loader", _services(session.get_config_variable("data_path")))
    return session


@cache
def _services(path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(path)


@contextmanager
def _library() -> Iterator[None]:
    """Around the library's calls, and nothing else: what a callback of ours raises is none of its errors."""
    import aiohttp
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise Refused(_failure(error)) from error
    except (BotoCoreError, aiohttp.ClientError, OSError) as error:
        raise Cut from error


async def _read_stream(stream: Any, reception: Reception) -> None:
    """Feed the reception to the stream's end; the connection is closed when the end was not reached."""
    try:
        events = aiter(stream)
        while (event := await _next_event(events)) is not None:
            reception.patience.heard()
            reception.feed(event)
    finally:
        stream.close()


async def _next_event(events: Any) -> Json | None:
    """The next event; None at the end. The library's parser raises whatever odd bytes or members make it."""
    try:
        with _library():
            event: Json | None = await anext(events, None)
    except (Cut, Refused):
        raise
    except Exception as error:
        raise Unreadable(f"the event stream cannot be read ({type(error).__name__}: {error})") from error
    return event


def _failure(error: Any) -> Failure:
    """A botocore ClientError as the classifier reads it; in the event stream names begin in lower case."""
    told = error.response.get("Error", {})
    meta = error.response.get("ResponseMetadata", {})
    code = str(told.get("Code") or "")
    body = {"error": {"code": code[:1].upper() + code[1:], "message": told.get("Message") or ""}}
    status = meta.get("HTTPStatusCode")
    return Failure(
        body=body,
        status=status if status != HTTPStatus.OK else None,  # an exception inside the stream
        headers=meta.get("HTTPHeaders") or {},
    )


def _trouble(error: BaseException | None) -> tuple[str, type[ProviderError] | None] | None:
    """Trouble below Bedrock: what the user must mend ends the pool, all else may pass."""
    from botocore import exceptions as known

    lasting = (
        known.NoCredentialsError,
        known.PartialCredentialsError,
        known.CredentialRetrievalError,
        known.TokenRetrievalError,
        known.UnauthorizedSSOTokenError,
        known.SSOTokenLoadError,
        known.ProfileNotFound,
        known.NoRegionError,
        known.SSLError,
        known.UnknownServiceError,
    )
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, lasting):
        return f"check AWS_REGION, AWS_PROFILE and the AWS credentials ({told})", PoolUnusable
    if isinstance(error, known.ParamValidationError):
        return f"the AWS library refuses the request: check the model's settings ({told})", PoolUnusable
    return (told, None) if isinstance(error, known.BotoCoreError) else None


def _cannot_stream(failure: Failure) -> bool:
    told = failure.body["error"]
    message = str(told["message"]).lower()
    return told["code"] == "ValidationException" and "stream" in message and "support" in message


def _model_fields(settings: ModelSettings) -> Json:
    """Thinking, effort and top_k under the names that the model's own maker gives them.

    Raises:
        ConfigError: the maker's names are not known.
    """
    model = settings.model
    refuse(
        settings,
        api_version="its interface has one version: unset it",
        max_tokens_field="it is maxTokens: unset it",
        organization="AWS_PROFILE chooses the account: unset it",
        project="AWS_PROFILE chooses the account: unset it",
    )
    unknown = "write the maker's own fields as extra_body.additionalModelRequestFields"
    if "anthropic." in model:
        top_k = {} if settings.top_k is None else {"top_k": settings.top_k}
        return {**claude_thinking(settings), **top_k}
    if "amazon.nova" in model:
        refuse(settings, thinking_budget="Nova thinks by reasoning_effort: unset it")
        return _nova_fields(settings)
    refuse(settings, thinking=unknown, thinking_budget=unknown, top_k=unknown)
    if "openai." in model:
        return {} if settings.reasoning_effort is None else {"reasoning_effort": settings.reasoning_effort}
    refuse(settings, reasoning_effort=unknown)
    return {}


def _nova_fields(settings: ModelSettings) -> Json:
    """Amazon Nova (2 and later reason): `reasoningConfig`, and `topK` in a place of its own."""
    fields: Json = {} if settings.top_k is None else {"inferenceConfig": {"topK": settings.top_k}}
    if settings.thinking == "off":
        fields["reasoningConfig"] = {"type": "disabled"}
    elif settings.thinking or settings.reasoning_effort:
        effort = {"maxReasoningEffort": settings.reasoning_effort} if settings.reasoning_effort else {}
        fields["reasoningConfig"] = {"type": "enabled", **effort}
    return fields

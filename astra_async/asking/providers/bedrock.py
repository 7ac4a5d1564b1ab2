"""Amazon Bedrock's Converse interface through aioboto3: ConverseStream, or Converse for models without it.

The AWS library signs, finds credentials and decodes the event stream; it is told to try once, to leave
silence to `patience`, and to keep as many connections as the pool may have calls in flight.
Bedrock announces no limits and gives no hint how long to wait.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

from astra_async.asking.providers.addresses import address, is_local
from astra_async.asking.providers.answer import AnswerTooLong, Json, StreamFault
from astra_async.asking.providers.attempt import Attempt
from astra_async.asking.providers.converse import ConverseReader
from astra_async.asking.providers.exchange import CONNECT_TIMEOUT_S, WHOLE_ATTEMPT_FACTOR
from astra_async.asking.providers.failures import Failure, classify
from astra_async.asking.providers.patience import Patience
from astra_async.asking.providers.session import certificate_bundle
from astra_async.errors import ConfigError, PoolUnusable, ProviderError, TransientError, TruncatedStream
from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.types import CallWatch, Completion, ModelRequest, ModelSettings

_CACHING = ("anthropic.claude", "amazon.nova")  # other models reject a cache point


class BedrockProvider:
    """A Provider for `bedrock/MODEL-ID`; the client is made on the first call and closed with the provider.

    Args:
        settings: of one model; `endpoint` or `base_url` replaces the region's address.
        environ: AWS_REGION or AWS_DEFAULT_REGION, and AWS_ACCESS_KEY_ID with its companions; what is not
            there is found by the AWS library's own chain (profile, role, instance).
        clock: monotonic seconds.

    Raises:
        ConfigError: the address cannot be used, or `reasoning_effort` has no meaning for the model.
    """

    charges_max_tokens = True
    cached_input_is_exempt = True

    def __init__(
        self,
        settings: ModelSettings,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._clock = clock
        endpoint = settings.endpoint or settings.base_url
        self._endpoint = address(endpoint, where=f"endpoint of {settings.name}") if endpoint else None
        self._extra = _model_fields(settings)
        self._secrets = tuple(
            environ[name] for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN") if environ.get(name)
        )
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._opened: Any = None
        self._streams = True

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its stop reason and its usage.

        Raises:
            ProviderError: as HttpProvider.complete.
        """
        attempt = Attempt(watch, ConverseReader(), self._clock)
        silence_s = self._settings.timeout_s
        patience = Patience(silence_s=silence_s, whole_s=WHOLE_ATTEMPT_FACTOR * silence_s)
        try:
            return await self._converse(self._arguments(request), attempt, patience)
        except StreamFault as fault:
            return self._verdict(Failure(body=fault.body, secrets=self._secrets), attempt, fault)
        except AnswerTooLong as error:
            attempt.tell()  # what is thrown away is paid for
            self._fail(TruncatedStream, str(error), attempt, error)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            self._fail(TransientError, f"an event has an unknown shape ({error!r})", attempt, error)
        except TimeoutError as error:
            text = "no end in time" if patience.is_over else "no byte in time"
            kind = TruncatedStream if attempt.streaming else TransientError
            self._fail(kind, f"{text} (timeout_s in [[models]])", attempt, error)

    async def close(self) -> None:
        """Close the client's connections."""
        self._opened = None
        await self._stack.aclose()

    async def _converse(self, arguments: Json, attempt: Attempt, patience: Patience) -> Completion:
        import aiohttp
        from botocore.eventstream import ParserError
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            client = await self._client()
            async with patience:
                await self._receive(client, arguments, attempt, patience)
        except ClientError as error:  # also an exception inside the event stream
            return self._verdict(_failure(error, self._secrets), attempt, error)
        except BotoCoreError as error:
            self._fail(*_trouble(error), attempt, error)
        except ParserError as error:
            self._fail(TransientError, f"the event stream is broken ({error})", attempt, error)
        except TimeoutError:
            raise  # silence, told by `complete`: it is an OSError and a ClientError as well
        except (aiohttp.ClientError, OSError) as error:
            kind = TruncatedStream if attempt.streaming else TransientError
            self._fail(kind, f"the connection failed ({type(error).__name__}: {error})", attempt, error)
        answer = attempt.reader.answer()
        if answer is None:
            self._fail(TruncatedStream, "the stream ended without its stop reason", attempt)
        return attempt.completion(answer, self._clock())

    async def _receive(self, client: Any, arguments: Json, attempt: Attempt, patience: Patience) -> None:
        from botocore.exceptions import ClientError

        if self._streams:
            try:
                response = await client.converse_stream(**arguments)
            except ClientError as error:
                if not _cannot_stream(error):
                    raise
                self._streams = False
            else:
                return await _read_stream(response["stream"], attempt, patience)
        attempt.reader.feed(await client.converse(**arguments))
        attempt.tell()
        return None

    def _arguments(self, request: ModelRequest) -> Json:
        settings = self._settings
        content: list[Json] = [{"text": request.prompt}]
        if request.cache and any(family in settings.model for family in _CACHING):
            content.append({"cachePoint": {"type": "default"}})
        limits: Json = {"maxTokens": settings.max_tokens}
        if settings.temperature is not None:
            limits["temperature"] = settings.temperature
        arguments: Json = {
            "modelId": settings.model,
            "messages": [{"role": "user", "content": content}],
            "inferenceConfig": limits,
        }
        return {**arguments, "additionalModelRequestFields": self._extra} if self._extra else arguments

    async def _client(self) -> Any:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(await self._new_client())
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

    def _verdict(self, failure: Failure, attempt: Attempt, cause: Exception) -> Completion:
        meant = classify(failure, self._settings)
        if isinstance(meant, ProviderError):
            meant.usage = attempt.billed()
            raise meant from cause
        return attempt.stopped(meant, self._settings.model)

    def _fail(
        self, kind: type[ProviderError], text: str, attempt: Attempt, cause: Exception | None = None
    ) -> NoReturn:
        line = one_line(f"{self._settings.name}: {text}", self._secrets)
        raise kind(line, usage=attempt.billed()) from cause


async def _read_stream(stream: Any, attempt: Attempt, patience: Patience) -> None:
    """Feed the attempt to the stream's end; the connection is closed when the end was not reached."""
    try:
        async for event in stream:
            patience.heard()
            attempt.reader.feed(event)
            attempt.tell()
    finally:
        stream.close()


def _failure(error: Any, secrets: tuple[str, ...]) -> Failure:
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
        secrets=secrets,
    )


def _trouble(error: Exception) -> tuple[type[ProviderError], str]:
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
        known.ParamValidationError,
        known.UnknownServiceError,
    )
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, lasting):
        return PoolUnusable, f"check AWS_REGION, AWS_PROFILE and the AWS credentials ({told})"
    return TransientError, told


def _cannot_stream(error: Any) -> bool:
    told = error.response.get("Error", {})
    message = str(told.get("Message") or "").lower()
    return told.get("Code") == "ValidationException" and "stream" in message and "support" in message


def _model_fields(settings: ModelSettings) -> Json:
    """`reasoning_effort` under the name that the model's own maker gives it."""
    effort, model = settings.reasoning_effort, settings.model
    if effort is None:
        return {}
    if "anthropic." in model:
        return {"output_config": {"effort": effort}}
    if "openai." in model:
        return {"reasoning_effort": effort}
    raise ConfigError(f"{settings.name}: reasoning_effort is not known for this Bedrock model: unset it")

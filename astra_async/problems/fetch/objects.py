"""One GET of an S3 object (or of a compatible server), streamed to the cache.

The library finds credentials and endpoints, signs requests and parses responses. The connection is an
aiohttp session of this package, so the usual proxies and certificates apply. Redirects are not followed,
because they could send credentials to another host. If a header names the bucket's region, the library signs
again for that region.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from yarl import URL

from astra_async.errors import SourceError
from astra_async.problems.fetch.cache import CHUNK_BYTES, CachedLocation, TransientFetchError
from astra_async.transport import proxy_for, trusted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import aiohttp

    from astra_async.problems.fetch.cache import Cache
    from astra_async.problems.fetch.locations import S3Object
    from astra_async.types import S3Settings

_REFUSED = {"AccessDenied", "403", "Forbidden", "AllAccessDisabled"}
_MESSAGES = (
    (
        {"NoSuchKey", "NoSuchBucket", "NoSuchVersion", "404", "NotFound"},
        "object not found ({code}); check bucket and key",
    ),
    (
        {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"},
        "the credentials have expired ({code}); renew AWS_* (`aws sso login`), then run the command again",
    ),
    ({"RequestTimeTooSkewed"}, "this machine's clock is wrong ({code}); correct the clock"),
    (
        {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthorizationHeaderMalformed"},
        "the credentials are invalid ({code}); check AWS_* and the region",
    ),
)


class ObjectStore:
    """S3 clients, one per region, created on first use and closed together."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self._clients: dict[str | None, Any] = {}
        self._session: aiohttp.ClientSession | None = None
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def fetch(self, where: S3Object, cache: Cache, known: CachedLocation | None) -> CachedLocation:
        """Fetch an object, or confirm by its ETag that the known one is current.

        Raises:
            TransientFetchError: connection error, timeout, truncated body, throttling or 5xx.
            SourceError: the object is missing, access is denied, or credentials are missing or invalid.
            ArchiveError: the object is too large.
        """
        from botocore.exceptions import ClientError

        with _translated(where, anonymous=self._settings.anonymous):
            client = await self._client(where.region)
            try:
                answer = await client.get_object(**_request(where, known))
            except ClientError as error:
                if known is not None and _status(error) == 304:  # noqa: PLR2004 - not modified
                    return known
                raise
            return await _kept(answer, cache, str(where))

    async def send(self, where: S3Object, path: Path) -> None:
        """Upload a file to an object. Raises like `fetch`."""
        with _translated(where, anonymous=self._settings.anonymous), path.open("rb") as stream:
            client = await self._client(where.region)
            await client.put_object(Bucket=where.bucket, Key=where.key, Body=stream)

    async def save(self, where: S3Object, path: Path) -> None:
        """Append an object's content to a file. Raises like `fetch`."""
        with _translated(where, anonymous=self._settings.anonymous), path.open("ab") as stream:
            client = await self._client(where.region)
            body = (await client.get_object(Bucket=where.bucket, Key=where.key))["Body"]
            try:
                async for chunk in body.iter_chunks(CHUNK_BYTES):
                    stream.write(chunk)
            finally:
                body.close()

    async def close(self) -> None:
        """Close all clients."""
        await self._stack.aclose()
        self._clients.clear()
        self._session = None

    async def _client(self, region: str | None) -> Any:
        region = region or self._settings.region
        async with self._opening:
            if region not in self._clients:
                self._clients[region] = await self._open(region)
        return self._clients[region]

    async def _open(self, region: str | None) -> Any:
        # Importing the library and its service model takes half a second, so do it in a thread.
        aioboto3, config = await asyncio.to_thread(_library, self._settings)
        opening = aioboto3.Session().client(
            "s3", endpoint_url=self._settings.endpoint_url, region_name=region, config=config
        )
        try:
            client = await self._stack.enter_async_context(opening)
        except ValueError as error:
            endpoint = self._settings.endpoint_url
            raise SourceError(f"[s3] endpoint_url = {endpoint!r}, region = {region!r}: {error}") from error
        client.meta.events.register("before-send.s3", self._send)
        return client

    async def _send(self, request: Any, **_: Any) -> Any:
        """Send the library's signed request over this package's session and return the response."""
        from aiobotocore.awsrequest import AioAWSResponse

        from astra_async.problems.fetch.download import REDIRECTS

        url = URL(request.url, encoded=True)
        signed = {
            name: text if isinstance(text, str) else text.decode() for name, text in request.headers.items()
        }
        response = await (await self._connections()).request(
            request.method,
            url,
            headers={"Accept-Encoding": "identity", **signed},
            data=request.body,
            proxy=proxy_for(url, os.environ),
            allow_redirects=False,
        )
        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.status in REDIRECTS and "x-amz-bucket-region" not in headers:
            response.close()
            raise SourceError(
                f"the service responded {response.status}, a redirect; credentials are not sent there;"
                " check endpoint_url and region under [s3]",
                where=str(url.with_query(None)),
            )
        answer = AioAWSResponse(str(url), response.status, headers, response)
        if not request.stream_output:
            await answer.content
        return answer

    async def _connections(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=trusted(os.environ)),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60),
                auto_decompress=False,
                skip_auto_headers=("Content-Type",),
            )
            self._session = await self._stack.enter_async_context(session)
        return self._session


def _library(settings: S3Settings) -> tuple[Any, Any]:
    import aioboto3
    from aiobotocore.config import AioConfig
    from botocore import UNSIGNED

    config = AioConfig(
        signature_version=UNSIGNED if settings.anonymous else None,
        retries={"total_max_attempts": 1},  # `retried` handles retries for all sources
        s3={"addressing_style": "path" if settings.endpoint_url else "auto"},
        request_checksum_calculation="when_required",  # otherwise uploads use aws-chunked encoding
    )
    return aioboto3, config


@contextmanager
def _translated(where: S3Object, *, anonymous: bool) -> Iterator[None]:
    """Convert exceptions of the library and of the connection to SourceError."""
    import aiohttp
    from botocore.exceptions import BotoCoreError, ClientError

    from astra_async.problems.fetch.download import from_client

    try:
        yield
    except ClientError as error:
        raise _from_answer(where, error, anonymous=anonymous) from error
    except BotoCoreError as error:
        raise _from_library(where, error) from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
        raise from_client(error, str(where)) from error


def _request(where: S3Object, known: CachedLocation | None) -> dict[str, str]:
    request = {"Bucket": where.bucket, "Key": where.key}
    if where.version:
        request["VersionId"] = where.version
    if known is not None and known.etag:
        request["IfNoneMatch"] = known.etag
    return request


async def _kept(answer: dict[str, Any], cache: Cache, shown: str) -> CachedLocation:
    body = answer["Body"]
    try:
        sha256 = await cache.keep(body.iter_chunks(CHUNK_BYTES), answer.get("ContentLength"), shown)
    finally:
        body.close()  # after a complete read this returns the connection to the pool; otherwise it drops it
    return CachedLocation(sha256=sha256, etag=answer.get("ETag", ""))


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _from_answer(where: S3Object, error: Any, *, anonymous: bool) -> SourceError:
    """Convert an S3 error response; its own text is omitted because it may contain an access key."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    for codes, message in _MESSAGES:
        if code in codes:
            return SourceError(message.format(code=code), where=str(where))
    if code in _REFUSED:
        how = (
            "the object is not public; remove `anonymous` under [s3]"
            if anonymous
            else "check the permissions of AWS_*"
        )
        return SourceError(f"access denied; {how}", where=str(where))
    if _status(error) >= 500 or _status(error) == 429 or code in ("SlowDown", "RequestTimeout"):  # noqa: PLR2004 - HTTP
        return TransientFetchError(f"the service responded {_status(error)} ({code})", where=str(where))
    return SourceError(f"the service responded {_status(error)} ({code})", where=str(where))


def _from_library(where: S3Object, error: Exception) -> SourceError:
    name = type(error).__name__
    if name in ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"):
        return SourceError(
            "no credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or `anonymous = true` under [s3] for a public bucket",
            where=str(where),
        )
    if name in ("ParamValidationError", "ProfileNotFound", "InvalidConfigError", "NoRegionError"):
        return SourceError(" ".join(str(error).split())[:200], where=str(where))
    return TransientFetchError(
        f"the service is unreachable or the response was truncated ({name})", where=str(where)
    )

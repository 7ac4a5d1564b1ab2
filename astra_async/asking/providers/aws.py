"""AWS credentials, region, request signatures (SigV4) and event streams.

botocore finds and renews credentials (variables, profiles, SSO, roles, containers, instances). It runs in a
thread because it reads files and may contact servers. Requests to models do not use botocore's HTTP client.
"""

from __future__ import annotations

import asyncio
import struct
from functools import cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

import orjson

from astra_async.asking.providers.answer import Unreadable
from astra_async.asking.providers.sse import SseSplitter
from astra_async.errors import ConfigError, PoolUnusable, TransientError
from astra_async.redaction import one_line, register_secrets_of, register_sent_secret
from astra_async.transport import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from yarl import URL


_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_SIZE = struct.Struct(">H")
_LEAST_BYTES = _PRELUDE.size + _CRC.size
_MOST_BYTES = 2**25  # the encoding is limited to 24 MB of payload and 128 KB of headers
_FIRST_BYTES = b"\x00\x01"  # possible first bytes of a frame, whose length is at most _MOST_BYTES
_STRING = 7
_SIZED = frozenset({6, _STRING})
_BYTES_OF_TYPE = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class EventStreamSplitter:
    """Splitter of AWS event streams: takes chunks of any size and yields the events as JSON.

    A body that does not begin with a frame is split as server-sent events instead.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._text: SseSplitter | None = None
        self._has_begun = False

    @property
    def is_page(self) -> bool:
        """True if the body is an HTML page (see SseSplitter)."""
        return self._text is not None and self._text.is_page

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Return the events that this chunk completes, in order. Consume all of them before the next chunk.

        Raises:
            Unreadable: a frame is damaged. Raised during iteration, after the events before that frame.
            EventTooLarge: see SseSplitter.
        """
        if not self._has_begun and chunk:
            self._has_begun = True
            self._text = None if chunk[0] in _FIRST_BYTES else SseSplitter()
        return self._frames(chunk) if self._text is None else self._text.feed(chunk)

    def finish(self) -> Iterable[bytes]:
        """Return the events left at the end of the stream. An incomplete frame is dropped."""
        return () if self._text is None else self._text.finish()

    def _frames(self, chunk: bytes) -> Iterator[bytes]:
        held = self._held
        held += chunk
        start = 0
        try:
            while (length := _length_at(held, start)) and len(held) - start >= length:
                frame = bytes(memoryview(held)[start : start + length])
                start += length
                yield _event(frame)
        finally:
            del held[:start]


Splitter = SseSplitter | EventStreamSplitter


def _length_at(held: bytearray, start: int) -> int:
    """Return the length in bytes of the frame at `start`, or 0 if its prelude has not arrived."""
    if len(held) - start < _PRELUDE.size:
        return 0
    length, of_headers, checksum = _PRELUDE.unpack_from(held, start)
    if checksum != crc32(held[start : start + 8]) or not _LEAST_BYTES + of_headers <= length <= _MOST_BYTES:
        raise Unreadable("not an AWS event stream frame", bytes(held[start : start + _PRELUDE.size]))
    return int(length)


def _event(frame: bytes) -> bytes:
    end = len(frame) - _CRC.size
    if _CRC.unpack_from(frame, end)[0] != crc32(memoryview(frame)[:end]):
        raise Unreadable("damaged: wrong checksum", frame)
    headers_end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    try:
        named = _headers(frame, _PRELUDE.size, headers_end)
    except (LookupError, struct.error, UnicodeDecodeError) as error:
        raise Unreadable("damaged: invalid headers", frame) from error
    if named.get(":message-type") == "error":
        body = {"code": named.get(":error-code"), "message": named.get(":error-message")}
        return orjson.dumps({"error": body})
    name = named.get(":event-type") or named.get(":exception-type") or ""
    return b"{%b:%b}" % (orjson.dumps(name), frame[headers_end:end] or b"{}")


def _headers(frame: bytes, at: int, end: int) -> dict[str, str]:
    """Return the headers of type string. Headers of other types are skipped."""
    named: dict[str, str] = {}
    while at < end:
        name_end = at + 1 + frame[at]
        name, kind = frame[at + 1 : name_end], frame[name_end]
        at = name_end + 1
        if kind in _SIZED:
            size = _SIZE.unpack_from(frame, at)[0]
            at += _SIZE.size
        else:
            size = _BYTES_OF_TYPE[kind]
        if kind == _STRING:
            named[name.decode()] = frame[at : at + size].decode()
        at += size
    return named


_CHECK = "check AWS_PROFILE and the AWS credentials"


class Signer:
    """Signer of requests to one service in one region.

    A bearer token (`AWS_BEARER_TOKEN_BEDROCK`) takes precedence over credentials in the environment, and
    those take precedence over a profile. A server on this machine needs no credentials.

    Args:
        name: name of the model, for error messages.
        service: name of the service in signatures.
        region: name of the region in signatures.
        address: address of the server.
        environ: environment variables.
    """

    def __init__(
        self, name: str, service: str, region: str, address: URL, environ: Mapping[str, str]
    ) -> None:
        register_secrets_of(environ)
        self._name = name
        self._scope = service, region
        self._environ = environ
        self._bearer = environ.get("AWS_BEARER_TOKEN_BEDROCK", "").strip()
        named = environ.get("AWS_ACCESS_KEY_ID") or environ.get("AWS_PROFILE")
        register_sent_secret(self._bearer)
        self._needs_none = is_local(address) and not named
        self._finding = asyncio.Lock()
        self._found: Any = None

    async def headers(
        self, url: URL, headers: Mapping[str, str], body: bytes, *, method: str = "POST"
    ) -> dict[str, str]:
        """Return the headers that authenticate a request; the signature covers all other headers.

        Raises:
            PoolUnusable: no valid credentials were found.
            TransientError: the server that renews the credentials could not be reached.
        """
        if self._bearer:
            return {"Authorization": f"Bearer {self._bearer}"}
        if self._needs_none:
            return {}
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method, str(url), headers=dict(headers), data=body)
        SigV4Auth(await self._credentials(), *self._scope).add_auth(request)
        return {name: value for name, value in request.headers.items() if name not in headers}

    async def _credentials(self) -> Any:
        """Return the current credentials: found once, renewed when they expire."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        # Only refreshable credentials have `refresh_needed`. For others `bool()` returns False.
        if self._found is not None and not getattr(self._found, "refresh_needed", bool)():
            return self._found.get_frozen_credentials()
        try:
            async with self._finding:
                return await asyncio.to_thread(self._find)
        except HTTPClientError as error:
            raise TransientError(f"{self._name}: AWS credentials: {one_line(error)}") from error
        except (BotoCoreError, ClientError) as error:
            cause = f"{type(error).__name__}: {error}"
            raise PoolUnusable(f"{self._name}: {_CHECK} ({one_line(cause)})") from error

    def _find(self) -> Any:
        from botocore.credentials import Credentials
        from botocore.exceptions import NoCredentialsError, PartialCredentialsError

        get = self._environ.get
        if self._found is None and (key := get("AWS_ACCESS_KEY_ID")):
            secret = get("AWS_SECRET_ACCESS_KEY")
            if not secret:
                raise PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY")
            self._found = Credentials(key, secret, get("AWS_SESSION_TOKEN"))
        if self._found is None:
            self._found = _session(get("AWS_PROFILE")).get_credentials()
        if self._found is None:
            raise NoCredentialsError
        frozen = self._found.get_frozen_credentials()
        register_sent_secret(frozen.access_key, frozen.secret_key, frozen.token or "")
        return frozen


def region_of(name: str, environ: Mapping[str, str], *, default: str | None = None) -> str:
    """Return the region: AWS_REGION, else AWS_DEFAULT_REGION, else `default`, else the profile's region.

    Raises:
        ConfigError: no region is configured.
    """
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    region = region or default or _configured_region(environ.get("AWS_PROFILE"))
    if not region:
        raise ConfigError(f"{name} needs a region: set AWS_REGION, or AWS_PROFILE to a profile that has one")
    return str(region)


def endpoint_of(service: str, region: str, environ: Mapping[str, str]) -> str:
    """Return a service's address: AWS_ENDPOINT_URL_<SERVICE>, else AWS_ENDPOINT_URL, else AWS's endpoint.

    AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT select one of AWS's endpoints in the region.
    """
    own = environ.get(f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}")
    own = own or environ.get("AWS_ENDPOINT_URL")
    if own:
        return own
    kinds = ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT")
    fips, dual = (environ.get(kind, "").lower() == "true" for kind in kinds)
    return _listed_endpoint(service, region, fips=fips, dual=dual)


@cache
def _listed_endpoint(service: str, region: str, *, fips: bool, dual: bool) -> str:
    """Look up AWS's endpoint in botocore's table, because domains differ in China and sovereign clouds."""
    from botocore.loaders import create_loader
    from botocore.regions import EndpointResolver

    resolver = EndpointResolver(create_loader().load_data("endpoints"))
    found = resolver.construct_endpoint(service, region, use_fips_endpoint=fips, use_dualstack_endpoint=dual)
    return f"https://{found['hostname'] if found else f'{service}.{region}.amazonaws.com'}"


def _configured_region(profile: str | None) -> Any:
    from botocore.exceptions import BotoCoreError

    try:
        return _session(profile).get_config_variable("region")
    except BotoCoreError as error:  # the profile does not exist, or its file cannot be parsed
        raise ConfigError(f"{_CHECK}: {one_line(error)}") from error


def _session(profile: str | None) -> Any:
    from botocore.session import Session

    return Session(profile=profile or None)

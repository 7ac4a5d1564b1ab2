"""Who asks at AWS: credentials and region as the AWS tools find them, and signatures (SigV4).

botocore's chain finds credentials (variables, profiles, SSO, roles, containers, instances) and renews them:
it reads files and may ask servers, so it runs in a thread. No HTTP client of its touches a model's call.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConfigError, PoolUnusable, TransientError
from astra_async.redaction import keep_secrets_of, keep_sent, one_line
from astra_async.transport import is_local

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

_CHECK = "check AWS_PROFILE and the AWS credentials"


class Signer:
    """Signs requests to one service in one region.

    A bearer token (`AWS_BEARER_TOKEN_BEDROCK`) outranks credentials, those of the environment outrank a
    profile's. A server on this machine needs none, as with the other wire formats. `name` is the model's,
    `service` as signatures name it.
    """

    def __init__(
        self, name: str, service: str, region: str, address: URL, environ: Mapping[str, str]
    ) -> None:
        keep_secrets_of(environ)
        self._name = name
        self._scope = service, region
        self._environ = environ
        self._bearer = environ.get("AWS_BEARER_TOKEN_BEDROCK", "").strip()
        named = environ.get("AWS_ACCESS_KEY_ID") or environ.get("AWS_PROFILE")
        keep_sent(self._bearer)
        self._needs_none = is_local(address) and not named
        self._finding = asyncio.Lock()
        self._found: Any = None

    async def headers(
        self, url: URL, headers: Mapping[str, str], body: bytes, *, method: str = "POST"
    ) -> dict[str, str]:
        """The headers that prove who asks, computed over all the others.

        Raises:
            PoolUnusable: no credentials, or none that can be had.
            TransientError: whoever renews them could not be reached.
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
        """What signs now: found once, and renewed when its time is over."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        # Only credentials that are renewed can be old.
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
        keep_sent(frozen.access_key, frozen.secret_key, frozen.token or "")
        return frozen


def region_of(name: str, environ: Mapping[str, str], *, default: str | None = None) -> str:
    """AWS_REGION, AWS_DEFAULT_REGION, `default`, or the profile's.

    Raises:
        ConfigError: none of them names one.
    """
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    region = region or default or _configured_region(environ.get("AWS_PROFILE"))
    if not region:
        raise ConfigError(f"{name} needs a region: set AWS_REGION, or AWS_PROFILE to a profile that has one")
    return str(region)


def endpoint_of(service: str, region: str, environ: Mapping[str, str]) -> str:
    """The address of a service in a region: AWS_ENDPOINT_URL_..., AWS_ENDPOINT_URL, or AWS's own.

    AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT choose among those.
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
    """By botocore's table of partitions, which knows whose names end otherwise (China, sovereign clouds)."""
    from botocore.loaders import create_loader
    from botocore.regions import EndpointResolver

    resolver = EndpointResolver(create_loader().load_data("endpoints"))
    found = resolver.construct_endpoint(service, region, use_fips_endpoint=fips, use_dualstack_endpoint=dual)
    return f"https://{found['hostname'] if found else f'{service}.{region}.amazonaws.com'}"


def _configured_region(profile: str | None) -> Any:
    from botocore.exceptions import BotoCoreError

    try:
        return _session(profile).get_config_variable("region")
    except BotoCoreError as error:  # a profile that nobody has written, a file that cannot be parsed
        raise ConfigError(f"{_CHECK}: {one_line(error)}") from error


def _session(profile: str | None) -> Any:
    from botocore.session import Session

    return Session(profile=profile or None)

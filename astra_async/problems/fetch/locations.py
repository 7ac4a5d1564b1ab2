"""Parse a location: a local path, a URL, or an S3 object.

Rules for the https URLs of S3 (`BUCKET.s3.amazonaws.com/KEY`, `BUCKET.s3.REGION.amazonaws.com/KEY`,
`s3.REGION.amazonaws.com/BUCKET/KEY`):

1. A presigned URL (its query has a signature) is fetched as a plain URL only.
2. If `[s3] endpoint_url` is set, the object is fetched from that endpoint.
3. Otherwise the URL is fetched without credentials, which works for public objects. If S3 responds 401 or
   403, the object is fetched again with credentials, unless `[s3] anonymous` is set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from astra_async.errors import SourceError
from astra_async.redaction import public_url

_S3_HOST = re.compile(
    r"(?:(?P<bucket>[a-z0-9][a-z0-9.-]{1,62})\.)?s3(?:[.-](?:dualstack\.)?(?P<region>[a-z]{2,}-[a-z0-9-]+))?"
    r"\.amazonaws\.com(?:\.cn)?"
)
_PIN = re.compile(r"#sha256=([0-9a-f]{64})$")
# Query parameters of signatures, versions 2 and 4; they are never shown and not part of a cache key.
_SIGNATURES = ("x-amz-", "signature", "awsaccesskeyid", "expires", "key-pair-id", "policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Object:
    """An S3 object; `version` and `region` are None unless the location has them."""

    bucket: str
    key: str
    region: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """An http or https URL; `behind` is the S3 object at the URL, or None (also for presigned URLs)."""

    url: str
    behind: S3Object | None = None


Location = Path | WebAddress | S3Object  # a Path is a local folder or file


def parse_location(text: str) -> Location:
    """Parse an absolute location.

    Raises:
        SourceError: a URL without a host, or an s3:// location without bucket or key.
    """
    if text.startswith("s3://"):
        return _from_s3(text)
    if text.startswith(("https://", "http://")):
        return _from_web(text)
    return Path(text)


def split_pin(location: str) -> tuple[str, str]:
    """Split `LOCATION#sha256=HEX` into the location and the required hash ('' if not pinned)."""
    found = _PIN.search(location)
    return (location[: found.start()], found[1]) if found else (location, "")


def pinned_to(location: str, sha256: str) -> str:
    """Return the location with the sha256 that its content must have."""
    return f"{location}#sha256={sha256}"


def shown(location: str) -> str:
    """Return the location without query, user and password, for messages."""
    return public_url(location).partition("?")[0] if "://" in location else location


def cache_key(url: str) -> str:
    """Return the URL without its signature, because a new signature does not change the object."""
    parts = urlsplit(url)
    query = [(key, value) for key, value in parse_qsl(parts.query) if not _is_signature(key)]
    return parts._replace(query=urlencode(query), fragment="").geturl()


def _is_signature(key: str) -> bool:
    return key.lower().startswith(_SIGNATURES)


def _from_s3(text: str) -> S3Object:
    bucket, _, key = text.removeprefix("s3://").partition("/")
    key, _, version = key.partition("?versionId=")
    if not bucket or not key:
        raise SourceError("incomplete S3 location; write s3://BUCKET/KEY", where=shown(text))
    return S3Object(bucket=bucket, key=key, version=version or None)


def _from_web(text: str) -> WebAddress:
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").lower()
        _ = parts.port
    except ValueError as error:
        raise SourceError("invalid address", where=shown(text)) from error
    if not host:
        raise SourceError("the address has no host", where=shown(text))
    return WebAddress(url=text, behind=_behind(host, parts.path, parts.query))


def _behind(host: str, path: str, query: str) -> S3Object | None:
    pairs = dict(parse_qsl(query))
    found = _S3_HOST.fullmatch(host)
    if not found or any(_is_signature(key) for key in pairs):
        return None
    bucket, key = found["bucket"], unquote(path).lstrip("/")
    if bucket is None:
        bucket, _, key = key.partition("/")
    if not bucket or not key:
        return None
    return S3Object(bucket=bucket, key=key, region=found["region"], version=pairs.get("versionId"))

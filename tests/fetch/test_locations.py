from __future__ import annotations

from pathlib import Path

import pytest

from astra_async.errors import SourceError
from astra_async.problems.fetch.locations import (
    S3Object,
    WebAddress,
    cache_key,
    parse_location,
    shown,
)

SIGNED = (
    "https://b.s3.amazonaws.com/k.zip?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=1&X-Amz-Signature=secret"
)


@pytest.mark.parametrize(
    ("url", "behind"),
    [
        ("https://my-bucket.s3.amazonaws.com/a/b.zip", S3Object(bucket="my-bucket", key="a/b.zip")),
        ("https://dotted.name.s3.amazonaws.com/k", S3Object(bucket="dotted.name", key="k")),
        (
            "https://bucket.s3.eu-west-1.amazonaws.com/a%20b/%C3%BC.zip",
            S3Object(bucket="bucket", key="a b/ü.zip", region="eu-west-1"),
        ),
        (
            "https://bucket.s3-us-west-2.amazonaws.com/k",
            S3Object(bucket="bucket", key="k", region="us-west-2"),
        ),
        (
            "https://bucket.s3.dualstack.ap-south-1.amazonaws.com/k",
            S3Object(bucket="bucket", key="k", region="ap-south-1"),
        ),
        (
            "https://bucket.s3.cn-north-1.amazonaws.com.cn/k",
            S3Object(bucket="bucket", key="k", region="cn-north-1"),
        ),
        ("https://s3.amazonaws.com/bucket/a/b.zip", S3Object(bucket="bucket", key="a/b.zip")),
        (
            "https://s3.eu-central-1.amazonaws.com/bucket/k?versionId=v1",
            S3Object(bucket="bucket", key="k", region="eu-central-1", version="v1"),
        ),
        (SIGNED, None),
        ("https://b.s3.amazonaws.com/k?AWSAccessKeyId=A&Signature=s&Expires=1", None),
        ("https://s3.amazonaws.com/bucket", None),
        ("https://example.com/s3.amazonaws.com/k.zip", None),
        ("https://evil-s3.amazonaws.com.example.com/k", None),
    ],
)
def test_https_addresses_of_s3_name_bucket_and_key(url: str, behind: S3Object | None) -> None:
    assert parse_location(url) == WebAddress(url=url, behind=behind)


def test_s3_locations_name_bucket_key_and_version() -> None:
    assert parse_location("s3://bucket/a b/c.zip") == S3Object(bucket="bucket", key="a b/c.zip")
    assert parse_location("s3://bucket/k?versionId=v") == S3Object(bucket="bucket", key="k", version="v")
    assert parse_location("s3://bucket/what?.zip") == S3Object(bucket="bucket", key="what?.zip")


def test_everything_else_is_a_path() -> None:
    assert parse_location("/data/p.zip") == Path("/data/p.zip")


@pytest.mark.parametrize(
    "text", ["s3://bucket", "s3:///key", "https://", "https://[::1", "https://h:99999999/"]
)
def test_locations_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(SourceError):
        parse_location(text)


def test_what_is_shown_holds_no_secret() -> None:
    assert shown(SIGNED) == "https://b.s3.amazonaws.com/k.zip"
    assert shown("https://user:pass@h.example:8080/a?token=1#x") == "https://h.example:8080/a"
    assert shown("https://h.example?token=a@b/c") == "https://h.example"
    assert shown("/data/what?.zip") == "/data/what?.zip"


def test_an_address_signed_anew_is_the_same_in_the_cache() -> None:
    again = SIGNED.replace("Date=1", "Date=2").replace("secret", "other")
    assert cache_key(SIGNED) == cache_key(again)
    assert cache_key(SIGNED + "&versionId=1") != cache_key(SIGNED)
    assert cache_key("https://h/a?x=1") != cache_key("https://h/a?x=2")

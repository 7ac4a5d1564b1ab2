"""Masking of keys in every spelling, without changes to ordinary text."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async import redaction
from astra_async.errors import ConfigError, TransientError
from astra_async.redaction import (
    _SHAPES,
    mask,
    mask_sent,
    one_line,
    public_headers,
    public_settings,
    public_url,
    register_secret,
    register_secrets_in,
    register_secrets_of,
    register_sent_secret,
)
from astra_async.redaction.secret_patterns import SecretRegistry
from waiting import cpu_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUNDLED = Path(__file__).parent.parent / "astra_async"


@contextmanager
def knowing(*secrets: str) -> Iterator[None]:
    """Replace the known secrets within the block."""
    with patch.object(redaction, "_known", SecretRegistry()):
        register_secret(*secrets)
        yield


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key my/secret+1 here", "key *** here"),
        ("key my%2Fsecret%2B1 here", "key *** here"),
        ("sk-proj-abcdefghij", "***"),
        ("sk-0123456789abcdef0123", "***"),
        ("Incorrect API key provided: sk-test-************cdef.", "Incorrect API key provided: ***"),
        ("AIzaSyABCDEFGH-_123", "***"),
        ("ABSKQmVkcm9ja0FQSUtleS1hYmNkMTIzNA==", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("hf_QwErTyUiOpAsDfGhJkLzXcVbNm012345", "***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ('{"Authorization": "Bearer abc.def"}', '{"Authorization": "Bearer ***"}'),
        ("bearer eyJhbGciOi1.x", "bearer ***"),
        (f"Basic {base64.b64encode(b'user:password').decode()}", "Basic ***"),
        ("http://user:pw@proxy:1", "http://***@proxy:1"),
        ("https://h/p?X-Amz-Signature=abc&versionId=3", "https://h/p?X-Amz-Signature=***&versionId=3"),
        ("postgres://me:pw@db/x", "postgres://***@db/x"),
        ("https://ghp-token@host/x", "https://***@host/x"),
        ("https://h/p?key=abc", "https://h/p?key=***"),
        ("the X-Amz-Signature=0a1b2c3d is old", "the X-Amz-Signature=*** is old"),
        ("x-api-key: abcd1234", "x-api-key: ***"),
        ('{"api_key": "abcd1234"}', '{"api_key": "***"}'),
    ],
)
def test_keys_are_masked_in_every_spelling(text: str, masked: str) -> None:
    with knowing("my/secret+1"):
        assert mask(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "the task sk-8 is risky",
        "ModuleNotFoundError: No module named 'pkg_resources'",
        "skyscraper.config and skeleton-project and sk-learn-pipeline",
        "hf_hub_download(repo_id) of xai-project-template",
        "rk_generator, pk_constraint_name, csk-table-names, r8_minify_enabled",
        "Bearer authentication is required; basic authentication is not offered",
        "unique key=value pairs; the primary key: customer_id; token=word",
        "max_tokens=4096 and stop_token_ids: 7",
        "https://host/v1?api-version=2024-10-21&alt=sse",
        "https://github.com/owner/repo#readme",
        "DOCKER_HOST=ssh://[user@]host[:port], or ssh://me@build-host:22",
        "mail a@b.example, or see git@github.com",
        "http://127.0.0.1:8000/v1 refused the connection",
    ],
)
def test_ordinary_words_are_never_masked(text: str) -> None:
    assert mask(text) == text


def test_masking_changes_no_line_of_sources_and_bundled_projects() -> None:
    """Check a corpus of ordinary text: code, prose, identifiers, addresses."""
    suffixes = {".py", ".js", ".jsx", ".ts", ".rb", ".java", ".md", ".json", ".yml", ".csv"}
    paths = [path for path in sorted(BUNDLED.rglob("*")) if path.suffix in suffixes]
    changed = []
    with knowing():  # by its shape alone: other tests of this process have secrets of their own
        for path in paths:
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.parent.name != "redaction" and mask(text) != text:
                changed += [line for line in text.splitlines() if mask(line) != line]
    assert changed == []


@given(st.text(min_size=8, max_size=60).filter(lambda text: len(text.strip()) >= 8))
def test_a_given_secret_is_masked_in_each_spelling(secret: str) -> None:
    for text in (secret, json.dumps({"k": secret}), repr(secret), f"a {secret} b"):
        with knowing(secret.strip()):
            assert secret.strip() not in mask(text).replace("***", "") or not secret.strip("*")


def test_a_short_value_masks_no_letters() -> None:
    register_secrets_of({"OPENAI_API_KEY": "a", "MY_TOKEN": "false"})
    assert mask("a banana is false") == "a banana is false"
    with knowing("a"):
        assert mask("a banana") == "a banana"


def test_a_secret_with_the_prefix_of_another_is_masked_completely() -> None:
    register_secret("begins-alike-1")
    assert mask("key begins-alike-1234 here") == "key *** here"


def test_variables_are_secret_by_name_and_folders_are_not() -> None:
    register_secrets_of(
        {
            "SOME_ROUTER_KEY": "correct-horse",
            "HTTPS_PROXY": "http://joe:battery-staple@proxy:3128",
            "AWS_SHARED_CREDENTIALS_FILE": "/home/joe/aws-config",
            "SSH_AUTH_SOCK": "/tmp/ssh-agent.socket",
            "KEYBOARD_LAYOUT": "us-international",
            "TOKENIZERS_PARALLELISM": "forbidden",
        }
    )
    assert mask("correct-horse battery-staple") == "*** ***"
    kept = "/home/joe/aws-config /tmp/ssh-agent.socket us-international forbidden"
    assert mask(kept) == kept


def test_the_secrets_of_a_configuration_are_known_before_the_first_message() -> None:
    register_secrets_in(
        {
            "projects": "https://joe:pass-of-joe@host/x?sig=sig-of-joe",
            "models": [
                {
                    "base_url": "https://host/v1?code=code-of-joe-1",
                    "extra_headers": {"Helicone-Auth": "Bearer head-of-joe", "X-Title": "title-of-joe"},
                    "extra_body": {"user_config": {"api_key": "body-of-joe"}, "mode": "mode-of-joe"},
                }
            ],
        }
    )
    said = "pass-of-joe sig-of-joe code-of-joe-1 head-of-joe title-of-joe body-of-joe mode-of-joe"
    assert mask(said) == "*** *** *** *** title-of-joe *** mode-of-joe"


def test_every_error_is_masked_when_it_is_created() -> None:
    register_secret("a-secret-of-ours")
    assert str(ConfigError("bad a-secret-of-ours")) == "bad ***"
    assert str(TransientError("cut by a-secret-of-ours", status=500)) == "cut by ***"


def test_a_key_at_the_end_of_a_cut_text_is_masked_completely() -> None:
    secret = "q" * 40
    with knowing(secret):
        line = one_line("x" * 290 + secret)
    assert "q" not in line
    assert len(line) <= 300


MADE_OF = "aB3/xY9+kLm0/Qr7sTu2vWx4yZ5Aa6Bb8Cc=="


@pytest.mark.parametrize(
    "written",
    [
        MADE_OF.replace("/", r"\/"),  # PHP
        MADE_OF.replace("+", r"\u002B"),  # .NET
        MADE_OF.replace("=", r"\u003d").replace("/", r"\/"),
        json.dumps(json.dumps(MADE_OF.replace("/", r"\/"))).strip('\\"'),
        quote_plus(MADE_OF),
        quote_plus(MADE_OF).replace("%2F", "%2f").replace("%3D", "%3d"),
        MADE_OF.replace("/", "&#x2F;").replace("=", "&#61;"),
    ],
)
def test_a_key_is_masked_in_every_escape(written: str) -> None:
    with knowing(MADE_OF):
        assert mask(f'{{"error": "bad key {written}"}}') == '{"error": "bad key ***"}'


@pytest.mark.parametrize(
    "secret", ["8f3a9c0b1d2e4f5a6b7c8d9e0f1a2b3c", "gate_" + "Zx9Y" * 12, MADE_OF, "kA-" + "Q7w" * 9]
)
def test_a_cut_text_keeps_at_most_a_few_characters_of_a_key(secret: str) -> None:
    with knowing(secret):
        for cut in range(len(secret)):
            left = mask(f"the token {secret[:cut]}").removeprefix("the token ")
            assert "***" in left or len(left) < 26
        assert "***" in mask(f"the token {secret[:-1]}")


def test_a_line_is_cut_only_after_masking() -> None:
    secret = "8f3a9c0b1d2e4f5a6b7c8d9e0f1a2b3c" * 2
    with knowing(secret):
        for blanks in (4700, 4750, 4790, 4799):
            for said in (text := "<html>" + " " * blanks + f"token={secret} rejected", text.encode()):
                line = one_line(said)
                assert "8f3" not in line
                assert line.startswith("<html>")
        both = one_line("a " + "x " * 5000 + secret, ends=True)
    assert both.endswith("x ***")
    assert one_line(" " * 9000) == one_line(b"") == ""
    assert one_line("\u00e9".encode() * 9000, length=10) == "\u00e9" * 9 + "\u2026"


@pytest.mark.parametrize("hostile", ["\\" * 200_000, "aB3" + "\\" * 200_000, "%2F" * 70_000, "+ " * 100_000])
def test_masking_takes_linear_time(hostile: str) -> None:
    with cpu_within(2), knowing(MADE_OF, "/+" * 10, "+ " * 9 + "+", "\\" * 9):
        mask(hostile)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://u:p@host:8080/v1/?sig=x#y", "https://host:8080/v1?sig=***"),
        ("https://host/v1?api-version=2024-10-21&x=abc", "https://host/v1?api-version=2024-10-21&x=***"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("s3://bucket/key", "s3://bucket/key"),
    ],
)
def test_a_url_is_recorded_without_possible_secrets(url: str, public: str) -> None:
    assert public_url(url) == public
    assert public_url(public) == public


def test_headers_are_recorded_by_hash_unless_they_cannot_be_secret() -> None:
    headers = {"anthropic-beta": "context-1m", "X-Auth": "Bearer ${ROUTER_KEY}", "X-Team": "red"}
    public = public_headers(headers)
    assert public["anthropic-beta"] == "context-1m"
    assert public["X-Auth"] == "Bearer ${ROUTER_KEY}"
    assert public["X-Team"].startswith("sha256:")
    assert public["X-Team"] != public_headers({"X-Team": "blue"})["X-Team"]
    assert public_headers(public) == public  # a regrade records what was recorded


def test_an_extra_body_is_recorded_without_its_secrets() -> None:
    body = {"provider": {"order": ["a"]}, "api_key": "x", "min_tokens": 3, "prompt_cache_options": {"ttl": 1}}
    public = public_settings({"extra_body": body, "max_tokens": 5})
    assert public["extra_body"]["api_key"].startswith("sha256:")
    assert public["extra_body"] | {"api_key": "x"} == body
    assert public_settings(public) == public


PIECES = (
    *("https://", "user:pw4@", "host/?", "sig=abc123", "&amp;token=", "X-Amz-Signature=", "credential: '"),
    *("api_key=abcd1234", "access_token=", "AWSAccessKeyId=", "Authorization: ", "authorization=", "Bearer "),
    *("bearer ", "basic ", "Basic dXNlcjpwYXNz", "sk-proj-", "AIzaSy", "github_pat_", "hf_", "**", " ", "\n"),
    *("QwErTyUiOpAsDfGhJkLz0123", "words", "\u00e9"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_prefilter_misses_no_form_of_a_secret(text: str) -> None:
    expected = text
    for shape, masked, _ in _SHAPES:
        expected = shape.sub(masked, expected)
    assert mask(text) == expected


DISGUISED: dict[str, Callable[[str], str]] = {
    "hex": lambda key: key.encode().hex(),
    "HEX": lambda key: key.encode().hex().upper(),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64, one before": lambda key: base64.b64encode(b"x" + key.encode()).decode(),
    "base64, two before": lambda key: base64.b64encode(b"xy" + key.encode() + b"z").decode(),
    "base64url": lambda key: base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode(),
    "user:password": lambda key: base64.b64encode(f"me:{key}".encode()).decode(),
    "json": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "one letter": lambda key: key.replace("s", "\\u0073"),
    "twice encoded": lambda key: "".join(f"\\\\u{ord(c):04X}" for c in key),
    "python": lambda key: "".join(f"\\x{ord(c):02x}" for c in key),
    "url": lambda key: "".join(f"%{ord(c):02X}" for c in key),
    "html": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "html, hex": lambda key: "".join(f"&#x{ord(c):x};" for c in key),
}


@pytest.mark.parametrize("disguise", DISGUISED)
@pytest.mark.parametrize("key", ["sk-geheim-0815-abcdefgh", "s/e+c~r=et 4711 mit Leerzeichen"])
def test_a_kept_secret_is_found_in_every_encoding(key: str, disguise: str) -> None:
    register_sent_secret(key)
    written = DISGUISED[disguise](key)
    for text in (f"no such key: {written} (see the docs)", f'{{"message": "{written}"}}'):
        for masked in (mask(text), one_line(text), mask_sent(text)):
            assert "***" in masked
            assert written[4:-4] not in masked
            assert key not in masked


def test_an_answers_text_is_unchanged_except_for_sent_credentials() -> None:
    register_secret("postgres", "correct-horse-99")
    register_sent_secret("placeholder", "a1")
    text = r"db('postgres', 'correct-horse-99', 'placeholder', sk-proj-0123456789abcdef, '\u0041%41&#65;')"
    assert mask_sent(text) is text

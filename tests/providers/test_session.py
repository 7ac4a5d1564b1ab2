from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from certificates import Authority
from provider_calls import KEYS, Watch, call, request, settings
from wire_server import Reply, serving, sse
from yarl import URL

from astra_async.asking.providers import open_provider
from astra_async.asking.providers.connection import address, open_session
from astra_async.errors import ConfigError, PoolUnusable, TransientError
from astra_async.transport import proxy_for

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Completion

ANSWER = sse({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}, "[DONE]")


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.openai.com/v1", {}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        (
            "https://api.openai.com/v1",
            {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:2"},
            "http://q:2",
        ),
        ("https://api.openai.com/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://api.openai.com/v1", {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "openai.com"}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .openai.com"}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
        ("https://notopenai.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "openai.com"}, "http://p:1"),
        ("http://inner:8000/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "inner:8000"}, None),
        ("http://inner:8001/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "inner:8000"}, "http://p:1"),
        ("http://127.0.0.1:8000/v1", {"HTTP_PROXY": "http://p:1"}, None),
    ],
)
def test_proxies_are_those_of_the_environment(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(URL(url), environ) == (URL(proxy) if proxy else None)


async def test_a_call_goes_through_the_proxy_that_the_environment_names() -> None:
    async def run() -> tuple[Completion, str]:
        async with serving(Reply(pieces=[ANSWER])) as proxy:
            provider = open_provider(
                settings(base_url="http://models.invalid/v1"), environ={**KEYS, "HTTP_PROXY": proxy.base_url}
            )
            completion = await provider.complete(request(), Watch())
            await provider.close()
            return completion, proxy.asked[0].path

    completion, path = await run()
    assert completion.text == "x"
    assert path == "http://models.invalid/v1/chat/completions"


async def test_a_proxy_that_refuses_ends_the_pool_without_telling_its_password() -> None:
    async def run() -> None:
        async with serving(Reply(status=407)) as proxy:
            url = proxy.base_url.replace("http://", "http://user:geheim@")
            provider = open_provider(
                settings(base_url="http://models.invalid/v1"), environ={"HTTP_PROXY": url}
            )
            try:
                await provider.complete(request(), Watch())
            finally:
                await provider.close()

    with pytest.raises(PoolUnusable) as caught:
        (await run())
    assert "geheim" not in str(caught.value)


async def test_an_unknown_host_is_transient() -> None:
    async def run() -> None:
        provider = open_provider(settings(base_url="http://models.invalid/v1"), environ={})
        try:
            await provider.complete(request(), Watch())
        finally:
            await provider.close()

    with pytest.raises(TransientError, match="connection failed"):
        (await run())


async def test_a_bundle_of_certificates_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")

    async def run(path: Path) -> None:
        await open_session({"SSL_CERT_FILE": str(path)}).close()

    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(ConfigError, match=name):
            (await run(tmp_path / name))


@pytest.mark.parametrize(
    "text", ["example.org", "ftp://example.org", "https://", "https://user:pw@example.org", "http://[", ""]
)
def test_an_address_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="base_url of m") as caught:
        address(text, where="base_url of m")
    assert "pw" not in str(caught.value)


async def test_an_own_bundle_of_certificates_decides_whom_to_trust(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server("localhost")

    async def run(environ: dict[str, str]) -> str:
        async with serving(Reply(pieces=[ANSWER]), tls=tls) as server:
            return (await call(settings(base_url=server.base_url), environ=environ)).text

    assert (await run({"SSL_CERT_FILE": str(authority.bundle)})) == "x"
    with pytest.raises(PoolUnusable, match="SSL_CERT_FILE"):
        (await run({}))


async def test_a_session_that_is_shared_stays_open() -> None:
    async def run() -> tuple[bool, str]:
        async with serving(Reply(pieces=[ANSWER])) as server, open_session({}) as session:
            first = open_provider(settings(base_url=server.base_url), session=session, environ={})
            await first.close()
            second = open_provider(settings(base_url=server.base_url), session=session, environ={})
            completion = await second.complete(request(), Watch())
            await second.close()
            return session.closed, completion.text

    assert (await run()) == (False, "x")


def test_compatible_servers_need_an_address() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        open_provider(settings("openai-compatible/x"), environ={})
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        open_provider(settings("azure/x"), environ=KEYS)


@pytest.mark.parametrize("model", ["../../secrets", "a/b/c", "..", "tunedModels/.."])
def test_a_gemini_model_cannot_leave_its_path(model: str) -> None:
    with pytest.raises(ConfigError, match="not a valid model name"):
        open_provider(settings(f"gemini/{model}"), environ=KEYS)

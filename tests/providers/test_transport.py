"""One transport for all wire formats (docs/servers.md): proxies, certificates, redirects, encodings."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import pytest
from certificates import Authority
from connect_proxy import proxying
from provider_calls import KEYS, call, settings
from recorded import RECORDED, TEXT, Recorded
from wire_server import Asked, Reply, pieces, serving
from yarl import URL

from astra_async.asking.providers import check_settings
from astra_async.errors import AstraError, ConfigError, Overloaded, PoolUnusable, TransientError
from astra_async.problems.fetch.locations import S3Object
from astra_async.problems.fetch.objects import ObjectStore
from astra_async.transport import proxy_for
from astra_async.types import S3Settings

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from astra_async.types import Completion

HOST = "models.test"  # known to the proxy alone
every_format = pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: r.spec)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


async def through_a_proxy(
    recorded: Recorded,
    reply: Reply,
    tls: ssl.SSLContext | None,
    bundle: Path,
    *,
    proxy_as: str = "{}",
    variable: str = "HTTPS_PROXY",
    wants_credentials: bool = False,
) -> tuple[Completion | Exception, list[Asked], list[str]]:
    """What came of one call, what reached the server, and what the proxy was asked."""
    async with serving(reply, tls=tls) as server:
        port = URL(server.base_url).port
        assert port is not None
        async with proxying({HOST: port}, wants_credentials=wants_credentials) as proxy:
            environ = {**KEYS, "SSL_CERT_FILE": str(bundle), variable: proxy_as.format(proxy.base_url)}
            chosen = settings(recorded.spec, base_url=f"{'https' if tls else 'http'}://{HOST}")
            try:
                came: Completion | Exception = await call(chosen, environ=environ)
            except (PoolUnusable, TransientError) as error:
                came = error
            return came, server.asked, proxy.asked


@every_format
async def test_a_tunnel_to_the_right_certificate_is_used(recorded: Recorded, authority: Authority) -> None:
    reply = Reply(pieces=[recorded.stream])
    came, asked, proxied = await through_a_proxy(recorded, reply, authority.server(HOST), authority.bundle)
    assert not isinstance(came, Exception), came
    assert came.text == TEXT
    assert len(asked) == 1
    assert proxied == [f"CONNECT {HOST}:443 HTTP/1.1"]


@every_format
@pytest.mark.parametrize(("shown", "signs_itself"), [("other.test", False), (HOST, True)])
async def test_a_tunnel_to_a_wrong_certificate_ends_the_pool_before_anything_is_sent(
    recorded: Recorded, authority: Authority, *, shown: str, signs_itself: bool
) -> None:
    tls = authority.server(shown, signs_itself=signs_itself)
    came, asked, _ = await through_a_proxy(recorded, Reply(pieces=[recorded.stream]), tls, authority.bundle)
    assert isinstance(came, PoolUnusable), came
    assert "certificate" in str(came)
    assert "SSL_CERT_FILE" in str(came)
    assert not asked


@every_format
@pytest.mark.parametrize(
    ("variable", "proxy_as"), [("ALL_PROXY", "{}"), ("https_proxy", "no scheme"), ("all_proxy", "no scheme")]
)
async def test_every_variable_and_a_proxy_without_a_scheme(
    recorded: Recorded, authority: Authority, variable: str, proxy_as: str
) -> None:
    async def run() -> tuple[Completion | Exception, list[str]]:
        async with serving(Reply(pieces=[recorded.stream]), tls=authority.server(HOST)) as server:
            port = URL(server.base_url).port
            async with proxying({HOST: port or 0}) as proxy:
                address = proxy.base_url.removeprefix("http://" if proxy_as == "no scheme" else "")
                environ = {**KEYS, "SSL_CERT_FILE": str(authority.bundle), variable: address}
                came = await call(settings(recorded.spec, base_url=f"https://{HOST}"), environ=environ)
                return came, proxy.asked

    came, proxied = await run()
    assert not isinstance(came, Exception)
    assert came.text == TEXT
    assert len(proxied) == 1


@every_format
@pytest.mark.parametrize("tls", [True, False])
async def test_a_proxy_that_wants_credentials_says_so(
    recorded: Recorded, authority: Authority, *, tls: bool
) -> None:
    came, asked, _ = await through_a_proxy(
        recorded,
        Reply(pieces=[recorded.stream]),
        authority.server(HOST) if tls else None,
        authority.bundle,
        variable="HTTPS_PROXY" if tls else "HTTP_PROXY",
        wants_credentials=True,
    )
    assert isinstance(came, PoolUnusable), came
    assert "407" in str(came)
    assert "write user:password@ before its host" in str(came)
    assert "quota" not in str(came)
    assert not asked


@every_format
async def test_credentials_in_the_variable_reach_the_proxy_and_no_one_else(
    recorded: Recorded, authority: Authority
) -> None:
    async def run() -> tuple[str, list[Asked]]:
        async with serving(Reply(pieces=[recorded.stream]), tls=authority.server(HOST)) as server:
            port = URL(server.base_url).port
            async with proxying({HOST: port or 0}, wants_credentials=True) as proxy:
                named = proxy.base_url.replace("://", "://me:geheim1234@")
                environ = {**KEYS, "SSL_CERT_FILE": str(authority.bundle), "HTTPS_PROXY": named}
                came = await call(settings(recorded.spec, base_url=f"https://{HOST}"), environ=environ)
                return came.text, server.asked

    text, asked = await run()
    assert text == TEXT
    assert not any(name.startswith("proxy") for name in asked[0].headers)


@every_format
async def test_this_machine_is_never_asked_through_a_proxy(recorded: Recorded) -> None:
    async def run() -> tuple[str, list[str]]:
        async with serving(Reply(pieces=[recorded.stream])) as server, proxying({}) as proxy:
            environ = {**KEYS, "HTTP_PROXY": proxy.base_url, "ALL_PROXY": proxy.base_url}
            came = await call(settings(recorded.spec, base_url=server.base_url), environ=environ)
            return came.text, proxy.asked

    assert (await run()) == (TEXT, [])


@every_format
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(recorded: Recorded, status: int) -> None:
    async def run() -> list[Asked]:
        async with serving(Reply(pieces=[recorded.stream])) as elsewhere:
            there = f"{elsewhere.base_url}/model"
            async with serving(Reply(status=status, headers={"Location": there})) as server:
                with pytest.raises(PoolUnusable, match="base_url"):
                    await call(settings(recorded.spec, base_url=server.base_url))
            return elsewhere.asked

    assert not (await run())


@every_format
@pytest.mark.parametrize("proxy", ["socks5://p:1", "socks5h://me:geheim1234@p:1", "http://"])
def test_what_is_no_http_proxy_is_refused_before_anything_is_asked(recorded: Recorded, proxy: str) -> None:
    chosen = settings(recorded.spec, base_url=f"https://{HOST}")
    for variable in ("HTTPS_PROXY", "all_proxy"):
        with pytest.raises(ConfigError, match=variable) as caught:
            check_settings(chosen, {**KEYS, variable: proxy})
        assert "geheim" not in str(caught.value)
    check_settings(chosen, {**KEYS, "HTTPS_PROXY": proxy, "NO_PROXY": HOST})


def compressed(encoding: str, body: bytes) -> bytes:
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "raw": raw.compress(body) + raw.flush(),
    }[encoding]


@every_format
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw"])
async def test_what_comes_compressed_unasked_is_read(recorded: Recorded, encoding: str) -> None:
    async def run() -> Completion:
        headers = {"Content-Encoding": encoding.replace("raw", "deflate")}
        body = pieces(compressed(encoding, recorded.stream), 50)
        async with serving(Reply(pieces=body, headers=headers)) as server:
            came = await call(settings(recorded.spec, base_url=server.base_url))
            assert server.asked[0].headers["accept-encoding"] == "identity"
            return came

    assert (await run()).text == TEXT


@every_format
@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br"])
async def test_what_cannot_be_decoded_ends_the_pool_with_its_remedy(
    recorded: Recorded, encoding: str
) -> None:
    async def run() -> None:
        async with serving(Reply(pieces=[b"\x8b\x07"], headers={"Content-Encoding": encoding})) as server:
            await call(settings(recorded.spec, base_url=server.base_url))

    with pytest.raises(PoolUnusable, match=f"Content-Encoding '{encoding}'.*turn off compression"):
        (await run())


@every_format
@pytest.mark.parametrize("encoding", ["gzip", "br", "damaged"])
async def test_an_error_that_comes_compressed_keeps_its_kind(recorded: Recorded, encoding: str) -> None:
    async def run() -> None:
        body = b'{"message": "busy now", "error": {"message": "busy now"}}'
        sent = gzip.compress(body) if encoding == "gzip" else b"\x8b\x07"
        headers = {"Content-Encoding": encoding.replace("damaged", "gzip")}
        async with serving(Reply(status=503, pieces=[sent], headers=headers)) as server:
            await call(settings(recorded.spec, base_url=server.base_url))

    with pytest.raises(Overloaded, match="busy now" if encoding == "gzip" else "503"):
        (await run())


@every_format
async def test_a_damaged_compression_is_one_attempts_trouble(recorded: Recorded) -> None:
    async def run() -> None:
        headers = {"Content-Encoding": "gzip"}
        async with serving(Reply(pieces=[b"no gzip at all"], headers=headers)) as server:
            await call(settings(recorded.spec, base_url=server.base_url))

    with pytest.raises(TransientError, match="compressed response is damaged"):
        (await run())


@pytest.mark.parametrize("signs_itself", [True, False])
async def test_s3_checks_certificates_through_a_proxy_as_well(
    monkeypatch: pytest.MonkeyPatch, authority: Authority, tmp_path: Path, *, signs_itself: bool
) -> None:
    """Its library, left to itself, believes every certificate behind a proxy: the connection is ours."""

    async def run() -> bytes:
        tls = authority.server(HOST, signs_itself=signs_itself)
        reply = Reply(pieces=[b"an object"], content_type="application/octet-stream")
        async with (
            serving(reply, tls=tls) as server,
            proxying({HOST: URL(server.base_url).port or 0}) as proxy,
        ):
            monkeypatch.setenv("HTTPS_PROXY", proxy.base_url)
            store = ObjectStore(S3Settings(endpoint_url=f"https://{HOST}", region="us-east-1"))
            try:
                await store.save(S3Object(bucket="b", key="k"), tmp_path / "kept")
            finally:
                await store.close()
        return (tmp_path / "kept").read_bytes()

    for name, value in (("SSL_CERT_FILE", str(authority.bundle)), *KEYS.items()):
        monkeypatch.setenv(name, value)
    if signs_itself:
        with pytest.raises(AstraError, match=r"(?i)ssl|certificate"):
            (await run())
    else:
        assert (await run()) == b"an object"


PROXY = {"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://p:1"}


@pytest.mark.parametrize(
    ("url", "no_proxy", "direct"),
    [
        ("https://api.x.test", "*", True),
        ("https://api.x.test", "*.x.test", True),
        ("https://x.test", "*.x.test", True),
        ("https://api.x.test", ".x.test", True),
        ("https://api.x.test", "x.test", True),
        ("https://API.X.test.", "x.test", True),
        ("https://apix.test", "x.test", False),
        ("https://api.x.test", "a, b.test  x.test", True),
        ("https://api.x.test", "x.test:443", True),
        ("https://api.x.test", "x.test:8443", False),
        ("https://api.x.test:8443", "*:8443", True),
        ("https://api.x.test", "", False),
        ("https://api.x.test", ".", False),
        ("http://10.1.2.3:8000", "10.0.0.0/8", True),
        ("http://11.1.2.3:8000", "10.0.0.0/8", False),
        ("http://10.1.2.3:8000", "10.1.2.3", True),
        ("http://10.1.2.3:8000", "10.1.2.3:8000", True),
        ("http://10.1.2.3:8000", "2.3", False),
        ("http://[fd00::5]:8000", "fd00::/8", True),
        ("http://[fd00::5]:8000", "[fd00::5]:8000", True),
        ("http://[fd00::5]:8000", "fd00::5", True),
        ("http://[fd01::5]:8000", "[fd00::5]", False),
        ("http://127.0.0.9:1", "", True),
        ("http://[::1]:1", "", True),
        ("http://localhost:1", "", True),
        ("http://10.1.2.3", "10.0.0.0/99, x.test", False),
    ],
)
def test_no_proxy(url: str, no_proxy: str, *, direct: bool) -> None:
    assert (proxy_for(URL(url), {**PROXY, "NO_PROXY": no_proxy}) is None) is direct
    assert (proxy_for(URL(url), {**PROXY, "no_proxy": no_proxy}) is None) is direct

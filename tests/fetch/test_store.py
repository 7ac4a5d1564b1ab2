"""The store against real servers: aiohttp's for https, moto's for S3."""

from __future__ import annotations

import asyncio
import io
import os
import time
import zipfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from astra_async.errors import ArchiveError, SourceError
from astra_async.problems.fetch import Store
from astra_async.problems.fetch.cache import Cache, CachedLocation, SlowTransferGuard, TransientFetchError
from astra_async.types import S3Settings
from s3_server import s3_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
    from pathlib import Path

    from astra_async.types import Project

    Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def zipped(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


ONE = zipped(**{"a.js": "1", "b.js": "2"})
TWO = zipped(**{"a.js": "changed", "b.js": "2"})


class Server:
    """A real server on a free port that answers with what a test gives it and records requests."""

    def __init__(self) -> None:
        self.requests: list[web.BaseRequest] = []
        self.answers: list[Handler] = []
        self.asked = asyncio.Event()
        self.url = ""
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        handler = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.set()
        return await handler(request)


@asynccontextmanager
async def serving(*answers: Handler) -> AsyncIterator[Server]:
    server = Server()
    server.answers = list(answers)
    runner = web.ServerRunner(web.Server(server.answer), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    server.url = f"http://127.0.0.1:{server.port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def file(data: bytes, etag: str = "", status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if etag and request.headers.get("If-None-Match") == etag:
            return web.Response(status=304)
        extra = {"ETag": etag} if etag else {}
        return web.Response(body=data, status=status, headers={**extra, **(headers or {})})

    return handle


def cut(data: bytes) -> Handler:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(data) + 100), "ETag": '"cut"'})
        await response.prepare(request)
        await response.write(data)
        assert request.transport is not None
        request.transport.close()
        return response

    return handle


def slow(data: bytes) -> Handler:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for at in range(0, len(data), 20):
            await response.write(data[at : at + 20])
            await asyncio.sleep(0.005)
        return response

    return handle


class Pauses:
    """A clock that only counts."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)


@asynccontextmanager
async def storing(folder: Path, **options: Any) -> AsyncIterator[Store]:
    store = Store(folder / "cache", **{"sleep": Pauses().sleep, **options})
    try:
        yield store
    finally:
        await store.close()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def content(project: Project, path: str = "a.js") -> str:
    return {each.path: each.content.decode() for each in project.files}[path]


# --- this machine ------------------------------------------------------------------------------------


def test_a_folder_and_a_zip_are_loaded_and_not_cached(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "p").mkdir()
        (tmp_path / "p/a.js").write_text("1")
        (tmp_path / "p/b.js").write_text("2")
        (tmp_path / "p.zip").write_bytes(ONE)
        async with storing(tmp_path) as store:
            folder = await store.load(str(tmp_path / "p"))
            assert folder == await store.load(str(tmp_path / "p.zip"))
        assert not (tmp_path / "cache").exists()

    run(test())


def test_a_local_location_that_is_not_there_names_the_remedy(tmp_path: Path) -> None:
    async def test() -> None:
        async with storing(tmp_path) as store:
            with pytest.raises(SourceError, match=r"/gone\.zip: folder or file not found; check the CSV"):
                await store.load(str(tmp_path / "gone.zip"))

    run(test())


def test_a_broken_archive_is_named_with_its_location(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "p.zip").write_bytes(ONE[:60])
        async with storing(tmp_path) as store:
            with pytest.raises(ArchiveError, match=r"/p\.zip: the archive is broken"):
                await store.load(str(tmp_path / "p.zip"))

    run(test())


# --- https -------------------------------------------------------------------------------------------


def test_a_second_load_asks_for_changes_and_downloads_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(ONE, '"1"')) as server, storing(tmp_path) as store:
            first = await store.load(f"{server.url}/p.zip")
            assert await store.load(f"{server.url}/p.zip") == first
            assert server.requests[1].headers["If-None-Match"] == '"1"'
        async with serving(file(ONE, '"1"')) as other, storing(tmp_path) as store:
            assert await store.load(f"{other.url}/p.zip") == first

    run(test())


def test_a_changed_object_is_fetched_anew(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(ONE, '"1"'), file(TWO, '"2"')) as server, storing(tmp_path) as store:
            assert content(await store.load(f"{server.url}/p.zip")) == "1"
            assert content(await store.load(f"{server.url}/p.zip")) == "changed"

    run(test())


def test_without_an_etag_the_date_is_asked_with_and_without_both_it_is_fetched_again(tmp_path: Path) -> None:
    async def test() -> None:
        date = "Wed, 21 Oct 2015 07:28:00 GMT"
        async with (
            serving(file(ONE, headers={"Last-Modified": date}), file(b"", status=304), file(ONE)) as server,
            storing(tmp_path) as store,
        ):
            for _ in range(3):
                assert content(await store.load(f"{server.url}/p.zip")) == "1"
            assert server.requests[1].headers["If-Modified-Since"] == date
            assert await store.load(f"{server.url}/p.zip")

    run(test())


def test_slow_bodies_and_redirects_are_followed(tmp_path: Path) -> None:
    async def away(request: web.BaseRequest) -> web.StreamResponse:
        raise web.HTTPFound("/elsewhere.zip")

    async def test() -> None:
        async with serving(away, slow(ONE)) as server, storing(tmp_path) as store:
            assert content(await store.load(f"{server.url}/p.zip")) == "1"
            assert [request.path for request in server.requests] == ["/p.zip", "/elsewhere.zip"]

    run(test())


def test_a_cut_body_is_fetched_again_and_never_kept(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(cut(ONE), cut(ONE[:30]), file(ONE, '"1"')) as server, storing(tmp_path) as store:
            assert content(await store.load(f"{server.url}/p.zip")) == "1"
            assert len(server.requests) == 3
        assert len([path for path in (tmp_path / "cache/objects").rglob("*") if path.is_file()]) == 1
        assert list((tmp_path / "cache/incoming").iterdir()) == []

    run(test())


def test_passing_trouble_is_waited_out_with_growing_pauses(tmp_path: Path) -> None:
    async def test() -> None:
        pauses = Pauses()
        trouble = [file(b"", status=status) for status in (503, 500)]
        limited = file(b"", status=429, headers={"Retry-After": "7"})
        async with (
            serving(*trouble, limited, file(ONE)) as server,
            storing(tmp_path, sleep=pauses.sleep) as store,
        ):
            assert content(await store.load(f"{server.url}/p.zip")) == "1"
        assert 0.25 <= pauses.taken[0] <= 0.75
        assert 0.5 <= pauses.taken[1] <= 1.5
        assert pauses.taken[2] == 7.0

    run(test())


def test_trouble_that_stays_is_told_after_the_last_attempt(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(b"", status=503)) as server, storing(tmp_path) as store:
            with pytest.raises(SourceError, match=r"/p\.zip: the server responded 503"):
                await store.load(f"{server.url}/p.zip?token=secret")
            assert len(server.requests) == 5

    run(test())


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "file not found"),
        (410, "file not found"),
        (403, "access denied"),
        (401, "access denied"),
        (400, "400"),
    ],
)
def test_final_answers_are_told_at_once_and_without_secrets(tmp_path: Path, status: int, said: str) -> None:
    async def test() -> None:
        async with serving(file(b"", status=status)) as server, storing(tmp_path) as store:
            url = f"http://user:password@127.0.0.1:{server.port}/p.zip?X-Amz-Signature=secret"
            with pytest.raises(SourceError) as caught:
                await store.load(url)
            assert said in str(caught.value)
            assert "secret" not in repr(caught.value.__cause__) + str(caught.value)
            assert "password" not in str(caught.value)
            assert len(server.requests) == 1

    run(test())


def test_an_endless_redirect_is_told_without_secrets(tmp_path: Path) -> None:
    async def around(request: web.BaseRequest) -> web.StreamResponse:
        raise web.HTTPFound(f"/p.zip?Signature=secret{time.monotonic_ns()}")

    async def test() -> None:
        async with serving(around) as server, storing(tmp_path) as store:
            with pytest.raises(SourceError, match=r"too many redirects; check the address") as caught:
                await store.load(f"{server.url}/p.zip")
            assert "secret" not in str(caught.value)
            assert caught.value.__cause__ is None

    run(test())


def test_a_redirect_to_a_file_is_refused(tmp_path: Path) -> None:
    async def away(request: web.BaseRequest) -> web.StreamResponse:
        raise web.HTTPFound("file:///etc/passwd")

    async def test() -> None:
        async with serving(away) as server, storing(tmp_path) as store:
            with pytest.raises(SourceError, match="not http"):
                await store.load(f"{server.url}/p.zip")
            assert len(server.requests) == 1

    run(test())


def test_a_page_in_place_of_the_archive_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            serving(file(b"<!doctype html><title>Sign in</title>")) as server,
            storing(tmp_path) as store,
        ):
            with pytest.raises(ArchiveError, match="HTML page"):
                await store.load(f"{server.url}/p.zip")

    run(test())


def test_an_announced_size_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    async def huge(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(10 * 1024**3)})
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    async def test() -> None:
        async with serving(huge) as server, storing(tmp_path) as store:
            with pytest.raises(ArchiveError, match=r"/p\.zip: the archive has 10,737,418,240 bytes"):
                await store.load(f"{server.url}/p.zip")

    run(test())


def test_a_server_out_of_reach_is_told_or_the_earlier_copy_is_used(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(ONE, '"1"')) as server, storing(tmp_path) as store:
            first = await store.load(f"{server.url}/p.zip")
            url = server.url
        async with storing(tmp_path) as store:
            again = await store.load(f"{url}/p.zip")
            assert again.sha256 == first.sha256
            assert "using the cached copy" in again.warnings[0]
            with pytest.raises(SourceError, match="cannot connect"):
                await store.load(f"{url}/other.zip")

    run(test())


def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(file(ONE)) as server, storing(tmp_path) as store:
            monkeypatch.setenv("http_proxy", server.url)
            assert content(await store.load("http://host.invalid/p.zip")) == "1"
            assert server.requests[0].headers["Host"] == "host.invalid"

    run(test())


def test_an_own_session_is_used_and_left_open(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(ONE)) as server, aiohttp.ClientSession(headers={"X-Test": "1"}) as session:
            async with storing(tmp_path, session=session) as store:
                await store.load(f"{server.url}/p.zip")
            assert server.requests[0].headers["X-Test"] == "1"
            assert not session.closed

    run(test())


# --- together ----------------------------------------------------------------------------------------


def test_loads_of_one_location_at_the_same_time_are_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(slow(ONE)) as server, storing(tmp_path) as store:
            found = await asyncio.gather(*[store.load(f"{server.url}/p.zip") for _ in range(10)])
            assert len({id(project) for project in found}) == 1
            assert len(server.requests) == 1

    run(test())


def test_a_caller_that_is_cancelled_leaves_the_load_to_the_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(slow(ONE)) as server, storing(tmp_path) as store:
            first = asyncio.create_task(store.load(f"{server.url}/p.zip"))
            second = asyncio.create_task(store.load(f"{server.url}/p.zip"))
            await server.asked.wait()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert content(await second) == "1"
            assert len(server.requests) == 1

    run(test())


def test_closing_ends_a_load_that_nobody_waits_for(tmp_path: Path) -> None:
    async def never(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(ONE[:10])
        await asyncio.sleep(60)
        return response

    async def test() -> None:
        async with serving(never) as server:
            async with storing(tmp_path) as store:
                waiting = asyncio.create_task(store.load(f"{server.url}/p.zip"))
                await server.asked.wait()
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
            assert [task for task in asyncio.all_tasks() if task.get_name().startswith("load ")] == []
        assert list((tmp_path / "cache/incoming").iterdir()) == []

    run(test())


def test_a_caller_of_a_store_that_closes_is_told_and_not_cancelled(tmp_path: Path) -> None:
    async def never(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async def test() -> None:
        async with serving(never) as server:
            async with storing(tmp_path) as store:
                waiting = asyncio.create_task(store.load(f"{server.url}/p.zip"))
                await server.asked.wait()
            with pytest.raises(SourceError, match="store was closed"):
                await waiting

    run(test())


def test_stores_of_several_processes_share_a_cache(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(slow(ONE)) as server, storing(tmp_path) as one, storing(tmp_path) as two:
            loads = [store.load(f"{server.url}/{n}.zip") for n in range(5) for store in (one, two)]
            assert len({project.sha256 for project in await asyncio.gather(*loads)}) == 1
        assert len([path for path in (tmp_path / "cache/objects").rglob("*") if path.is_file()]) == 1

    run(test())


# --- the cache ---------------------------------------------------------------------------------------


def stored(folder: Path) -> Path:
    (found,) = [path for path in (folder / "cache/objects").rglob("*") if path.is_file()]
    return found


@pytest.mark.parametrize("damage", [b"", b"PK damaged", ONE[:-1] + b"\x01"])
def test_a_damaged_cache_entry_is_fetched_again(tmp_path: Path, damage: bytes) -> None:
    async def test() -> None:
        async with serving(file(ONE, '"1"')) as server, storing(tmp_path) as store:
            first = await store.load(f"{server.url}/p.zip")
            stored(tmp_path).write_bytes(damage)
            assert await store.load(f"{server.url}/p.zip") == first
            assert "If-None-Match" not in server.requests[1].headers
            assert stored(tmp_path).read_bytes() == ONE

    run(test())


def test_a_missing_object_or_a_damaged_index_is_fetched_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(ONE, '"1"')) as server, storing(tmp_path) as store:
            first = await store.load(f"{server.url}/p.zip")
            stored(tmp_path).unlink()
            assert await store.load(f"{server.url}/p.zip") == first
            for text in ("", "[]", '{"a": 1}', "\x00"):
                for entry in (tmp_path / "cache/index").iterdir():
                    entry.write_text(text)
                assert await store.load(f"{server.url}/p.zip") == first
            assert len(server.requests) == 6

    run(test())


def test_an_address_signed_anew_finds_its_copy_and_the_cache_holds_no_signature(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(file(ONE, '"1"')) as server, storing(tmp_path) as store:
            await store.load(f"{server.url}/p.zip?X-Amz-Date=1&X-Amz-Signature=secret1")
            await store.load(f"{server.url}/p.zip?X-Amz-Date=2&X-Amz-Signature=secret2")
            assert server.requests[1].headers["If-None-Match"] == '"1"'
        for path in (tmp_path / "cache").rglob("*"):
            assert "secret" not in path.name
            assert not path.is_file() or b"secret" not in path.read_bytes()

    run(test())


def test_a_body_that_trickles_is_given_up_and_a_slow_one_is_not() -> None:
    now = 0.0
    slow, trickle = (SlowTransferGuard("there", clock=lambda: now) for _ in range(2))
    for _ in range(59):
        now += 1.0
        slow.received(1_100)
        trickle.received(900)
    now += 1.0
    slow.received(1_100)
    with pytest.raises(TransientFetchError, match=r"there: only 54,000 bytes received in 60 s; .*--projects"):
        trickle.received(900)
    for _ in range(200):
        now += 1.0
        slow.received(1_100)


def test_what_killed_processes_left_is_swept_and_younger_downloads_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    (folder / "old").write_bytes(b"x")
    (folder / "young").write_bytes(b"x")
    os.utime(folder / "old", (time.time() - 90_000,) * 2)
    with Cache(tmp_path).incoming():
        assert not (folder / "old").exists()
        assert (folder / "young").exists()


async def test_a_download_under_way_is_not_swept_though_the_clock_was_set_forward(tmp_path: Path) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first, "
        (path,) = (tmp_path / "incoming").iterdir()
        os.utime(path, (time.time() - 90_000,) * 2)
        with Cache(tmp_path).incoming():
            assert path.exists()
        yield b"second"

    sha256 = await Cache(tmp_path).keep(body(), None, "there")
    assert Cache(tmp_path).path(sha256).read_bytes() == b"first, second"


def test_a_cache_that_cannot_be_written_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = Cache(tmp_path / "file/cache")
    with pytest.raises(SourceError, match="file/cache cannot be written"), cache.incoming():
        pass
    with pytest.raises(SourceError, match="cannot be written"):
        cache.remember("key", CachedLocation(sha256="0"))


# --- S3 ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def s3(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A boto3 client of the server, with a fresh bucket `questions`."""
    import boto3  # type: ignore[import-untyped]  # it comes with moto, without types

    credentials(monkeypatch)
    client = boto3.client("s3", endpoint_url=moto_url, region_name="us-east-1")
    names = [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
    if "questions" not in names:
        client.create_bucket(Bucket="questions")
    return client


def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_an_object_is_loaded_checked_and_loaded_anew_when_it_changed(
    tmp_path: Path, s3: Any, moto_url: str
) -> None:
    async def test() -> None:
        settings = S3Settings(endpoint_url=moto_url, region="us-east-1")
        s3.put_object(Bucket="questions", Key="v1/größe 1.zip", Body=ONE)
        async with storing(tmp_path, s3=settings) as store:
            first = await store.load("s3://questions/v1/größe 1.zip")
            assert content(first) == "1"
            touched = stored(tmp_path).stat().st_mtime_ns
            assert await store.load("s3://questions/v1/größe 1.zip") == first
            assert stored(tmp_path).stat().st_mtime_ns == touched
            s3.put_object(Bucket="questions", Key="v1/größe 1.zip", Body=TWO)
            assert content(await store.load("s3://questions/v1/größe 1.zip")) == "changed"

    run(test())


@pytest.mark.parametrize(
    "url",
    [
        "https://questions.s3.eu-west-1.amazonaws.com/v1/p%201.zip",
        "https://s3.amazonaws.com/questions/v1/p%201.zip",
    ],
)
def test_https_addresses_of_s3_are_objects_of_an_own_endpoint(
    tmp_path: Path, s3: Any, moto_url: str, url: str
) -> None:
    async def test() -> None:
        s3.put_object(Bucket="questions", Key="v1/p 1.zip", Body=ONE)
        async with storing(tmp_path, s3=S3Settings(endpoint_url=moto_url)) as store:
            assert content(await store.load(url)) == "1"

    run(test())


def test_a_version_of_an_object_is_loaded(tmp_path: Path, s3: Any, moto_url: str) -> None:
    async def test() -> None:
        s3.put_bucket_versioning(Bucket="questions", VersioningConfiguration={"Status": "Enabled"})
        old = s3.put_object(Bucket="questions", Key="p.zip", Body=ONE)["VersionId"]
        s3.put_object(Bucket="questions", Key="p.zip", Body=TWO)
        async with storing(tmp_path, s3=S3Settings(endpoint_url=moto_url)) as store:
            assert content(await store.load(f"s3://questions/p.zip?versionId={old}")) == "1"
            assert content(await store.load("s3://questions/p.zip")) == "changed"

    run(test())


def test_a_presigned_address_is_fetched_as_it_is(tmp_path: Path, s3: Any) -> None:
    async def test() -> None:
        s3.put_object(Bucket="questions", Key="signed.zip", Body=ONE)
        url = s3.generate_presigned_url("get_object", Params={"Bucket": "questions", "Key": "signed.zip"})
        async with storing(tmp_path) as store:
            assert content(await store.load(url)) == "1"

    run(test())


@pytest.mark.parametrize("location", ["s3://questions/gone.zip", "s3://no-such-bucket/p.zip"])
def test_an_object_that_is_not_there_is_told(tmp_path: Path, s3: Any, moto_url: str, location: str) -> None:
    async def test() -> None:
        async with storing(tmp_path, s3=S3Settings(endpoint_url=moto_url)) as store:
            with pytest.raises(SourceError, match=f"{location}: object not found"):
                await store.load(location)

    run(test())


def s3_error(code: str, status: int) -> Handler:
    key = "<Message>key AKIATESTKEY</Message><AWSAccessKeyId>AKIATESTKEY</AWSAccessKeyId>"
    text = f"<Error><Code>{code}</Code>{key}</Error>"
    return file(text.encode(), status=status)


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("AccessDenied", 403, "access denied; check the permissions"),
        ("InvalidAccessKeyId", 403, "credentials are invalid"),
        ("SignatureDoesNotMatch", 403, "credentials are invalid"),
        ("ExpiredToken", 400, "the credentials have expired (ExpiredToken); renew AWS_*"),
        ("RequestTimeTooSkewed", 403, "this machine's clock is wrong"),
        ("InvalidObjectState", 403, "InvalidObjectState"),
    ],
)
def test_refusals_of_s3_are_told_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, status: int, said: str
) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        async with (
            serving(s3_error(code, status)) as server,
            storing(tmp_path, s3=S3Settings(endpoint_url=server.url)) as store,
        ):
            with pytest.raises(SourceError) as caught:
                await store.load("s3://bucket/p.zip")
            assert said in str(caught.value)
            assert "AKIATESTKEY" not in str(caught.value)

    run(test())


def test_throttling_and_cut_bodies_of_s3_are_waited_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        async with (
            serving(s3_error("SlowDown", 503), cut(ONE), s3_error("InternalError", 500), slow(ONE)) as server,
            storing(tmp_path, s3=S3Settings(endpoint_url=server.url)) as store,
        ):
            assert content(await store.load("s3://bucket/p.zip")) == "1"
            assert len(server.requests) == 4

    run(test())


def test_an_unreachable_endpoint_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        async with storing(tmp_path, s3=S3Settings(endpoint_url="http://127.0.0.1:1")) as store:
            with pytest.raises(SourceError, match="cannot connect"):
                await store.load("s3://bucket/p.zip")
        monkeypatch.setenv("AWS_PROFILE", "nobody")
        async with storing(tmp_path, s3=S3Settings(endpoint_url="http://127.0.0.1:1")) as store:
            with pytest.raises(SourceError, match=r"profile \(nobody\) could not be found"):
                await store.load("s3://bucket/p.zip")
        monkeypatch.delenv("AWS_PROFILE")
        async with storing(tmp_path, s3=S3Settings(endpoint_url="not a url")) as store:
            with pytest.raises(SourceError, match="endpoint_url = 'not a url'"):
                await store.load("s3://bucket/p.zip")

    run(test())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_s3_is_not_followed_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        async with serving(file(ONE)) as elsewhere:
            moved = file(b"", status=status, headers={"Location": f"{elsewhere.url}/p.zip?signed=secret"})
            async with (
                serving(moved) as server,
                storing(tmp_path, s3=S3Settings(endpoint_url=server.url)) as store,
            ):
                with pytest.raises(SourceError, match=f"responded {status}, a redirect") as caught:
                    await store.load("s3://bucket/p.zip")
            assert "secret" not in str(caught.value)
            assert not elsewhere.requests

    run(test())


def test_a_bucket_of_another_region_is_asked_again_in_that_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        text = b"<Error><Code>PermanentRedirect</Code></Error>"
        moved = file(text, status=301, headers={"x-amz-bucket-region": "eu-central-1"})
        async with (
            serving(moved, file(ONE), file(TWO)) as server,
            storing(tmp_path, s3=S3Settings(endpoint_url=server.url, region="us-west-2")) as store,
        ):
            assert content(await store.load("s3://bucket/p.zip")) == "1"
            assert content(await store.load("s3://bucket/q.zip")) == "changed"
            signed = [request.headers["Authorization"] for request in server.requests]
            regions = [each.split("/s3/aws4_request")[0].rpartition("/")[2] for each in signed]
            assert regions == ["us-west-2", "eu-central-1", "eu-central-1"]  # which is remembered

    run(test())


def test_nobody_is_let_compress_what_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that compresses for whoever accepts it would change the bytes."""

    async def test() -> None:
        credentials(monkeypatch)
        async with (
            serving(file(ONE)) as server,
            storing(tmp_path, s3=S3Settings(endpoint_url=server.url)) as store,
        ):
            await store.load("s3://bucket/p.zip")
            await store.load(f"{server.url}/q.zip")
            assert [request.headers["Accept-Encoding"] for request in server.requests] == ["identity"] * 2

    run(test())


def test_a_proxy_that_wants_a_password_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        async with serving(file(b"", status=407)) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            async with storing(tmp_path, s3=S3Settings(endpoint_url="https://s3.test")) as store:
                for location in ("s3://bucket/p.zip", "https://files.test/p.zip"):
                    with pytest.raises(SourceError, match="the proxy responded 407; put user and password"):
                        await store.load(location)

    run(test())


def test_s3_and_https_have_the_proxy_rule_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ALL_PROXY counts, a proxy without a scheme is one, and NO_PROXY takes networks."""

    async def test() -> None:
        credentials(monkeypatch)
        async with serving(file(ONE)) as proxy:
            monkeypatch.setenv("ALL_PROXY", proxy.url.removeprefix("http://"))
            monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
            async with storing(tmp_path, s3=S3Settings(endpoint_url="http://s3.test")) as store:
                assert content(await store.load("s3://bucket/p.zip")) == "1"
                assert content(await store.load("http://files.test/p.zip")) == "1"
            hosts = [request.headers["Host"] for request in proxy.requests]
            assert hosts == ["s3.test", "files.test"]

    run(test())


def test_anonymous_requests_are_not_signed_and_others_need_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        credentials(monkeypatch)
        async with serving(file(ONE)) as server:
            async with storing(tmp_path, s3=S3Settings(endpoint_url=server.url)) as store:
                await store.load("s3://bucket/a.zip")
            assert "AKIATESTKEY" in server.requests[0].headers["Authorization"]
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                monkeypatch.delenv(name)
            monkeypatch.setenv("HOME", str(tmp_path))
            async with storing(tmp_path, s3=S3Settings(endpoint_url=server.url)) as store:
                with pytest.raises(SourceError, match="no credentials found; set AWS_ACCESS_KEY_ID"):
                    await store.load("s3://bucket/b.zip")
            async with storing(tmp_path, s3=S3Settings(endpoint_url=server.url, anonymous=True)) as store:
                assert content(await store.load("s3://bucket/b.zip")) == "1"
            assert "Authorization" not in server.requests[-1].headers

    run(test())


class Here(AbstractResolver):
    """Every name is this machine."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is held."""


def test_a_public_object_is_fetched_without_credentials_and_a_private_one_with_them(
    tmp_path: Path, s3: Any, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
        s3.put_object(Bucket="questions", Key="private.zip", Body=TWO)
        public = file(ONE)
        refused = s3_error("AccessDenied", 403)
        connector = aiohttp.TCPConnector(resolver=Here())
        async with (
            serving(public, refused) as server,
            aiohttp.ClientSession(connector=connector) as session,
        ):
            host = f"http://questions.s3.us-east-1.amazonaws.com:{server.port}"
            async with storing(tmp_path, session=session) as store:
                assert content(await store.load(f"{host}/public.zip")) == "1"
                assert content(await store.load(f"{host}/private.zip")) == "changed"
                with pytest.raises(
                    SourceError, match=r"denied.*with credentials: s3://questions/gone\.zip: object not found"
                ):
                    await store.load(f"{host}/gone.zip")
            async with storing(tmp_path, session=session, s3=S3Settings(anonymous=True)) as store:
                with pytest.raises(SourceError, match="access denied"):
                    await store.load(f"{host}/other.zip")

    run(test())

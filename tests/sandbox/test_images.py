from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import pytest
from aiodocker.exceptions import DockerError
from sandbox_jobs import own_containers

import astra_async.images
from astra_async.errors import ImageError, SandboxError
from astra_async.images.base_image import BASE, debootstrap, ensure_base
from astra_async.images.build import ensure_image_set, image_tag
from astra_async.testing.sandbox.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import Any

    from sandbox_jobs import Run

DOCKERFILE = "ARG BASE\nFROM ${BASE}\nRUN echo set-of-the-tests > /etc/set\n"
INSTALL = """set -e
env > /env-of-the-installation
cat "$SSL_CERT_FILE" > /dev/null
(exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 | grep -q refused
test -d /sys/class/net/eth0
mkdir node_modules && cp lock.txt node_modules/
"""
_MADE: set[str] = set()
pytestmark = pytest.mark.usefixtures("own_images_removed")


def made_set(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    made_set(tmp_path / "test-tiny", install_sh=INSTALL, lock_txt="1\n")
    own = f"# {token_hex(8)}: no image that a killed test has left is taken for this one\n"
    (tmp_path / "test-tiny/Dockerfile").write_text(DOCKERFILE + own)
    return tmp_path / "test-tiny"


@pytest.fixture(scope="session")
def own_images_removed() -> Iterator[None]:
    yield

    async def remove(engine: Engine) -> None:
        for tag in _MADE:
            await engine.remove_image(tag)

    if _MADE:
        with_engine(remove)


def with_engine(work: Callable[[Engine], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with await Engine.open() as engine:
            return await work(engine)

    return asyncio.run(run())


def ensure(folder: Path, said: list[str] | None = None) -> str:
    lines = [] if said is None else said
    tag = with_engine(lambda engine: ensure_image_set(engine, folder, progress=lines.append))
    assert isinstance(tag, str)
    _MADE.add(tag)
    return tag


# --- names --------------------------------------------------------------------------------------------


def test_an_image_is_named_by_everything_that_goes_into_it(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {image_tag(tiny)}
    (tiny / "lock.txt").write_text("2\n")
    seen.add(image_tag(tiny))
    (tiny / "install.sh").chmod(0o755)
    seen.add(image_tag(tiny))
    (tiny / "lock.txt").rename(tiny / "other.txt")
    seen.add(image_tag(tiny))
    monkeypatch.setenv("ASTRA_BASE_IMAGE", "elsewhere:1")
    seen.add(image_tag(tiny))
    assert len(seen) == 5
    assert all(tag.startswith("astra/test-tiny:") and len(tag.rpartition(":")[2]) == 12 for tag in seen)


def test_the_same_contents_have_the_same_name_anywhere(tiny: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "test-tiny"
    shutil.copytree(tiny, copy)
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__/x.pyc").write_bytes(b"x")
    assert image_tag(copy) == image_tag(tiny)


def test_a_folder_that_is_no_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no Dockerfile"):
        image_tag(tmp_path)
    odd = made_set(tmp_path / "Upper Case", Dockerfile="FROM x")
    with pytest.raises(ImageError, match="lower-case"):
        image_tag(odd)


# --- building -----------------------------------------------------------------------------------------


@pytest.mark.first
@pytest.mark.docker
def test_a_set_is_built_once_and_keeps_nothing_of_its_building(tiny: Path, run: Run) -> None:
    said: list[str] = []
    tag = ensure(tiny, said)
    assert said == [
        f"Building {tag}: step 3 of 3",
        f"Installing the dependencies of {tag}",
        f"Built {tag}",
    ]
    again: list[str] = []
    assert ensure(tiny, again) == tag
    assert again == []
    done = run("cat /etc/set ../node_modules/lock.txt; ls -A /projects; ls -A / | grep -c astra", image=tag)
    assert done.stdout == "set-of-the-tests\n1\nchallenge\nlock.txt\nnode_modules\n0\n"
    image = with_engine(lambda engine: engine.image(tag))
    assert not [each for each in image["Config"]["Env"] if not each.startswith("PATH=")]
    assert image["Config"]["Cmd"] == ["bash"]
    assert not image["Config"]["Entrypoint"]
    assert not [name for name in image["Config"]["Labels"] or {} if name.startswith("astra")]
    assert with_engine(own_containers) == []


@pytest.mark.docker
def test_a_set_needs_no_installation(tmp_path: Path, run: Run) -> None:
    folder = made_set(tmp_path / "test-plain", Dockerfile=DOCKERFILE)
    assert run("cat /etc/set", image=ensure(folder)).stdout == "set-of-the-tests\n"


async def images_with(engine: Engine, text: str) -> list[str]:
    found = []
    for image in await engine.docker.images.list(all=True):
        try:
            history = await engine.docker.images.history(image["Id"])
        except DockerError as error:  # another process of tests has removed it
            assert error.status == 404  # noqa: PT017 - any other error is one
            continue
        if text in str(history):
            found.append(image["Id"])
    return found


@pytest.mark.docker
@pytest.mark.parametrize(
    ("dockerfile", "install", "said"),
    [
        (
            "FROM ${BASE}\nRUN echo begun-m4rk\nRUN echo oops-42; exit 3",
            "true",
            r"(?s)returned a non-zero.*oops-42",
        ),
        ("FROM ${BASE}\nRUN echo begun-m4rk", "echo oops-43 >&2; exit 4", r"(?s)exit code 4.*oops-43"),
        ("FROM ${BASE}\nRUN echo begun-m4rk\nBOGUS x", "true", "(?i)unknown instruction"),
        ("FROM astra-test/nowhere:1", "true", "astra-test/nowhere"),
    ],
)
def test_a_failed_build_shows_its_last_lines_and_leaves_nothing(
    tmp_path: Path, dockerfile: str, install: str, said: str
) -> None:
    folder = made_set(tmp_path / "test-broken", Dockerfile=f"ARG BASE\n{dockerfile}\n", install_sh=install)
    with pytest.raises(ImageError, match=said):
        ensure(folder)
    assert with_engine(lambda engine: engine.image(image_tag(folder))) is None
    assert with_engine(lambda engine: images_with(engine, "begun-m4rk")) == []
    assert with_engine(own_containers) == []


@pytest.mark.docker
@pytest.mark.parametrize(
    ("moment", "layers_kept"),
    [("Building", True), ("Installing", False)],  # a step that was under way may end as the builder's cache
)
def test_a_cancelled_build_leaves_no_image_and_no_container(
    tmp_path: Path,
    moment: str,
    layers_kept: bool,  # noqa: FBT001 - parametrised
) -> None:
    marker = f"cancelled-m4rk-{moment[0]}"
    dockerfile = f"ARG BASE\nFROM ${{BASE}}\nRUN echo {marker}; sleep 0.5"
    folder = made_set(tmp_path / "test-slow", Dockerfile=dockerfile, install_sh="sleep 60")

    async def check(engine: Engine) -> None:
        reached = asyncio.Event()

        def progress(line: str) -> None:
            if line.startswith(moment):
                asyncio.get_running_loop().call_later(0.3, reached.set)

        task = asyncio.create_task(ensure_image_set(engine, folder, progress=progress))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await engine.image(image_tag(folder)) is None
        assert await own_containers(engine) == []
        left = await images_with(engine, marker)
        assert layers_kept or left == []
        for each in left:
            await engine.remove_image(each)

    with_engine(check)


# --- the base -----------------------------------------------------------------------------------------


@pytest.mark.docker
def test_the_base_is_the_one_that_is_named(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRA_BASE_IMAGE", image)
    assert with_engine(lambda engine: ensure_base(engine, progress=print)) == image
    monkeypatch.setenv("ASTRA_BASE_IMAGE", "127.0.0.1:9/nowhere:1")
    with pytest.raises(ImageError, match="127.0.0.1:9/nowhere:1 does not exist".replace(".", r"\.")):
        with_engine(lambda engine: ensure_base(engine, progress=print))


@pytest.mark.docker
def test_the_base_is_made_once(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASTRA_BASE_IMAGE", raising=False)
    said: list[str] = []
    assert with_engine(lambda engine: ensure_base(engine, progress=said.append)) == BASE
    if image == BASE:
        assert said == []


@pytest.mark.docker
def test_a_registry_that_does_not_answer_is_given_up() -> None:
    async def check(engine: Engine) -> None:
        gone = asyncio.Event()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await gone.wait()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(SandboxError, match="pull"):
                await engine.pull(f"127.0.0.1:{port}/nothing:1", starts_within_s=0.3)
            gone.set()
            await asyncio.sleep(0.1)

    with_engine(check)


@pytest.mark.docker
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("debootstrap"), reason="needs root and debootstrap (half a minute)"
)
def test_a_base_made_with_debootstrap_runs_jobs(run: Run) -> None:
    tag = "astra/test-debootstrap:1"
    _MADE.add(tag)
    with_engine(lambda engine: debootstrap(engine, tag, progress=print))
    done = run(". /etc/os-release; echo $VERSION_CODENAME; id -u; cat /etc/machine-id", image=tag)
    assert done.stdout == "bookworm\n1000\n"
    assert "machine-id: No such file" in done.output


def test_a_missing_debootstrap_is_named_with_the_remedy(tmp_path: Path) -> None:
    script = Path(astra_async.images.__file__).parent / "base_image.sh"
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, str(script), str(tmp_path / "out.tar")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "apt-get install -y debootstrap" in done.stderr
    assert not (tmp_path / "out.tar").exists()

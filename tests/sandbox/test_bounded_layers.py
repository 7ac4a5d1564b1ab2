"""Images that hold much where the tests may write: it may be changed, the kernel bounds what it takes."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import own_containers, tar

from astra_async.images.base_image import build_image
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.types import Execution, Job, Limits
from private_engine import needs_own_engine, private_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sandbox_jobs import Run

    from private_engine import PrivateEngine

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("leaves_no_container")]
MB = 1024**2
LIMITS = Limits(disk_bytes=64 * MB, timeout_s=600.0)


@pytest.fixture(scope="module")
def large(made: Callable[[str], str]) -> str:
    return made("large-project")


def together(image: str, *commands: str, at_once: bool, host: str | None = None) -> list[Execution]:
    """The commands in one sandbox, one after the other or all at once."""
    jobs = [Job(image=image, archive=tar({"a": b"a"}), command=each, limits=LIMITS) for each in commands]

    async def all_of_them() -> list[Execution]:
        slots = len(jobs) if at_once else 1
        async with await DockerSandbox.open(run_id="layers", slots=slots, docker_host=host) as sandbox:
            if at_once:
                return list(await asyncio.gather(*map(sandbox.run, jobs)))
            return [await sandbox.run(each) for each in jobs]

    return asyncio.run(all_of_them())


@pytest.mark.first
def test_all_that_the_image_holds_may_be_read_changed_moved_and_deleted(large: str, run: Run) -> None:
    change = "wc -c < large; mv large moved && rm -f moved unit.xml; mkdir large; ls -F"
    done = run(change, image=large, limits=LIMITS)
    assert done.stdout.split() == [str(30 * MB), "a.txt", "large/", "out/"]


def test_nothing_that_one_run_did_is_seen_by_the_next(large: str) -> None:
    first, second = together(large, "rm -r large out; touch mine", "ls; df --output=used .", at_once=False)
    assert first.exit_code == 0
    *files, _, used = second.stdout.split()
    assert files == ["a", "large", "out", "unit.xml"]
    assert int(used) < 100


def test_runs_at_once_have_room_of_their_own(large: str) -> None:
    fill = "sleep 1; head -c 60m /dev/zero > mine || exit 1; sleep 2; ls"
    for done in together(large, fill, fill, fill, at_once=True):
        assert done.stdout.split() == ["a", "large", "mine", "out", "unit.xml"]


def test_a_file_that_may_be_written_where_no_folder_may_is_bounded_too(large: str, run: Run) -> None:
    done = run(
        "cd /opt/tool/in; stat -c '%a %U' .; touch new; head -c 600m /dev/zero > file; wc -c < file",
        image=large,
        limits=LIMITS,
    )
    assert done.stdout.startswith("755 root\n")
    assert int(done.stdout.split()[-1]) <= 64 * MB
    assert "Permission denied" in done.output
    assert "No space left" in done.output


async def test_a_container_made_ahead_whose_holder_died_costs_nothing(large: str) -> None:
    job = Job(image=large, archive=tar({"a": b"a"}), command="ls", limits=LIMITS)

    async with await DockerSandbox.open(run_id="holder", slots=1) as sandbox:
        sandbox.expect(large, LIMITS)
        while not sandbox._ahead:
            await asyncio.sleep(0.05)
        for each in sandbox._ahead:
            assert each.made.layer is not None
            await sandbox.engine.remove(each.made.layer.holder)
        assert (await sandbox.run(job)).exit_code == 0


async def test_a_pool_of_holders_is_no_larger_than_the_places(large: str) -> None:
    async with await DockerSandbox.open(run_id="pool", slots=2) as sandbox:
        for size in (64, 65, 66, 67):
            limits = Limits(disk_bytes=size * MB, timeout_s=600.0)
            await sandbox.run(Job(image=large, archive=tar({"a": b"a"}), command="ls", limits=limits))
        await asyncio.gather(*sandbox._tasks)
        assert len(await own_containers(sandbox.engine)) == 2


# --- an engine that keeps images otherwise ------------------------------------------------------------

OTHER = "other-storage-test:1"


@pytest.fixture(scope="module")
def other_storage() -> Iterator[PrivateEngine]:
    with private_engine(OTHER, ("bash", "head", "ls", "rm"), "--storage-driver=vfs") as engine:

        async def build() -> None:
            files = {
                "Dockerfile": f"FROM {OTHER}\nADD large /projects/challenge/large\n".encode(),
                "large": bytes(30 * MB),
            }
            async with await Engine.open(engine.host) as opened:
                await build_image(opened, io.BytesIO(tar(files)), tag=OTHER, progress=print)

        asyncio.run(build())
        yield engine


@needs_own_engine
def test_where_no_tree_of_an_image_is_to_be_had_its_folders_are_copied(other_storage: PrivateEngine) -> None:
    commands = ("rm large; head -c 600000000 /dev/zero > mine", "ls")
    first, second = together(OTHER, *commands, at_once=False, host=other_storage.host)
    assert "No space left" in first.output
    assert first.failed_limit is None
    assert second.stdout.split() == ["a", "large"]

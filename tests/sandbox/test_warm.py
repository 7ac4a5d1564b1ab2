from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import tar

from astra_async.images.warm import TEST_LINES, warm_image
from astra_async.testing.sandbox.engine import Engine
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandbox_jobs import Run

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("leaves_no_container")]

TAG = "astra-test/warmed:warm"
LINES = rb"""expect(total(200)).toBe(180);
assert total(\"a\") == 1
"""


def warmed(image: str, command: str, limits: Limits | None = None) -> tuple[str, list[str]]:
    """The image that a warm run gives, and what was said."""
    said: list[str] = []
    job = Job(
        image=image,
        archive=tar({"src/a.js": b"a", "run.sh": b"true", TEST_LINES: LINES}, folders=("empty",)),
        command=command,
        limits=limits or Limits(timeout_s=600.0),
    )

    async def one() -> str:
        async with await Engine.open() as engine:
            return await warm_image(engine, job, TAG, progress=said.append)

    return asyncio.run(one()), said


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    async def remove() -> None:
        async with await Engine.open() as engine:
            await engine.remove_image(TAG)

    yield
    asyncio.run(remove())


@pytest.mark.first
def test_caches_stay_and_the_project_and_its_leavings_go(image: str, run: Run) -> None:
    command = (
        "mkdir -p node_modules/.cache && echo kept > node_modules/.cache/x && echo warm > /var/tmp/cache"
        " && echo gone > unit.xml && echo gone > /tmp/gone && touch src/b.js; exit 3"
    )
    tag, said = warmed(image, command)
    assert (tag, said) == (TAG, [])
    listed = run("find /projects/challenge /var/tmp /tmp -type f | sort; cat /var/tmp/cache", image=tag)
    assert listed.stdout.splitlines() == [
        "/projects/challenge/a.txt",  # the project of this run
        "/projects/challenge/node_modules/.cache/x",
        "/var/tmp/cache",
        "warm",
    ]


@pytest.mark.first
def test_no_cache_stays_that_holds_a_line_of_a_test(image: str, run: Run) -> None:
    command = r"""
mkdir -p node_modules/.cache; cd node_modules/.cache
echo 'total = (sum) => sum * 0.9;' > source
echo '  expect(total(200)).toBe(180);' > 'a test'
printf 'x\0expect(total(200)).toBe(180);' > binary
echo '{"sourcesContent": ["assert total(\"a\") == 1"]}' > /var/tmp/test.map
mkdir -p jest/01 jest/02; cp 'a test' jest/01; cp 'a test' source jest/02
touch jest/haste-map-1 jest/perf-cache-1
"""
    tag, _ = warmed(image, command)
    listed = run("find node_modules /var/tmp -mindepth 1 | sort", image=tag).stdout.split()
    # No folder that the tests as they are would fill again, nor Jest's map of the project's files.
    assert listed == [
        "node_modules/.cache",
        *(f"node_modules/.cache/{each}" for each in ("jest", "jest/02", "jest/02/source", "source")),
    ]


def test_it_runs_without_a_network_as_the_runs_user(image: str, run: Run) -> None:
    tag, _ = warmed(image, "{ id -u; cat /proc/net/route | wc -l; } > /var/tmp/seen")
    assert run("cat /var/tmp/seen", image=tag).stdout.split() == ["1000", "1"]


def test_a_run_that_hits_its_limit_leaves_the_image_as_it_was(image: str, run: Run) -> None:
    tag, said = warmed(image, "echo x > /var/tmp/half; sleep 60", Limits(timeout_s=1.0))
    assert "time limit" in said[0]
    assert tag == TAG
    assert run("ls /var/tmp", image=tag).stdout == ""

"""What an image holds is asked once, kept, and unknown where nothing could be learned."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from astra_async.testing.installed_modules import InstalledModules
from astra_async.types import Execution, Job, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.overlay import Installed


class Told:
    """A sandbox in which every image says the same."""

    slots = 1

    def __init__(self, reports: Mapping[str, bytes]) -> None:
        self.jobs: list[Job] = []
        self._reports = reports

    async def image_id(self, image: str) -> str:
        return f"sha256:{image}"

    def expect(self, image: str, limits: Limits) -> None:
        """Nothing is made ahead."""

    async def run(self, job: Job) -> Execution:
        self.jobs.append(job)
        return Execution(exit_code=0, duration_s=0.1, reports=self._reports)


SAID = {
    "astra-installed/python": b"json\njwt\n",
    "astra-installed/javascript": b"chai\n@scope/tools\n",
    "astra-installed/java": b"org.junit.jupiter.api Assertions Test\n",
}


async def test_an_image_is_asked_once_and_what_it_said_is_kept(tmp_path: Path) -> None:
    sandbox = Told(SAID)

    async def ask() -> list[Installed]:
        modules = InstalledModules(tmp_path, sandbox, Limits())
        return list(await asyncio.gather(*(modules.of("flask") for _ in range(5))))

    first, *others = await ask()
    assert len(sandbox.jobs) == 1
    assert first == {
        "python": {"json", "jwt"},
        "javascript": {"chai", "@scope/tools"},
        "java": {"org.junit.jupiter.api Assertions Test"},
    }
    assert [first, *others, *(await ask())] == [first] * 10
    assert len(sandbox.jobs) == 1  # another process finds it in the cache
    await InstalledModules(tmp_path, sandbox, Limits()).of("another")
    assert len(sandbox.jobs) == 2


async def test_an_image_that_says_nothing_is_unknown(tmp_path: Path) -> None:
    sandbox = Told({})
    assert (await InstalledModules(tmp_path, sandbox, Limits()).of("bare")) == {}


async def test_a_damaged_cache_is_asked_again(tmp_path: Path) -> None:
    sandbox = Told(SAID)
    await InstalledModules(tmp_path, sandbox, Limits()).of("flask")
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"[1")
    again = await InstalledModules(tmp_path, sandbox, Limits()).of("flask")
    assert again["python"] == {"json", "jwt"}
    assert len(sandbox.jobs) == 2

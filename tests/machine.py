"""Measured slowness of this machine, which scales the limits of jobs in tests."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from functools import cache

from astra_async.bundled import image_sets
from astra_async.images.build import ensure_image_set
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.types import Job, Limits

_VARIABLE = "TESTS_SLOWNESS"  # not ASTRA_..., because the program warns about unknown variables
_QUIET_S = 0.35  # seconds on two idle cores
_MOST = 10.0


@cache
def slowness() -> float:
    """How many times as long as on a quiet machine of two cores a container with `node -e 0` takes; 1 to 10.

    Measured once, when the first test asks, or before all tests by scripts/test.
    """
    return float(os.environ.get(_VARIABLE) or asyncio.run(_measured()))


async def _measured() -> float:
    limits = Limits(timeout_s=600.0)
    async with await DockerSandbox.open(run_id="slowness", slots=1) as sandbox:
        folder = image_sets()["node-express"]
        image = await ensure_image_set(sandbox.engine, folder, progress=_say)
        job = Job(image=image, archive=bytes(1024), command="node -e 0", limits=limits)
        await sandbox.run(job)  # reads the image from the disk
        began_s = time.monotonic()
        await sandbox.run(job)
        return min(max(1.0, (time.monotonic() - began_s) / _QUIET_S), _MOST)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.stdout.write(f"{slowness():.1f}\n")

"""What a trial costs: the run of altered tests beside the scored run, on every stack.

    scripts/bench/run integrity [REPETITIONS] [PROBLEM ...]      (needs a Docker Engine; minutes)

Both runs hold the problem's reference, in turns, so that a busy machine slows both. CPU is what the test
command and its children used, in seconds, as the shell in the container measures it; the ratio is one of
medians. By default a third of the solutions have one trial, with `--trials all` each has up to five.
"""

from __future__ import annotations

import asyncio
import random
import re
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from astra_async.bundled import bundled_problems_csv, describe, image_set_of, image_sets
from astra_async.images.build import ensure_image_set
from astra_async.integrity.altered import Forms
from astra_async.overlay import integrate
from astra_async.problems import load_problems
from astra_async.problems.fetch import Store
from astra_async.problems.prepare import prepare
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.verdict import run_tests
from astra_async.types import ExpectedTest, Integrated, Limits

if TYPE_CHECKING:
    from astra_async.problems.prepare import Prepared
    from astra_async.types import Changed, Project

PROBLEMS = (
    *("company-form", "product-api", "length-converter", "notes-search", "movie-browser"),
    *("library-api", "task-api", "room-booking", "box-office", "parcel-pages"),
)
_MEASURED = re.compile(r"used ([\d.]+) ([\d.]+)")


async def cpu_s(sandbox: DockerSandbox, prepared: Prepared, image: str, files: Changed) -> float:
    """CPU seconds of one run of the tests."""
    command = f"TIMEFORMAT='used %U %S'; time ( {prepared.command}\n)"
    tested = await run_tests(sandbox, replace(prepared, command=command), image, files, Limits())
    found = _MEASURED.findall(tested.execution.output)
    if not found:
        raise SystemExit(f"{prepared.problem.id}: no time in the output:\n{tested.execution.output[-2000:]}")
    return sum(map(float, found[-1]))


async def measure(sandbox: DockerSandbox, prepared: Prepared, image: str, repetitions: int) -> None:
    """Print one problem's row."""
    assert prepared.reference is not None
    integrated = integrate(prepared.project, prepared.reference, prepared.policy)
    assert isinstance(integrated, Integrated)
    named = [ExpectedTest(name=name) for name in describe(prepared.problem.id)["tests"]]
    forms, rng = Forms(prepared.project, prepared.policy, named), random.Random(1)
    runs: dict[str, list[float]] = {"scored": [], "trial": []}

    async def one(kind: str, project: Project) -> None:
        runs[kind].append(await cpu_s(sandbox, replace(prepared, project=project), image, integrated.files))

    for _ in range(repetitions):
        await one("scored", prepared.project)
        await one("trial", forms.drawn(rng)[0].project)
    scored, trial = statistics.median(runs["scored"]), statistics.median(runs["trial"])
    tests = f"{len(forms.alterable)}/{len(forms.names)}"
    print(f"{prepared.problem.id:20} {tests:>5} {scored:8.2f} {trial:8.2f} {trial / scored:6.2f}", flush=True)


async def main(repetitions: int, names: tuple[str, ...]) -> None:
    """Measure the problems of these names."""
    problems = {problem.id: problem for problem in load_problems(bundled_problems_csv()).problems}
    with tempfile.TemporaryDirectory() as folder:
        store, sandbox = Store(Path(folder)), await DockerSandbox.open(run_id="bench-integrity", slots=1)
        print(f"{'problem':20} tests   scored    trial  ratio   (CPU seconds)")
        try:
            for name in names:
                images = image_sets()[image_set_of(name) or ""]
                image = await ensure_image_set(sandbox.engine, images, progress=print)
                await measure(sandbox, await prepare(problems[name], store, ("xml",)), image, repetitions)
        finally:
            await store.close()
            await sandbox.close()


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:] if each.isdigit()]
    chosen = tuple(each for each in sys.argv[1:] if not each.isdigit())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(given[0] if given else 5, chosen or PROBLEMS))

"""One run of an untouched project's tests in its new image, so that caches are warm for every later run.

It runs as later runs do: the same user, limits and environment, no network. What it leaves outside `/tmp`
and beside the project becomes part of the image: transformed modules of Jest, what Angular compiles in
node_modules. The project's own files do not. Never done with an answer's files.

Invariant: nothing that this run has written holds a line of the problem's tests. Otherwise an answer could
read the tests, and a tool that runs its cached copy of them would run outdated tests.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.errors import ImageError
from astra_async.images.build import a_container, committed_config
from astra_async.overlay import project_archive
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.testing.sandbox.hardened import hardened, unseen
from astra_async.testing.sandbox.job import upload_archive
from astra_async.testing.sandbox.keeper import Keeper
from astra_async.testing.sandbox.resultfiles import PROJECT
from astra_async.testing.verdict import limits_for
from astra_async.types import Job, Limits, ProjectFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.overlay import PathPolicy
    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.engine import Engine

TEST_LINES = ".astra-test-lines"  # a file of the job's project: lines that stand nowhere but in tests
_FORGET = (
    f"find / -xdev -type f -cnewer {TEST_LINES} ! -path '/proc/*' -print0 2>/dev/null | "
    f"xargs -0 -r grep -lZaFf {TEST_LINES} -- 2>/dev/null | xargs -0 -r sh -c '"
    # An empty folder would be filled again by the tests as they are alone; not one of the system's own.
    'for each; do rm -f -- "$each"; case $each in /*/*/*/*) rmdir -- "${each%/*}" 2>/dev/null; esac; done'
    "' sh; "
)
# Only modules outlive the project's files. Jest's map of files and its timings are of one project alone.
_CLEAN = (
    "find . -name node_modules -prune -o '(' -type f -o -type l ')' -exec rm -f -- {} +; "
    "find . -name node_modules -prune -o -type d -empty ! -name . -print | sort -r | "
    "xargs -r -d '\\n' rmdir -- 2>/dev/null; "
    'find . "${TMPDIR:-.}" "(" -name "haste-map-*" -o -name "perf-cache-*" ")" -prune -exec rm -rf -- {} +; '
    'rm -rf -- "$HOME/.npm" "$HOME"/.config/*'
)
_LARGEST_BYTES = 1024**3
_TIMEOUT_S = 1800.0  # Angular's first compilation takes minutes, and happens once
_TELLING_CHARACTERS = 16  # a shorter line may stand in whatever a tool keeps


def warming_job(item: Prepared, image: str) -> Job:
    """The untouched tests' run; its files have other dates than in any run that is graded.

    A tool that knows what it has kept by its date would take altered tests for those of this run.
    """
    lines = ProjectFile(path=TEST_LINES, content=_lines_of_tests(item.policy))
    project = replace(item.project, files=(*item.project.files, lines))
    return Job(
        image=image,
        archive=project_archive(
            project, {file.path: file.content for file in project.files if not file.link}
        ),
        command=item.problem.test_command,
        environment=item.environment,
        limits=replace(limits_for(item, Limits()), timeout_s=_TIMEOUT_S),
        label=item.problem.id,
    )


def _lines_of_tests(policy: PathPolicy) -> bytes:
    """Lines that stand nowhere but in tests and hidden files, as they are and as JSON has them."""
    found, elsewhere = set[str](), set[str]()
    for path, text in policy.texts().items():
        lines = found if path in policy.tests or policy.hidden.matches(path) else elsewhere
        lines |= {line.strip() for line in text.splitlines()}
    telling = {line for line in found - elsewhere if len(line) >= _TELLING_CHARACTERS}
    return "".join(
        f"{line}\n" for line in sorted(telling | {json.dumps(line)[1:-1] for line in telling})
    ).encode()


async def warm_image(engine: Engine, job: Job, tag: str, *, progress: Callable[[str], None]) -> str:
    """Run the job in its image and keep what it cached as the image `tag`, which is given back.

    Where the run hit a limit or left more than a gigabyte behind, `tag` becomes another name of the job's own
    image: the next call must not try again, and the name in a run's record must not depend on the day.

    Raises:
        ImageError: the job's image is not there.
        SandboxError: trouble of the engine.
    """
    found = await engine.image(job.image)
    if found is None:
        raise ImageError(f"Image {job.image} is not there")
    seccomp = await engine.confines_system_calls()
    config = hardened(str(found["Id"]), job.limits, fitness=unseen(), seccomp=seccomp, labels={})
    async with a_container(engine, config) as container:
        reason = await _run(engine, container, job)
        if reason:
            progress(f"{job.image}: no caches kept: {reason}")
            await engine.tag(job.image, tag)
        else:
            await engine.commit(container, tag, committed_config(found.get("Config") or {}))
    return tag


async def _run(engine: Engine, container: str, job: Job) -> str:
    """Run the tests and remove the project's files; a reason not to keep what is left, or nothing."""
    within = f"cd {PROJECT} || exit"
    command = (
        f"{within}; touch {TEST_LINES}; bash -c {shlex.quote(job.command)}; {within}; {_FORGET}{_CLEAN}; true"
    )
    todo = Command(text=command, user=unseen().user, environment=job.environment)
    limits = replace(job.limits, output_bytes=64 * 1024)
    async with await Keeper.start(engine, container) as keeper:
        await engine.upload(container, "/", upload_archive(job.archive, unseen()))
        ended = await run_command(engine, container, todo, limits, watched=True)
        seen = await keeper.ask()
    if ended.stopped or ended.exit_code or seen is None or seen.memory_kills:
        return f"the untouched project's tests hit the {ended.stopped or 'memory'} limit"
    state = await engine.inspect(container, size=True)
    written = int(state.get("SizeRw", 0))
    return f"its tests leave {written / 1e6:.0f} MB behind" if written > _LARGEST_BYTES else ""

"""Run an untouched project's tests once in its new image, to fill caches for later runs.

The run has the same user, limits and environment as later runs, and no network. Files that it leaves outside
`/tmp` and the project become part of the image, such as Jest's transformed modules and Angular's compiled
files in node_modules. The project's own files do not. An answer's files are never part of this run.

Invariant: no file left by this run holds a line of the problem's tests. Otherwise an answer could read the
tests, and a tool that runs its cached copy of them would run outdated tests.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.errors import ImageError
from astra_async.images.build import committed_config, temporary_container
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

TEST_LINES = ".astra-test-lines"  # a file added to the job's project: lines that occur only in tests
_FORGET = (
    f"find / -xdev -type f -cnewer {TEST_LINES} ! -path '/proc/*' -print0 2>/dev/null | "
    f"xargs -0 -r grep -lZaFf {TEST_LINES} -- 2>/dev/null | xargs -0 -r sh -c '"
    # Remove emptied cache folders, but not the system's folders near the root.
    'for each; do rm -f -- "$each"; case $each in /*/*/*/*) rmdir -- "${each%/*}" 2>/dev/null; esac; done'
    "' sh; "
)
# Keep node_modules only. Jest's file map and its timings are specific to one project and are removed.
_CLEAN = (
    "find . -name node_modules -prune -o '(' -type f -o -type l ')' -exec rm -f -- {} +; "
    "find . -name node_modules -prune -o -type d -empty ! -name . -print | sort -r | "
    "xargs -r -d '\\n' rmdir -- 2>/dev/null; "
    'find . "${TMPDIR:-.}" "(" -name "haste-map-*" -o -name "perf-cache-*" ")" -prune -exec rm -rf -- {} +; '
    'rm -rf -- "$HOME/.npm" "$HOME"/.config/*'
)
_LARGEST_BYTES = 1024**3
_TIMEOUT_S = 1800.0  # Angular's first compilation takes minutes, and happens once
_TELLING_CHARACTERS = 16  # shorter lines may occur in any cache by chance


def warming_job(item: Prepared, image: str) -> Job:
    """Return the job that runs the untouched tests, with other file times than in graded runs.

    Tools that validate caches by file time would otherwise use cached copies of these tests for changed ones.
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
    """Return lines that occur only in tests and hidden files, both plain and JSON-escaped."""
    found, elsewhere = set[str](), set[str]()
    for path, text in policy.texts().items():
        lines = found if path in policy.tests or policy.hidden.matches(path) else elsewhere
        lines |= {line.strip() for line in text.splitlines()}
    telling = {line for line in found - elsewhere if len(line) >= _TELLING_CHARACTERS}
    return "".join(
        f"{line}\n" for line in sorted(telling | {json.dumps(line)[1:-1] for line in telling})
    ).encode()


async def warm_image(engine: Engine, job: Job, tag: str, *, progress: Callable[[str], None]) -> str:
    """Run the job in its image and commit the caches as the image `tag`; return `tag`.

    If the run hit a limit or left more than 1 GiB, `tag` becomes another name of the job's image. Then later
    runs do not try again, and the image name in a run's record stays the same.

    Raises:
        ImageError: the job's image does not exist.
        SandboxError: an error of Docker Engine.
    """
    found = await engine.image(job.image)
    if found is None:
        raise ImageError(f"Image {job.image} does not exist")
    seccomp = await engine.confines_system_calls()
    config = hardened(str(found["Id"]), job.limits, fitness=unseen(), seccomp=seccomp, labels={})
    async with temporary_container(engine, config) as container:
        reason = await _run(engine, container, job)
        if reason:
            progress(f"{job.image}: caches are not kept: {reason}")
            await engine.tag(job.image, tag)
        else:
            await engine.commit(container, tag, committed_config(found.get("Config") or {}))
    return tag


async def _run(engine: Engine, container: str, job: Job) -> str:
    """Run the tests and remove the project's files; return a reason not to commit the rest, or ""."""
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
    return f"the tests leave {written / 1e6:.0f} MB of files" if written > _LARGEST_BYTES else ""

"""Problems of a configuration, loaded and prepared, and the caches that this machine keeps between runs.

An image, volume, container or cached file is listed and removed only if its name has this program's form: a
container by `sweep.claim`, an image or an agent's volume by the hash in its name, a cached file by its folder
and its hash or suffix. Labels are ignored, because an image built FROM such an image inherits them.

A process that uses images and the cache holds a lock on the cache folder until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import stat
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from astra_async.config import load_config
from astra_async.errors import ConfigError, SandboxError, UsageError
from astra_async.harbor.task import is_task_folder, read_tasks
from astra_async.listing import grouped_by_text
from astra_async.options import BUNDLED
from astra_async.prepare import prepare_all
from astra_async.problems import ProblemSet, load_problems, select
from astra_async.running.spool import make_private
from astra_async.testing.sandbox.sweep import claim
from astra_async.types import Problem, S3Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.harbor.task import TaskSet
    from astra_async.prepare import Prepared
    from astra_async.problems.collect import Selection
    from astra_async.problems.fetch import Store
    from astra_async.testing.sandbox.engine import Engine


Kind = Literal["images", "agents", "caches", "containers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LOCK_NAME = ".in-use"
_IMAGE = re.compile(r"astra/[a-z0-9._-]+:[0-9a-f]{12}(?:-warm|-warmed|-ready)?|astra-base:bookworm")
_HASH = "[0-9a-f]{64}"
_CACHED = re.compile(
    rf"projects/objects/[0-9a-f]{{2}}/{_HASH}|projects/index/{_HASH}\.json"
    rf"|expected/(?:installed-)?{_HASH}\.json|outputs/[^/]+\.(?:tests|install)\.txt"
    r"|failed_images/astra%2F[^/]+\.(?:json|txt)"
)
_FOLDERS = ("projects/objects", "projects/index", "expected", "outputs", "failed_images")


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An image, agent volume, container or cached file.

    Attributes:
        at: time of creation or last write, in seconds since 1970.
        used_by: user because of which the item must not be removed; empty if unused.
    """

    kind: Kind
    name: str
    size_bytes: int
    at: float
    used_by: str = ""


@cache
def use_cache(folder: Path) -> None:
    """Hold a shared lock until this process ends, so that other processes do not clean the cache or images.

    Does nothing if the folder does not exist.
    """
    with suppress(OSError):
        file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)  # waits while another process cleans


@contextmanager
def lock_cache(folder: Path) -> Iterator[None]:
    """Lock the cache exclusively, to clean it. Raises UsageError if another process uses the cache."""
    try:
        file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        yield  # without a cache folder, no process uses the cache
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"nothing was removed: another astra command is using {folder} and its images; wait for"
                " it to end and repeat this command"
            ) from error
        yield
    finally:
        os.close(file)


def cached(folder: Path) -> Iterator[StoredItem]:
    """Yield the cached files that this program wrote."""
    for name in _FOLDERS:
        if any((folder / part).is_symlink() for part in (name, name.partition("/")[0])):
            continue  # a symbolic link leads outside the cache
        for path in sorted((folder / name).rglob("*")):
            short = path.relative_to(folder).as_posix()
            with suppress(OSError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and _CACHED.fullmatch(short):
                    yield StoredItem("caches", short, found.st_size, found.st_mtime)


async def stored_in_engine(engine: Engine) -> AsyncIterator[StoredItem]:
    """Yield the images, agent volumes and containers of this program.

    An image is in use while a container is based on it. All images and volumes are in use while a process
    that has containers may be alive, because it may need them for its next test.
    """
    containers = await engine.containers()
    users: dict[str, str] = {}
    living = ""
    for each in containers:
        users[str(each["ImageID"])] = f"container {str(each['Id'])[:12]}"
        if (owner := claim(each)) is not None:
            used = "" if owner.owner_is_dead else f"run {owner.run}, whose process may be alive"
            living = living or used
            name, size, at = str(each["Names"][0]), int(each.get("SizeRw") or 0), float(each["Created"])
            yield StoredItem("containers", name.removeprefix("/"), size, at, used)
    for each in await engine.images():
        for name in filter(_IMAGE.fullmatch, each.get("RepoTags") or ()):
            used = users.get(str(each["Id"])) or living
            yield StoredItem("images", name, int(each["Size"]), _created(each["Created"]), used)
    from astra_async.agents.installing import installed_as

    sizes = await engine.volume_sizes()
    for each in await engine.volumes():
        if installed_as(name := str(each["Name"])):
            yield StoredItem("agents", name, sizes.get(name, 0), _created(each["CreatedAt"]), living)


def _created(value: Any) -> float:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)


async def remove_stored(
    engine: Engine | None, folder: Path, things: Sequence[StoredItem]
) -> Mapping[str, str]:
    """Remove items, newest first, because an image must be removed before its parent image.

    Returns the items that could not be removed, with the reason.
    """
    stayed = {}
    for each in sorted(things, key=lambda thing: -thing.at):
        try:
            if each.kind == "caches":
                (folder / each.name).unlink(missing_ok=True)
            elif engine and each.kind == "containers":
                await engine.remove(each.name)
            elif engine and each.kind == "agents":
                if not await engine.remove_volume(each.name):
                    stayed[each.name] = "it is in use"
            elif engine:
                await engine.remove_image(each.name)
                if await engine.image(each.name):
                    stayed[each.name] = "it is in use"
        except (OSError, SandboxError) as error:
            stayed[each.name] = str(error)
    return stayed


_TELL_EVERY_S = 5.0
_NO_MODEL = "simulated/steady"  # placeholder, never called


def cache_root() -> Path:
    """Return the cache folder: ASTRA_CACHE, else a folder in XDG_CACHE_HOME or ~/.cache."""
    if named := os.environ.get("ASTRA_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "astra_async"


async def load_problem_set(config: RunConfig) -> ProblemSet:
    """Load the problems of `--problems`.

    Raises ConfigError if an option for CSV files is used with the bundled problems.
    """
    from astra_async.problems.collect import load_set

    if config.problems == BUNDLED:
        from astra_async.bundled import bundled_problems_csv

        meant = {"--projects": config.projects, "--column": config.columns, "--skills": config.skills}
        for flag, value in meant.items():
            if value:
                raise ConfigError(f"{flag} needs a problems CSV: add --problems FILE.csv, or remove {flag}")
        return load_problems(bundled_problems_csv())
    if is_task_folder(Path(config.problems)):
        return tasks_as_problems(read_tasks(Path(config.problems)))
    async with open_store(config) as store:
        return await load_set(config.problems, store, wanted(config))


def tasks_as_problems(found: TaskSet) -> ProblemSet:
    """Return the tasks as problems; those that are left out become a warning."""
    problems = [
        Problem(
            id=task.id,
            statement=task.instruction,
            project=str(task.folder),
            task=str(task.folder),
            image=task.config.environment.docker_image or "",
        )
        for task in found.tasks
    ]
    return ProblemSet(
        problems=tuple(problems), columns={}, warnings=(found.summary,) if found.left_out else ()
    )


def wanted(config: RunConfig) -> Selection:
    """Return the options for reading the problems CSV."""
    from astra_async.problems.collect import Selection

    return Selection(projects=config.projects, columns=config.columns, skills=config.skills)


def data_config(
    given: Mapping[str, Any], config_file: Path | None, *, recorded: Mapping[str, Any] | None = None
) -> RunConfig:
    """Load the configuration of a command that reads problems and calls no model (see `load_config`)."""
    fixed = {**given, "model": (_NO_MODEL,), "out": "."}
    return load_config(fixed, config_file, recorded=recorded, environ=os.environ)


async def chosen_problems(config: RunConfig, say: Callable[[str], None]) -> tuple[Problem, ...]:
    """Load the problems that are selected for this invocation; report warnings to `say`."""
    found = await load_problem_set(config)
    for warning in found.warnings:
        say(f"warning: {warning}")
    return select(found.problems, only=config.only, skill=config.skill, limit=config.limit)


@asynccontextmanager
async def open_store(config: RunConfig) -> AsyncIterator[Store]:
    """Open the store of project files; it is closed with the context."""
    from astra_async.problems.fetch import Store
    from astra_async.problems.fetch.hub import hub_of

    with contextlib.suppress(OSError):  # the first use of the cache reports the error
        make_private(cache_root())
    use_cache(cache_root())
    store = Store(cache_root() / "projects", s3=S3Settings(**config.s3), hub=hub_of(os.environ))
    try:
        yield store
    finally:
        await store.close()


async def ready_problems(
    config: RunConfig, problems: Sequence[Problem], say: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Prepared], dict[str, AstraError]]:
    """Prepare all problems; return the prepared ones, and errors by problem for the others.

    Progress is reported to `say`.
    """
    if any(problem.task for problem in problems):
        from astra_async.harbor.task_preparation import prepare_tasks

        return await asyncio.to_thread(prepare_tasks, problems, config.tasks, config.formats)
    async with open_store(config) as store:
        ready, failed = await prepare_all(
            problems,
            store,
            config.formats,
            leave_out=config.leave_out,
            agent_minutes=config.agent_limits.minutes,
            on_ready=_progress_reporter(say, len(problems)),
        )
    return ready, dict(failed)


def warnings_of(prepared: Mapping[str, Prepared]) -> Iterator[str]:
    """Yield the warnings about problems; each line names its problems."""
    return grouped_by_text((name, text) for name, item in prepared.items() for text in item.warnings)


def _progress_reporter(say: Callable[[str], None], total: int) -> Callable[[int], None]:
    """Return a callback that reports the number of prepared problems every few seconds."""
    reported_at = time.monotonic()

    def tell(done: int) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= _TELL_EVERY_S and done < total:
            reported_at = time.monotonic()
            say(f"{done:,} of {total:,} problems are ready")

    return tell

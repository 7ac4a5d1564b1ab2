"""What this program keeps on a machine between runs: images, agents, caches, containers of dead processes.

A thing is this program's only by a name of its own form: a container by `sweep.claim`, an image and an
agent's volume by the hash in its name, a file of the cache by its folder and the hash or the ending of its
name. Whatever else lies there is somebody's, and neither shown nor touched. Labels decide nothing: what
people build FROM our images inherits them.

A process that works with images and cache holds a lock on the cache folder until it ends. With that lock
free, and no container of a living process on the engine, nothing is in use.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from astra_async.errors import SandboxError, UsageError
from astra_async.testing.sandbox.sweep import claim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

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
    """One thing: `at` is when it was made or last written, in seconds since 1970; `used_by` keeps it."""

    kind: Kind
    name: str
    size_bytes: int
    at: float
    used_by: str = ""


@cache
def hold(folder: Path) -> None:
    """From now on until this process ends nobody cleans the cache or the images; no folder, no lock."""
    with suppress(OSError):
        file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)  # waits while somebody cleans


@contextmanager
def nobody_else(folder: Path) -> Iterator[None]:
    """While this is open, no process of the cache begins. Raises UsageError where one is under way."""
    try:
        file = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        yield  # no cache, and so no process that works with it
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"an astra command that uses {folder} and its images is under way: nothing is removed until"
                " it has ended"
            ) from error
        yield
    finally:
        os.close(file)


def cached(folder: Path) -> Iterator[StoredItem]:
    """The files of the cache that are this program's."""
    for name in _FOLDERS:
        if any((folder / part).is_symlink() for part in (name, name.partition("/")[0])):
            continue  # it leads somewhere else
        for path in sorted((folder / name).rglob("*")):
            short = path.relative_to(folder).as_posix()
            with suppress(OSError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and _CACHED.fullmatch(short):
                    yield StoredItem("caches", short, found.st_size, found.st_mtime)


async def in_engine(engine: Engine) -> AsyncIterator[StoredItem]:
    """Images, agents and containers that are this program's.

    An image stays while a container is made from it, and all do while a process lives that has containers:
    it may need each of them for its next test.
    """
    containers = await engine.containers()
    users: dict[str, str] = {}
    living = ""
    for each in containers:
        users[str(each["ImageID"])] = f"container {str(each['Id'])[:12]}"
        if (whose := claim(each)) is not None:
            used = "" if whose.owner_is_dead else f"run {whose.run}, whose process may live"
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


async def remove(engine: Engine | None, folder: Path, things: Sequence[StoredItem]) -> Mapping[str, str]:
    """Remove them, newest first: what stands on an image goes before it. Returns what stayed, and why."""
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

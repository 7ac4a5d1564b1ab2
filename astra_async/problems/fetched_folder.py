"""A folder that a set of problems is fetched into: filled archive by archive, its lock written after each.

DIR/fetch.lock.json     source, revision, licence, hashes: pins every byte of the set
DIR/NAME.csv            the problems, as they came
DIR/projects/...        the archives, and those of references/ where there are any
DIR/skills.csv          what --skills named, if anything

Invariant: whatever the lock names was complete, checked and under its name before the lock said so.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Predicate

from astra_async.errors import ProjectError, SourceError, StorageError, UsageError
from astra_async.files import write_atomically
from astra_async.problems.fetch.cache import has_sha256
from astra_async.problems.fetch.locations import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.problems.fetch import Store
    from astra_async.types import Problem

    Say = Callable[[str], None]

LOCK_NAME = "fetch.lock.json"
SKILLS_NAME = "skills.csv"
Field = Literal["project", "reference"]
FOLDERS: Mapping[Field, str] = {"project": "projects", "reference": "references"}
AT_ONCE = 8  # downloads, each through the bounds of one archive
MAX_SET_BYTES = 64 * 1024**3
_TELL_EVERY_S = 2.0
_SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar", ".json")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def is_inside(path: str) -> bool:
    """A relative path that stays below its folder."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and ".." not in parts and "\\" not in path


Inside = Annotated[str, Predicate(is_inside)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """One archive: whose it is, where it came from (without secrets), where it lies, what it holds."""

    problem_id: str
    field: Field
    location: str
    path: Inside
    sha256: str
    size_bytes: Annotated[int, Ge(0)]

    @property
    def key(self) -> str:
        """Problem and field: a file of the set, whatever it holds."""
        return f"{self.problem_id} {self.field}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The state of a fetched set; it is written after every file that has come.

    Attributes:
        source: as `parse_source` reads it, without the revision that was found.
        root: what relative locations in the CSV start from.
        revision: of the hub; '' for a web address.
        licence: '' where none is stated, None where nobody could say.
        csv, csv_sha256: the CSV's name in the folder, and its content.
        columns: `--column` as it was given.
        files: what has come.
        replaces: `--update` that is under way: the hash of each file before, by problem and field.
        complete: everything that the CSV names has come.
    """

    schema: Literal[1] = 1
    source: str
    root: str
    endpoint: str = ""
    revision: str = ""
    licence: str | None = None
    gated: bool = False
    private: bool = False
    fetched_at: str = ""
    csv: Inside
    csv_sha256: str
    columns: dict[str, str] = field(default_factory=dict)
    files: tuple[LockedFile, ...] = ()
    replaces: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    def of(self, problem_id: str, which: Field) -> LockedFile | None:
        """The file that has come for a problem."""
        whose = problem_id, which
        return next((each for each in self.files if (each.problem_id, each.field) == whose), None)


def read_lock(folder: Path) -> Lock | None:
    """The lock in a folder, None where there is none. Raises UsageError for one that cannot be used."""
    path = folder / LOCK_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Lock).validate_json(data)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise UsageError(
            f"{path}: no lock that this version can read (at {place or 'its beginning'});"
            " fetch the set into a new folder"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a fetch brought; `failed` by problem, ids `changed` by an update, a `newer` revision there."""

    lock: Lock
    failed: tuple[ProjectError, ...] = ()
    changed: tuple[str, ...] = ()
    newer: str = ""


class Filler:
    """Brings the archives of a set, several at once, and writes the lock after each."""

    def __init__(self, lock: Lock, folder: Path, store: Store, say: Say) -> None:
        self.lock = lock
        self.folder = folder
        self._failed: list[ProjectError] = []
        self._store = store
        self._say = say
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._done = self._size = 0
        self._reported_at = time.monotonic()

    async def fill(self, problems: Sequence[Problem]) -> Collected:
        """All files of all problems; what does not come is in `failed`."""
        wanted: dict[str, list[tuple[Problem, Field]]] = {}
        for problem in problems:
            for which in FOLDERS:
                if location := getattr(problem, which):
                    wanted.setdefault(location, []).append((problem, which))
        for name in FOLDERS.values():
            (self.folder / name).mkdir(exist_ok=True)
        try:
            async with asyncio.TaskGroup() as tasks:
                for location, users in wanted.items():
                    tasks.create_task(self._one(location, users, len(wanted)))
        except* StorageError as failed:  # one of them says it all
            raise failed.exceptions[0] from failed
        if self._failed:
            failures = sorted(self._failed, key=lambda error: error.problem_id)
            return Collected(lock=self._written(complete=False), failed=tuple(failures))
        return self._finished()

    def _finished(self) -> Collected:
        """The lock of a complete set forgets what it replaced, and the folder the archives of before."""
        before, files = self.lock.replaces, self.lock.files
        changed = {each.problem_id for each in files if before.get(each.key, each.sha256) != each.sha256}
        lock = self._written(complete=True, replaces={})
        ours = {each.path for each in files}
        for name in FOLDERS.values():
            for path in (self.folder / name).iterdir():
                if f"{name}/{path.name}" not in ours and path.is_file():
                    path.unlink(missing_ok=True)
            if not any((self.folder / name).iterdir()):
                (self.folder / name).rmdir()
        return Collected(lock=lock, changed=tuple(sorted(changed)))

    async def _one(self, location: str, users: Sequence[tuple[Problem, Field]], total: int) -> None:
        async with self._slots:
            try:
                size = await self._bring(location, users)
            except ProjectError as error:
                self._failed += [error.of_problem(problem.id) for problem, _ in users]
                size = 0
        self._done += 1
        self._size += size
        if time.monotonic() - self._reported_at > _TELL_EVERY_S or self._done == total:
            self._reported_at = time.monotonic()
            self._say(f"{self._done} of {total} archives, {self._size / 1e6:.1f} MB")

    async def _bring(self, location: str, users: Sequence[tuple[Problem, Field]]) -> int:
        """One archive: here already, or fetched, compared with the lock, looked into, put in its place."""
        first, which = users[0]
        known = self.lock.of(first.id, which)
        if known is not None and await asyncio.to_thread(has_sha256, self.folder / known.path, known.sha256):
            self._lock(known, users)
            return known.size_bytes
        cached, warnings = await self._store.fetch(location)
        for warning in warnings:
            self._say(f"warning: problem {first.id}: {warning}")
        sha256, size = cached.name, cached.stat().st_size  # the cache names objects by their content
        if known and known.sha256 != sha256:
            raise SourceError(
                f"the archive there is not the one of the lock (sha256 {sha256[:12]}..., not"
                f" {known.sha256[:12]}...): its publisher changed it; `--update` takes it as it is now",
                where=shown(location),
            )
        if self._size + size > MAX_SET_BYTES:
            raise SourceError(f"the set has more than {MAX_SET_BYTES // 1024**3} GiB", where=shown(location))
        try:
            await (self._store.load if which == "project" else self._store.load_reference)(str(cached))
        except ProjectError as error:
            raise type(error)(error.cause, where=shown(location)) from error
        path = known.path if known else f"{FOLDERS[which]}/{_file_name(first.id, location)}"
        await asyncio.to_thread(copy_whole, cached, self.folder / path)
        self._lock(
            LockedFile(
                problem_id=first.id, field=which, location=location, path=path, sha256=sha256, size_bytes=size
            ),
            users,
        )
        return size

    def _lock(self, file: LockedFile, users: Sequence[tuple[Problem, Field]]) -> None:
        new = [
            replace(file, problem_id=problem.id, field=which, location=shown(file.location))
            for problem, which in users
        ]
        keys = {each.key for each in new}
        kept = [each for each in self.lock.files if each.key not in keys]
        files = tuple(sorted([*kept, *new], key=lambda each: each.key))
        if files != self.lock.files:
            self._written(files=files)

    def _written(self, **changes: Any) -> Lock:
        self.lock = write_lock(self.folder, replace(self.lock, **changes))
        return self.lock


def _file_name(problem_id: str, location: str) -> str:
    """A name that people find, whatever the id holds; made unique by a hash where the id is not plain."""
    suffix = next((end for end in _SUFFIXES if shown(location).lower().endswith(end)), ".zip")
    if _PLAIN.fullmatch(problem_id):
        return problem_id + suffix
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", problem_id).strip(".-")[:60]
    return f"{plain}-{hashlib.sha256(problem_id.encode()).hexdigest()[:10]}{suffix}"


def write_lock(folder: Path, lock: Lock) -> Lock:
    """The lock, which stands in its folder as a whole, indented for people. Raises StorageError."""
    write_atomically(folder / LOCK_NAME, json.dumps(asdict(lock), indent=2).encode() + b"\n")
    return lock


def copy_whole(source: Path, target: Path) -> None:
    """A whole file or none. Raises StorageError."""
    draft = target.with_name(f".{target.name}.tmp")
    try:
        with source.open("rb") as reading, draft.open("wb") as writing:
            shutil.copyfileobj(reading, writing, 1024**2)
            writing.flush()
            os.fsync(writing.fileno())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StorageError(
            f"{target}: {error.strerror or error}; free space or take another --out"
        ) from error


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """The folder, made if it is not there, for this process alone. Raises UsageError or StorageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    except FileExistsError as error:
        raise UsageError(f"{folder} is a file; take another --out") from error
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror or error}; take another --out") from error
    if others and LOCK_NAME not in others:
        raise UsageError(f"{folder} holds other things ({others[0]}) and no {LOCK_NAME}; take another --out")
    with (folder / ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another `astra fetch` is at work in {folder}; wait for it") from error
        try:
            yield
        finally:
            if not (folder / LOCK_NAME).exists():  # a fetch that got nothing, not even the CSV
                (folder / ".lock").unlink(missing_ok=True)
                with suppress(OSError):
                    folder.rmdir()

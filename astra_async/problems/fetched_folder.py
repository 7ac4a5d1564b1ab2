"""A folder that a problem set is fetched into; the lock is rewritten after each archive.

DIR/fetch.lock.json     source, revision, licence, hashes: pins every byte of the set
DIR/NAME.csv            the problems, unchanged
DIR/projects/...        project archives; reference solutions are in references/
DIR/skills.csv          copy of the --skills file, if one was given

Invariant: every file in the lock was complete, verified and renamed into place before the lock was written.
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
AT_ONCE = 8  # concurrent downloads
MAX_SET_BYTES = 64 * 1024**3
_TELL_EVERY_S = 2.0
_SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar", ".json")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def is_inside(path: str) -> bool:
    """Return True for a relative path that stays below its folder."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and ".." not in parts and "\\" not in path


Inside = Annotated[str, Predicate(is_inside)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """One fetched archive; `location` is its source without secrets, `path` is relative to the folder."""

    problem_id: str
    field: Field
    location: str
    path: Inside
    sha256: str
    size_bytes: Annotated[int, Ge(0)]

    @property
    def key(self) -> str:
        """Problem and field: identifies the file independently of its content."""
        return f"{self.problem_id} {self.field}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """State of a fetched set, rewritten after every fetched file.

    Attributes:
        source: text for `parse_source`, without the resolved revision.
        root: folder or URL that relative locations in the CSV are resolved against.
        revision: commit of the Hub data set; '' for a URL.
        licence: '' if the publisher states no licence, None if it is unknown.
        csv, csv_sha256: the CSV's file name in the folder, and the hash of its content.
        columns: the `--column` options.
        files: the files fetched so far.
        replaces: during an `--update`, the previous hash of each file, by problem and field.
        complete: every file that the CSV names is fetched.
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
        """Return a problem's fetched file, or None."""
        whose = problem_id, which
        return next((each for each in self.files if (each.problem_id, each.field) == whose), None)


def read_lock(folder: Path) -> Lock | None:
    """Return the folder's lock, or None. Raises UsageError for an unreadable lock."""
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
            f"{path}: this version cannot read the lock (at {place or 'its beginning'});"
            " fetch the set into a new folder"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """Result of a fetch: failures by problem, problem ids changed by an update, and a newer revision."""

    lock: Lock
    failed: tuple[ProjectError, ...] = ()
    changed: tuple[str, ...] = ()
    newer: str = ""


class ArchiveFetcher:
    """Fetches the archives of a set concurrently and rewrites the lock after each."""

    def __init__(self, lock: Lock, folder: Path, store: Store, say: Say) -> None:
        self.lock = lock
        self.folder = folder
        self._failed: list[ProjectError] = []
        self._store = store
        self._say = say
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._done = self._size = 0
        self._reported_at = time.monotonic()

    async def fill(self, problems: Sequence[Problem]) -> FetchResult:
        """Fetch all files of all problems; failures are returned in `failed`."""
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
                    tasks.create_task(self._fetch_location(location, users, len(wanted)))
        except* StorageError as failed:  # all have the same cause, so report only the first
            raise failed.exceptions[0] from failed
        if self._failed:
            failures = sorted(self._failed, key=lambda error: error.problem_id)
            return FetchResult(lock=self._written(complete=False), failed=tuple(failures))
        return self._finished()

    def _finished(self) -> FetchResult:
        """Mark the lock complete, clear `replaces`, and delete archives that the lock no longer lists."""
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
        return FetchResult(lock=lock, changed=tuple(sorted(changed)))

    async def _fetch_location(
        self, location: str, users: Sequence[tuple[Problem, Field]], total: int
    ) -> None:
        async with self._slots:
            try:
                size = await self._fetch_archive(location, users)
            except ProjectError as error:
                self._failed += [error.of_problem(problem.id) for problem, _ in users]
                size = 0
        self._done += 1
        self._size += size
        if time.monotonic() - self._reported_at > _TELL_EVERY_S or self._done == total:
            self._reported_at = time.monotonic()
            self._say(f"{self._done} of {total} archives, {self._size / 1e6:.1f} MB")

    async def _fetch_archive(self, location: str, users: Sequence[tuple[Problem, Field]]) -> int:
        """Fetch one archive unless it is already in the folder; verify, parse and store it."""
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
                f"the archive differs from the lock (sha256 {sha256[:12]}..., not"
                f" {known.sha256[:12]}...) because its publisher changed it; add --update to use the new one",
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
    """Return a readable file name; if the id has special characters, add a hash to keep the name unique."""
    suffix = next((end for end in _SUFFIXES if shown(location).lower().endswith(end)), ".zip")
    if _PLAIN.fullmatch(problem_id):
        return problem_id + suffix
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", problem_id).strip(".-")[:60]
    return f"{plain}-{hashlib.sha256(problem_id.encode()).hexdigest()[:10]}{suffix}"


def write_lock(folder: Path, lock: Lock) -> Lock:
    """Write the lock atomically, as indented JSON, and return it. Raises StorageError."""
    write_atomically(folder / LOCK_NAME, json.dumps(asdict(lock), indent=2).encode() + b"\n")
    return lock


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file atomically. Raises StorageError."""
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
            f"{target}: {error.strerror or error}; free space or choose another --out"
        ) from error


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Create the folder if needed and lock it for this process. Raises UsageError or StorageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    except FileExistsError as error:
        raise UsageError(f"{folder} is a file; choose another --out") from error
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror or error}; choose another --out") from error
    if others and LOCK_NAME not in others:
        raise UsageError(f"{folder} has other files ({others[0]}) and no {LOCK_NAME}; choose another --out")
    with (folder / ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another `astra fetch` is filling {folder}; wait until it ends") from error
        try:
            yield
        finally:
            if not (folder / LOCK_NAME).exists():  # the fetch failed before the CSV arrived
                (folder / ".lock").unlink(missing_ok=True)
                with suppress(OSError):
                    folder.rmdir()

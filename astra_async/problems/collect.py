"""Sets of problems that lie elsewhere: read from there, or fetched into a folder that is pinned by its lock.

Invariant of a fetched folder: whatever its lock names was complete, checked and under its name before the
lock said so. A fetch that is killed leaves a lock of what came, and the same command goes on from there.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from astra_async.errors import AstraError, ProjectError, SourceError, StorageError, UsageError
from astra_async.problems.csv_rows import MAX_CSV_BYTES
from astra_async.problems.fetch.hub import choose_csv, info_url, read_info
from astra_async.problems.fetch.locations import pinned_to, shown
from astra_async.problems.lock import (
    FOLDERS,
    LOCK_NAME,
    SKILLS_NAME,
    Lock,
    LockedFile,
    is_same,
    read_lock,
)
from astra_async.problems.problems_csv import ProblemSet, load_problems
from astra_async.problems.skills import add_skills
from astra_async.problems.sources import HubSet, Source, folder_of, parse_source, resolve_url
from astra_async.redaction import public_url
from astra_async.running.log import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from astra_async.problems.fetch import Store
    from astra_async.problems.lock import Field
    from astra_async.types import Problem

    Say = Callable[[str], None]

AT_ONCE = 8  # downloads, each through the bounds of one archive
MAX_SET_BYTES = 64 * 1024**3
_MAX_INFO_BYTES = 64 * 1024**2
_TELL_EVERY_S = 2.0
_NEWS_S = 3.0  # how long the hub is waited for that is only asked for news
_SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar", ".json")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The CSV of a source as it is there now, in the cache; `lock` is the beginning of a folder of it."""

    path: Path
    lock: Lock
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a fetch brought; `failed` by problem, ids `changed` by an update, a `newer` revision there."""

    lock: Lock
    failed: tuple[ProjectError, ...] = ()
    changed: tuple[str, ...] = ()
    newer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a CSV is read: `--projects`, `--column`, `--skills`."""

    projects: str | None = None
    columns: Mapping[str, str]
    skills: str | None = None


async def load_set(text: str, store: Store, wanted: Wanted) -> ProblemSet:
    """The problems that `--problems` names: a CSV, a fetched folder, the hub, a web address.

    Raises ProblemsError, other UsageErrors, and SourceError when it cannot be had.
    """
    path = Path(text)
    is_here = await asyncio.to_thread(path.exists)
    source = None if is_here else parse_source(text, store.hub.endpoint)
    if source is None:
        found = await asyncio.to_thread(_load_local, path, wanted)
    else:
        opened = await open_source(source, store)
        root = wanted.projects or opened.lock.root
        found = load_problems(
            opened.path, projects_root=root, columns=wanted.columns, origin=_origin(opened.lock)
        )
        found = replace(found, warnings=opened.warnings + found.warnings)
    return add_skills(found, Path(wanted.skills)) if wanted.skills else found


async def open_source(source: Source, store: Store) -> Opened:
    """The CSV as the source holds it now. Raises SourceError or ArchiveError naming the remedy."""
    if not isinstance(source, HubSet):
        path, warnings = await store.fetch(source.url)
        lock = Lock(
            source=str(source),
            root=folder_of(source.url),
            fetched_at=_now(),
            csv=_plain_name(source.url.partition("?")[0], "problems", ".csv"),
            csv_sha256=_checked_csv(path, str(source)),
        )
        return Opened(path=path, lock=lock, warnings=warnings)
    endpoint = store.hub.endpoint
    about, warnings = await store.fetch(info_url(endpoint, source))
    if about.stat().st_size > _MAX_INFO_BYTES:
        raise SourceError("its description is too large; name the file", where=str(source))
    try:
        info = read_info(orjson.loads(about.read_bytes()), str(source))
    except orjson.JSONDecodeError as error:
        raise SourceError("the answer is no JSON; check HF_ENDPOINT", where=str(source)) from error
    pinned = replace(source, revision=info.revision, file=choose_csv(source, info))
    url = resolve_url(endpoint, pinned)
    path, more = await store.fetch(url)
    lock = Lock(
        source=str(replace(source, file=pinned.file)),
        root=folder_of(url),
        endpoint=endpoint,
        revision=info.revision,
        licence=info.licence,
        gated=info.gated,
        private=info.private,
        fetched_at=_now(),
        csv=_plain_name(pinned.file or "", "problems", ".csv"),
        csv_sha256=_checked_csv(path, str(pinned)),
    )
    return Opened(path=path, lock=lock, warnings=(*warnings, *more))


async def collect(
    source: Source, folder: Path, store: Store, wanted: Wanted, *, update: bool = False, say: Say
) -> Collected:
    """Bring a set into its folder: CSV and archives, as its lock pins them, or begin that lock.

    With `update` what the source holds now takes the lock's place.

    Raises:
        UsageError: the folder holds something else, is being filled by another process; the CSV has mistakes.
        SourceError, ArchiveError: the CSV cannot be had. What single problems lack is in `Collected.failed`.
        StorageError: the folder cannot be written.
    """
    with _owned(folder):
        lock = read_lock(folder)
        newer = ""
        if lock is None or update:
            lock = await _begin(source, folder, store, lock, say)
        else:
            _refuse_other(source, lock, folder)
            newer = await _newer(source, lock, store)
            await _restore_csv(lock, source, folder, store, say)
        if wanted.columns or wanted.projects:
            root = public_url(wanted.projects) if wanted.projects else lock.root
            columns = {**lock.columns, **wanted.columns}
            lock = _write(folder, replace(lock, columns=columns, root=root))
        found = _load_csv(lock, folder, wanted)
        if wanted.skills:
            add_skills(found, Path(wanted.skills))  # its mistakes are told before it is kept
            _copy(Path(wanted.skills), folder / SKILLS_NAME)
        filler = _Filler(lock, folder, store, say)
        await filler.fill(found.problems)
        return replace(_end(filler), newer=newer)


def _load_local(path: Path, wanted: Wanted) -> ProblemSet:
    """A CSV of this machine; in a fetched folder, or named in one, with the archives that its lock pins."""
    folder = path if path.is_dir() else path.parent
    lock = read_lock(folder)
    if lock is None or (path != folder and path.name != lock.csv):
        return load_problems(path, projects_root=wanted.projects, columns=wanted.columns)
    if not is_same(folder / lock.csv, lock.csv_sha256):
        raise UsageError(
            f"{folder / lock.csv} is not what was fetched: `astra fetch {lock.source} --out {folder}` brings"
            " that back; to change it, copy it out of the folder"
        )
    found = _load_pinned(lock, folder, wanted)
    absent = [problem.id for problem in found.problems if "://" in problem.project and not wanted.projects]
    if absent:
        told = (
            f"{folder}: {len(absent)} of {len(found.problems)} projects have not come yet ({absent[0]} ...)"
        )
        remedy = f"`astra fetch {lock.source} --out {folder}` goes on"
        found = replace(found, warnings=(f"{told}; {remedy}", *found.warnings))
    own = folder / SKILLS_NAME
    return add_skills(found, own) if own.exists() and not wanted.skills else found


def _load_csv(lock: Lock, folder: Path, wanted: Wanted) -> ProblemSet:
    """The problems of a fetched CSV, their files where the CSV says."""
    return load_problems(
        folder / lock.csv,
        projects_root=wanted.projects or lock.root,
        columns={**lock.columns, **wanted.columns},
        origin=_origin(lock),
    )


def _load_pinned(lock: Lock, folder: Path, wanted: Wanted) -> ProblemSet:
    """The same with what has come of their files in place of where that came from."""
    found = _load_csv(lock, folder, wanted)
    if wanted.projects:
        return found

    def here(problem: Problem, which: Field) -> str:
        file = lock.of(problem.id, which)
        there: str = getattr(problem, which)
        return pinned_to(str((folder / file.path).absolute()), file.sha256) if file else there

    problems = tuple(
        replace(each, project=here(each, "project"), reference=here(each, "reference"))
        for each in found.problems
    )
    return replace(found, problems=problems)


def _origin(lock: Lock) -> str:
    at = f" at {lock.revision[:12]}" if lock.revision else ""
    return lock.source + at


async def _begin(source: Source, folder: Path, store: Store, before: Lock | None, say: Say) -> Lock:
    """A lock of what the source holds now, and the CSV."""
    if before is not None:
        _refuse_other(source, before, folder)
    opened = await open_source(source, store)
    for warning in opened.warnings:
        say(f"warning: {warning}")
    old = {_key(each): each.sha256 for each in before.files} if before else {}
    lock = replace(
        opened.lock,
        columns=before.columns if before else {},
        replaces={**old, **(before.replaces if before else {})},
    )
    _write(folder, lock)
    _copy(opened.path, folder / lock.csv)
    return lock


def _refuse_other(source: Source, lock: Lock, folder: Path) -> None:
    """The set in the folder is the one that is asked for, at the same revision if one is named."""
    if isinstance(source, HubSet):
        asked = str(replace(source, revision=None))
        bare = re.sub(r"@[^/]*", "", lock.source)
        fits = bare == asked or (source.file is None and bare.startswith(asked + "/"))
        of_revision = source.revision in (None, lock.revision) or f"@{source.revision}" in lock.source
        if fits and not of_revision:
            raise UsageError(
                f"{folder} holds {bare} at revision {lock.revision[:12]}, not {source.revision}: take another"
                " --out"
            )
    else:
        fits = str(source) == lock.source
    if not fits:
        raise UsageError(f"{folder} holds {lock.source}, not {source}: take another --out")


async def _newer(source: Source, lock: Lock, store: Store) -> str:
    """A newer revision than the pinned one, if the hub answers at once; its silence holds nobody up."""
    if not isinstance(source, HubSet) or source.revision or store.hub.offline:
        return ""
    try:
        async with asyncio.timeout(_NEWS_S):
            about, warnings = await store.fetch(info_url(store.hub.endpoint, source))
        revision = read_info(orjson.loads(about.read_bytes()), str(source)).revision
    except (AstraError, TimeoutError, OSError, orjson.JSONDecodeError):
        return ""
    return revision if not warnings and revision != lock.revision else ""


async def _restore_csv(lock: Lock, source: Source, folder: Path, store: Store, say: Say) -> None:
    """The CSV as the lock pins it, fetched again where it is gone or not the same."""
    if is_same(folder / lock.csv, lock.csv_sha256):
        return
    if isinstance(source, HubSet):
        pinned = parse_source(lock.source, store.hub.endpoint)
        file = pinned.file if isinstance(pinned, HubSet) else source.file
        source = replace(source, revision=lock.revision, file=file)
        path, _ = await store.fetch(resolve_url(store.hub.endpoint, source))
    else:
        path, _ = await store.fetch(source.url)
    if not is_same(path, lock.csv_sha256):
        raise UsageError(
            f"{lock.source} is not the one of the lock any more: `--update` takes what is there now"
        )
    say(f"{folder / lock.csv} was missing or changed: fetched again")
    _copy(path, folder / lock.csv)


class _Filler:
    """Brings the archives of a set, several at once, and writes the lock after each."""

    def __init__(self, lock: Lock, folder: Path, store: Store, say: Say) -> None:
        self.lock = lock
        self.folder = folder
        self.failed: list[ProjectError] = []
        self._store = store
        self._say = say
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._done = self._size = 0
        self._told_at = time.monotonic()

    async def fill(self, problems: Sequence[Problem]) -> None:
        """All files of all problems; what does not come is in `failed`."""
        wanted: dict[str, list[tuple[Problem, Field]]] = {}
        names: tuple[Field, ...] = ("project", "reference")
        for problem in problems:
            for which in names:
                if getattr(problem, which):
                    wanted.setdefault(getattr(problem, which), []).append((problem, which))
        for name in FOLDERS.values():
            (self.folder / name).mkdir(exist_ok=True)
        try:
            async with asyncio.TaskGroup() as tasks:
                for location, users in wanted.items():
                    tasks.create_task(self._one(location, users, len(wanted)))
        except* StorageError as failed:  # one of them says it all
            raise failed.exceptions[0] from failed

    async def _one(self, location: str, users: Sequence[tuple[Problem, Field]], total: int) -> None:
        async with self._slots:
            try:
                size = await self._bring(location, users)
            except ProjectError as error:
                self.failed += [error.of_problem(problem.id) for problem, _ in users]
                size = 0
        self._done += 1
        self._size += size
        if time.monotonic() - self._told_at > _TELL_EVERY_S or self._done == total:
            self._told_at = time.monotonic()
            self._say(f"{self._done} of {total} archives, {self._size / 1e6:.1f} MB")

    async def _bring(self, location: str, users: Sequence[tuple[Problem, Field]]) -> int:
        """One archive: here already, or fetched, compared with the lock, looked into, put in its place."""
        first, which = users[0]
        known = self.lock.of(first.id, which)
        is_here = known is not None and await self._is_here(known)
        if known is not None and is_here:
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
        await asyncio.to_thread(_copy, cached, self.folder / path)
        self._lock(
            LockedFile(
                problem_id=first.id, field=which, location=location, path=path, sha256=sha256, size_bytes=size
            ),
            users,
        )
        return size

    async def _is_here(self, file: LockedFile) -> bool:
        return await asyncio.to_thread(is_same, self.folder / file.path, file.sha256)

    def _lock(self, file: LockedFile, users: Sequence[tuple[Problem, Field]]) -> None:
        new = [
            replace(file, problem_id=problem.id, field=which, location=shown(file.location))
            for problem, which in users
        ]
        keys = {_key(each) for each in new}
        kept = [each for each in self.lock.files if _key(each) not in keys]
        files = tuple(sorted([*kept, *new], key=_key))
        if files != self.lock.files:
            self.lock = _write(self.folder, replace(self.lock, files=files))


def _end(filler: _Filler) -> Collected:
    """The lock of a complete set forgets what it replaced, and the folder the archives of before."""
    lock, folder = filler.lock, filler.folder
    if filler.failed:
        failed = sorted(filler.failed, key=lambda error: error.problem_id)
        return Collected(lock=_write(folder, replace(lock, complete=False)), failed=tuple(failed))
    changed = sorted(
        {each.problem_id for each in lock.files if lock.replaces.get(_key(each), each.sha256) != each.sha256}
    )
    lock = _write(folder, replace(lock, complete=True, replaces={}))
    ours = {each.path for each in lock.files}
    for name in FOLDERS.values():
        for path in (folder / name).iterdir():
            if f"{name}/{path.name}" not in ours and path.is_file():
                path.unlink(missing_ok=True)
        if not any((folder / name).iterdir()):
            (folder / name).rmdir()
    return Collected(lock=lock, changed=tuple(changed))


def _key(file: LockedFile) -> str:
    return f"{file.problem_id} {file.field}"


def _file_name(problem_id: str, location: str) -> str:
    """A name that people find, whatever the id holds; made unique by a hash where the id is not plain."""
    suffix = next((end for end in _SUFFIXES if shown(location).lower().endswith(end)), ".zip")
    if _PLAIN.fullmatch(problem_id):
        return problem_id + suffix
    told = re.sub(r"[^A-Za-z0-9._-]+", "-", problem_id).strip(".-")[:60]
    return f"{told}-{hashlib.sha256(problem_id.encode()).hexdigest()[:10]}{suffix}"


def _plain_name(text: str, otherwise: str, suffix: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text.rstrip("/").rpartition("/")[2]).strip(".-")[-80:]
    name = name or otherwise
    return name if "." in name else name + suffix


def _checked_csv(path: Path, shown_as: str) -> str:
    if path.stat().st_size > MAX_CSV_BYTES:
        raise SourceError(f"larger than {MAX_CSV_BYTES // 1024**2} MiB; no CSV of problems", where=shown_as)
    return path.name


def _write(folder: Path, lock: Lock) -> Lock:
    write_atomically(folder / LOCK_NAME, lock.to_json())
    return lock


def _copy(source: Path, target: Path) -> None:
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
def _owned(folder: Path) -> Iterator[None]:
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
            if not (folder / LOCK_NAME).exists():
                _leave_nothing(folder)


def _leave_nothing(folder: Path) -> None:
    """A fetch that got nothing, not even the CSV, leaves no folder behind."""
    (folder / ".lock").unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        return


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

"""Load a remote problem set directly, or fetch it into a folder that a lock file pins.

If a fetch is killed, the lock lists the files that arrived, and the same command resumes.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from astra_async.errors import AstraError, SourceError, UsageError
from astra_async.problems.columns import MAX_CSV_BYTES
from astra_async.problems.fetch.cache import has_sha256
from astra_async.problems.fetch.hub import choose_csv, info_url, read_info
from astra_async.problems.fetch.locations import pinned_to
from astra_async.problems.fetched_folder import (
    SKILLS_NAME,
    ArchiveFetcher,
    FetchResult,
    Lock,
    copy_whole,
    owned,
    read_lock,
    write_lock,
)
from astra_async.problems.problems_csv import ProblemSet, add_skills, load_problems
from astra_async.problems.sources import HubSet, Source, folder_of, parse_source, resolve_url
from astra_async.redaction import public_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.problems.fetch import Store
    from astra_async.problems.fetch.hub import HubInfo
    from astra_async.problems.fetched_folder import Field
    from astra_async.types import Problem

    Say = Callable[[str], None]

_MAX_INFO_BYTES = 64 * 1024**2
_NEWS_S = 3.0  # timeout of the check for a newer revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The current CSV of a source, in the cache; `lock` is the initial lock for a folder of this set."""

    path: Path
    lock: Lock
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The options that control how a CSV is read: `--projects`, `--column`, `--skills`."""

    projects: str | None = None
    columns: Mapping[str, str]
    skills: str | None = None


async def load_set(text: str, store: Store, wanted: Selection) -> ProblemSet:
    """Load the problems that `--problems` names: a CSV, a fetched folder, a Hub data set or a URL.

    Raises ProblemsError or another UsageError for invalid input, and SourceError if fetching fails.
    """
    path = Path(text)
    is_here = await asyncio.to_thread(path.exists)
    source = None if is_here else parse_source(text, store.hub.endpoint)
    if source is None:
        found = await asyncio.to_thread(_load_local, path, wanted)
    else:
        opened = await open_source(source, store)
        found = _load_csv(opened.path, opened.lock, wanted)
        found = replace(found, warnings=opened.warnings + found.warnings)
    return add_skills(found, Path(wanted.skills)) if wanted.skills else found


async def open_source(source: Source, store: Store) -> Opened:
    """Fetch the source's current CSV. Raises SourceError or ArchiveError, whose message has the remedy."""
    if not isinstance(source, HubSet):
        return await _fetched(source.url, source.url.partition("?")[0], store, shown_as=str(source))
    info, warnings = await _info(source, store)
    pinned = replace(source, revision=info.revision, file=choose_csv(source, info))
    url = resolve_url(store.hub.endpoint, pinned)
    opened = await _fetched(url, pinned.file or "", store, shown_as=str(pinned))
    lock = replace(
        opened.lock,
        source=str(replace(source, file=pinned.file)),
        endpoint=store.hub.endpoint,
        revision=info.revision,
        licence=info.licence,
        gated=info.gated,
        private=info.private,
    )
    return replace(opened, lock=lock, warnings=warnings + opened.warnings)


async def _fetched(url: str, name: str, store: Store, *, shown_as: str) -> Opened:
    path, warnings = await store.fetch(url)
    if path.stat().st_size > MAX_CSV_BYTES:
        raise SourceError(
            f"larger than {MAX_CSV_BYTES // 1024**2} MiB, the limit of a problems CSV", where=shown_as
        )
    lock = Lock(
        source=shown_as,
        root=folder_of(url),
        fetched_at=datetime.now(UTC).isoformat(timespec="seconds"),
        csv=_plain_name(name),
        csv_sha256=path.name,  # the cache names objects by their content
    )
    return Opened(path=path, lock=lock, warnings=warnings)


async def _info(source: HubSet, store: Store) -> tuple[HubInfo, tuple[str, ...]]:
    """Fetch the Hub's current description of a data set; return it with warnings."""
    about, warnings = await store.fetch(info_url(store.hub.endpoint, source))
    if about.stat().st_size > _MAX_INFO_BYTES:
        raise SourceError("the data set's description is too large; name the CSV file", where=str(source))
    try:
        return read_info(orjson.loads(about.read_bytes()), str(source)), warnings
    except orjson.JSONDecodeError as error:
        raise SourceError("the response is not JSON; check HF_ENDPOINT", where=str(source)) from error


async def collect(
    source: Source, folder: Path, store: Store, wanted: Selection, *, update: bool = False, say: Say
) -> FetchResult:
    """Fetch a problem set into a folder, at the versions its lock pins; create a missing lock.

    With `update`, the source's current content replaces the lock.

    Raises:
        UsageError: the folder has other content or another process is filling it; or the CSV has mistakes.
        SourceError, ArchiveError: the CSV cannot be fetched. Failures of single problems are returned in
            `FetchResult.failed`.
        StorageError: the folder cannot be written.
    """
    with owned(folder):
        lock = read_lock(folder)
        newer = ""
        if lock is not None:
            _refuse_other(source, lock, folder)
        if lock is None or update:
            lock = await _begin(source, folder, store, lock, say)
        else:
            newer = await _newer(source, lock, store)
            await _restore_csv(lock, source, folder, store, say)
        if wanted.columns or wanted.projects:
            root = public_url(wanted.projects) if wanted.projects else lock.root
            columns = {**lock.columns, **wanted.columns}
            lock = write_lock(folder, replace(lock, columns=columns, root=root))
        found = _load_csv(folder / lock.csv, lock, wanted)
        if wanted.skills:
            add_skills(found, Path(wanted.skills))  # raises on mistakes, before the file is copied
            copy_whole(Path(wanted.skills), folder / SKILLS_NAME)
        collected = await ArchiveFetcher(lock, folder, store, say).fill(found.problems)
        return replace(collected, newer=newer)


def _load_local(path: Path, wanted: Selection) -> ProblemSet:
    """Load a local CSV; for a fetched folder or the CSV in one, use the archives that its lock pins."""
    folder = path if path.is_dir() else path.parent
    lock = read_lock(folder)
    if lock is None or (path != folder and path.name != lock.csv):
        return load_problems(path, projects_root=wanted.projects, columns=wanted.columns)
    if not has_sha256(folder / lock.csv, lock.csv_sha256):
        raise UsageError(
            f"{folder / lock.csv} was changed since it was fetched; copy your version elsewhere, and"
            f" restore the original with: astra fetch {lock.source} --out {folder}"
        )
    found = _load_pinned(lock, folder, wanted)
    absent = [problem.id for problem in found.problems if "://" in problem.project and not wanted.projects]
    if absent:
        message = (
            f"{folder}: {len(absent)} of {len(found.problems)} projects are not fetched yet ({absent[0]} ...)"
        )
        remedy = f"fetch them with: astra fetch {lock.source} --out {folder}"
        found = replace(found, warnings=(f"{message}; {remedy}", *found.warnings))
    own = folder / SKILLS_NAME
    return add_skills(found, own) if own.exists() and not wanted.skills else found


def _load_csv(path: Path, lock: Lock, wanted: Selection) -> ProblemSet:
    """Load the problems of a fetched CSV; project locations stay as written in the CSV."""
    return load_problems(
        path,
        projects_root=wanted.projects or lock.root,
        columns={**lock.columns, **wanted.columns},
        origin=lock.source + (f" at {lock.revision[:12]}" if lock.revision else ""),
    )


def _load_pinned(lock: Lock, folder: Path, wanted: Selection) -> ProblemSet:
    """Load a fetched folder's problems; locations of already fetched files point into the folder."""
    found = _load_csv(folder / lock.csv, lock, wanted)
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


async def _begin(source: Source, folder: Path, store: Store, before: Lock | None, say: Say) -> Lock:
    """Fetch the current CSV into the folder and write a new lock."""
    opened = await open_source(source, store)
    for warning in opened.warnings:
        say(f"warning: {warning}")
    lock = opened.lock
    if before is not None:
        old = {each.key: each.sha256 for each in before.files}
        lock = replace(lock, columns=before.columns, replaces={**old, **before.replaces})
    write_lock(folder, lock)
    copy_whole(opened.path, folder / lock.csv)
    return lock


def _refuse_other(source: Source, lock: Lock, folder: Path) -> None:
    """Raise UsageError if the folder's lock is for another set, or for another revision than requested."""
    if isinstance(source, HubSet):
        asked = str(replace(source, revision=None))
        bare = re.sub(r"@[^/]*", "", lock.source)
        fits = bare == asked or (source.file is None and bare.startswith(asked + "/"))
        of_revision = source.revision in (None, lock.revision) or f"@{source.revision}" in lock.source
        if fits and not of_revision:
            raise UsageError(
                f"{folder} has {bare} at revision {lock.revision[:12]}, not {source.revision}; choose another"
                " --out"
            )
    else:
        fits = str(source) == lock.source
    if not fits:
        raise UsageError(f"{folder} has {lock.source}, not {source}; choose another --out")


async def _newer(source: Source, lock: Lock, store: Store) -> str:
    """Return a newer revision than the pinned one, or '' (also if the Hub does not respond)."""
    if not isinstance(source, HubSet) or source.revision or store.hub.offline:
        return ""
    try:
        async with asyncio.timeout(_NEWS_S):
            info, warnings = await _info(source, store)
    except (AstraError, TimeoutError, OSError):
        return ""
    return info.revision if not warnings and info.revision != lock.revision else ""


async def _restore_csv(lock: Lock, source: Source, folder: Path, store: Store, say: Say) -> None:
    """Fetch the CSV again if it is missing or differs from the lock."""
    if has_sha256(folder / lock.csv, lock.csv_sha256):
        return
    if isinstance(source, HubSet):
        pinned = parse_source(lock.source, store.hub.endpoint)
        file = pinned.file if isinstance(pinned, HubSet) else source.file
        url = resolve_url(store.hub.endpoint, replace(source, revision=lock.revision, file=file))
    else:
        url = source.url
    path, _ = await store.fetch(url)
    if not has_sha256(path, lock.csv_sha256):
        raise UsageError(
            f"{lock.source} has changed since the lock was written; add --update to take the current version"
        )
    say(f"{folder / lock.csv} was missing or changed and has been fetched again")
    copy_whole(path, folder / lock.csv)


def _plain_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text.rstrip("/").rpartition("/")[2]).strip(".-")[-80:]
    name = name or "problems"
    return name if "." in name else f"{name}.csv"

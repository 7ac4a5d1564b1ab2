"""Load the Project or reference Solution at any location, through the cache."""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from astra_async.errors import ArchiveError, ProjectError, SourceError
from astra_async.problems.fetch.archives import read_entries
from astra_async.problems.fetch.cache import Cache, CachedLocation, TransientFetchError, has_sha256, retried
from astra_async.problems.fetch.hub import Hub
from astra_async.problems.fetch.locations import (
    S3Object,
    WebAddress,
    cache_key,
    parse_location,
    shown,
    split_pin,
)
from astra_async.problems.fetch.objects import ObjectStore
from astra_async.problems.fetch.tree import MAX_FILE_BYTES, build_project, is_left_out, safe_path
from astra_async.problems.manifest import MANIFEST_NAMES
from astra_async.problems.sources import source_text
from astra_async.tasks import cancel, mark_retrieved
from astra_async.transport import trusted
from astra_async.types import S3Settings, Solution

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

    import aiohttp

    from astra_async.problems.fetch.tree import ArchiveEntry
    from astra_async.types import Project

    T = TypeVar("T")


def solution_of(entries: Iterable[ArchiveEntry]) -> Solution:
    """Return the text files of a folder or an archive as a Solution.

    A single wrapper folder is removed only if it holds the manifest, because a reference often has only
    files below `src`. `.git`, `node_modules`, links and binary files are omitted; for binary files, the
    repair `binary_left_out` is recorded.
    """
    contents = {safe_path(entry.path): entry.content for entry in entries if entry.kind == "file"}
    root = _root(contents)
    files: dict[str, str] = {}
    binary = False
    for path, content in sorted(contents.items()):
        inner = path.removeprefix(root)
        if _is_left_out(inner):
            continue
        if source := source_text(content):
            files[inner] = source.text
        else:
            binary = True
    if not files:
        raise ArchiveError("the reference has no text files")
    return Solution(files=files, repairs=("binary_left_out",) if binary else ())


def solution_in_json(path: Path) -> Solution | None:
    """Parse a JSON solution, `{path: content}` or `{"files": [{"path", "content"}]}`; None if it is not JSON.

    Raises:
        ArchiveError: the JSON is too large or invalid, or has another structure.
    """
    import orjson

    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return None
    if len(data) > MAX_FILE_BYTES:
        raise ArchiveError(f"the reference is larger than {MAX_FILE_BYTES // 1024**2} MiB")
    try:
        files = _files(orjson.loads(data.removeprefix(b"\xef\xbb\xbf")))
    except orjson.JSONDecodeError as error:
        raise ArchiveError(f"the reference is invalid JSON: {error}") from error
    if not files:
        raise ArchiveError('the reference must be {path: content} or {"files": [{"path", "content"}]}')
    return Solution(files=files)


def _files(value: object) -> Mapping[str, str] | None:
    if isinstance(value, dict) and isinstance(value.get("files"), list | dict):
        value = value["files"]
    if isinstance(value, list):
        if not all(isinstance(item, dict) for item in value):
            return None
        value = {item.get("path"): item.get("content") for item in value}
    if not isinstance(value, dict):
        return None
    if not all(isinstance(path, str) and isinstance(content, str) for path, content in value.items()):
        return None
    return value


def _root(paths: Iterable[str]) -> str:
    """Return the folder (with slash) of the topmost manifest; '' without one, or if files are outside it."""
    paths = list(paths)
    manifests = [path for path in paths if posixpath.basename(path).lower() in MANIFEST_NAMES]
    top = posixpath.dirname(min(manifests, key=lambda path: (path.count("/"), path), default=""))
    root = f"{top}/" if top else ""
    return root if all(path.startswith(root) or _is_left_out(path) for path in paths) else ""


def _is_left_out(path: str) -> bool:
    return is_left_out(path) or "node_modules" in path.split("/")


class Store:
    """Fetches projects and references; implements ProjectStore.

    Concurrent loads of one location share one task. Cancelling a caller does not cancel the shared task;
    `close` cancels the remaining tasks.
    """

    def __init__(
        self,
        cache: Path,
        *,
        s3: S3Settings | None = None,
        hub: Hub | None = None,
        session: aiohttp.ClientSession | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """A given `session` is not closed; the default session uses `transport.trusted` certificates."""
        self._cache = Cache(cache)
        self._settings = s3 or S3Settings()
        self.hub = hub or Hub()
        self._objects = ObjectStore(self._settings)
        self._session = session
        self._is_own = session is None
        self._sleep = sleep
        self._running: dict[tuple[str, str], asyncio.Task[Any]] = {}

    async def load(self, location: str) -> Project:
        """Load the project at a folder, .zip, .tar.gz, https or s3 location.

        Raises:
            SourceError: the project cannot be fetched.
            ArchiveError: the project is broken, malicious or too large.
        """
        return await self._once("project", location, self._project)

    async def load_reference(self, location: str) -> Solution:
        """Load the reference solution at a folder, an archive or a JSON file `{path: content}`.

        Raises:
            SourceError: the reference cannot be fetched.
            ArchiveError: the reference is too large, broken, malicious or has another structure.
        """
        return await self._once("reference", location, self._reference)

    async def fetch(self, location: str) -> tuple[Path, tuple[str, ...]]:
        """Fetch a URL or S3 object; return its path in the cache and warnings. The content is not parsed.

        Raises SourceError, or ArchiveError if the file is too large.
        """
        return await self._once("file", location, self._local)

    async def close(self) -> None:
        """Cancel running loads and close all connections that this store opened."""
        await cancel(*self._running.values())
        await self._objects.close()
        if self._session is not None and self._is_own:
            await self._session.close()

    async def _once(self, kind: str, location: str, load: Callable[[str], Coroutine[Any, Any, T]]) -> T:
        key = (kind, location)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(load(location), name=f"load {kind} {shown(location)}")
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))
            task.add_done_callback(mark_retrieved)
        try:
            result: T = await asyncio.shield(task)
        except asyncio.CancelledError as error:
            caller = asyncio.current_task()
            if task.cancelled() and (caller is None or not caller.cancelling()):
                # The shared task was cancelled, not this caller; a task group would ignore a CancelledError.
                raise SourceError("the store was closed during the load", where=shown(location)) from error
            raise
        return result

    async def _project(self, location: str) -> Project:
        path, warnings = await self._local(location)
        project = await _in_thread(location, lambda: build_project(read_entries(path)))
        return replace(project, warnings=(*warnings, *project.warnings))

    async def _reference(self, location: str) -> Solution:
        path, _ = await self._local(location)

        def read() -> Solution:
            found = solution_in_json(path) if path.is_file() else None
            return found or solution_of(read_entries(path))

        return await _in_thread(location, read)

    async def _local(self, location: str) -> tuple[Path, tuple[str, ...]]:
        """Return the local path of a folder or archive, fetching it if remote, and warnings."""
        location, pinned = split_pin(location)
        path, warnings = await self._unpinned(location)
        if pinned and not await asyncio.to_thread(has_sha256, path, pinned):
            raise ArchiveError(
                f"the file is missing or differs from its pinned hash (sha256 {pinned[:12]}...);"
                " run `astra fetch` again to restore the file or see that the source changed",
                where=shown(location),
            )
        return path, warnings

    async def _unpinned(self, location: str) -> tuple[Path, tuple[str, ...]]:
        where = parse_location(location)
        if isinstance(where, Path):
            return where, ()
        key, fetch = self._way(where)
        known = self._cache.known(key)
        if known is not None and not await asyncio.to_thread(self._cache.is_intact, known.sha256):
            known = None
        warnings: tuple[str, ...] = ()
        if self.hub.offline and isinstance(where, WebAddress) and self.hub.is_at(where.url):
            if known is None:
                raise SourceError(
                    "the cache has no copy; unset HF_HUB_OFFLINE to fetch it", where=shown(location)
                )
            return self._cache.path(known.sha256), ()
        try:
            found = await retried(lambda: fetch(known), sleep=self._sleep)
            self._cache.remember(key, found)
        except TransientFetchError as trouble:
            if known is None:
                raise
            warnings = (f"{trouble}: using the cached copy",)
            found = known
        except ArchiveError as error:
            raise ArchiveError(error.cause, where=shown(location)) from error
        return self._cache.path(found.sha256), warnings

    def _way(
        self, where: WebAddress | S3Object
    ) -> tuple[str, Callable[[CachedLocation | None], Awaitable[CachedLocation]]]:
        """Return the cache key and the fetch function of a location (rules: see `locations`)."""
        if isinstance(where, WebAddress):
            behind = where.behind
            if behind is None or not self._settings.endpoint_url:
                return cache_key(where.url), lambda known: self._from_web(where, known)
            where = behind
        place = where
        parts = ["s3", self._settings.endpoint_url, place.bucket, place.key, place.version]
        return json.dumps(parts), lambda known: self._objects.fetch(place, self._cache, known)

    async def _from_web(self, where: WebAddress, known: CachedLocation | None) -> CachedLocation:
        from astra_async.problems.fetch.download import AccessRefused, download

        try:
            return await download(self._web(), where.url, self._cache, known)
        except AccessRefused as refusal:
            if where.behind is None or self._settings.anonymous:
                raise
            try:
                return await self._objects.fetch(where.behind, self._cache, known)
            except TransientFetchError:
                raise
            except SourceError as error:
                raise SourceError(
                    f"{refusal.cause}; with credentials: {error}", where=refusal.where
                ) from error

    def _web(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=trusted(os.environ)), middlewares=(self.hub.middleware(),)
            )
        return self._session


async def _in_thread(location: str, work: Callable[[], T]) -> T:
    """Run blocking work in a thread; exceptions name the location."""
    try:
        return await asyncio.to_thread(work)
    except FileNotFoundError as error:
        raise SourceError(
            "folder or file not found; check the CSV and --projects", where=shown(location)
        ) from error
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror or error})", where=shown(location)) from error
    except ProjectError as error:
        raise type(error)(error.cause, where=shown(location)) from error

"""The ProjectStore: any location to a Project, each archive fetched once and checked for changes after."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from astra_async.errors import ArchiveError, ProjectError, SourceError
from astra_async.problems.fetch.archives import read_entries
from astra_async.problems.fetch.cache import Cache, Known, has_sha256
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
from astra_async.problems.fetch.reference import solution_in_json, solution_of
from astra_async.problems.fetch.retrying import Passing, retried
from astra_async.problems.fetch.tree import build_project
from astra_async.tasks import cancel, seen
from astra_async.transport import trusted
from astra_async.types import S3Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    import aiohttp

    from astra_async.types import Project, Solution

    T = TypeVar("T")


class Store:
    """Fetches projects and references; implements ProjectStore.

    Several loads of one location at the same time are one. A caller that is cancelled leaves the common
    load to the others; `close` ends what is left.
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
        """`session` stays the caller's; without it one is made that trusts as `transport.trusted` says."""
        self._cache = Cache(cache)
        self._settings = s3 or S3Settings()
        self.hub = hub or Hub()
        self._objects = ObjectStore(self._settings)
        self._session = session
        self._is_own = session is None
        self._sleep = sleep
        self._running: dict[tuple[str, str], asyncio.Task[Any]] = {}

    async def load(self, location: str) -> Project:
        """The project at a folder, .zip, .tar.gz, https or s3 location.

        Raises:
            SourceError: it cannot be fetched.
            ArchiveError: it is broken, hostile or too large.
        """
        return await self._once("project", location, self._project)

    async def load_reference(self, location: str) -> Solution:
        """The reference solution at a location: a folder, an archive or a JSON file `{path: content}`.

        Raises:
            SourceError: it cannot be fetched.
            ArchiveError: it is broken, hostile, too large or of another form.
        """
        return await self._once("reference", location, self._reference)

    async def fetch(self, location: str) -> tuple[Path, tuple[str, ...]]:
        """The file at a web or S3 location as it is, in the cache, and warnings; it is not looked into.

        Raises SourceError, or ArchiveError when it is too large.
        """
        return await self._once("file", location, self._local)

    async def close(self) -> None:
        """Ends what is still loading and closes all connections of its own."""
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
            task.add_done_callback(seen)
        try:
            result: T = await asyncio.shield(task)
        except asyncio.CancelledError as error:
            caller = asyncio.current_task()
            if task.cancelled() and (caller is None or not caller.cancelling()):
                # Not this caller was cancelled: a task that ends so would vanish from its group unseen.
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
        """Where the folder or the archive lies on this machine, fetched if it lay elsewhere."""
        location, pinned = split_pin(location)
        path, warnings = await self._unpinned(location)
        if pinned and not await asyncio.to_thread(has_sha256, path, pinned):
            raise ArchiveError(
                f"it is gone, or its content is not the one that was pinned (sha256 {pinned[:12]}...):"
                " `astra fetch` again tells whether it was damaged here or changed there",
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
                    "HF_HUB_OFFLINE is set and no copy is here; unset it", where=shown(location)
                )
            return self._cache.path(known.sha256), ()
        try:
            found = await retried(lambda: fetch(known), sleep=self._sleep)
            self._cache.remember(key, found)
        except Passing as trouble:
            if known is None:
                raise
            warnings = (f"{trouble}: the copy of an earlier load was used",)
            found = known
        except ArchiveError as error:
            raise ArchiveError(error.cause, where=shown(location)) from error
        return self._cache.path(found.sha256), warnings

    def _way(self, where: WebAddress | S3Object) -> tuple[str, Callable[[Known | None], Awaitable[Known]]]:
        """The key in the cache and the way to fetch (see `locations` for the rule)."""
        if isinstance(where, WebAddress):
            behind = where.behind
            if behind is None or not self._settings.endpoint_url:
                return cache_key(where.url), lambda known: self._from_web(where, known)
            where = behind
        place = where
        parts = ["s3", self._settings.endpoint_url, place.bucket, place.key, place.version]
        return json.dumps(parts), lambda known: self._objects.fetch(place, self._cache, known)

    async def _from_web(self, where: WebAddress, known: Known | None) -> Known:
        from astra_async.problems.fetch.download import AccessRefused, download

        try:
            return await download(self._web(), where.url, self._cache, known)
        except AccessRefused as refusal:
            if where.behind is None or self._settings.anonymous:
                raise
            try:
                return await self._objects.fetch(where.behind, self._cache, known)
            except Passing:
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
    """Runs blocking work off the loop; what goes wrong there names the location."""
    try:
        return await asyncio.to_thread(work)
    except FileNotFoundError as error:
        raise SourceError(
            "no such folder or file; check the CSV and --projects", where=shown(location)
        ) from error
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror or error})", where=shown(location)) from error
    except ProjectError as error:
        raise type(error)(error.cause, where=shown(location)) from error

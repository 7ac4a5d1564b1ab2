"""Fetched archives on disk: one file for each content, found again by location.

    CACHE/objects/ab/abcdef...   an archive, named by the sha256 of its bytes
    CACHE/index/HASH.json        location (hashed: an address may hold a secret) -> sha256, ETag
    CACHE/incoming/...           downloads under way

Every file appears by rename, so that several processes may share a cache and a killed one leaves no half
object; contents are checked against their name before each use. A download is locked while it is under way:
its age alone would tell nothing once somebody has set the machine's clock.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import random
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar
from uuid import uuid4

from astra_async.errors import ArchiveError, SourceError
from astra_async.problems.fetch.tree import MAX_ARCHIVE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterator


T = TypeVar("T")

ATTEMPTS = 5
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
WINDOW_S = 60.0
LEAST_BYTES_PER_S = 1024


class Passing(SourceError):  # noqa: N818 - a state of the source
    """A fetch failed in a way that may pass; `hint_s` is the pause that the server asked for."""

    def __init__(
        self, cause: str, *, where: str = "", problem_id: str = "", hint_s: float | None = None
    ) -> None:
        super().__init__(cause, where=where, problem_id=problem_id)
        self.hint_s = hint_s


async def retried(
    attempt: Callable[[], Awaitable[T]], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> T:
    """The result of the first attempt that succeeds, with doubling, jittered pauses in between.

    Raises:
        Passing: the last attempt's trouble.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Passing as trouble:
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients, guards nothing
            pause = trouble.hint_s or _FIRST_PAUSE_S * 2**number * jitter
        await sleep(min(pause, _LONGEST_PAUSE_S))
    return await attempt()


class TrickleWatch:
    """Watches the pieces of one body: a byte now and then keeps every idle timer quiet, for ever.

    Args:
        shown: the body's location, for the message.
        clock: monotonic seconds.
    """

    def __init__(self, shown: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown = shown
        self._clock = clock
        self._window_began = clock()
        self._bytes = 0

    def came(self, size_bytes: int) -> None:
        """A piece has come. Raises Passing after WINDOW_S seconds with less than LEAST_BYTES_PER_S."""
        self._bytes += size_bytes
        elapsed_s = self._clock() - self._window_began
        if elapsed_s < WINDOW_S:
            return
        if self._bytes < LEAST_BYTES_PER_S * elapsed_s:
            raise Passing(
                f"{self._shown}: only {self._bytes:,} bytes came in {elapsed_s:.0f} s;"
                " check the connection, or copy the archives here and name them by --projects"
            )
        self._window_began, self._bytes = self._clock(), 0


_ABANDONED_S = 24 * 3600.0  # older downloads belong to a killed process
CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedLocation:
    """What is known of a location: the content last seen there, and how to ask whether it changed."""

    sha256: str
    etag: str = ""
    last_modified: str = ""


def has_sha256(path: Path, sha256: str) -> bool:
    """Whether a file is there, can be read, and its bytes have this hash; blocking."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


class Cache:
    """The cache in one folder; made when the first object comes."""

    def __init__(self, root: Path) -> None:
        self._objects = root / "objects"
        self._index = root / "index"
        self._incoming = root / "incoming"

    def known(self, key: str) -> CachedLocation | None:
        """What was remembered of a location, if its object is still there."""
        try:
            known = CachedLocation(**json.loads(self._entry(key).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return known if self.path(known.sha256).is_file() else None

    def remember(self, key: str, known: CachedLocation) -> None:
        """Binds a location to an object. Raises SourceError when the cache cannot be written."""
        with self._writing():
            temporary = self._fresh()
            temporary.write_text(json.dumps(asdict(known)), encoding="utf-8")
            self._entry(key).parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(self._entry(key))

    def path(self, sha256: str) -> Path:
        """Where the object with this content is, or would be."""
        return self._objects / sha256[:2] / sha256

    def is_intact(self, sha256: str) -> bool:
        """Whether the object's bytes have their hash; a damaged one is removed. Blocking."""
        if has_sha256(self.path(sha256), sha256):
            return True
        with suppress(OSError):
            self.path(sha256).unlink()
        return False

    async def keep(self, body: AsyncIterable[bytes], announced_bytes: int | None, shown: str) -> str:
        """Takes a body in, piece by piece, and returns its sha256; `shown` is where it comes from.

        Raises ArchiveError if it is too large, Passing if it trickles, SourceError as `remember` does.
        """
        watch, digest, size = TrickleWatch(shown), hashlib.sha256(), 0
        _refuse_large(announced_bytes or 0)
        with self.incoming() as file:
            async for chunk in body:
                size += len(chunk)
                _refuse_large(size)
                digest.update(chunk)
                with self._writing():
                    file.write(chunk)
                watch.came(len(chunk))
            self._move(file, self.path(digest.hexdigest()))
        return digest.hexdigest()

    @contextmanager
    def incoming(self) -> Iterator[IO[bytes]]:
        """A file to download into, locked meanwhile; nothing of it remains unless it is moved away."""
        with self._writing():
            self._sweep()
            path = self._fresh()
            file = path.open("xb")
        try:
            with suppress(OSError):  # a file system without locks: age is all there is
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
        finally:
            file.close()
            path.unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SourceError(
                f"the cache {self._objects.parent} cannot be written ({error.strerror}); free or move it"
            ) from error

    def _move(self, file: IO[bytes], target: Path) -> None:
        with self._writing():
            file.flush()  # the disk may turn out full only here
            target.parent.mkdir(parents=True, exist_ok=True)
            Path(file.name).replace(target)

    def _entry(self, key: str) -> Path:
        return self._index / f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def _fresh(self) -> Path:
        self._incoming.mkdir(parents=True, exist_ok=True)
        return self._incoming / f"{os.getpid()}-{uuid4().hex}"

    def _sweep(self) -> None:
        """Removes what processes that were killed have left."""
        for path in self._incoming.glob("*"):
            with suppress(OSError):  # another process may have been faster
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    with path.open("rb") as file:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is being filled
                        path.unlink()


def _refuse_large(size_bytes: int) -> None:
    if size_bytes > MAX_ARCHIVE_BYTES:
        raise ArchiveError(f"the archive has {size_bytes:,} bytes; at most {MAX_ARCHIVE_BYTES:,} are read")

"""Disk cache of fetched archives, addressed by content and indexed by location.

    CACHE/objects/ab/abcdef...   an archive, named by the sha256 of its bytes
    CACHE/index/HASH.json        hashed location (a URL may contain a secret) -> sha256, ETag
    CACHE/incoming/...           unfinished downloads

Every file is renamed into place, so several processes may share a cache and a killed process leaves no
partial object. Content is verified against its hash before each use. An unfinished download is locked,
because its age is not reliable after a change of the machine's clock.
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


class TransientFetchError(SourceError):
    """A transient fetch error; `hint_s` is the pause in seconds that the server requested."""

    def __init__(
        self, cause: str, *, where: str = "", problem_id: str = "", hint_s: float | None = None
    ) -> None:
        super().__init__(cause, where=where, problem_id=problem_id)
        self.hint_s = hint_s


async def retried(
    attempt: Callable[[], Awaitable[T]], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> T:
    """Return the result of the first successful attempt; pauses double, with jitter.

    Raises:
        TransientFetchError: all attempts failed; this is the last error.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except TransientFetchError as trouble:
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - not security-relevant
            pause = trouble.hint_s or _FIRST_PAUSE_S * 2**number * jitter
        await sleep(min(pause, _LONGEST_PAUSE_S))
    return await attempt()


class SlowTransferGuard:
    """Detects very slow transfers of one body, which an idle timeout would not detect.

    Args:
        shown: the body's location, for the message.
        clock: monotonic seconds.
    """

    def __init__(self, shown: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown = shown
        self._clock = clock
        self._window_began = clock()
        self._bytes = 0

    def received(self, size_bytes: int) -> None:
        """Count a chunk. Raises TransientFetchError after WINDOW_S seconds below LEAST_BYTES_PER_S."""
        self._bytes += size_bytes
        elapsed_s = self._clock() - self._window_began
        if elapsed_s < WINDOW_S:
            return
        if self._bytes < LEAST_BYTES_PER_S * elapsed_s:
            raise TransientFetchError(
                f"{self._shown}: only {self._bytes:,} bytes received in {elapsed_s:.0f} s;"
                " check the connection, or copy the archives to this machine and use --projects"
            )
        self._window_began, self._bytes = self._clock(), 0


_ABANDONED_S = 24 * 3600.0  # older unfinished downloads are from a killed process
CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedLocation:
    """The last known content of a location, and the validators for a conditional request."""

    sha256: str
    etag: str = ""
    last_modified: str = ""


def has_sha256(path: Path, sha256: str) -> bool:
    """Return True if the file can be read and its content has this hash; blocking."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


class Cache:
    """A cache in one folder, which is created with the first object."""

    def __init__(self, root: Path) -> None:
        self._objects = root / "objects"
        self._index = root / "index"
        self._incoming = root / "incoming"

    def known(self, key: str) -> CachedLocation | None:
        """Return the remembered content of a location if its object still exists."""
        try:
            known = CachedLocation(**json.loads(self._entry(key).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return known if self.path(known.sha256).is_file() else None

    def remember(self, key: str, known: CachedLocation) -> None:
        """Store the content of a location. Raises SourceError if the cache cannot be written."""
        with self._writing():
            temporary = self._fresh()
            temporary.write_text(json.dumps(asdict(known)), encoding="utf-8")
            self._entry(key).parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(self._entry(key))

    def path(self, sha256: str) -> Path:
        """Return the path of the object with this hash; the object need not exist."""
        return self._objects / sha256[:2] / sha256

    def is_intact(self, sha256: str) -> bool:
        """Return True if the object matches its hash; delete a damaged object. Blocking."""
        if has_sha256(self.path(sha256), sha256):
            return True
        with suppress(OSError):
            self.path(sha256).unlink()
        return False

    async def keep(self, body: AsyncIterable[bytes], announced_bytes: int | None, shown: str) -> str:
        """Store a body chunk by chunk and return its sha256; `shown` is its location, for messages.

        Raises ArchiveError if the body is too large, TransientFetchError if it is too slow, and SourceError
        like `remember`.
        """
        watch, digest, size = SlowTransferGuard(shown), hashlib.sha256(), 0
        _refuse_large(announced_bytes or 0)
        with self.incoming() as file:
            async for chunk in body:
                size += len(chunk)
                _refuse_large(size)
                digest.update(chunk)
                with self._writing():
                    file.write(chunk)
                watch.received(len(chunk))
            self._move(file, self.path(digest.hexdigest()))
        return digest.hexdigest()

    @contextmanager
    def incoming(self) -> Iterator[IO[bytes]]:
        """Open a locked file to download into; delete it at the end unless it was moved."""
        with self._writing():
            self._sweep()
            path = self._fresh()
            file = path.open("xb")
        try:
            with suppress(OSError):  # on a file system without locks, only the file's age protects it
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
                f"the cache {self._objects.parent} cannot be written ({error.strerror}); free disk space"
            ) from error

    def _move(self, file: IO[bytes], target: Path) -> None:
        with self._writing():
            file.flush()  # a full disk may be detected only here
            target.parent.mkdir(parents=True, exist_ok=True)
            Path(file.name).replace(target)

    def _entry(self, key: str) -> Path:
        return self._index / f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def _fresh(self) -> Path:
        self._incoming.mkdir(parents=True, exist_ok=True)
        return self._incoming / f"{os.getpid()}-{uuid4().hex}"

    def _sweep(self) -> None:
        """Delete the unfinished downloads of killed processes."""
        for path in self._incoming.glob("*"):
            with suppress(OSError):  # another process may have deleted the file
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    with path.open("rb") as file:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails during a download
                        path.unlink()


def _refuse_large(size_bytes: int) -> None:
    if size_bytes > MAX_ARCHIVE_BYTES:
        raise ArchiveError(f"the archive has {size_bytes:,} bytes; the limit is {MAX_ARCHIVE_BYTES:,}")

"""Fetched archives on disk: one file for each content, found again by location.

    CACHE/objects/ab/abcdef...   an archive, named by the sha256 of its bytes
    CACHE/index/HASH.json        location (hashed: an address may hold a secret) -> sha256, ETag
    CACHE/incoming/...           downloads under way

Every file appears by rename, so that several processes may share a cache and a killed one leaves no half
object; contents are checked against their name before each use. A download is locked while it is under way:
its age alone would tell nothing once somebody has set the machine's clock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from astra_async.errors import ArchiveError, SourceError
from astra_async.problems.fetch.retrying import TrickleWatch
from astra_async.problems.fetch.tree import MAX_ARCHIVE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterable
    from pathlib import Path
    from types import TracebackType

_ABANDONED_S = 24 * 3600.0  # older downloads belong to a killed process
CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
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

    def known(self, key: str) -> Known | None:
        """What was remembered of a location, if its object is still there."""
        try:
            known = Known(**json.loads(self._entry(key).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return known if self.path(known.sha256).is_file() else None

    def remember(self, key: str, known: Known) -> None:
        """Binds a location to an object. Raises SourceError when the cache cannot be written."""
        try:
            temporary = self._fresh()
            temporary.write_text(json.dumps(asdict(known)), encoding="utf-8")
            self._entry(key).parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(self._entry(key))
        except OSError as error:
            raise self._unwritable(error) from error

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
        watch = TrickleWatch(shown)
        with self.incoming() as incoming:
            incoming.expect(announced_bytes)
            async for chunk in body:
                incoming.write(chunk)
                watch.came(len(chunk))
            return incoming.keep()

    def incoming(self) -> Incoming:
        """A download to fill; nothing of it remains unless it is kept."""
        try:
            self._sweep()
            return Incoming(self, self._fresh())
        except OSError as error:
            raise self._unwritable(error) from error

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

    def _unwritable(self, error: OSError) -> SourceError:
        return SourceError(
            f"the cache {self._objects.parent} cannot be written ({error.strerror}); free or move it"
        )


class Incoming:
    """One download: bytes in, counted and hashed."""

    def __init__(self, cache: Cache, path: Path) -> None:
        self._cache = cache
        self._path = path
        self._digest = hashlib.sha256()
        self._size = 0
        self._file = path.open("xb")
        with suppress(OSError):  # a file system without locks: age is all there is
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def expect(self, size: int | None) -> None:
        """Refuses an announced size that is too large, before its bytes come."""
        if size is not None and size > MAX_ARCHIVE_BYTES:
            raise ArchiveError(f"the archive has {size:,} bytes; at most {MAX_ARCHIVE_BYTES:,} are read")

    def write(self, chunk: bytes) -> None:
        """Adds bytes. Raises ArchiveError past the limit, SourceError when the disk is full."""
        self._size += len(chunk)
        self.expect(self._size)
        self._digest.update(chunk)
        try:
            self._file.write(chunk)
        except OSError as error:
            raise self._cache._unwritable(error) from error  # noqa: SLF001 - one room, one message

    def keep(self) -> str:
        """Makes it an object and returns its sha256."""
        sha256 = self._digest.hexdigest()
        target = self._cache.path(sha256)
        try:
            self._file.flush()  # the disk may turn out full only here
            target.parent.mkdir(parents=True, exist_ok=True)
            self._path.replace(target)
        except OSError as error:
            raise self._cache._unwritable(error) from error  # noqa: SLF001 - as above
        return sha256

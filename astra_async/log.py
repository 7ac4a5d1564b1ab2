"""Append-only JSON lines files: open and repair, append, read by offset, sync to disk.

Invariants:
- A record is written by one `os.write` of one line to an O_APPEND descriptor. A killed process can therefore
  leave only the last line incomplete, and opening removes such a line. If the line lacks only its newline,
  the newline is added; this is safe because no prefix of a JSON object is itself a complete object.
- A failed write leaves the file unchanged. The partial line is removed at once or, if the disk refuses that,
  before the next write.
- `sync` may run in another thread; everything else belongs to one thread.

Two processes writing one file are prevented by the run directory's lock, not here.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from astra_async.errors import StorageError
from astra_async.files import file_mode, is_whole, open_regular, storage_error
from astra_async.surrogates import without_surrogates
from astra_async.types.records import read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

_BLOCK_BYTES = 64 * 1024
# Errors of file systems that cannot sync folders, and of a parent folder without read permission.
_CANNOT_SYNC_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)


@dataclass(eq=False)
class AppendLog:
    """One JSON lines file, open for appending.

    Attributes:
        path: the file.
        cut_bytes: size of the incomplete last line removed on opening (0 without one).
    """

    path: Path
    _descriptor: int
    # Invariant: the file ends at `_size_bytes`, after a complete line, unless `_torn`.
    _size_bytes: int
    cut_bytes: int
    _torn: bool = False
    _dirty: bool = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create the file; remove or complete an incomplete last line. Raises StorageError."""
        try:
            mode = file_mode(path.parent)
            descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
            found = os.fstat(descriptor)
            if stat.S_IMODE(found.st_mode) & ~mode and found.st_uid == os.geteuid():
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & mode)
            size = found.st_size
            whole = _end_of_last_line(descriptor, size)
            if whole < size and is_whole(os.pread(descriptor, size - whole, whole)):
                os.write(descriptor, b"\n")
                whole = size = size + 1
            elif whole < size:
                os.ftruncate(descriptor, whole)
        except OSError as error:
            raise storage_error(path, error) from error
        return cls(path, descriptor, whole, size - whole)

    def append(self, record: object) -> tuple[int, int]:
        """Write a record as one line; return (offset, length) for `read_at`. Raises StorageError."""
        return self.append_line(encode(record))

    def append_line(self, content: bytes) -> tuple[int, int]:
        """Write a record encoded by `encode`; otherwise like `append`."""
        line = content + b"\n"
        try:
            if self._torn:
                self._cut_torn_write()
            self._torn = True  # until the whole line is written
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # retried before the next record and on opening
                self._cut_torn_write()
            raise storage_error(self.path, error) from error
        offset = self._size_bytes
        self._size_bytes += len(line)
        self._torn = False
        self._dirty = True
        return offset, len(line) - 1

    def read_at(self, offset: int, length: int) -> dict[str, Any]:
        """Return the record at a position returned by `append` or `scan`."""
        return read_record(os.pread(self._descriptor, length, offset))

    def sync(self) -> None:
        """Sync appended data to disk; does nothing if there is none. Raises StorageError."""
        if not self._dirty:
            return
        self._dirty = False  # before the sync, so that a concurrent append sets it again
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise storage_error(self.path, error) from error

    def close(self) -> None:
        """Sync and close; the log cannot be used afterwards."""
        try:
            self.sync()
        finally:
            os.close(self._descriptor)

    def _cut_torn_write(self) -> None:
        os.ftruncate(self._descriptor, self._size_bytes)
        self._torn = False


def encode(record: object) -> bytes:
    """Encode a record (dataclass, struct, dict) as JSON without a newline.

    orjson rejects lone surrogates; they are replaced by U+FFFD, so that no record is lost.
    """
    try:
        return orjson.dumps(record, default=fields_of)
    except orjson.JSONEncodeError:
        plain = json.dumps(record, default=fields_of, ensure_ascii=False)
        return without_surrogates(plain).encode()


def decode(line: bytes) -> Any:
    """Decode a line written by `encode`; raises ValueError for invalid JSON."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)


def fields_of(value: object) -> dict[str, Any]:
    """Return the fields of a dataclass or struct by name, as a shallow copy."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if not is_dataclass(value):
        message = f"cannot record a {type(value).__name__}"
        raise TypeError(message)
    return {item.name: getattr(value, item.name) for item in fields(value)}


def sync_entries(folder: Path) -> None:
    """Sync the directory entries of a folder and of its parent to disk (fsync(2))."""
    for each in (folder, folder.parent):
        try:
            descriptor = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC_FOLDERS:
                raise storage_error(each, error) from error


async def keep_synced(
    logs: Sequence[AppendLog], on_error: Callable[[StorageError], None], interval_s: float = 0.5
) -> None:
    """Sync the logs in a thread until cancelled; a power loss then costs about one second of records.

    A dedicated thread is used, so that other users of threads cannot delay it. An error of one log is passed
    to `on_error`, and the other logs are still synced.
    """
    loop, disk = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix="sync")
    try:
        while True:
            await asyncio.sleep(interval_s)
            for log in logs:
                try:
                    await loop.run_in_executor(disk, log.sync)
                except StorageError as error:
                    on_error(error)
                except Exception as error:  # noqa: BLE001 - if no thread can start, running requests must continue
                    on_error(StorageError(f"{log.path}: cannot be synced: {type(error).__name__}: {error}"))
    finally:
        disk.shutdown(wait=False)  # do not wait for a disk that hangs


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Return the offset after the last newline (0 without one), searching from the end."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def now_utc() -> str:
    """The current time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

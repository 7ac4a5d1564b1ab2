"""Append-only JSON lines: open and repair, append, read back by offset, keep synced to disk.

Invariants:
- A record is one `os.write` of one line on an O_APPEND descriptor: a killed process can tear only the
  last line, and opening cuts such a tail off again. One that lacks nothing but its newline gets that: no
  beginning of an object is itself a whole one.
- A write that fails leaves the file as it was before: the torn part is cut off at once or, where the disk
  refuses that too, before anything else is written behind it.
- `sync` may run in a thread; everything else belongs to one thread.

Not covered: two processes on one file. The run directory's lock sees to that.
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
from astra_async.files import file_mode, storage_error
from astra_async.surrogates import without_surrogates
from astra_async.types.records import read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

_TAIL_BLOCK_BYTES = 64 * 1024
# What file systems say that have no such request, and a parent that may be entered and not read.
_CANNOT_SYNC_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF)


@dataclass(eq=False)
class AppendLog:
    """One JSON-lines file, open for appending.

    Attributes:
        path: the file.
        cut_bytes: bytes of a torn last line that opening cut off (0 when the file was whole).
    """

    path: Path
    _descriptor: int
    # Invariant: the file ends at `_size_bytes`, behind a whole line, unless `_torn`.
    _size_bytes: int
    cut_bytes: int
    _torn: bool = False
    _dirty: bool = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create the file; a torn last line is cut off, a whole one ended. Raises StorageError."""
        try:
            mode = file_mode(path.parent)
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
            found = os.fstat(descriptor)
            if stat.S_IMODE(found.st_mode) & ~mode and found.st_uid == os.geteuid():
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & mode)
            size = found.st_size
            whole = _end_of_last_line(descriptor, size)
            if whole < size and _is_record(os.pread(descriptor, size - whole, whole)):
                os.write(descriptor, b"\n")
                whole = size = size + 1
            elif whole < size:
                os.ftruncate(descriptor, whole)
        except OSError as error:
            raise storage_error(path, error) from error
        return cls(path, descriptor, whole, size - whole)

    def append(self, record: object) -> tuple[int, int]:
        """Write one record as one line; returns (offset, length) for `read_at`. Raises StorageError."""
        return self.append_line(encode(record))

    def append_line(self, content: bytes) -> tuple[int, int]:
        """Write what `encode` made of a record; as `append`."""
        line = content + b"\n"
        try:
            if self._torn:
                self._cut_torn_write()
            self._torn = True  # until all of it is written
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # a full disk: cut before the next record, or on opening
                self._cut_torn_write()
            raise storage_error(self.path, error) from error
        offset = self._size_bytes
        self._size_bytes += len(line)
        self._torn = False
        self._dirty = True
        return offset, len(line) - 1

    def read_at(self, offset: int, length: int) -> dict[str, Any]:
        """The record that `append` or `scan` located."""
        return read_record(os.pread(self._descriptor, length, offset))

    def sync(self) -> None:
        """Force what was appended to disk; cheap when nothing was. Raises StorageError."""
        if not self._dirty:
            return
        self._dirty = False  # before the request: what is appended meanwhile makes it dirty again
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


def scan(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Every whole, non-empty line of a file as (line number from 1, offset, content); none if absent.

    The last one may lack its newline, as AppendLog.open says.
    """
    try:
        with path.open("rb") as stream:
            offset = 0
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n") and len(line) > 1:
                    yield number, offset, line[:-1]
                elif not line.endswith(b"\n") and _is_record(line):
                    yield number, offset, line
                offset += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(path, error) from error


def encode(record: object) -> bytes:
    """A record (dataclass, struct, dict) as one line of JSON without its newline.

    orjson refuses lone surrogates; they become U+FFFD, so that no record is lost to an encoder.
    """
    try:
        return orjson.dumps(record, default=fields_of)
    except orjson.JSONEncodeError:
        plain = json.dumps(record, default=fields_of, ensure_ascii=False)
        return without_surrogates(plain).encode()


def decode(line: bytes) -> Any:
    """What `encode` made; raises ValueError when it is no JSON."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)


def fields_of(value: object) -> dict[str, Any]:
    """A dataclass's or struct's fields by name, as they are: what they hold is not copied."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if not is_dataclass(value):
        message = f"cannot record a {type(value).__name__}"
        raise TypeError(message)
    return {item.name: getattr(value, item.name) for item in fields(value)}


def sync_entries(folder: Path) -> None:
    """Force to disk that the folder's files, and the folder itself, exist by their names (fsync(2))."""
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
    """Sync the logs from a thread until cancelled: a power loss costs at most about a second.

    The thread is its own, so that nothing else that uses threads can keep it waiting. A disk that fails is
    told and not raised, and the other logs are synced as before.
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
                except Exception as error:  # noqa: BLE001 - no thread, for example: calls under way go on
                    on_error(StorageError(f"{log.path}: cannot be synced: {type(error).__name__}: {error}"))
    finally:
        disk.shutdown(wait=False)  # a disk that hangs holds up nothing here


def _is_record(line: bytes) -> bool:
    """Whether a line is a whole object that holds something."""
    if line[:1] != b"{":
        return False
    try:
        return bool(decode(line))
    except (ValueError, RecursionError):
        return False


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Offset just behind the last newline (0 when there is none), reading from the end."""
    end = size
    while end > 0:
        start = max(0, end - _TAIL_BLOCK_BYTES)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def now_utc() -> str:
    """The current time, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

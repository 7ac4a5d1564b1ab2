"""Atomic replacement of small files, reading of files of lines, and file modes of run directories."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import stat
from typing import TYPE_CHECKING

from astra_async.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BLOCK_BYTES = 1 << 20
_UNFIT = re.compile(r"[^\w.-]+")
_drafts = itertools.count()  # `next` is atomic, which is needed because several threads write drafts


def is_shared(folder: Path) -> bool:
    """Return True if the folder has the set-group-ID bit, which marks it as shared with a group."""
    return bool(folder.stat().st_mode & stat.S_ISGID)


def file_mode(folder: Path) -> int:
    """Return the mode of a run's files: private, or according to the umask in a shared folder."""
    return 0o666 if is_shared(folder) else 0o600


def write_atomically(
    path: Path, content: bytes | Iterable[bytes | memoryview], *, mode: int = 0o666, sync: bool = True
) -> None:
    """Replace a file atomically: readers see the old or the new content. Raises StorageError.

    `content` may be in parts. `mode` is the new file's mode before the umask. Without `sync`, a power loss
    may leave the file empty.
    """
    # A unique draft name per call, so that a thread that outlives its task cannot disturb the next call.
    draft = path.with_name(f".{path.name}.{os.getpid()}.{next(_drafts)}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, mode), "wb") as stream:
            stream.writelines([content] if isinstance(content, bytes) else content)
            stream.flush()
            if sync:
                os.fdatasync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise storage_error(path, error) from error


def open_regular(path: str | Path, flags: int = os.O_RDONLY | os.O_CLOEXEC, mode: int = 0o666) -> int:
    """Return a descriptor of a regular file, also as the `opener` of `open`.

    Raises OSError for anything else: opening a named pipe would wait for its writer.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def read_at(path: Path, offset: int, length: int) -> bytes:
    """Read a byte range of a regular file. Raises OSError."""
    descriptor = open_regular(path)
    try:
        return os.pread(descriptor, length, offset)
    finally:
        os.close(descriptor)


def scan(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number from 1, offset, content) of every complete, non-empty line; nothing if absent.

    The last line may lack its newline, see AppendLog.open. Raises StorageError.
    """
    try:
        with open(path, "rb", _BLOCK_BYTES, opener=open_regular) as stream:
            offset = 0
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n") and len(line) > 1:
                    yield number, offset, line[:-1]
                elif not line.endswith(b"\n") and is_whole(line):
                    yield number, offset, line
                offset += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(path, error) from error


def is_whole(line: bytes) -> bool:
    """Return True if a text is a complete, non-empty JSON object; a cut-off line never is."""
    if line[:1] != b"{":
        return False
    try:
        return bool(json.loads(line))
    except (ValueError, RecursionError):
        return False


def remove_drafts(folder: Path, names: Iterable[str]) -> None:
    """Remove the drafts of a process that was killed while replacing one of these files."""
    for name in names:
        for draft in folder.glob(f".{name}.*.tmp"):
            with contextlib.suppress(OSError):
                draft.unlink()


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the error for a file that cannot be read or written."""
    reason = error.strerror or str(error)
    return StorageError(
        f"{path}: {reason}; free space or restore access, then run the same command again to resume"
    )


def plain_name(text: str) -> str:
    """Return a name that every file system accepts. A changed name ends in a hash, so that it is unique."""
    plain = _UNFIT.sub("_", text).strip("._")
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

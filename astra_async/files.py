"""Small files that are replaced as a whole, with the modes that a run's files have."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import stat
from typing import TYPE_CHECKING

from astra_async.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_UNFIT = re.compile(r"[^\w.-]+")
_drafts = itertools.count()  # `next` is atomic: drafts are written from several threads


def is_shared(folder: Path) -> bool:
    """Whether a folder bears the set-group-ID bit, by which its owner shares it with a group."""
    return bool(folder.stat().st_mode & stat.S_ISGID)


def file_mode(folder: Path) -> int:
    """The mode of a run's files: their owner's alone, or as the umask says in a folder that is shared."""
    return 0o666 if is_shared(folder) else 0o600


def write_atomically(
    path: Path, content: bytes | Iterable[bytes | memoryview], *, mode: int = 0o666, sync: bool = True
) -> None:
    """Replace a file as a whole: a reader sees the old or the new one. Raises StorageError.

    `content` may come in parts. `mode` is the new file's, less the umask. Without `sync` a power loss may
    leave it empty.
    """
    # A name of its own for each writing: a thread that outlives its task is not in the way of the next.
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


def read_at(path: Path, offset: int, length: int) -> bytes:
    """A line again, of which nothing but its place was kept. Raises OSError, for a pipe at once."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.pread(descriptor, length, offset)
    finally:
        os.close(descriptor)


def remove_drafts(folder: Path, names: Iterable[str]) -> None:
    """Remove what a process that was killed while it replaced one of these files left behind."""
    for name in names:
        for draft in folder.glob(f".{name}.*.tmp"):
            with contextlib.suppress(OSError):
                draft.unlink()


def storage_error(path: Path, error: OSError) -> StorageError:
    """What is said of a file that the disk refuses."""
    reason = error.strerror or str(error)
    return StorageError(
        f"{path}: {reason}; make room or restore access, then run the same command again to resume"
    )


def plain_name(text: str) -> str:
    """Return a name that every file system accepts. A changed name ends in a hash, so that it is unique."""
    plain = _UNFIT.sub("_", text).strip("._")
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

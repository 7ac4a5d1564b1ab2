"""Files of a task's folder, which is untrusted: bounded in number and size, without links that leave it."""

from __future__ import annotations

import hashlib
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from astra_async.errors import ProblemsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_FILES, MOST_BYTES = 20_000, 2 * 1024**3
TEXT_BYTES = 1024**2


def files_of(folder: Path, *, within: Path | None = None) -> Iterator[Path]:
    """Yield the regular files below a folder in the order of their paths.

    A symbolic link to a file below `within`, by default the folder, counts as a copy of that file. Raises
    ProblemsError for other links, devices and other special files, and for a too large folder.
    """
    count, size, root = 0, 0, (within or folder).resolve()
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode):
            continue
        if stat.S_ISLNK(found.st_mode) and path.is_file() and path.resolve().is_relative_to(root):
            found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ProblemsError(f"{path}: a task may only contain regular files and links to them")
        count, size = count + 1, size + found.st_size
        if count > MOST_FILES or size > MOST_BYTES:
            raise ProblemsError(f"{folder}: more than {MOST_FILES:,} files or {MOST_BYTES // 1024**2:,} MB")
        yield path


def hash_of(folder: Path) -> str:
    """Return a SHA-256 over the paths, executable bits and contents of all files."""
    digest = hashlib.sha256()
    for path in files_of(folder):
        relative = PurePosixPath(path.relative_to(folder).as_posix())
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(
            f"{relative}\0{path.stat().st_mode & 0o100}\0{content}\n".encode("utf-8", "surrogateescape")
        )
    return digest.hexdigest()


def bytes_of(path: Path) -> bytes:
    """Read a small file of the task. Raises ProblemsError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a FIFO would block
            raise ProblemsError(f"{path}: not a regular file")
        with path.open("rb") as stream:
            content = stream.read(TEXT_BYTES + 1)
    except OSError as error:
        raise ProblemsError(f"{path}: {error.strerror}") from error
    if len(content) > TEXT_BYTES:
        raise ProblemsError(f"{path}: larger than {TEXT_BYTES:,} bytes")
    return content

"""Whose a run directory is: one process at a time, and one user."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from astra_async.errors import ConflictError, StorageError
from astra_async.running.log import file_mode, is_shared


def make_private(path: Path) -> str:
    """Make a folder for its owner alone, or tighten one of ours; what was tightened or cannot be, in a line.

    A folder with the set-group-ID bit is shared with its group on purpose, and stays as it is: what is
    made in it then follows the umask (see `log.file_mode`).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        mode = path.stat().st_mode
        if is_shared(path) or not mode & 0o077:
            return ""
        try:
            path.chmod(stat.S_IMODE(mode) & ~0o077)
        except OSError:
            return f"{path}: others can read it, and only its owner can change that (chmod 700)"
        return f"{path}: others could read it, and no longer can; `chmod g+s` shares it with its group"
    return ""


def lock_directory(path: Path) -> int:
    """Make a run directory and hold its lock, which names this process, until the descriptor is closed.

    Raises ConflictError when another process holds it, StorageError where there can be no directory.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(path))
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}; choose another --out") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise ConflictError(
            f"{path} is in use by process {owner or 'unknown'}; wait for it or stop it"
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def owner_of(path: Path) -> int | None:
    """The process that holds a run directory now, if one on this machine does.

    The lock is looked up (proc_locks(5)) and not tried, not for an instant: a run that begins just then would
    be refused. Where the kernel shows no locks nobody is known to hold it.
    """
    lock = path / ".lock"
    try:
        found, owner = lock.stat(), lock.read_bytes()[:32].decode(errors="replace").strip()
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    for line in locks.splitlines():
        _, kind, *_, pid, place, _, _ = line.split()  # `1: FLOCK ADVISORY WRITE 812 08:01:131 0 EOF`
        at, _, inode = place.rpartition(":")
        # some file systems show another device to stat(2): then the process must be the one in the file
        if kind == "FLOCK" and inode == str(found.st_ino) and (at == device or pid == owner):
            return int(owner) if owner.isdecimal() else 0
    return None

"""Whose a run directory is: one process at a time, and one user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path

from astra_async.errors import ConflictError, StorageError
from astra_async.files import file_mode, is_shared

_LOCK_ATTEMPTS = 100  # others would have to be refused so often, each in the same instant


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

    Invariant: who holds the lock on the file that is `.lock` now owns the directory. A call that was refused
    removes it (`RunDirectory.discard_if_unused`): a lock on a file that is no longer there is nobody's, and
    is tried again.

    Raises ConflictError when another process holds it, StorageError where there can be no directory.
    """
    lock, reason = path / ".lock", "its .lock is removed as often as it is made"
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.ExitStack() as opened:
            try:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(path))
                opened.callback(os.close, descriptor)
                _lock(descriptor, path)
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    _sign(descriptor)
                    opened.pop_all()
                    return descriptor
            except (FileNotFoundError, FileExistsError) as error:  # removed just now, with its folder
                reason = str(error.strerror)
            except OSError as error:
                raise StorageError(f"{path}: {error.strerror}; choose another --out") from error
    raise StorageError(f"{path}: {reason}; choose another --out")


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        raise ConflictError(
            f"{path} is in use by process {owner or 'unknown'}; wait for it or stop it"
        ) from error


def _sign(descriptor: int) -> None:
    """Write down whose the lock is, for people; a full disk is told by who needs its room."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def names_with_content(folder: Path) -> frozenset[str]:
    """What a folder holds; an empty file, as a call leaves it that was killed at once, is nothing.

    Raises StorageError.
    """
    try:
        return frozenset(
            each.name
            for each in os.scandir(folder)
            if each.is_dir() or each.stat(follow_symlinks=False).st_size
        )
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}; choose another --out") from error


def refuse_foreign_problems(path: Path) -> None:
    """Refuse a folder with somebody's own problems.csv, which a run would replace. Raises ConflictError."""
    found = names_with_content(path)
    is_runs = "run.json" in found or any(name.endswith(".jsonl") for name in found)
    if "problems.csv" in found and not is_runs and (path / "problems.csv").is_file():
        raise ConflictError(
            f"{path}: problems.csv there is no run's, and would be replaced; choose another --out"
        )


def owner_of(path: Path) -> int | None:
    """The process that holds a run directory now, if one on this machine does.

    The lock is looked up (proc_locks(5)) and not tried, not for an instant: a run that begins just then would
    be refused. Where the kernel shows no locks it is taken for free.
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

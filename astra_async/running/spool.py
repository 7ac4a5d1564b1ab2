"""The lock of a run directory, and a spool for paid lines that could not be written to their log.

Spooled lines are kept in memory and retried. At the end, the remaining lines are written to another folder:

    SPARE/astra-RUN_ID-completions.jsonl     recovered by the next opening of the run directory

Invariant: a paid line is in its log, in the spool, or in such a file synced to disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from astra_async.errors import ConflictError, StorageError
from astra_async.files import file_mode, is_shared, scan
from astra_async.log import encode
from astra_async.running.recorded import ANSWER_LOGS, key_reader
from astra_async.types.records import Flaw, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from astra_async.log import AppendLog
    from astra_async.running.recorded import ByteRange, OnRecord
    from astra_async.types import AnswerKey


_LOCK_ATTEMPTS = 100  # an attempt fails only if another process removes the lock file at that moment


def make_private(path: Path) -> str:
    """Create a folder that only its owner can access, or restrict an existing folder.

    Returns a message if permissions were changed or could not be changed, else an empty string. A folder with
    the set-group-ID bit is shared with its group on purpose and not changed. Files in it follow the umask
    (see `files.file_mode`).
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
            return f"{path}: readable by other users; its owner can restrict it with: chmod 700 {path}"
        return f"{path}: removed other users' access; to share it with its group: chmod g+s {path}"
    return ""


def lock_directory(path: Path) -> int:
    """Create a run directory if necessary, lock it, and return the descriptor that holds the lock.

    The lock file contains the process ID. Closing the descriptor releases the lock.

    Invariant: the process with a lock on the current `.lock` file owns the directory. Another process may
    delete the file between open and lock (`RunDirectory.discard_if_unused`); the lock is then retried.

    Raises ConflictError if another process holds the lock, StorageError if the directory cannot be created.
    """
    lock, reason = path / ".lock", "another process keeps removing .lock"
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.ExitStack() as opened:
            try:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(path))
                opened.callback(os.close, descriptor)
                _lock(descriptor, path)
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    with contextlib.suppress(OSError):  # a full disk must not prevent the lock
                        os.ftruncate(descriptor, 0)
                        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                    opened.pop_all()
                    return descriptor
            except (FileNotFoundError, FileExistsError) as error:  # another process removed the folder
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


def names_with_content(folder: Path) -> frozenset[str]:
    """Return the names in a folder, without empty files, which a killed process may have left.

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
    """Raise ConflictError if a problems.csv exists that no run created, because a run would replace it."""
    found = names_with_content(path)
    is_runs = "run.json" in found or any(name.endswith(".jsonl") for name in found)
    if "problems.csv" in found and not is_runs and (path / "problems.csv").is_file():
        raise ConflictError(
            f"{path}: the run would overwrite problems.csv, which no run created; choose another --out"
        )


def owner_of(path: Path) -> int | None:
    """Return the ID of the process on this machine that holds a run directory's lock, or None.

    Returns 0 if the lock is held but the process ID is unknown. The lock is looked up in /proc/locks
    (proc_locks(5)) instead of acquired, because even a short acquisition could make a starting run fail. If
    the kernel does not list locks, the result is None.
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
        # Some file systems report another device to stat(2); then compare the process ID instead.
        if kind == "FLOCK" and inode == str(found.st_ino) and (at == device or pid == owner):
            return int(owner) if owner.isdecimal() else 0
    return None


# Bytes, enough for the answers of about a hundred requests in flight.
RESERVE_BYTES = 16 * 2**20


class LineSpool:
    """Spool for the paid lines of a run that could not be written to their log.

    The folder `spare` is tried before the folder for temporary files.

    Attributes:
        exhausted: the storage error after which no new work may start, or None.
        reserve: path of a preallocated file that is deleted to free disk space, or None.
    """

    def __init__(self, run_id: str, spare: Path | None, reserve: Path | None = None) -> None:
        self.exhausted: StorageError | None = None
        self.reserve = reserve
        self._run_id = run_id
        self._folders = [folder for folder in (spare, Path(gettempdir())) if folder]
        self._lines: list[tuple[AppendLog, bytes]] = []

    def allocate_reserve(self) -> None:
        """Allocate RESERVE_BYTES of disk space. Raises StorageError."""
        assert self.reserve is not None  # noqa: S101 - the caller passed one
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            mode = file_mode(self.reserve.parent)
            with os.fdopen(os.open(self.reserve, flags, mode), "wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            self.reserve.unlink(missing_ok=True)
            raise StorageError(
                f"{self.reserve.parent}: {error.strerror}; free at least {RESERVE_BYTES // 2**20} MB"
            ) from error

    def free_reserve(self) -> None:
        """Delete the reserve file; errors are ignored, because the next opening deletes the file."""
        if self.reserve:
            with contextlib.suppress(OSError):
                self.reserve.unlink(missing_ok=True)

    def keep(self, log: AppendLog, line: bytes) -> ByteRange:
        """Append a paid line. Raises StorageError if it cannot be written; the line is spooled then."""
        try:
            place = log.append_line(line)
        except StorageError as error:
            self.give_up(error)
            self.free_reserve()
            try:
                place = log.append_line(line)
            except StorageError:
                self.hold(log, line)
                raise
        with contextlib.suppress(StorageError):
            self._write()
        return place

    def give_up(self, error: StorageError) -> None:
        """Set `exhausted`, so that no new work starts; the first error is kept."""
        self.exhausted = self.exhausted or error

    def hold(self, log: AppendLog, line: bytes) -> None:
        """Add a line to the spool."""
        self._lines.append((log, line))

    def _write(self) -> None:
        """Write the spooled lines to their logs, oldest first. Raises StorageError."""
        while self._lines:
            log, line = self._lines[0]
            log.append_line(line)
            self._lines.pop(0)

    def rescue(self) -> None:
        """Write the spooled lines to their logs, or else to another folder.

        Raises StorageError, which names the files in the other folder.
        """
        try:
            self._write()
        except StorageError as refused:
            places = [self._write_elsewhere(log) for log in dict.fromkeys(log for log, _ in self._lines)]
            self._lines.clear()
            raise StorageError(
                f"{refused}; paid answers that could not be written are in {', '.join(map(str, places))}; run"
                " the same command again to recover them"
            ) from refused

    def rescue_then(self, close: Callable[[], None]) -> None:
        """Call `rescue`, then `close` in any case. Raises StorageError like `rescue`."""
        try:
            self.rescue()
        except StorageError:
            with contextlib.suppress(StorageError):  # the first error names the spool files
                close()
            raise
        close()

    def recover(self, logs: Sequence[AppendLog], take: Callable[[AppendLog, bytes], bool]) -> Iterator[str]:
        """Recover the lines that an earlier process spooled for these logs; yield a message for each file.

        `take` appends a line to its log and returns True, or returns False for an outdated answer. Lines that
        are already in the log are skipped, because an earlier recovery may have been killed.
        """
        for folder in self._folders:
            for log in logs:
                path = self._spool_path(folder, log)
                lines = dict.fromkeys(_own_lines(path))
                if not lines:
                    continue
                for _, _, line in scan(log.path):
                    lines.pop(line, None)
                late = [take(log, line) for line in lines].count(False)
                log.sync()
                path.unlink()
                yield f"{log.path.name}: recovered lines of an earlier invocation from {path}" + (
                    f"; {late} outdated answers, replaced by newer ones: only their cost was recorded"
                    if late
                    else ""
                )

    def _write_elsewhere(self, log: AppendLog) -> Path:
        content = b"".join(line + b"\n" for each, line in self._lines if each is log)
        refused: OSError | None = None
        for folder in self._folders:
            path = self._spool_path(folder, log)
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _append_privately(path, content)
            except OSError as error:
                refused = error
            else:
                return path
        raise StorageError(
            f"{log.path}: paid answers could not be saved, neither here nor in"
            f" {' nor in '.join(map(str, self._folders))}; free disk space and check the permissions"
        ) from refused

    def _spool_path(self, folder: Path, log: AppendLog) -> Path:
        return folder / f"astra-{self._run_id}-{log.path.name}"


def recover_line(
    log: AppendLog, line: bytes, *, events: AppendLog, answered: dict[AnswerKey, ByteRange], count: OnRecord
) -> bool:
    """Append a line that an earlier process spooled to its log; return False for an outdated answer.

    The command may have been resumed on another host, which does not see the spooled lines. If the key has
    another answer by then, only the cost of the spooled answer is recorded, as an event. The byte range of
    each appended answer is added to `answered`, and its record is passed to `count`.
    """
    if (check := ANSWER_LOGS.get(log.path.name)) is None:
        return append(log, line)
    try:
        record = read_record(line)
        key = key_reader(log.path.name)(record)
        check(record)
    except Flaw:
        return append(log, line)  # the next opening reports the invalid line
    if key not in answered:
        answered[key] = log.append_line(line)
        count(record)
        return True
    # The event is deterministic, so that a recovery after a kill does not record the cost twice.
    cost = {"at": record.get("finished_at"), "kind": "spent", **key._asdict()}
    cost |= {"cost_usd": record.get("cost_usd"), "cost_estimated": record.get("cost_estimated")}
    event = encode(cost | {"detail": "a held answer that was found after the sample had been asked again"})
    if event not in (there for _, _, there in scan(events.path)):
        events.append_line(event)
        events.sync()
    return False


def append(log: AppendLog, line: bytes) -> bool:
    """Append a line without any check; always return True."""
    log.append_line(line)
    return True


def _append_privately(path: Path, content: bytes) -> None:
    """Append to a file that only its owner can access, and sync it.

    Symbolic links and files of other users are refused (OSError), because the folder may be world-writable.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as stream:
        if os.fstat(stream.fileno()).st_uid != os.geteuid():
            raise PermissionError(1, "belongs to another user", str(path))
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _own_lines(path: Path) -> list[bytes]:
    """Return the complete lines of a file of the current user; empty for another user's file."""
    with (
        contextlib.suppress(OSError),
        os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream,
    ):
        if os.fstat(stream.fileno()).st_uid == os.geteuid():
            return [line[:-1] for line in stream if line.endswith(b"\n")]
    return []

"""Lines that cost money and that the disk refused: held in memory, tried again, at last laid down elsewhere.

    SPARE/astra-RUN_ID-completions.jsonl     what the next opening of the run directory takes over

Invariant: a line is in its log, or held, or in one such file that was forced to disk; never nowhere.
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
from astra_async.files import file_mode, is_shared
from astra_async.log import encode, scan
from astra_async.running.recorded import ANSWER_LOGS, key_reader
from astra_async.types.records import Flaw, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from astra_async.log import AppendLog
    from astra_async.running.recorded import OnRecord, Place
    from astra_async.types import AnswerKey


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
                    _write_owner(descriptor)
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


def _write_owner(descriptor: int) -> None:
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


# Enough for the answers of some hundred calls in flight.
RESERVE_BYTES = 16 * 2**20


class LineSpool:
    """The paid lines of a run; `spare` is tried before the folder for temporary files.

    Attributes:
        exhausted: why the disk takes no more than what is under way; None while it is well.
        reserve: a file whose room is given up for these lines, if there is one.
    """

    def __init__(self, run_id: str, spare: Path | None, reserve: Path | None = None) -> None:
        self.exhausted: StorageError | None = None
        self.reserve = reserve
        self._run_id = run_id
        self._folders = [folder for folder in (spare, Path(gettempdir())) if folder]
        self._lines: list[tuple[AppendLog, bytes]] = []

    def allocate_reserve(self) -> None:
        """Take RESERVE_BYTES of the disk. Raises StorageError."""
        assert self.reserve is not None  # noqa: S101 - the caller has named one
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            mode = file_mode(self.reserve.parent)
            with os.fdopen(os.open(self.reserve, flags, mode), "wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            self.reserve.unlink(missing_ok=True)
            raise StorageError(
                f"{self.reserve.parent}: {error.strerror}; at least {RESERVE_BYTES // 2**20} MB must be free"
            ) from error

    def free_reserve(self) -> None:
        """Give its room back; a disk that has turned read-only keeps it, and the next opening removes it."""
        if self.reserve:
            with contextlib.suppress(OSError):
                self.reserve.unlink(missing_ok=True)

    def keep(self, log: AppendLog, line: bytes) -> Place:
        """Append a line that was paid for. Raises StorageError when the disk refuses it: then it is held."""
        try:
            place = log.append_line(line)
        except StorageError as error:
            self.exhausted = self.exhausted or error
            self.free_reserve()
            try:
                place = log.append_line(line)
            except StorageError:
                self.hold(log, line)
                raise
        with contextlib.suppress(StorageError):
            self._write()
        return place

    def hold(self, log: AppendLog, line: bytes) -> None:
        """Hold a line that its log could not take."""
        self._lines.append((log, line))

    def _write(self) -> None:
        """Write them to their logs, the oldest first. Raises StorageError."""
        while self._lines:
            log, line = self._lines[0]
            log.append_line(line)
            self._lines.pop(0)

    def rescue(self) -> None:
        """The last try: to their logs, else to another folder. Raises StorageError that says where."""
        try:
            self._write()
        except StorageError as refused:
            places = [self._write_elsewhere(log) for log in dict.fromkeys(log for log, _ in self._lines)]
            self._lines.clear()
            raise StorageError(
                f"{refused}; what it refused was paid for and lies in {', '.join(map(str, places))}, from"
                " where the same command takes it over"
            ) from refused

    def rescue_then(self, close: Callable[[], None]) -> None:
        """The last try, and the logs are closed whatever comes of it. Raises StorageError as `rescue`."""
        try:
            self.rescue()
        except StorageError:
            with contextlib.suppress(StorageError):  # what is told is where the lines are
                close()
            raise
        close()

    def recover(self, logs: Sequence[AppendLog], take: Callable[[AppendLog, bytes], bool]) -> Iterator[str]:
        """What an earlier process laid down for these logs goes to `take`; yields a line on each file.

        `take` appends a line, or says that it came too late. A line that stands in its log already, by a
        process that was killed in the midst of this, is not shown to it.
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
                yield f"{log.path.name}: took over from {path} what an earlier call held" + (
                    f"; {late} of its answers came too late: their samples were asked for again meanwhile,"
                    " and only their cost is kept"
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
            f"{log.path}: what was paid for is taken neither by this disk nor by"
            f" {' nor by '.join(map(str, self._folders))}"
        ) from refused

    def _spool_path(self, folder: Path, log: AppendLog) -> Path:
        return folder / f"astra-{self._run_id}-{log.path.name}"


def recover_line(
    log: AppendLog, line: bytes, *, events: AppendLog, answered: dict[AnswerKey, Place], count: OnRecord
) -> bool:
    """Append a line that an earlier process held to its indexed log; False for an answer that came too late.

    The same command may have gone on meanwhile where the held lines are not looked for, on another host: an
    answer whose key has another one by now leaves its cost in the events, and nothing else. `answered` gets
    the place of each answer that is taken, `count` its record.
    """
    if (check := ANSWER_LOGS.get(log.path.name)) is None:
        return append(log, line)
    try:
        record = read_record(line)
        key = key_reader(log.path.name)(record)
        check(record)
    except Flaw:
        return append(log, line)  # the next opening names it
    if key not in answered:
        answered[key] = log.append_line(line)
        count(record)
        return True
    # One event, the same whenever it is written: a kill may come before the held line is gone.
    cost = {"at": record.get("finished_at"), "kind": "spent", **key._asdict()}
    cost |= {"cost_usd": record.get("cost_usd"), "cost_estimated": record.get("cost_estimated")}
    event = encode(cost | {"detail": "a held answer that was found after the sample had been asked again"})
    if event not in (there for _, _, there in scan(events.path)):
        events.append_line(event)
        events.sync()
    return False


def append(log: AppendLog, line: bytes) -> bool:
    """Take a line, whatever it is."""
    log.append_line(line)
    return True


def _append_privately(path: Path, content: bytes) -> None:
    """For its owner alone, and never through somebody else's link or file: the folder may be everybody's."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as stream:
        if os.fstat(stream.fileno()).st_uid != os.geteuid():
            raise PermissionError(1, "belongs to somebody else", str(path))
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _own_lines(path: Path) -> list[bytes]:
    """The whole lines of a file that this user laid down; a file of anybody else is not looked at."""
    with (
        contextlib.suppress(OSError),
        os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream,
    ):
        if os.fstat(stream.fileno()).st_uid == os.geteuid():
            return [line[:-1] for line in stream if line.endswith(b"\n")]
    return []

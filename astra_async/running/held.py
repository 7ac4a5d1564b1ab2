"""Lines that cost money and that the disk refused: held in memory, tried again, at last laid down elsewhere.

    SPARE/astra-RUN_ID-completions.jsonl     what the next opening of the run directory takes over

Invariant: a line is in its log, or held, or in one such file that was forced to disk; never nowhere.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from astra_async.errors import StorageError
from astra_async.running.log import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from astra_async.running.log import AppendLog


class HeldLines:
    """The lines of a run that are held; `spare` is tried before the folder for temporary files."""

    def __init__(self, run_id: str, spare: Path | None) -> None:
        self._run_id = run_id
        self._folders = [folder for folder in (spare, Path(gettempdir())) if folder]
        self._lines: list[tuple[AppendLog, bytes]] = []

    def add(self, log: AppendLog, line: bytes) -> None:
        """Hold a line that its log could not take."""
        self._lines.append((log, line))

    def write(self) -> bool:
        """Write them to their logs, the oldest first; whether none is left. Raises StorageError."""
        while self._lines:
            log, line = self._lines[0]
            log.append_line(line)
            self._lines.pop(0)
        return True

    def rescue(self) -> None:
        """The last try: to their logs, else to another folder. Raises StorageError that says where."""
        try:
            self.write()
        except StorageError as refused:
            places = [self._lay_down(log) for log in dict.fromkeys(log for log, _ in self._lines)]
            self._lines.clear()
            raise StorageError(
                f"{refused}; what it refused was paid for and lies in {', '.join(map(str, places))}, from"
                " where the same command takes it over"
            ) from refused

    def rescue_and(self, close: Callable[[], None]) -> None:
        """The last try, and the logs are closed whatever comes of it. Raises StorageError as `rescue`."""
        try:
            self.rescue()
        except StorageError:
            with contextlib.suppress(StorageError):  # what is told is where the lines are
                close()
            raise
        close()

    def found(self, logs: Sequence[AppendLog]) -> Iterator[str]:
        """Append to each log what an earlier process laid down for it; yields a line on each."""
        for folder in self._folders:
            for log in logs:
                path = self._place(folder, log)
                lines = dict.fromkeys(_own_lines(path))
                if not lines:
                    continue
                for _, _, line in scan(log.path):
                    lines.pop(line, None)  # written by a process that was killed in the midst of this
                for line in lines:
                    log.append_line(line)
                log.sync()
                path.unlink()
                yield f"{log.path.name}: took over from {path} what an earlier call held"

    def _lay_down(self, log: AppendLog) -> Path:
        content = b"".join(line + b"\n" for each, line in self._lines if each is log)
        refused: OSError | None = None
        for folder in self._folders:
            path = self._place(folder, log)
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _append_safely(path, content)
            except OSError as error:
                refused = error
            else:
                return path
        raise StorageError(
            f"{log.path}: what was paid for is taken neither by this disk nor by"
            f" {' nor by '.join(map(str, self._folders))}"
        ) from refused

    def _place(self, folder: Path, log: AppendLog) -> Path:
        return folder / f"astra-{self._run_id}-{log.path.name}"


def _append_safely(path: Path, content: bytes) -> None:
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

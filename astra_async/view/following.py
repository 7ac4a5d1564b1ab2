"""Incremental reading of one run directory: plan, results, positions of texts, and running state."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import AstraError, UsageError
from astra_async.files import file_mode, write_atomically
from astra_async.redaction import mask, one_line
from astra_async.report.deciding import has_open_pairs
from astra_async.report.labels import read_labels, relabelled
from astra_async.report.run_settings import RunSettings, read_settings
from astra_async.running.spool import owner_of
from astra_async.types import SampleKey
from astra_async.types.records import Flaw, read_record
from astra_async.view.logs import IGNORED_SHOWN, Logs, Regrown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

State = Literal["running", "finished", "stopped", "unknown"]
Record = dict[str, Any]
Stamp = tuple[int, int, int]

_STALE_S = 10.0  # an older live.json is from a process that no longer runs
_HAPPENED_KEPT = 5
_SHOWN_S = 120.0  # display time of a notice
_SLICE_S = 0.02  # longest time that one reading step blocks the event loop


_NO_PLAN = RunSettings(run_id="", created_at="", samples=0, models={}, formats=(), problems={})


class Following:
    """One run directory that may grow, stop, vanish and reappear.

    Attributes:
        version: increases with every visible change.
        plan: increases when models, formats, problems or samples change, and when everything is read again.
        logs: the content read so far; has an empty plan until a run.json was read (`plan` is 0).
        live: the content of live.json, or None.
        trouble: the reason why the directory cannot be read now, in one line; '' if it can be read.
        loaded: True after everything was read once under this plan.
        labels: error class and its source (`hand`, `judge:MODEL`) by sample, from labels.csv.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.version = 0
        self.plan = 0
        self.logs = Logs.of(directory, _NO_PLAN)
        self.live: Record | None = None
        self.trouble = ""
        self.loaded = False
        self.state: State = "unknown"
        self._happened: deque[tuple[float, str]] = deque(maxlen=_HAPPENED_KEPT)
        self.labels: dict[SampleKey, tuple[str, str]] = {}
        self._labels_trouble = ""
        self._stamps: dict[str, Stamp | None] = {}

    def look(self) -> bool:
        """Read for some milliseconds; return True if there is more to read."""
        more, trouble = False, ""
        try:
            self._look_at_run()
            more = self._read_on()
        except (AstraError, OSError) as error:
            trouble = self._in_words(error)
        except Exception as error:  # noqa: BLE001 - the viewer must survive any content of a directory
            trouble = one_line(f"{self.directory}: unexpected {type(error).__name__}: {error}")
        self._look_at_live()
        self._look_at_labels()
        state = self._state()
        if (trouble, state) != (self.trouble, self.state):
            self.trouble, self.state = trouble, state
            self.version += 1
        return more

    def lost(self) -> Iterator[tuple[Any, ...]]:
        """Yield index tuples (pair, problem, sample) of samples that the current process has lost."""
        began, columns = str((self.live or {}).get("since") or ""), self.logs.columns
        numbers = {name: place for place, name in enumerate(columns.problems)}
        for (model, fmt, problem, sample), at in self.logs.events_seen.lost.items():
            if not began or at < began or (problem is not None and problem not in numbers):
                continue
            pairs = [
                pair
                for (name, form), pair in columns.pairs.items()
                if model in (None, name) and fmt in (None, form)
            ]
            in_plan = type(sample) is int and 0 <= sample < columns.samples
            yield (
                pairs,
                slice(None) if problem is None else numbers[problem],
                slice(None) if sample is None else sample if in_plan else [],
            )

    @property
    def loading(self) -> float | None:
        """Return the share of the logs read so far during the first reading; None afterwards."""
        if self.loaded or not self.plan:
            return None
        done = sum(tail.offset for tail in self.logs.tails.values())
        total = sum(_size(tail.path) for tail in self.logs.tails.values())
        return min(1.0, done / total) if total else 1.0

    def warnings(self) -> list[str]:
        """Return one line for each thing that is ignored or cannot be read."""
        lines = [each for each in (self.trouble, self._labels_trouble) if each]
        lines += [text for at, text in self._happened if at > time.monotonic() - _SHOWN_S]
        lines += [*self.logs.columns.warnings(), *self.logs.conflicts]
        if more := max(0, self.logs.ignored_lines - IGNORED_SHOWN):
            lines.append(f"{more} more lines are damaged or contradict other lines, and are ignored")
        return [mask(each) for each in lines]

    def _note(self, text: str) -> None:
        self._happened.append((time.monotonic(), text))

    def _look_at_run(self) -> None:
        stamp = stamp_of(self.directory / "run.json")
        if stamp is not None and stamp == self._stamps.get("run.json") and not self.trouble:
            return
        settings = read_settings(self.directory)  # raises if run.json is missing
        self._stamps["run.json"] = stamp
        if not self.plan or _plan(settings) != _plan(self.logs.settings):
            if self.plan:
                self._note(f"{self.directory}: the plan changed, so everything was read again")
            self._begin(settings)
        elif settings != self.logs.settings:
            self.logs.settings = settings
            self.logs.columns.update_plan(settings)
            self.version += 1

    def _begin(self, settings: RunSettings) -> None:
        self.logs = Logs.of(self.directory, settings)
        self.loaded = False
        self.plan += 1
        self.version += 1

    def _read_on(self) -> bool:
        if not self.plan:
            return False
        try:
            changed = self.logs.read_on(time.monotonic() + _SLICE_S)
        except Regrown:
            self._note(f"{self.directory}: a log was truncated or replaced, so everything was read again")
            self._begin(read_settings(self.directory))
            return True
        if changed or not self.loaded:
            self.loaded = self.loaded or not changed
            self.version += 1
        return changed

    def _in_words(self, error: AstraError | OSError) -> str:
        if self.plan and stamp_of(self.directory / "run.json") is None:
            return f"{self.directory}: the directory or its run.json is gone; showing what was read before"
        return one_line(f"{self.directory}: {error.strerror}" if isinstance(error, OSError) else str(error))

    def _look_at_live(self) -> None:
        if self._is_changed("live.json"):
            self.live = None
            with suppress(OSError, Flaw):
                self.live = read_record((self.directory / "live.json").read_bytes())

    def _look_at_labels(self) -> None:
        if not self._is_changed("labels.csv"):
            return
        self._labels_trouble = ""
        try:
            found = read_labels(self.directory / "labels.csv")
        except UsageError as error:
            found, self._labels_trouble = {}, one_line(str(error))
        self.labels = {SampleKey(*key): label for key, label in found.items()}
        self.version += 1

    def _is_changed(self, name: str) -> bool:
        """Return True if a file has changed since the last call."""
        before, self._stamps[name] = self._stamps.get(name), stamp_of(self.directory / name)
        return before != self._stamps[name]

    def label(self, key: SampleKey, label: str | None) -> None:
        """Set or remove a sample's error class. Raises UsageError, StorageError, OSError."""
        path = self.directory / "labels.csv"
        before = path.read_bytes().decode("utf-8-sig", "replace") if path.exists() else ""
        text = relabelled(before, key, label)
        write_atomically(path, text.encode(errors="replace"), mode=file_mode(self.directory))

    def _state(self) -> State:
        if is_running(self.directory, self.live):
            return "running"
        if not self.loaded or stamp_of(self.directory / "run.json") is None:
            return "unknown"
        columns = self.logs.columns
        missing = columns.planned[:, None] & (columns.places["present"] != 1)
        left = (
            missing.any()
            or not missing.size
            or self.logs.missing_turns().any()
            or has_open_pairs(self.logs.settings.deciding, self.logs.settings.formats)
        )
        return "stopped" if left else "finished"


def is_running(directory: Path, live: Mapping[str, Any] | None) -> bool:
    """Return True if a process is running: according to live.json, else to the directory's lock."""
    recorded = _recorded_running(live) if live else None
    return recorded if recorded is not None else owner_of(directory) is not None


def _recorded_running(live: Mapping[str, Any]) -> bool | None:
    """Return the running state recorded in live.json; None if the file is too old."""
    if live.get("ended"):
        return False
    try:
        age_s = time.time() - datetime.fromisoformat(live["at"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None
    if age_s > _STALE_S:
        return None
    return live.get("host") != socket.gethostname() or _is_alive(live.get("pid"))


def _is_alive(pid: object) -> bool:
    if type(pid) is not int or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _plan(settings: RunSettings) -> tuple[Any, ...]:
    return tuple(settings.models), settings.formats, tuple(settings.problems), settings.samples


def stamp_of(path: Path) -> Stamp | None:
    """Return a value that changes when the file is replaced or written; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _size(path: Path) -> int:
    stamp = stamp_of(path)
    return stamp[2] if stamp else 0

"""One run directory, read on when somebody looks: its plan, columns, where its texts stand, how it runs."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import AstraError, ConflictError, UsageError
from astra_async.files import file_mode, write_atomically
from astra_async.redaction import mask, one_line
from astra_async.report.deciding import has_open_pairs
from astra_async.report.labels import read_labels, relabelled
from astra_async.report.run_settings import RunSettings, read_settings
from astra_async.running.spool import owner_of
from astra_async.types import SampleKey
from astra_async.types.records import Flaw, read_record
from astra_async.view.logs import Logs, Regrown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

State = Literal["running", "finished", "stopped", "unknown"]
Record = dict[str, Any]
Stamp = tuple[int, int, int]

MOST_SAMPLES = 5_000_000
_STALE_S = 10.0  # a live.json that is older is nobody's
_CONFLICTS_SHOWN = 20
_HAPPENED_KEPT = 5
_SHOWN_S = 120.0  # that what happened is told
_SLICE_S = 0.02  # the event loop is held no longer than that


_NO_PLAN = RunSettings(run_id="", created_at="", samples=0, models={}, formats=(), problems={})


class Following:
    """One run directory that may grow, stop, vanish and come back.

    Attributes:
        version: grows with every change that a page could show.
        plan: grows when models, formats, problems or samples change, and when everything is read anew.
        logs: what was read; of an empty plan while there never was a readable run.json (`plan` is 0).
        live: the content of live.json, or None.
        trouble: why the directory cannot be read now, in one line; empty while it can.
        loaded: whether everything was read once under this plan.
        labels: class of error and who gave it (`hand`, `judge:MODEL`) by sample, from labels.csv.
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
        """Read on for some milliseconds; whether there is more to read at once."""
        more, trouble = False, ""
        try:
            self._look_at_run()
            more = self._read_on()
        except (AstraError, OSError) as error:
            trouble = self._in_words(error)
        except Exception as error:  # noqa: BLE001 - a boundary: whatever a directory holds, the pages stay
            trouble = one_line(f"{self.directory}: unexpected {type(error).__name__}: {error}")
        self._look_at_live()
        self._look_at_labels()
        state = self._state()
        if (trouble, state) != (self.trouble, self.state):
            self.trouble, self.state = trouble, state
            self.version += 1
        return more

    def lost(self) -> Iterator[tuple[Any, ...]]:
        """Places of samples that the process which runs now has lost; indices of (pair, problem, sample)."""
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
        """The share of the logs that was read for the first time; None when all was."""
        if self.loaded or not self.plan:
            return None
        done = sum(tail.offset for tail in self.logs.tails.values())
        total = sum(_size(tail.path) for tail in self.logs.tails.values())
        return min(1.0, done / total) if total else 1.0

    def warnings(self) -> list[str]:
        """One line for everything that is ignored or cannot be read."""
        lines = [each for each in (self.trouble, self._labels_trouble) if each]
        lines += [text for at, text in self._happened if at > time.monotonic() - _SHOWN_S]
        conflicts = self.logs.conflicts
        lines += [*self.logs.columns.warnings(), *conflicts[:_CONFLICTS_SHOWN]]
        if len(conflicts) > _CONFLICTS_SHOWN:
            more = len(conflicts) - _CONFLICTS_SHOWN
            lines.append(f"{more} more lines contradict others and are not counted")
        return [mask(each) for each in lines]

    def _note(self, text: str) -> None:
        self._happened.append((time.monotonic(), text))

    def _look_at_run(self) -> None:
        stamp = _stamp(self.directory / "run.json")
        if stamp is not None and stamp == self._stamps.get("run.json") and not self.trouble:
            return
        settings = read_settings(self.directory)  # tells of one that is not there
        self._stamps["run.json"] = stamp
        if not self.plan or _plan(settings) != _plan(self.logs.settings):
            if self.plan:
                self._note(f"{self.directory}: the plan has changed, and all was read again")
            self._begin(settings)
        elif settings != self.logs.settings:
            self.logs.settings = settings
            self.logs.columns.update_plan(settings)
            self.version += 1

    def _begin(self, settings: RunSettings) -> None:
        planned = len(settings.models) * len(settings.formats) * len(settings.problems) * settings.samples
        if planned > MOST_SAMPLES:
            raise ConflictError(f"{self.directory}: {planned} samples planned, over {MOST_SAMPLES} to show")
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
            self._note(f"{self.directory}: its logs were cut or replaced, and were read again")
            self._begin(read_settings(self.directory))
            return True
        if changed or not self.loaded:
            self.loaded = self.loaded or not changed
            self.version += 1
        return changed

    def _in_words(self, error: AstraError | OSError) -> str:
        if self.plan and _stamp(self.directory / "run.json") is None:
            return f"{self.directory}: is gone, or its run.json is; what was read before is shown"
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
        """Whether a file is another than at the last look."""
        before, self._stamps[name] = self._stamps.get(name), _stamp(self.directory / name)
        return before != self._stamps[name]

    def label(self, key: SampleKey, label: str | None) -> None:
        """Give a sample a class of error, or take it away. Raises UsageError, StorageError, OSError."""
        path = self.directory / "labels.csv"
        before = path.read_bytes().decode("utf-8-sig", "replace") if path.exists() else ""
        text = relabelled(before, key, label)
        write_atomically(path, text.encode(errors="replace"), mode=file_mode(self.directory))

    def _state(self) -> State:
        if is_running(self.directory, self.live):
            return "running"
        if not self.loaded or _stamp(self.directory / "run.json") is None:
            return "unknown"
        columns = self.logs.columns
        missing = columns.planned[:, None] & (columns.places["present"] != 1)
        left = (
            missing.any()
            or not missing.size
            or has_open_pairs(self.logs.settings.deciding, self.logs.settings.formats)
        )
        return "stopped" if left else "finished"


def is_running(directory: Path, live: Mapping[str, Any] | None) -> bool:
    """Whether a process works in a run directory: from live.json, else from who holds its lock."""
    recorded = _recorded_running(live) if live else None
    return recorded if recorded is not None else owner_of(directory) is not None


def _recorded_running(live: Mapping[str, Any]) -> bool | None:
    """What live.json says of its process; None where it is too old to say anything."""
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


def _stamp(path: Path) -> Stamp | None:
    """What changes when a file is replaced; None without one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _size(path: Path) -> int:
    stamp = _stamp(path)
    return stamp[2] if stamp else 0

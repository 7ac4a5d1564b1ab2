"""Runs `astra run` as a user does, and checks what must hold at the end of every run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

MODEL = "simulated/steady"
Key = tuple[str, str, str, int]
_TROUBLES = ("provider_error", "project_error", "sandbox_error")
_PATIENCE_S = 240


@dataclass(kw_only=True)
class Run:
    """One run directory and the command that brings it about.

    `settings` are TOML keys of the model, `options` further words of the command line, `before` a command
    that runs this one.
    """

    folder: Path
    problems: Path
    base_url: str
    samples: int = 4
    problem_ids: Sequence[str] = ("p",)
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[str] = ()
    out: Path = field(init=False)

    def __post_init__(self) -> None:
        self.out = self.folder / "run"

    @property
    def command(self) -> list[str]:
        model = {"spec": MODEL, "base_url": self.base_url, **self.settings}
        toml = "[[models]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in model.items())
        config = self.folder / "astra.toml"
        config.write_text(toml)
        words = (
            *("--problems", self.problems, "--config", config, "--out", self.out),
            *("--samples", self.samples, *self.options),
        )
        return [*self.before, sys.executable, "-m", "astra_async", "run", *map(str, words)]

    def start(self) -> subprocess.Popen[str]:
        # A cache of its own: what a project's tests are is learned within this run.
        environ = {**os.environ, "ASTRA_CACHE": str(self.folder / "cache"), **self.environ}
        return subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environ
        )

    def finish(self, code: int = 0) -> str:
        """Run to the end, which must have this exit code; returns what was said."""
        return finished(self.start(), code)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The readable records of a log, the torn last line of a running program left out."""
        path = self.out / name
        if not path.exists():
            return []
        return [orjson.loads(line) for line in path.read_bytes().rpartition(b"\n")[0].splitlines()]

    def kinds(self) -> set[str]:
        """What kinds of events there were."""
        return {event["kind"] for event in self.lines("events.jsonl")}

    def await_lines(self, name: str, count: int = 1) -> None:
        """Wait until a log holds so many records."""
        awaited(lambda: len(self.lines(name)) >= count, f"{count} lines of {name}")

    def check_end(self, *, missing: int = 0, of: str = "results.jsonl") -> None:
        """planned = recorded + missing, no key twice, every missing key named, no container left."""
        planned = set(product([MODEL], ["xml"], self.problem_ids, range(self.samples)))
        recorded = [key(line) for line in self.lines(of)]
        assert len(recorded) == len(set(recorded))
        assert set(recorded) <= planned
        absent = planned - set(recorded)
        assert len(absent) == missing
        events = [event for event in self.lines("events.jsonl") if event["kind"] in _TROUBLES]
        whole_problems = {event["problem_id"] for event in events if "sample" not in event}
        named = {key(event) for event in events if "sample" in event}
        assert {each for each in absent if each[2] not in whole_problems} <= named
        assert self.containers() == []

    def containers(self, *, running_only: bool = False) -> list[str]:
        """Ids of this run's containers, on the engine that it used."""
        if "--generate-only" in self.options:
            return []
        return self.docker(
            "ps", "-q" if running_only else "-aq", "--filter", f"label=astra.run={self.run_id}"
        )

    def docker(self, *words: str) -> list[str]:
        """A docker command at the engine that the run uses."""
        environ = {**os.environ, **self.environ}
        done = subprocess.run(["docker", *words], check=True, capture_output=True, text=True, env=environ)
        return done.stdout.split()

    @property
    def run_id(self) -> str:
        return str(orjson.loads((self.out / "run.json").read_bytes())["run_id"])


def finished(process: subprocess.Popen[str], code: int) -> str:
    """Wait for the end, which must have this exit code; returns what was said."""
    try:
        _, said = process.communicate(timeout=_PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == code, said
    return said


def key(line: Mapping[str, Any]) -> Key:
    """The sample that a record is about."""
    return line["model"], line["format"], line["problem_id"], line["sample"]


def awaited(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    patience = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < patience, f"waited in vain for {what}"
        time.sleep(0.02)


class Beside:
    """How much slower than alone a little work runs beside what else the machine does; a context manager.

    For limits in seconds that hold on a machine with nothing else to do: there `slowness` is 1.
    """

    _WORK_S, _PAUSE_S = 0.01, 0.03

    def __init__(self) -> None:
        self._wall_s = self._cpu_s = 1e-9
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def slowness(self) -> float:
        """Seconds that a second of CPU time took, 1 at least."""
        return max(1.0, self._wall_s / self._cpu_s)

    def _measure(self) -> None:
        while not self._over.wait(self._PAUSE_S):
            wall_s, cpu_s = time.monotonic(), time.thread_time()
            while time.thread_time() - cpu_s < self._WORK_S:
                pass
            self._cpu_s += time.thread_time() - cpu_s
            self._wall_s += time.monotonic() - wall_s

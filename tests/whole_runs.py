"""Run `astra run` like a user, and check the invariants at the end of every run."""

from __future__ import annotations

import asyncio
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

from command_server import astra
from waiting import PATIENCE_S, awaited

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from nasty_server import Behaviour, Connection

ASTRA = (sys.executable, "-m", "astra_async")
MODEL = "simulated/steady"
Key = tuple[str, str, str, int]
_TROUBLES = ("provider_error", "project_error", "sandbox_error")
_started: list[subprocess.Popen[str]] = []


@dataclass(kw_only=True)
class Run:
    """One run directory and its command.

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
    _process: subprocess.Popen[str] | None = field(init=False, default=None)

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
        return [*self.before, *ASTRA, "run", *map(str, words)]

    @property
    def all_environ(self) -> dict[str, str]:
        """With a cache of its own: what a project's tests are is learned within this run."""
        return {**os.environ, "ASTRA_CACHE": str(self.folder / "cache"), **self.environ}

    def start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.all_environ,
        )
        _started.append(process)
        self._process = process
        return process

    def finish(self, code: int = 0) -> str:
        """Run to the end, check the exit code, and return the output."""
        if self.before or "LD_PRELOAD" in self.environ:  # which tell of the start of a process
            return finished(self.start(), code)
        done = astra(*self.command[len(ASTRA) :], env=self.all_environ)
        assert done.returncode == code, done.stderr
        return done.stderr

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return the readable records of a log without an incomplete last line."""
        path = self.out / name
        if not path.exists():
            return []
        return [orjson.loads(line) for line in path.read_bytes().rpartition(b"\n")[0].splitlines()]

    def kinds(self) -> set[str]:
        """Return the kinds of the recorded events."""
        return {event["kind"] for event in self.lines("events.jsonl")}

    def await_lines(self, name: str, count: int = 1) -> None:
        """Wait until a log has this number of records."""
        awaited(
            lambda: self.lines(name),
            f"{count} lines of {name}",
            until=lambda lines: len(lines) >= count,
            while_runs=self._process,
        )

    def await_draining(self) -> None:
        """Wait until the program has seen a first signal: a second one that comes earlier may be the same."""
        path = self.out / "live.json"
        awaited(lambda: orjson.loads(path.read_bytes())["stopping"], "the first signal to be seen")

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
        """Return the ids of this run's containers on its engine."""
        if "--generate-only" in self.options:
            return []
        return self.docker(
            "ps", "-q" if running_only else "-aq", "--filter", f"label=astra.run={self.run_id}"
        )

    def docker(self, *words: str) -> list[str]:
        """Run a docker command on the run's engine."""
        environ = {**os.environ, **self.environ}
        done = subprocess.run(["docker", *words], check=True, capture_output=True, text=True, env=environ)
        return done.stdout.split()

    @property
    def run_id(self) -> str:
        return str(orjson.loads((self.out / "run.json").read_bytes())["run_id"])


def finished(process: subprocess.Popen[str], code: int) -> str:
    """Wait for the end, check the exit code, and return the output."""
    try:
        _, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == code, said
    return said


def number_started() -> int:
    """Return the number of runs that this process has started and not ended by `end_started`."""
    return len(_started)


def end_started(*, but: int) -> None:
    """Kill the runs that a failed test has left, except the first `but`."""
    while len(_started) > but:
        process = _started.pop()
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def key(line: Mapping[str, Any]) -> Key:
    """Return the sample key of a record."""
    return line["model"], line["format"], line["problem_id"], line["sample"]


def once(let: threading.Event, behave: Behaviour) -> Behaviour:
    """What a server does as soon as it is let."""

    async def wait(connection: Connection) -> None:
        while not let.is_set():
            await asyncio.sleep(0.02)
        await behave(connection)

    return wait


class Beside:
    """What a little work suffers from whatever else the machine does meanwhile; a context manager.

    For limits in seconds that hold on a machine with nothing else to do.
    """

    _WORK_S, _PAUSE_S = 0.01, 0.03

    def __init__(self) -> None:
        self._wall_s = self._cpu_s = 1e-9
        self._stood_still_s = 0.0
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

    def allows(self, took_s: float, limit_s: float) -> bool:
        """Whether what took so long would have kept the limit alone."""
        return self.alone_s(took_s) < limit_s

    def alone_s(self, took_s: float) -> float:
        """What it would have taken: here a second of CPU time lasts longer, and who is due to run waits."""
        return (took_s - self._stood_still_s) / max(1.0, self._wall_s / self._cpu_s)

    def _measure(self) -> None:
        due = time.monotonic() + self._PAUSE_S
        while not self._over.wait(self._PAUSE_S):
            wall_s, cpu_s = time.monotonic(), time.thread_time()
            self._stood_still_s += max(0.0, wall_s - due)
            while time.thread_time() - cpu_s < self._WORK_S:
                pass
            self._cpu_s += time.thread_time() - cpu_s
            self._wall_s += time.monotonic() - wall_s
            due = time.monotonic() + self._PAUSE_S

"""What a viewer takes: 66,560 samples opened, searched and held in memory; a run with two tabs looking on.

Makes a run directory of models x problems x samples with results, prompts and answers, starts `astra view`
on it and asks over HTTP as the page does. Then a run of 2,000 answers, alone and with two streams, in turn.

    scripts/bench/run view [--models 32] [--problems 65] [--samples 32] [--pairs 3] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import programs
import reporting

from astra_async.asking.prompt import build_prompt
from astra_async.types import Problem, Project, ProjectFile

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENED = 60
_LINES = [f"    const line{number} = items.filter((item) => item.id > {number});" for number in range(80)]
_FILE = "\n".join(_LINES) + "\n"


@dataclass(slots=True)
class Started:
    """A viewer that runs."""

    process: subprocess.Popen[str]
    port: int
    ready_s: float

    def get(self, path: str) -> tuple[float, bytes]:
        """Milliseconds until the answer was read, and the answer."""
        began = time.perf_counter()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/api/{path}")
        content = connection.getresponse().read()
        connection.close()
        return 1000 * (time.perf_counter() - began), content

    def status(self, name: str) -> float:
        """A field of /proc/PID/status in megabytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition(f"{name}:")[2].split()[0]) / 1024

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=32)
    parser.add_argument("--problems", type=int, default=65)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with a viewer")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary) / "run"
        if not (directory / "results.jsonl").exists():
            make(directory, options.models, options.problems, options.samples)
        look(directory)
        if options.pairs:
            watch(Path(temporary), options.pairs)


def make(directory: Path, models: int, problems: int, samples: int) -> None:
    """A finished run with answers of about five thousand characters, and one prompt for each problem."""
    reporting.make(directory, models, problems, samples, answers=False)
    rng, prompts = random.Random(1), directory / "prompts"
    prompts.mkdir()
    project = Project(files=(ProjectFile(path="src/app.js", content=_FILE.encode()),), sha256="")
    prompt = build_prompt(Problem(id="p", statement="Make it so.", project="p"), project, "xml")
    with (
        (directory / "results.jsonl").open("rb") as lines,
        (directory / "completions.jsonl").open("wb") as log,
    ):
        for result in map(orjson.loads, lines):
            (prompts / f"{result['prompt_sha256']}.txt").write_text(prompt.text)
            log.write(orjson.dumps(_answer(result, rng)) + b"\n")


def _answer(result: dict[str, object], rng: random.Random) -> dict[str, object]:
    """The key, a text that changes five lines of the file, and the rest, in the order of a run's lines."""
    changed = list(_LINES)
    for place in rng.sample(range(len(changed)), 5):
        changed[place] += f" // {rng.randrange(10**6)}"
    content = "\n".join(changed)
    text = f'<solution><file path="src/app.js"><![CDATA[\n{content}\n]]></file></solution>'
    key = ("schema", "model", "format", "problem_id", "sample")
    rest = ("finish_reason", "usage", "cost_usd", "attempts", "ttft_s", "latency_s", "prompt_sha256")
    return {name: result[name] for name in key} | {"text": text} | {name: result[name] for name in rest}


@contextmanager
def viewer(directory: Path) -> Iterator[Started]:
    """`astra view` on a free port."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "astra_async", "view", str(directory), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        try:
            yield Started(
                process, int(address.rpartition(":")[2].partition("/")[0]), time.perf_counter() - began
            )
        finally:
            process.terminate()


def look(directory: Path) -> None:
    """Time what the page asks for, and the viewer's memory."""
    with viewer(directory) as started:
        print("| what | ms |", "|---|---|", sep="\n")
        _row("the address is printed", 1000 * started.ready_s)
        first = [started.get(path)[0] for path in ("run", "cells")]
        _row("first /api/run and /api/cells, before all is read", sum(first))
        began = time.perf_counter()
        while json.loads(started.get("run")[1])["loading"] is not None:
            time.sleep(0.1)
        _row("all is read, after the address", sum(first) + 1000 * (time.perf_counter() - began))
        run = json.loads(started.get("run")[1])
        for path in ("run", "cells", "cells/failure", "cells/cost", "live", "history", "compare?a=0&b=1"):
            _row(f"/api/{path}", statistics.median(started.get(path)[0] for _ in range(5)))
        problem = run["problems"][0]["id"]
        _row("/api/tests", statistics.median(started.get(f"tests?problem={problem}")[0] for _ in range(5)))
        test = json.loads(started.get(f"tests?problem={problem}")[1])["tests"][0]["name"].replace(" ", "%20")
        _row("samples that failed a test", started.get(f"search?problem={problem}&test={test}")[0])
        _row("a text in 5,000 answers and more", started.get("search?text=LINE79%20=")[0])
        _row("a text in no answer", started.get("search?text=nowhere")[0])
        rng = random.Random(2)
        opened = [started.get(_sample(run, rng))[0] for _ in range(_OPENED)]
        _row("a sample, median", statistics.median(opened))
        _row("a sample, slowest of 60", max(opened))
        print(f"\nresident: {started.status('VmRSS'):.0f} MB, at most {started.status('VmHWM'):.0f} MB\n")


def _sample(run: dict[str, list[dict[str, str]]], rng: random.Random) -> str:
    model, problem = rng.randrange(len(run["models"])), rng.choice(run["problems"])["id"]
    return f"sample?model={model}&problem={problem}&sample={rng.randrange(int(str(run['samples'])))}"


def _row(what: str, milliseconds: float) -> None:
    print(f"| {what} | {milliseconds:.0f} |", flush=True)


def watch(folder: Path, pairs: int) -> None:
    """CPU of a run alone and with a viewer that two streams watch, in turn; and the viewer's own."""
    alone, watched, viewers = [], [], []
    with programs.toy_server(latency=0.2) as server:
        for number in range(pairs):
            alone.append(_run(folder / f"alone{number}", server.base_url))
            out = folder / f"watched{number}"
            out.mkdir()
            (out / "run.json").write_bytes(b"{}")  # the viewer is there before the run
            with viewer(out) as started:
                (out / "run.json").unlink()
                streams = [
                    threading.Thread(target=_stream, args=(started.port,), daemon=True) for _ in range(2)
                ]
                for stream in streams:
                    stream.start()
                before = started.cpu_s()
                watched.append(_run(out, server.base_url))
                viewers.append((started.cpu_s() - before) / watched[-1].wall_s)
    print("| a run of 2,000 answers | CPU s, median | seconds, median |", "|---|---|---|", sep="\n")
    for name, runs in (("alone", alone), ("watched by two tabs", watched)):
        cpu_s, wall_s = (
            statistics.median(getattr(run, each) for run in runs) for each in ("cpu_s", "wall_s")
        )
        print(f"| {name} | {cpu_s:.2f} | {wall_s:.1f} |")
    print(f"\nthe viewer's own CPU: {100 * statistics.median(viewers):.1f} % of a core")


def _run(out: Path, base_url: str) -> programs.Spent:
    words = ("--generate-only", "--samples", "250", "--limit", "8", "--max-in-flight", "16")
    return programs.run(programs.astra_run(Path("bundled"), out, base_url, *words))


def _stream(port: int) -> None:
    """Read changes as a tab does, until the viewer ends."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/stream")
    answer = connection.getresponse()
    try:
        while answer.readline():
            pass
    except OSError:
        return


if __name__ == "__main__":
    main()

"""Runs whole programs in processes of their own and measures what they take."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a process took, its own children included; `began_at` is Unix time."""

    wall_s: float
    cpu_s: float
    resident_mb: float
    began_at: float


@dataclass(slots=True)
class ToyServer:
    """A running toy server; `seen` is filled when it ends."""

    base_url: str
    seen: dict[str, float] = field(default_factory=dict)


def run(command: Sequence[str], *, tree: Path | None = None) -> Spent:
    """Run to the end, with the program of another checkout if told; a failure ends the measurement.

    In that checkout, for `python -m` takes a package of the current folder before all others; with byte code
    kept, as it is wherever the program is installed.
    """
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began_at, began = time.time(), time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environ | ({"PYTHONPATH": str(tree)} if tree else {}),
        cwd=tree,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{said}")
    return Spent(
        wall_s=wall_s,
        cpu_s=used.ru_utime + used.ru_stime,
        resident_mb=used.ru_maxrss / 1024,
        began_at=began_at,
    )


def python(script: str, *words: object) -> list[str]:
    """The command of a script beside this one."""
    return [sys.executable, str(HERE / script), *map(str, words)]


def astra_run(problems: Path, out: Path, base_url: str, *words: object) -> list[str]:
    """`astra run` against a toy server."""
    return [
        *(sys.executable, "-m", "astra_async", "run", "--problems", str(problems), "--out", str(out)),
        *("--model", "openai-compatible/toy", "--base-url", base_url, *map(str, words)),
    ]


@contextmanager
def checked_out(commit: str | None) -> Iterator[dict[str, Path]]:
    """This checkout and, if one is named, another commit's beside it, by what a table calls them."""
    here = HERE.parents[1]
    _compile(here)
    if commit is None:
        yield {"here": here}
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ("git", "-C", str(here), "worktree")
        subprocess.run([*git, "add", "--detach", f"{folder}/tree", commit], check=True, capture_output=True)
        _compile(Path(folder) / "tree")
        try:
            yield {"here": here, commit: Path(folder) / "tree"}
        finally:
            subprocess.run([*git, "remove", "--force", f"{folder}/tree"], check=False)


def _compile(tree: Path) -> None:
    """So that no measurement pays for it."""
    words = ("-m", "compileall", "-q", "-x", "bundled/problems", str(tree / "astra_async"))
    subprocess.run([sys.executable, *words], check=True)


@contextmanager
def toy_server(**options: float) -> Iterator[ToyServer]:
    """A toy server (see toy_server.py for its options) in a process of its own."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    process = subprocess.Popen(python("toy_server.py", *words), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    server = ToyServer(process.stdout.readline().strip())
    try:
        yield server
    finally:
        process.terminate()
        rest, _ = process.communicate()
    server.seen.update(json.loads(rest))


def tiny_image() -> str:
    """An image with bash, made if it is not there."""

    async def ensure() -> str:
        from astra_async.images.base_image import ensure_base
        from astra_async.testing.sandbox.engine import Engine

        async with await Engine.open() as engine:
            return await ensure_base(engine, progress=lambda line: print(line, file=sys.stderr))

    return asyncio.run(ensure())

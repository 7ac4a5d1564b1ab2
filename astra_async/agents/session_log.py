"""Keep what an agent printed and its own session log, as one compressed text of the run directory.

The text has a heading for each file, as `tail -v` prints it. It is masked and bounded, and it is not part of
the record: a sample is complete without it.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.errors import SandboxError, StorageError
from astra_async.files import file_mode, plain_name, storage_error, write_atomically
from astra_async.redaction import mask
from astra_async.testing.sandbox.execution import Clipped, Command, run_command

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from astra_async.agents.workplace import Workplace
    from astra_async.types import AnswerKey

FOLDER = "agent-logs"
MOST_BYTES = 2 * 1024**2  # of one sample; the middle is left out
_READ_S = 30.0
_READ = """
shopt -s globstar nullglob
cd && files=({patterns})
[ ${{#files[@]}} = 0 ] || tail -v -n +1 -- "${{files[@]}}"
"""
_log = logging.getLogger(__name__)


def session_log(directory: Path, key: AnswerKey) -> Path:
    """Return the path of a sample's session log in a run directory; the file may be missing."""
    model, agent, problem, sample = key.first
    return directory / FOLDER / plain_name(problem) / f"{plain_name(model)}-{agent}-{sample}.txt.gz"


async def keep_session_log(path: Path, place: Workplace, patterns: Iterable[str], output: str) -> None:
    """Write the agent's output and the files below HOME that match the patterns (globs of bash).

    No process is killed, because a task's verifier may need the agent's services. Errors are logged only.
    """
    text = f"==> output <==\n{output}\n" if output else ""
    try:
        if patterns:
            text += await _read(place, patterns)
        if text:
            await asyncio.to_thread(_write, path, text)
    except (SandboxError, StorageError) as error:
        _log.warning("no session log of an agent: %s", error)


async def _read(place: Workplace, patterns: Iterable[str]) -> str:
    command = Command(  # noqa: S604 - the shell in the container
        text=_READ.format(patterns=" ".join(patterns)),
        user=place.user,
        environment=place.environment,
        shell='eval "$1"',
    )
    limits = replace(place.limits, timeout_s=_READ_S, output_bytes=MOST_BYTES)
    engine, watched = place.containers.engine, place.fitness.layered
    return (await run_command(engine, place.container, command, limits, watched=watched)).output.text()


def _write(path: Path, text: str) -> None:
    """Write the text with the modes of the run's other files."""
    run = path.parents[2]
    clipped = Clipped(MOST_BYTES)
    clipped.feed(mask(text).encode(errors="replace"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = file_mode(run)
    except OSError as error:
        raise storage_error(path, error) from error
    write_atomically(path, gzip.compress(clipped.text().encode(), mtime=0), mode=mode, sync=False)

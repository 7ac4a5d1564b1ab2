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
    return _file_of(directory / FOLDER, key, "txt.gz")


def artifacts_file(directory: Path, key: AnswerKey) -> Path:
    """Return the path of the files that a task's sample left; it exists after --keep-artifacts only."""
    return _file_of(directory / "artifacts", key, "tar.gz")


def _file_of(folder: Path, key: AnswerKey, suffix: str) -> Path:
    model, agent, problem, sample = key.first
    return folder / plain_name(problem) / f"{plain_name(model)}-{agent}-{sample}.{suffix}"


async def keep_session_log(path: Path, place: Workplace, patterns: Iterable[str], output: str) -> None:
    """Write the agent's output and the files below HOME that match the patterns (globs of bash).

    No process is killed, because a task's verifier may need the agent's services. Errors are logged only.
    """
    text = f"==> output <==\n{output}\n" if output else ""
    try:
        if patterns:
            text += await _read(place, patterns)
        if text:
            clipped = Clipped(MOST_BYTES)
            clipped.feed(mask(text).encode(errors="replace"))
            content = gzip.compress(clipped.text().encode(), mtime=0)
            await asyncio.to_thread(write_beside, path, content)
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


def write_beside(path: Path, content: bytes) -> None:
    """Write FOLDER/PROBLEM/NAME of a run directory, with the modes of the run's other files.

    Raises StorageError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = file_mode(path.parents[2])
    except OSError as error:
        raise storage_error(path, error) from error
    write_atomically(path, content, mode=mode, sync=False)

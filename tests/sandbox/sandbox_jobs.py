"""Archives and types that the sandbox tests share."""

from __future__ import annotations

import asyncio
import io
import tarfile
from typing import TYPE_CHECKING, Protocol

from astra_async.errors import SandboxError
from astra_async.testing.sandbox.sweep import claim, owner
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Execution, Limits

_OPEN_TO_THE_END = "audit-tests"  # tests/audit/graded_answers.py


def tar(
    files: Mapping[str, bytes] | None = None,
    *,
    links: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = (),
    executable: tuple[str, ...] = (),
) -> bytes:
    """A project's archive as an integration hands it over."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        entries = [(name, tarfile.REGTYPE) for name in files or {}]
        entries += [(name, tarfile.SYMTYPE) for name in links or {}]
        entries += [(name, tarfile.DIRTYPE) for name in folders]
        for name, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.uid, entry.gid = kind, 1000, 1000
            entry.mode = 0o755 if name in executable or kind == tarfile.DIRTYPE else 0o644
            entry.linkname = (links or {}).get(name, "")
            content = (files or {}).get(name, b"")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


class Run(Protocol):
    """Runs one command in a sandbox of its own."""

    def __call__(
        self,
        command: str,
        *result_files: str,
        archive: bytes = ...,
        image: str = ...,
        limits: Limits = ...,
        environment: Mapping[str, str] | None = ...,
    ) -> Execution: ...


async def own_containers(engine: Engine, *, running_only: bool = False) -> list[str]:
    """Containers on the engine that this process made, but for those of a sandbox that all tests share."""
    return [
        str(summary["Id"])
        for summary in await engine.containers()
        if (whose := claim(summary)) is not None
        and whose.owner == owner()
        and whose.run != _OPEN_TO_THE_END
        and (not running_only or summary["State"] == "running")
    ]


async def await_commands(engine: Engine, count: int) -> list[str]:
    """Wait until so many jobs' commands run; returns their containers. Their image must be known."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            await asyncio.sleep(0.02)
            found = [each for each in await own_containers(engine) if await _runs(engine, each)]
    return found


async def _runs(engine: Engine, container: str) -> bool:
    try:
        commands = (await engine.inspect(container))["ExecIDs"] or []
        return bool(commands) and await engine.has_begun(commands[-1])
    except SandboxError:  # the engine lists a container a moment before it knows it, and after
        return False

"""Give the agent's user an entry in /etc/passwd.

`whoami`, `git` without HOME, Python's `getpwuid` and Node's `os.userInfo` fail for a user without an entry.
Many images have no entry for the tests' user.
"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

from astra_async.testing.sandbox.resultfiles import entries

if TYPE_CHECKING:
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.sandbox.hardened import Fitness

_MOST_BYTES = 64 * 1024**2


async def ensure_account(engine: Engine, container: str, fitness: Fitness) -> None:
    """Add the user to the container's /etc/passwd unless it has an entry. Raises SandboxError."""
    text = ""
    async with engine.packed(container, "/etc/passwd") as chunks:
        async for entry, content in entries(chunks, tarfile.TarInfo.isreg, most_bytes=_MOST_BYTES):
            if not entry.isreg():
                return  # a link belongs to another system of accounts
            text = content.decode(errors="surrogateescape")
    if any(line.split(":")[2:3] == [str(fitness.uid)] for line in text.splitlines()):
        return
    home = fitness.home or "/"
    line = f"user{fitness.uid}:x:{fitness.uid}:{fitness.gid}::{home}:/bin/sh\n"
    whole = f"{text.rstrip()}\n{line}".lstrip().encode(errors="surrogateescape")
    packed, info = io.BytesIO(), tarfile.TarInfo("passwd")
    info.size = len(whole)
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        tar.addfile(info, io.BytesIO(whole))
    await engine.upload(container, "/etc", packed.getvalue())

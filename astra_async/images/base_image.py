"""The image on which all bundled ones stand: named by the user, pulled, or made with debootstrap."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from astra_async.errors import ImageError, SandboxError
from astra_async.images.build_request import build_image, remove_unnamed
from astra_async.testing.sandbox.engine_errors import both_ends

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.testing.sandbox.engine import Engine

BASE = "astra-base:bookworm"
DEBIAN = "debian:bookworm-slim"
_PULL_STARTS_S = 20.0  # where no registry answers, a name server may take long to say so
_DEBOOTSTRAP_S = 1800.0
_DOCKERFILE = b'FROM scratch\nADD root.tar /\nCMD ["bash"]\n'


async def ensure_base(engine: Engine, *, progress: Callable[[str], None]) -> str:
    """The name of a base image that is there now.

    ASTRA_BASE_IMAGE if set; else what an earlier call made; else Debian's slim image, from the engine or
    its registry; else a Debian made with debootstrap.

    Raises:
        ImageError: none of these is possible here; says what to install or set.
    """
    named = os.environ.get("ASTRA_BASE_IMAGE")
    if named:
        if not await engine.image(named) and not await _pulled(engine, named, progress):
            raise ImageError(f"ASTRA_BASE_IMAGE={named} is neither on this engine nor can it be pulled")
        return named
    if await engine.image(BASE):
        return BASE
    if await engine.image(DEBIAN) or await _pulled(engine, DEBIAN, progress):
        await engine.tag(DEBIAN, BASE)
        return BASE
    await debootstrap(engine, BASE, progress=progress)
    return BASE


async def renew_base(engine: Engine, *, progress: Callable[[str], None]) -> str:
    """The name of the base image, which is a new one now: pulled again, else made with debootstrap.

    Images that stand on the old one keep it; the old one goes if none does.

    Raises:
        ImageError: neither is possible here, and the old one stays.
    """
    named = os.environ.get("ASTRA_BASE_IMAGE")
    name = named or BASE
    old = await engine.image(name)
    if await _pulled(engine, named or DEBIAN, progress):
        if not named:
            await engine.tag(DEBIAN, BASE)
    elif named:
        raise ImageError(f"ASTRA_BASE_IMAGE={named} cannot be pulled; it stays as it is")
    else:
        await debootstrap(engine, BASE, progress=progress)
    if old:
        await remove_unnamed(engine, old["Id"])
    return name


async def debootstrap(engine: Engine, tag: str, *, progress: Callable[[str], None]) -> None:
    """Make a minimal Debian 12 with debootstrap (root; half a minute and 130 MB) and tag it.

    Raises:
        ImageError: debootstrap is missing or failed.
    """
    progress("No registry answers: making a Debian base image with debootstrap")
    with tempfile.TemporaryDirectory(prefix="astra-base-") as folder:
        root = Path(folder) / "root.tar"
        await _run_script(root)
        context = Path(folder) / "context.tar"
        await asyncio.to_thread(_write_context, context, root)
        with context.open("rb") as file:
            await build_image(engine, file, tag=tag, progress=progress)


async def _pulled(engine: Engine, name: str, progress: Callable[[str], None]) -> bool:
    progress(f"Pulling {name}")
    try:
        await engine.pull(name, starts_within_s=_PULL_STARTS_S)
    except SandboxError as error:
        progress(f"Cannot pull {name}: {error}")
        return False
    return True


async def _run_script(output: Path) -> None:
    with resources.as_file(resources.files("astra_async.images") / "base_image.sh") as script:
        process = await asyncio.create_subprocess_exec(
            "bash",
            str(script),
            str(output),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(_DEBOOTSTRAP_S):
                printed, _ = await process.communicate()
        except BaseException as error:
            process.terminate()  # its trap removes what it made
            await process.wait()
            if isinstance(error, TimeoutError):
                raise ImageError("debootstrap took longer than half an hour; is its mirror slow?") from error
            raise
    if process.returncode:
        last = both_ends(" ".join(printed.decode(errors="replace").splitlines()[-5:]))
        raise ImageError(f"No base image: no registry answers, and debootstrap failed: {last}")


def _write_context(context: Path, root: Path) -> None:
    with tarfile.open(context, "w:") as tar:
        dockerfile = tarfile.TarInfo("Dockerfile")
        dockerfile.size = len(_DOCKERFILE)
        tar.addfile(dockerfile, io.BytesIO(_DOCKERFILE))
        tar.add(root, "root.tar")
    root.unlink()

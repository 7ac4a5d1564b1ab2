"""Base image of all bundled images: named by the user, pulled, or made with debootstrap."""

from __future__ import annotations

import asyncio
import io
import os
import re
import tarfile
import tempfile
from collections import deque
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from astra_async.errors import EngineUnavailable, ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import both_ends

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from astra_async.testing.sandbox.engine import Engine


_SHOWN_LINES = 15
_NOISE = ("---> Running in ", "Removing intermediate container ")
_STEP = re.compile(r"Step ([0-9]+)/([0-9]+) : RUN\b")  # all other steps are fast
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # the builder prints standard error in red
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


def proxies() -> dict[str, str]:
    """Return the host's proxy settings, which the builder accepts and keeps out of the image."""
    return {name: os.environ[name] for name in _PROXIES if os.environ.get(name)}


async def build_image(
    engine: Engine,
    context: IO[bytes],
    *,
    tag: str | None = None,
    arguments: Mapping[str, str] | None = None,
    progress: Callable[[str], None],
    log: Callable[[str], object] = lambda _: None,
) -> str:
    """Build the Dockerfile in a tar `context` and return the image's id.

    `progress` gets `step N of M` before each command of the Dockerfile; `log` gets all output. A failed
    build leaves no images. A cancelled build may leave the current step's layer in the builder's cache, and
    the next build reuses it.

    Raises:
        ImageError: a step failed; the message ends with the last lines of its output.
        EngineUnavailable: Docker Engine cannot be reached; the Dockerfile may be correct.
    """
    build = _Build(progress, log)
    try:
        await build.run(engine.build(context, tag=tag, arguments={**proxies(), **(arguments or {})}))
    except asyncio.CancelledError:
        await asyncio.shield(_discard(engine, build.steps))
        raise
    except EngineUnavailable:
        raise
    except SandboxError as error:
        await _discard(engine, build.steps)
        output = "\n".join(build.lines)
        raise ImageError(f"The image cannot be built: {error}\n{output}") from error
    return build.image_id


async def remove_unnamed(engine: Engine, image: str) -> bool:
    """Remove an untagged image and its unused parents; the engine keeps an image that others use."""
    found = await engine.image(image)
    is_unnamed = bool(found and not found.get("RepoTags"))
    if is_unnamed:
        await engine.remove_image(image)
    return is_unnamed


class _Build:
    """Progress of one build: its last output lines and the images of its steps."""

    def __init__(self, progress: Callable[[str], None], log: Callable[[str], object]) -> None:
        self.image_id = ""
        self.steps: list[str] = []
        self.lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._progress = progress
        self._log = log

    async def run(self, events: AsyncIterator[Mapping[str, Any]]) -> None:
        async for event in events:
            self._take(event)
        if not self.image_id:
            raise SandboxError("Docker Engine finished the build without an image")

    def _take(self, event: Mapping[str, Any]) -> None:
        self.image_id = str((event.get("aux") or {}).get("ID", self.image_id))
        stream = str(event.get("stream", ""))
        self._log(stream)
        for line in stream.splitlines():
            text = line.strip()
            if text.startswith("---> ") and " " not in text.removeprefix("---> "):
                self.steps.append(text.removeprefix("---> "))
            elif text and not text.startswith(_NOISE):
                self.lines.append(_COLOUR.sub("", text))
                if step := _STEP.match(text):
                    self._progress(f"step {step[1]} of {step[2]}")


async def _discard(engine: Engine, steps: list[str]) -> None:
    """Remove the untagged images of a failed build's steps; tagged images stay."""
    for image in reversed(steps):
        if await remove_unnamed(engine, image):
            return


BASE = "astra-base:bookworm"
DEBIAN = "debian:bookworm-slim"
_PULL_STARTS_S = 20.0  # without a network, name resolution can take long to fail
_DEBOOTSTRAP_S = 1800.0
_DOCKERFILE = b'FROM scratch\nADD root.tar /\nCMD ["bash"]\n'


async def ensure_base(engine: Engine, *, progress: Callable[[str], None]) -> str:
    """Return the name of a base image, after making sure that it exists.

    The base image is ASTRA_BASE_IMAGE if set, else the one made by an earlier run, else Debian's slim image
    from the engine or its registry, else a Debian made with debootstrap.

    Raises:
        ImageError: none of these is possible; the message says what to install or set.
    """
    named = os.environ.get("ASTRA_BASE_IMAGE")
    if named:
        if not await engine.image(named) and not await _pulled(engine, named, progress):
            raise ImageError(f"ASTRA_BASE_IMAGE={named} does not exist on this engine and cannot be pulled")
        return named
    if await engine.image(BASE):
        return BASE
    if await engine.image(DEBIAN) or await _pulled(engine, DEBIAN, progress):
        await engine.tag(DEBIAN, BASE)
        return BASE
    await debootstrap(engine, BASE, progress=progress)
    return BASE


async def renew_base(engine: Engine, *, progress: Callable[[str], None]) -> str:
    """Pull the base image again, or make it again with debootstrap, and return its name.

    Images built on the old base image keep it; if there are none, the old base image is removed.

    Raises:
        ImageError: neither is possible; the old base image stays.
    """
    named = os.environ.get("ASTRA_BASE_IMAGE")
    name = named or BASE
    old = await engine.image(name)
    if await _pulled(engine, named or DEBIAN, progress):
        if not named:
            await engine.tag(DEBIAN, BASE)
    elif named:
        raise ImageError(f"ASTRA_BASE_IMAGE={named} cannot be pulled; the old image is kept")
    else:
        await debootstrap(engine, BASE, progress=progress)
    if old:
        await remove_unnamed(engine, old["Id"])
    return name


async def debootstrap(engine: Engine, tag: str, *, progress: Callable[[str], None]) -> None:
    """Make a minimal Debian 12 with debootstrap (needs root; 30 s and 130 MB) and tag it.

    Raises:
        ImageError: debootstrap is missing or failed.
    """
    progress("Cannot pull the Debian image: making a base image with debootstrap")
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
            process.terminate()  # the script's trap removes its files
            await process.wait()
            if isinstance(error, TimeoutError):
                raise ImageError("debootstrap took over 30 minutes; check its mirror") from error
            raise
    if process.returncode:
        last = both_ends(" ".join(printed.decode(errors="replace").splitlines()[-5:]))
        raise ImageError(f"No base image: the Debian image cannot be pulled, and debootstrap failed: {last}")


def _write_context(context: Path, root: Path) -> None:
    with tarfile.open(context, "w:") as tar:
        dockerfile = tarfile.TarInfo("Dockerfile")
        dockerfile.size = len(_DOCKERFILE)
        tar.addfile(dockerfile, io.BytesIO(_DOCKERFILE))
        tar.add(root, "root.tar")
    root.unlink()

"""The image on which all bundled ones stand: named by the user, pulled, or made with debootstrap."""

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
_STEP = re.compile(r"Step ([0-9]+)/([0-9]+) : RUN\b")  # all others take no time
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # the builder paints standard error red
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


def proxies() -> dict[str, str]:
    """The host's proxy settings; the builder knows these arguments and keeps them out of the image."""
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
    """Build the Dockerfile in a tar `context`; returns the image's id.

    `progress` is told `step N of M` when a command of the Dockerfile is to run. `log` gets all output.

    A failed build leaves nothing. A cancelled one may leave the layer of the step that was under way in the
    builder's cache, where the next try finds it.

    Raises:
        ImageError: a step failed; the message ends with the last lines of its output.
        EngineUnavailable: it went away, which is no failure of the Dockerfile.
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
    """Remove an image that has no name, and what only that needed; refused where another stands on it."""
    found = await engine.image(image)
    is_unnamed = bool(found and not found.get("RepoTags"))
    if is_unnamed:
        await engine.remove_image(image)
    return is_unnamed


class _Build:
    """One run of the builder: its last lines, and the images that its steps made."""

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
            raise SandboxError("Docker Engine ended the build without an image")

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
    """Remove what a failed build's last step left, and what only that needed; tagged images stay."""
    for image in reversed(steps):
        if await remove_unnamed(engine, image):
            return


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

"""Builds an image from a Dockerfile with the engine's own builder, and leaves nothing of a failed build."""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from typing import IO, TYPE_CHECKING, Any

from astra_async.errors import EngineUnavailable, ImageError, SandboxError

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
) -> str:
    """Build the Dockerfile in a tar `context`; returns the image's id.

    `progress` is told `step N of M` when a command of the Dockerfile is to run.

    A failed build leaves nothing. A cancelled one may leave the layer of the step that was under way in the
    builder's cache, where the next try finds it.

    Raises:
        ImageError: a step failed; the message ends with the last lines of its output.
        EngineUnavailable: it went away, which is no failure of the Dockerfile.
    """
    build = _Build(progress)
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

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.image_id = ""
        self.steps: list[str] = []
        self.lines: deque[str] = deque(maxlen=_SHOWN_LINES)
        self._progress = progress

    async def run(self, events: AsyncIterator[Mapping[str, Any]]) -> None:
        async for event in events:
            self._take(event)
        if not self.image_id:
            raise SandboxError("Docker Engine ended the build without an image")

    def _take(self, event: Mapping[str, Any]) -> None:
        self.image_id = str((event.get("aux") or {}).get("ID", self.image_id))
        for line in str(event.get("stream", "")).splitlines():
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

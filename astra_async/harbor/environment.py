"""The image of a task: pulled by name, or built once from `environment/Dockerfile`.

A build has no arguments except the host's proxy settings, no secrets and no privileges. Its context is the
`environment` folder.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import tarfile
from typing import TYPE_CHECKING

from astra_async.errors import ImageError
from astra_async.harbor.task import files_of
from astra_async.images.base_image import build_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.harbor.task import HarborTask
    from astra_async.testing.sandbox.engine import Engine

MOST_CONTEXT_BYTES = 1024**3
_RULES = "1"  # raise this number if a change here makes another image from the same files


def task_image(task: HarborTask) -> str:
    """Return the name of a task's image: its `docker_image`, else one with a hash of the build context.

    Raises ImageError if the context is too large.
    """
    return task.config.environment.docker_image or built_name(task.folder / "environment", f"task-{task.id}")


def built_name(context: Path, name: str) -> str:
    """Return `astra/NAME:HASH` for a build context. Raises ImageError if the context is too large."""
    digest, size = hashlib.sha256(_RULES.encode()), 0
    for path in files_of(context):
        found = path.stat()
        size += found.st_size
        if size > MOST_CONTEXT_BYTES:
            raise ImageError(f"{context}: larger than {MOST_CONTEXT_BYTES // 1024**2:,} MB")
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(
            f"\0{path.relative_to(context).as_posix()}\0{found.st_mode & 0o100}\0{content}".encode()
        )
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"astra/{plain}:{digest.hexdigest()[:12]}"


async def ensure_built(
    engine: Engine, context: Path, tag: str, *, timeout_s: float, progress: Callable[[str], None]
) -> None:
    """Build the image `tag` unless it exists.

    Raises ImageError if a step fails or the build takes longer than `timeout_s`, EngineUnavailable if the
    engine does not answer.
    """
    if await engine.image(tag):
        return
    archive = await asyncio.to_thread(_archive, context)
    try:
        async with asyncio.timeout(timeout_s):
            await build_image(
                engine, archive, tag=tag, progress=lambda step: progress(f"Building {tag}: {step}")
            )
    except TimeoutError as error:
        raise ImageError(f"{tag}: the build took longer than build_timeout_sec = {timeout_s:.0f}") from error
    progress(f"Built {tag}")


def _archive(context: Path) -> io.BytesIO:
    """Return the build context as a tar without times and owners, so that the builder's cache applies."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        for path in files_of(context):
            entry = tarfile.TarInfo(path.relative_to(context).as_posix())
            found = path.stat()
            entry.size, entry.mode = found.st_size, 0o755 if found.st_mode & 0o100 else 0o644
            with path.open("rb") as stream:
                tar.addfile(entry, stream)
    packed.seek(0)
    return packed

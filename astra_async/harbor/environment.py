"""The image of a task: pulled by name, or built once from `environment/Dockerfile`.

A build has no arguments except the host's proxy settings, no secrets and no privileges. Its context is the
`environment` folder without the files that `.dockerignore` excludes.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import tarfile
import tempfile
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from astra_async.errors import ImageError
from astra_async.harbor.task_files import files_of
from astra_async.images.base_image import build_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from astra_async.harbor.task import EnvironmentTable, HarborTask
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types.task_work import Build

MOST_CONTEXT_BYTES = 1024**3
_MOST_OUTPUT = 16 * 1024**2  # characters
_IGNORE_FILE, _IGNORE_BYTES, _MOST_RULES, _MOST_DEEP = ".dockerignore", 64 * 1024, 500, 3
_RULES = "1"  # raise this number if a change here makes another image from the same files


def agent_image(task: HarborTask) -> tuple[str, Build | None]:
    """Return the name of a task's image and the function that builds it; None if it is pulled.

    Raises ImageError if the build context is too large.
    """
    return _image(task.config.environment, task.folder / "environment", f"task-{task.id}")


def verifier_image(task: HarborTask) -> tuple[str, Build | None] | None:
    """Return the same for a separate verifier's own image, which contains the tests.

    Returns None if the verifier uses the task's image. Raises ImageError.
    """
    environment, context = task.verifier_environment, task.folder / "tests"
    if not task.has_verifier_image:
        return None
    if task.config.verifier.environment is None:
        environment = msgspec.structs.replace(environment, docker_image=None)
    return _image(environment, context, f"task-{task.id}-verifier")


def _image(environment: EnvironmentTable, context: Path, name: str) -> tuple[str, Build | None]:
    if environment.docker_image:
        return environment.docker_image, None
    tag, timeout_s = built_name(context, name), environment.build_timeout_sec
    return tag, partial(ensure_built, context=context, tag=tag, timeout_s=timeout_s)


def built_name(context: Path, name: str) -> str:
    """Return `astra/NAME:HASH` for a build context. Raises ImageError if the context is too large."""
    digest, size = hashlib.sha256(_RULES.encode()), 0
    for path in _context_files(context):
        found = path.stat()
        size += found.st_size
        if size > MOST_CONTEXT_BYTES:
            raise ImageError(f"{context}: larger than {MOST_CONTEXT_BYTES // 1024**2:,} MB")
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(
            f"\0{path.relative_to(context).as_posix()}\0{found.st_mode & 0o100}\0{content}".encode(
                "utf-8", "surrogateescape"
            )
        )
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"astra/{plain}:{digest.hexdigest()[:12]}"


async def ensure_built(
    engine: Engine, context: Path, tag: str, *, timeout_s: float, progress: Callable[[str], None]
) -> None:
    """Build the image `tag` unless it exists.

    Raises ImageError if a step fails or the build takes longer than `timeout_s` (the message names a
    file with the whole output), EngineUnavailable if the engine does not answer.
    """
    if await engine.image(tag):
        return
    archive = await asyncio.to_thread(_archive, context)
    output = _Output()
    try:
        async with asyncio.timeout(timeout_s):
            await build_image(
                engine,
                archive,
                tag=tag,
                progress=lambda step: progress(f"Building {tag}: {step}"),
                log=output.add,
            )
    except TimeoutError as error:
        late = f"the build took longer than build_timeout_sec = {timeout_s:g}"
        raise ImageError(f"{tag}: {late}; whole output: {output.save()}") from error
    except ImageError as error:
        cause, *lines = str(error).splitlines()
        last = f" ({lines[-1]})" if lines else ""
        raise ImageError(f"{tag}: {cause}{last}; whole output: {output.save()}") from error
    progress(f"Built {tag}")


class _Output:
    """The output of a build, up to a limit; what follows the limit is dropped."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = _MOST_OUTPUT

    def add(self, text: str) -> None:
        self._parts.append(text[: self._left])
        self._left -= len(self._parts[-1])

    def save(self) -> str:
        """Write the output to a temporary file that stays, and return its path."""
        with tempfile.NamedTemporaryFile(
            "w", prefix="astra-build-", suffix=".log", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.writelines(self._parts)
        return file.name


def _context_files(context: Path) -> Iterator[Path]:
    """Yield the files of a build context without those that its .dockerignore excludes.

    The Dockerfile and .dockerignore are always part of the context. Raises ImageError for too many patterns.
    """
    rules = _ignore_rules(context / _IGNORE_FILE)
    for path in files_of(context, within=context.parent):
        relative = path.relative_to(context)
        matched = [keeps for keeps, pattern in rules if _matches(relative.parts, pattern)]
        # The last pattern that matches decides.
        if not matched or matched[-1] or str(relative) in {"Dockerfile", _IGNORE_FILE}:
            yield path


def _ignore_rules(file: Path) -> list[tuple[bool, tuple[str, ...]]]:
    """Return (True if the pattern is an exception, parts of the pattern) for each line of .dockerignore."""
    if not file.is_file():
        return []
    with file.open("rb") as stream:
        lines = stream.read(_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    rules = []
    for line in map(str.strip, lines):
        if line and not line.startswith("#"):
            parts = PurePosixPath(line.removeprefix("!").strip().strip("/")).parts
            rules += [(line.startswith("!"), parts)] if parts else []
    if len(rules) > _MOST_RULES or any(parts.count("**") > _MOST_DEEP for _, parts in rules):
        raise ImageError(f"{file}: more than {_MOST_RULES} patterns, or {_MOST_DEEP} times ** in one pattern")
    return rules


def _matches(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return True if a pattern matches a path or one of its parent folders."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(path[at:], pattern[1:]) for at in range(len(path)))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def _archive(context: Path) -> io.BytesIO:
    """Return the build context as a tar without times and owners, so that the builder's cache applies."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        for path in _context_files(context):
            entry = tarfile.TarInfo(path.relative_to(context).as_posix())
            found = path.stat()
            entry.size, entry.mode = found.st_size, 0o755 if found.st_mode & 0o100 else 0o644
            with path.open("rb") as stream:
                tar.addfile(entry, stream)
    packed.seek(0)
    return packed

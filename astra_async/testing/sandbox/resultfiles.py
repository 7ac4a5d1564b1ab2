"""Reads report files out of a dead container. What lies there was chosen by the code under test."""

from __future__ import annotations

import fnmatch
import io
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import orjson

from astra_async.testing.sandbox.engine_errors import PathUnreachable
from astra_async.testing.sandbox.hardened import PROJECT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.testing.sandbox.engine import Engine

_HEADERS_BYTES = 64 * 1024  # more than the headers of one entry take, extended ones included
_CHANGES_BYTES = 32 * 1024**2
_MATCHES = 200
_WILD = frozenset("*?[")


async def read_reports(
    engine: Engine, container: str, patterns: Sequence[str], limit: int
) -> tuple[dict[str, bytes], list[str]]:
    """Contents of the result files by path relative to the project, and what could not be read of them.

    Only regular files are read, together at most `limit` bytes. A file that is not there is in neither
    part. Globs match against what changed in the container since it was created.
    """
    reports: dict[str, bytes] = {}
    paths, problems = await _paths(engine, container, patterns)
    for path in paths:
        content, problem = await _read(engine, container, path, limit)
        if content is not None:
            reports[path] = content
            limit -= len(content)
        if problem:
            problems.append(f"{path}: {problem}")
    return reports, problems


def inside_project(pattern: str) -> str | None:
    """A result file's path or glob relative to the project, or None when it points out of it."""
    path = PurePosixPath(pattern)
    if path.is_absolute():
        if not path.is_relative_to(PROJECT):
            return None
        path = path.relative_to(PROJECT)
    return None if ".." in path.parts or not path.parts else str(path)


def matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path's parts match a glob's parts; `**` stands for any number of folders.

    Follows all ways through the glob at once, so that no path can make it slow.
    """
    ways = _with_empty_folders({0}, pattern)
    for part in path:
        passed = {at for at in ways if at < len(pattern) and pattern[at] == "**"}
        passed |= {at + 1 for at in ways if at < len(pattern) and fnmatch.fnmatchcase(part, pattern[at])}
        ways = _with_empty_folders(passed, pattern)
    return len(pattern) in ways


def _with_empty_folders(ways: set[int], pattern: Sequence[str]) -> set[int]:
    reached = set(ways)
    for at in range(len(pattern)):
        if at in reached and pattern[at] == "**":
            reached.add(at + 1)
    return reached


async def _paths(engine: Engine, container: str, patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Paths to read: those named, then those that globs match in the container, each once."""
    problems: list[str] = []
    named: dict[str, None] = {}
    globs: list[tuple[str, ...]] = []
    for pattern in patterns:
        path = inside_project(pattern)
        if path is None:
            problems.append(f"{pattern}: lies outside the project and is not read")
        elif _WILD.isdisjoint(path):
            named[path] = None
        else:
            globs.append(PurePosixPath(path).parts)
    if globs:
        found, problem = await _changed(engine, container, globs)
        named |= dict.fromkeys(found)
        problems += [problem] if problem else []
    return list(named), problems


async def _changed(engine: Engine, container: str, globs: list[tuple[str, ...]]) -> tuple[list[str], str]:
    try:
        content = await engine.read(f"containers/{container}/changes", {}, _CHANGES_BYTES)
    except PathUnreachable as error:
        return [], f"result files cannot be searched for ({error})"
    if content is None or len(content) == _CHANGES_BYTES:
        return [], "so many files were written that result files cannot be searched for"
    prefix = f"{PROJECT}/"
    deleted = 2
    changed = (
        entry["Path"].removeprefix(prefix)
        for entry in orjson.loads(content) or ()
        if entry["Kind"] != deleted and entry["Path"].startswith(prefix)
    )
    found = sorted(path for path in changed if any(matches(path.split("/"), glob) for glob in globs))
    if len(found) > _MATCHES:
        return found[:_MATCHES], f"{len(found)} result files found, {_MATCHES} of them read"
    return found, ""


async def _read(engine: Engine, container: str, path: str, limit: int) -> tuple[bytes | None, str]:
    bound = limit + _HEADERS_BYTES
    request = f"containers/{container}/archive"
    try:
        archive = await engine.read(request, {"path": f"{PROJECT}/{path}"}, bound)
    except PathUnreachable as error:
        return None, f"cannot be reached ({error})"
    if archive is None:
        return None, ""
    try:
        # Parsed in memory and never unpacked: links in it lead nowhere.
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            return _content(tar, limit)
    except (tarfile.TarError, ValueError, OSError) as error:
        return None, f"cannot be read ({error})"


def _content(tar: tarfile.TarFile, limit: int) -> tuple[bytes | None, str]:
    entry = tar.next()
    if entry is None:
        return None, "cannot be read (empty archive)"
    if not entry.isreg():
        return None, f"is {_kind(entry)}, not a regular file"
    if entry.size > limit:
        return None, f"has {entry.size} bytes, {limit} may be read"
    file = tar.extractfile(entry)
    content = file.read() if file else b""
    return (content, "") if len(content) == entry.size else (None, "was cut while it was read")


def _kind(entry: tarfile.TarInfo) -> str:
    kinds = {
        tarfile.DIRTYPE: "a folder",
        tarfile.SYMTYPE: "a symbolic link",
        tarfile.LNKTYPE: "a hard link",
        tarfile.FIFOTYPE: "a FIFO",
        tarfile.CHRTYPE: "a device",
        tarfile.BLKTYPE: "a device",
    }
    return kinds.get(entry.type, "of an unknown kind")

"""Read report files from a container whose processes have ended or are frozen.

The code under test chose these files. The engine packs them into a tar, which is parsed but never unpacked,
so that links have no effect.
"""

from __future__ import annotations

import fnmatch
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from astra_async.errors import SandboxError
from astra_async.testing.sandbox.engine_errors import HostTrouble, PathUnreachable, both_ends

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from astra_async.testing.sandbox.engine import Engine


_BLOCK = tarfile.BLOCKSIZE
_LONG = {tarfile.GNUTYPE_LONGNAME: "name", tarfile.GNUTYPE_LONGLINK: "linkname"}
_PAX = {b"path": "name", b"linkpath": "linkname"}
_EXTENDED = frozenset({*_LONG, tarfile.XHDTYPE, tarfile.XGLTYPE})
# Names of other entry types in messages.
KINDS = {
    tarfile.DIRTYPE: "a folder",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.FIFOTYPE: "a FIFO",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
}
_MOST_BEFORE = 1024**2  # bytes of an extended header; a path has at most 4,096 bytes


class TooLongError(tarfile.TarError):
    """The archive is longer than the reading limit."""


async def entries(
    chunks: AsyncIterator[bytes], keep: Callable[[tarfile.TarInfo], bool], *, most_bytes: int
) -> AsyncIterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield every entry with its metadata, and its content if `keep` returns True, else b"".

    Raises:
        tarfile.TarError: the tar archive is invalid or incomplete.
        TooLongError: the archive has more than `most_bytes` bytes.
    """
    source = _Source(chunks, most_bytes)
    fields: dict[str, str | int] = {}  # set by extended headers, for the next entry
    if not await source.begins():
        return
    while any(block := await source.take(_BLOCK)):
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if info.type in _EXTENDED:
            if info.size > _MOST_BEFORE:
                raise tarfile.HeaderError("an extended header is too long")
            content = await source.take(info.size)
            await source.skip(-info.size % _BLOCK)
            if (field := _LONG.get(info.type)) is not None:
                fields[field] = content.rstrip(b"\0").decode(errors="surrogateescape")
            elif info.type == tarfile.XHDTYPE:
                fields |= _extended(content)
            continue
        for field, value in fields.items():
            setattr(info, field, value)
        fields = {}
        held = info.size if info.isreg() else 0
        content = b""
        if keep(info):
            content = await source.take(held)
            held = 0
        yield info, content
        await source.skip(held + -info.size % _BLOCK if info.isreg() else 0)


def _extended(content: bytes) -> dict[str, str | int]:
    """Parse a pax header: records of `LENGTH KEY=VALUE` and a line feed."""
    found: dict[str, str | int] = {}
    try:
        while content:
            length = int(content.partition(b" ")[0])
            if length <= 0:
                break
            key, _, value = content[:length].partition(b" ")[2].rstrip(b"\n").partition(b"=")
            if key == b"size":
                found["size"] = int(value)
            elif (field := _PAX.get(key)) is not None:
                found[field] = value.decode(errors="surrogateescape")
            content = content[length:]
    except ValueError as error:
        raise tarfile.HeaderError("an extended header cannot be read") from error
    return found


class _Source:
    """Byte stream that can be read in pieces of any size."""

    def __init__(self, chunks: AsyncIterator[bytes], most_bytes: int) -> None:
        self._chunks = chunks
        self._held = bytearray()
        self._left = most_bytes

    async def begins(self) -> bool:
        """Return True if the stream is not empty."""
        self._held += await anext(self._chunks, b"")
        return bool(self._held)

    async def take(self, size: int) -> bytes:
        while len(self._held) < size:
            await self._more()
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    async def skip(self, size: int) -> None:
        while len(self._held) < size:
            size -= len(self._held)
            self._held.clear()
            await self._more()
        del self._held[:size]

    async def _more(self) -> None:
        chunk = await anext(self._chunks, None)
        if chunk is None:
            raise tarfile.TarError("ended before its end marker")
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLongError("is longer than the limit")
        self._held += chunk


PROJECT = "/projects/challenge"
_TREE_BYTES = 1024**3
_MATCHES = 200
_WILD = frozenset("*?[")


async def read_reports(
    engine: Engine, container: str, patterns: Sequence[str], limit: int
) -> tuple[dict[str, bytes], list[str]]:
    """Return the contents of result files by path relative to the project, and the problems found.

    Only regular files are read, together at most `limit` bytes. A missing file is not a problem. The
    container's processes must be stopped during this call.
    """
    reading = _Reading(limit)
    for pattern in patterns:
        if inside_project(pattern) is None:
            reading.problems.append(f"{pattern}: is outside the project and is not read")
    for place, wanted in _places([path for path in map(inside_project, patterns) if path]).items():
        await reading.read(engine, container, place, wanted)
    return reading.reports, reading.problems


class Wanted:
    """Set of paths and globs relative to the project."""

    def __init__(self, patterns: Iterable[str]) -> None:
        inside = [path for path in map(inside_project, patterns) if path]
        self._paths = {path for path in inside if _WILD.isdisjoint(path)}
        self._globs = [PurePosixPath(path).parts for path in inside if not _WILD.isdisjoint(path)]

    def file(self, path: str) -> bool:
        """Return True if the path matches."""
        if path in self._paths:
            return True
        return bool(self._globs) and any(matches(path.split("/"), glob) for glob in self._globs)


def inside_project(pattern: str) -> str | None:
    """Return a path or glob relative to the project, or None if it points outside the project."""
    path = PurePosixPath(pattern)
    if path.is_absolute():
        if not path.is_relative_to(PROJECT):
            return None
        path = path.relative_to(PROJECT)
    return None if ".." in path.parts or not path.parts else str(path)


def matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if a path's parts match a glob's parts; `**` matches any number of folders.

    All positions in the glob are followed at once, so the time is bounded for any path.
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


def _places(paths: Sequence[str]) -> dict[str, Wanted]:
    """Return the paths to fetch: each named path, and for globs the folder above their first wildcard."""
    named = {path: Wanted([path]) for path in paths if _WILD.isdisjoint(path)}
    globs: dict[str, list[str]] = {}
    for path in paths:
        if path not in named:
            parts = PurePosixPath(path).parts
            certain = next(at for at, part in enumerate(parts) if not _WILD.isdisjoint(part))
            globs.setdefault("/".join(parts[:certain]), []).append(path)
    return named | {folder: Wanted(patterns) for folder, patterns in globs.items()}


class _Reading:
    """Reports read so far, and the remaining size limit."""

    def __init__(self, limit: int) -> None:
        self.reports: dict[str, bytes] = {}
        self.problems: list[str] = []
        self._limit = limit

    async def read(self, engine: Engine, container: str, place: str, wanted: Wanted) -> None:
        """Read all wanted files in a file or folder of the project, as a tar packed by the engine.

        If the engine refuses while it and the container are still running, the tests caused the refusal.
        """
        where = place or "the project"
        try:
            await self._read(engine, container, place, wanted)
        except PathUnreachable as error:
            self.problems.append(f"{where}: cannot be reached ({error})")
        except TooLongError:
            self.problems.append(f"{where}: too large to be searched for result files")
        except tarfile.TarError as error:
            self.problems.append(f"{where}: cannot be read ({error})")
        except HostTrouble:
            raise
        except SandboxError as error:
            if not (await engine.inspect(container))["State"]["Running"]:
                raise
            self.problems.append(f"{where}: cannot be read ({both_ends(error)})")

    async def _read(self, engine: Engine, container: str, place: str, wanted: Wanted) -> None:
        above = PurePosixPath(PROJECT, place).parent

        def path(entry: tarfile.TarInfo) -> str:
            whole = above / entry.name
            return str(whole.relative_to(PROJECT)) if whole.is_relative_to(PROJECT) else ""

        def keep(entry: tarfile.TarInfo) -> bool:
            return entry.isreg() and entry.size <= self._limit and wanted.file(path(entry))

        async with engine.packed(container, f"{PROJECT}/{place}".rstrip("/")) as chunks:
            async for entry, content in entries(chunks, keep, most_bytes=_TREE_BYTES):
                name = path(entry)
                if not wanted.file(name) or (entry.isdir() and name != place):
                    continue
                if len(self.reports) == _MATCHES:
                    self.problems.append(f"more than {_MATCHES} result files found, {_MATCHES} of them read")
                    return
                self._take(name, entry, content)
                if name == place:
                    return

    def _take(self, name: str, entry: tarfile.TarInfo, content: bytes) -> None:
        if not entry.isreg():
            kind = KINDS.get(entry.type, "of an unknown kind")
            self.problems.append(f"{name}: is {kind}, not a regular file")
        elif entry.size > self._limit:
            self.problems.append(f"{name}: has {entry.size} bytes, {self._limit} may be read")
        elif name not in self.reports:
            self.reports[name] = content
            self._limit -= len(content)

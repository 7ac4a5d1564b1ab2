"""Reads a tar of any length as it arrives: headers one by one, the content of few.

Formats: POSIX.1-1988 ustar, POSIX.1-2001 pax (path and size), GNU's long names; what Go's archive/tar writes.
"""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_BLOCK = tarfile.BLOCKSIZE
_MOST_BEFORE = 1024**2  # of extended headers: a path has at most 4,096 bytes


class TooLongError(tarfile.TarError):
    """The archive goes on beyond what may be read of it."""


async def entries(
    chunks: AsyncIterator[bytes], keep: Callable[[tarfile.TarInfo], bool], *, most_bytes: int
) -> AsyncIterator[tuple[tarfile.TarInfo, bytes]]:
    """Every entry with its name and size, and its content where `keep` says so, else nothing of it.

    Raises:
        tarfile.TarError: this is no tar, or it is cut off.
        TooLongError: it has more than `most_bytes` bytes.
    """
    source = _Source(chunks, most_bytes)
    name: str | None = None
    size: int | None = None
    while True:
        block = await source.take(_BLOCK) if await source.begins() else b""
        if not any(block):
            return
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if info.type in {
            tarfile.XHDTYPE,
            tarfile.GNUTYPE_LONGNAME,
            tarfile.XGLTYPE,
            tarfile.GNUTYPE_LONGLINK,
        }:
            if info.size > _MOST_BEFORE:
                raise tarfile.HeaderError("an extended header is too long")
            content = await source.take(info.size)
            await source.skip(-info.size % _BLOCK)
            if info.type == tarfile.GNUTYPE_LONGNAME:
                name = content.rstrip(b"\0").decode(errors="surrogateescape")
            elif info.type == tarfile.XHDTYPE:
                name, size = _extended(content, name, size)
            continue
        info.name, info.size = name or info.name, info.size if size is None else size
        name = size = None
        held = info.size if info.isreg() else 0
        content = b""
        if keep(info):
            content = await source.take(held)
            held = 0
        yield info, content
        await source.skip(held + -info.size % _BLOCK if info.isreg() else 0)


def _extended(content: bytes, name: str | None, size: int | None) -> tuple[str | None, int | None]:
    """Name and size of a pax header: `LENGTH KEY=VALUE` and a line feed for each."""
    try:
        while content:
            length = int(content.partition(b" ")[0])
            if length <= 0:
                break
            key, _, value = content[:length].partition(b" ")[2].rstrip(b"\n").partition(b"=")
            if key == b"path":
                name = value.decode(errors="surrogateescape")
            elif key == b"size":
                size = int(value)
            content = content[length:]
    except ValueError as error:
        raise tarfile.HeaderError("an extended header cannot be read") from error
    return name, size


class _Source:
    """Bytes that arrive in pieces, taken in other pieces."""

    def __init__(self, chunks: AsyncIterator[bytes], most_bytes: int) -> None:
        self._chunks = chunks
        self._held = bytearray()
        self._left = most_bytes
        self._begun = False

    async def begins(self) -> bool:
        """Whether there is anything at all."""
        if not self._begun:
            chunk = await anext(self._chunks, b"")
            self._held += chunk
            self._begun = bool(chunk)
        return self._begun

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
            raise tarfile.TarError("was cut while it was read")
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLongError("goes on and on")
        self._held += chunk

"""Reads a tar of any length as it arrives: headers one by one, the content of few.

Formats: POSIX.1-1988 ustar, POSIX.1-2001 pax (path, linkpath, size), GNU's long names; what Go's archive/tar
writes.
"""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_BLOCK = tarfile.BLOCKSIZE
_LONG = {tarfile.GNUTYPE_LONGNAME: "name", tarfile.GNUTYPE_LONGLINK: "linkname"}
_PAX = {b"path": "name", b"linkpath": "linkname"}
_EXTENDED = frozenset({*_LONG, tarfile.XHDTYPE, tarfile.XGLTYPE})
# What a file that is none is called.
KINDS = {
    tarfile.DIRTYPE: "a folder",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.FIFOTYPE: "a FIFO",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
}
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
    fields: dict[str, str | int] = {}  # by extended headers of the next entry
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
    """Fields of an entry from a pax header: `LENGTH KEY=VALUE` and a line feed for each."""
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
    """Bytes that arrive in pieces, taken in other pieces."""

    def __init__(self, chunks: AsyncIterator[bytes], most_bytes: int) -> None:
        self._chunks = chunks
        self._held = bytearray()
        self._left = most_bytes

    async def begins(self) -> bool:
        """Whether there is anything at all."""
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
            raise tarfile.TarError("was cut while it was read")
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLongError("goes on and on")
        self._held += chunk

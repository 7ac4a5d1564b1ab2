"""A tar, compressed with gzip or plain, to entries, with `tarfile` and without trust in its headers."""

from __future__ import annotations

import gzip
import re
import tarfile
import tempfile
from typing import IO, TYPE_CHECKING, Self

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.bounds import MAX_ENTRIES, MAX_TOTAL_BYTES, Allowance
from astra_async.problems.fetch.tree import Entry, is_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_UNPACKED_BYTES = MAX_TOTAL_BYTES + MAX_ENTRIES * 2_048  # contents, headers and padding
_MAX_HEADER_BYTES = 64 * 1024
_CHUNK_BYTES = 1024**2
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


def read_tar(path: Path, *, compressed: bool) -> Iterator[Entry]:
    """The entries of a tar in their order.

    A compressed one is unpacked to a temporary file first: its check sum covers the whole, its size is
    counted on the way, and headers can be looked at before `tarfile` does.

    Raises:
        ArchiveError: hard links, devices, sparse files, strange headers, or too much of it.
        tarfile.TarError and relatives: not what it seems.
    """
    with path.open("rb") as file, tempfile.TemporaryFile() as unpacked:
        if compressed:
            _inflate(file, unpacked)
        source: IO[bytes] = unpacked if compressed else file
        with tarfile.open(fileobj=source, mode="r:", tarinfo=_Member) as archive:
            allowance = Allowance()
            for member in archive:
                allowance.entry()
                yield _entry(archive, member, allowance)
            _check_end(source, archive.offset)


def _check_end(source: IO[bytes], offset: int) -> None:
    """`tarfile` takes a damaged header for the end; the end is a block of zeros (POSIX.1, ustar)."""
    source.seek(offset)
    block = source.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or block.strip(b"\0"):
        raise tarfile.ReadError("it ends early or is damaged")


def _inflate(file: IO[bytes], unpacked: IO[bytes]) -> None:
    total = 0
    with gzip.GzipFile(fileobj=file) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            total += len(chunk)
            if total > _MAX_UNPACKED_BYTES:
                raise ArchiveError(f"it holds more than {MAX_TOTAL_BYTES // 1024**2} MiB")
            unpacked.write(chunk)
    unpacked.seek(0)


class _Member(tarfile.TarInfo):
    """A header that is looked at before `tarfile` reads the extension that it announces."""

    def _proc_member(self, archive: tarfile.TarFile) -> Self:
        file = archive.fileobj
        if self.size < 0 or self.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError(f"{self.name[:200]!r} is a sparse file or has no proper size")
        if self.type in _EXTENDED and file is not None:
            at = file.tell()
            # `tarfile` searches headers with expressions that need quadratic time on long rows of digits.
            if self.size > _MAX_HEADER_BYTES or re.search(rb"[0-9]{40}", file.read(self.size)):
                raise ArchiveError("a header of the archive is too large or strange")
            file.seek(at)
        member: Self = super()._proc_member(archive)  # type: ignore[misc]
        return member


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo, allowance: Allowance) -> Entry:
    name = member.name
    if member.isdir():
        return Entry(path=name, kind="folder")
    if member.issym():
        return Entry(path=name, kind="link", target=member.linkname)
    if not member.isreg() or member.issparse():
        raise ArchiveError(
            f"{name[:200]!r} is a hard link, a device or a pipe; only files, folders and links are read"
        )
    if is_left_out(name):
        return Entry(path=name, kind="folder")
    file = archive.extractfile(member)
    content = file.read(allowance.room()) if file is not None else b""
    if len(content) < min(member.size, allowance.room()):
        raise tarfile.ReadError("unexpected end of data")
    allowance.took(name, len(content))
    return Entry(path=name, kind="file", content=content, executable=bool(member.mode & 0o100))

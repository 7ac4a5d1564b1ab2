"""Read the entries of a folder or an archive; archive headers are untrusted.

The archive format is detected from the content. Errors of `zipfile` and `tarfile` become ArchiveError.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.tree import (
    MAX_ENTRIES,
    MAX_TOTAL_BYTES,
    RUN_FILES,
    Allowance,
    ArchiveEntry,
    is_left_out,
    is_run_directory,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Exceptions of the standard library's readers for damaged archives.
_BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,  # with NotImplementedError and RecursionError
    ValueError,  # with UnicodeError
    IndexError,
    KeyError,
    OverflowError,
)


def read_entries(path: Path) -> Iterable[ArchiveEntry]:
    """Read all entries of a folder or archive; blocking. Raises like `read_folder` and `read_archive`."""
    return read_folder(path) if path.is_dir() else read_archive(path)


def read_archive(path: Path) -> list[ArchiveEntry]:
    """Read all entries of a .zip, .tar or .tar.gz; blocking.

    Raises:
        ArchiveError: the file is not an archive, or it is broken, encrypted, malicious or too large.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(512)
    try:
        if head[:2] == b"PK":
            return list(_read_zip(path))
        if head[:2] == b"\x1f\x8b" or head[257:262] == b"ustar":
            return list(_read_tar(path, compressed=head[:2] == b"\x1f\x8b"))
    except _BROKEN as error:
        raise ArchiveError(f"the archive is broken: {_why(error)}; create it again") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise ArchiveError("the archive is broken: an offset is outside the file; create it again") from error
    raise ArchiveError(_what_it_is(head))


def _why(error: Exception) -> str:
    text = " ".join(str(error).split())[:160]
    return text or ("it ends early" if isinstance(error, EOFError) else type(error).__name__)


def _what_it_is(head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:100].lower()
    if not head:
        return "the file is empty; a .zip is expected"
    if start.startswith((b"<!doctype html", b"<html")):
        return "the file is an HTML page, not an archive; perhaps an error or login page"
    if start.startswith(b"<"):
        return "the file is XML, not an archive; perhaps an error message of a storage service"
    if start.startswith((b"diff ", b"--- ", b"index ")):
        return "the file is a diff; apply it to a copy of the project (patch -p1 <FILE) and name that folder"
    return "the file is not a .zip, .tar or .tar.gz archive"


# --- folder -----------------------------------------------------------------------------------------


def read_folder(root: Path) -> Iterator[ArchiveEntry]:
    """Yield all entries below a folder in no particular order, without following links; blocking.

    Raises:
        ArchiveError: a limit is exceeded, or an entry is not a file, folder or link.
        OSError: an entry cannot be read.
    """
    allowance = Allowance()
    waiting = [(root, "")]
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as found:
            for item in found:
                path = prefix + item.name
                if is_left_out(path):
                    # Yield only the name, so that the caller can warn about an omitted .git.
                    yield ArchiveEntry(path=path, kind="folder")
                    continue
                if item.is_dir(follow_symlinks=False) and is_run_directory(Path(item.path)):
                    # Yield only the marker files, so that the caller can warn; the run directory may be
                    # large.
                    yield from (ArchiveEntry(path=f"{path}/{name}", kind="file") for name in RUN_FILES)
                    continue
                allowance.count_entry()
                entry = _folder_entry(item, path, allowance)
                if entry.kind == "folder":
                    waiting.append((folder / item.name, path + "/"))
                yield entry


def _folder_entry(item: os.DirEntry[str], path: str, allowance: Allowance) -> ArchiveEntry:
    status = item.stat(follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return ArchiveEntry(path=path, kind="folder")
    if stat.S_ISLNK(status.st_mode):
        return ArchiveEntry(path=path, kind="link", target=os.readlink(item.path))  # noqa: PTH115 - a DirEntry has a text path
    if not stat.S_ISREG(status.st_mode):  # opening a named pipe would block forever
        raise ArchiveError(f"{path!r} is not a file, a folder or a link")
    with open(item.path, "rb") as file:  # noqa: PTH123 - a DirEntry has a text path
        content = file.read(allowance.read_size())
    allowance.count_bytes(path, len(content))
    return ArchiveEntry(
        path=path, kind="file", content=content, executable=bool(status.st_mode & stat.S_IXUSR)
    )


# --- zip --------------------------------------------------------------------------------------------

_MAX_DIRECTORY_BYTES = 32 * 1024**2  # the central directory of 50,000 entries with long names
_TAIL_BYTES = 65_557 + 76  # end record with the longest comment, plus the two zip64 records
_ENCRYPTED = 0x1
_UTF_8 = 0x800
_MAX_TARGET = 4_096


def _read_zip(path: Path) -> Iterator[ArchiveEntry]:
    """Yield a zip's entries in the order of its central directory.

    Names are UTF-8 if flagged or if the bytes are valid UTF-8, else cp437 (APPNOTE.TXT, appendix D.1).

    Raises:
        ArchiveError: the zip is encrypted, uses an unusual compression, has special files or is too large.
        zipfile.BadZipFile or another exception of _BROKEN: the zip is damaged.
    """
    _refuse_huge_directory(path)
    allowance = Allowance()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            allowance.count_entry()
            yield _zip_entry(archive, info, allowance)


def _refuse_huge_directory(path: Path) -> None:
    """Raise ArchiveError for a huge central directory, because `zipfile` builds one object per entry."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
    announced = [struct.unpack_from("<I", tail, at + 12)[0] for at in _places(tail, b"PK\x05\x06", 22)]
    announced += [struct.unpack_from("<Q", tail, at + 40)[0] for at in _places(tail, b"PK\x06\x06", 56)]
    sizes = [each for each in announced if each != 0xFFFFFFFF]  # noqa: PLR2004 - means "see zip64"
    if any(each > _MAX_DIRECTORY_BYTES for each in sizes):
        raise ArchiveError("the zip directory is too large for a project; remove node_modules and the like")


def _places(tail: bytes, signature: bytes, length: int) -> list[int]:
    found = (match.start() for match in re.finditer(re.escape(signature), tail))
    return [at for at in found if at + length <= len(tail)]


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, allowance: Allowance) -> ArchiveEntry:
    name = _zip_name(info)
    mode = _zip_mode(info)
    kind = stat.S_IFMT(mode)
    if name.endswith(("/", "\\")) or kind == stat.S_IFDIR:
        return ArchiveEntry(path=name, kind="folder")
    if kind not in (0, stat.S_IFREG, stat.S_IFLNK):
        raise ArchiveError(f"{name[:200]!r} is not a file, a folder or a link")
    if is_left_out(name.replace("\\", "/")):
        return ArchiveEntry(path=name, kind="folder")
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveError("the archive is encrypted; create it again without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(
            f"{name[:200]!r} has an unsupported compression; create the archive again with deflate"
        )
    with archive.open(info) as file:
        content = file.read(allowance.read_size())
    allowance.count_bytes(name, len(content))
    if kind == stat.S_IFLNK:
        if len(content) > _MAX_TARGET:
            raise ArchiveError(f"the target of the link {name[:200]!r} is too long")
        return ArchiveEntry(path=name, kind="link", target=content.decode())
    return ArchiveEntry(path=name, kind="file", content=content, executable=bool(mode & stat.S_IXUSR))


def _zip_mode(info: zipfile.ZipInfo) -> int:
    """Return the entry's Unix mode if a Unix tool (Unix, macOS, 7-Zip) wrote the entry, else 0."""
    is_unix = info.create_system in (3, 19) or bool(info.external_attr & 0x8000)
    return info.external_attr >> 16 if is_unix else 0


def _zip_name(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _UTF_8:
        return info.filename
    try:
        # Many tools write UTF-8 without the flag; cp437 text is rarely valid UTF-8 by chance.
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


# --- tar, compressed with gzip or plain --------------------------------------------------------------

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


def _read_tar(path: Path, *, compressed: bool) -> Iterator[ArchiveEntry]:
    """Yield a tar's entries in file order.

    A compressed tar is first unpacked to a temporary file. This verifies the checksum of the whole file,
    limits the unpacked size, and allows headers to be checked before `tarfile` parses them.

    Raises:
        ArchiveError: the tar has hard links, devices, sparse files or suspicious headers, or is too large.
        tarfile.TarError or another exception of _BROKEN: the tar is damaged.
    """
    with path.open("rb") as file, tempfile.TemporaryFile() as unpacked:
        if compressed:
            _inflate(file, unpacked)
        source: IO[bytes] = unpacked if compressed else file
        with tarfile.open(fileobj=source, mode="r:", tarinfo=_Member) as archive:
            allowance = Allowance()
            for member in archive:
                allowance.count_entry()
                yield _tar_entry(archive, member, allowance)
            _check_end(source, archive.offset)


def _check_end(source: IO[bytes], offset: int) -> None:
    """Check that the tar ends with a block of zeros (POSIX.1), because `tarfile` stops at damaged headers."""
    source.seek(offset)
    block = source.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or block.strip(b"\0"):
        raise tarfile.ReadError("it is truncated or damaged")


def _inflate(file: IO[bytes], unpacked: IO[bytes]) -> None:
    total = 0
    with gzip.GzipFile(fileobj=file) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            total += len(chunk)
            if total > _MAX_UNPACKED_BYTES:
                raise ArchiveError(f"the archive unpacks to more than {MAX_TOTAL_BYTES // 1024**2} MiB")
            unpacked.write(chunk)
    unpacked.seek(0)


class _Member(tarfile.TarInfo):
    """A tar header that is checked before `tarfile` parses its extended header."""

    def _proc_member(self, archive: tarfile.TarFile) -> Self:
        file = archive.fileobj
        if self.size < 0 or self.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError(f"{self.name[:200]!r} is a sparse file or has an invalid size")
        if self.type in _EXTENDED and file is not None:
            at = file.tell()
            # The regular expressions of `tarfile` take quadratic time on long digit sequences.
            if self.size > _MAX_HEADER_BYTES or re.search(rb"[0-9]{40}", file.read(self.size)):
                raise ArchiveError("a header of the archive is too large or suspicious")
            file.seek(at)
        member: Self = super()._proc_member(archive)  # type: ignore[misc]
        return member


def _tar_entry(archive: tarfile.TarFile, member: tarfile.TarInfo, allowance: Allowance) -> ArchiveEntry:
    name = member.name
    if member.isdir():
        return ArchiveEntry(path=name, kind="folder")
    if member.issym():
        return ArchiveEntry(path=name, kind="link", target=member.linkname)
    if not member.isreg() or member.issparse():
        raise ArchiveError(
            f"{name[:200]!r} is a hard link, a device or a pipe; use only files, folders and symbolic links"
        )
    if is_left_out(name):
        return ArchiveEntry(path=name, kind="folder")
    file = archive.extractfile(member)
    content = file.read(allowance.read_size()) if file is not None else b""
    if len(content) < min(member.size, allowance.read_size()):
        raise tarfile.ReadError("unexpected end of data")
    allowance.count_bytes(name, len(content))
    return ArchiveEntry(path=name, kind="file", content=content, executable=bool(member.mode & 0o100))

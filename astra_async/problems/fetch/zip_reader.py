"""A zip to entries, with `zipfile` and without trust in its headers."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
from typing import TYPE_CHECKING

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.bounds import Allowance
from astra_async.problems.fetch.tree import Entry, is_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_DIRECTORY_BYTES = 32 * 1024**2  # the central directory of 50,000 entries with long names
_TAIL_BYTES = 65_557 + 76  # end record with the longest comment, and the two records of zip64
_ENCRYPTED = 0x1
_UTF_8 = 0x800
_MAX_TARGET = 4_096


def read_zip(path: Path) -> Iterator[Entry]:
    """The entries of a zip in its directory's order.

    Names are UTF-8 where flagged or where their bytes are valid UTF-8, else cp437 (APPNOTE.TXT, D.1).

    Raises:
        ArchiveError: encrypted, an unusual compression, special files, or too much of it.
        zipfile.BadZipFile and relatives: not what it seems.
    """
    _refuse_huge_directory(path)
    allowance = Allowance()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            allowance.entry()
            yield _entry(archive, info, allowance)


def _refuse_huge_directory(path: Path) -> None:
    """`zipfile` builds an object for each entry before anyone can count them."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
    announced = [struct.unpack_from("<I", tail, at + 12)[0] for at in _places(tail, b"PK\x05\x06", 22)]
    announced += [struct.unpack_from("<Q", tail, at + 40)[0] for at in _places(tail, b"PK\x06\x06", 56)]
    sizes = [each for each in announced if each != 0xFFFFFFFF]  # noqa: PLR2004 - "see zip64"
    if any(each > _MAX_DIRECTORY_BYTES for each in sizes):
        raise ArchiveError("its directory is too large: more entries than any project has")


def _places(tail: bytes, signature: bytes, length: int) -> list[int]:
    found = (match.start() for match in re.finditer(re.escape(signature), tail))
    return [at for at in found if at + length <= len(tail)]


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, allowance: Allowance) -> Entry:
    name = _name(info)
    mode = _mode(info)
    kind = stat.S_IFMT(mode)
    if name.endswith(("/", "\\")) or kind == stat.S_IFDIR:
        return Entry(path=name, kind="folder")
    if kind not in (0, stat.S_IFREG, stat.S_IFLNK):
        raise ArchiveError(f"{name[:200]!r} is neither a file, a folder nor a link")
    if is_left_out(name.replace("\\", "/")):
        return Entry(path=name, kind="folder")
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveError("the archive is encrypted; make it anew without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(
            f"{name[:200]!r} is compressed in an unusual way; make the archive anew with deflate"
        )
    with archive.open(info) as file:
        content = file.read(allowance.room())
    allowance.took(name, len(content))
    if kind == stat.S_IFLNK:
        return _link(name, content)
    return Entry(path=name, kind="file", content=content, executable=bool(mode & stat.S_IXUSR))


def _mode(info: zipfile.ZipInfo) -> int:
    """The Unix mode, where the maker (Unix, macOS, 7-Zip) says that the upper bits are one; else 0."""
    is_unix = info.create_system in (3, 19) or bool(info.external_attr & 0x8000)
    return info.external_attr >> 16 if is_unix else 0


def _link(name: str, content: bytes) -> Entry:
    if len(content) > _MAX_TARGET:
        raise ArchiveError(f"the link {name[:200]!r} has too long a target")
    return Entry(path=name, kind="link", target=content.decode())


def _name(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _UTF_8:
        return info.filename
    try:
        # Many tools write UTF-8 without the flag; cp437 text is hardly ever valid UTF-8 by chance.
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename

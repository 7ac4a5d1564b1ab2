"""An archive to entries: its kind told by content, every library error told as one clear ArchiveError."""

from __future__ import annotations

import errno
import gzip
import struct
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.tar_reader import read_tar
from astra_async.problems.fetch.zip_reader import read_zip

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.problems.fetch.tree import Entry

# What the readers of the standard library raise for bytes that are not what they seem.
_BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    RecursionError,
    UnicodeError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
)


def read_archive(path: Path) -> list[Entry]:
    """Everything in a .zip, .tar or .tar.gz; blocking.

    Raises:
        ArchiveError: no archive, broken, encrypted, hostile or too large.
        OSError: the file itself cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(512)
    try:
        if head[:2] == b"PK":
            return list(read_zip(path))
        if head[:2] == b"\x1f\x8b" or head[257:262] == b"ustar":
            return list(read_tar(path, compressed=head[:2] == b"\x1f\x8b"))
    except _BROKEN as error:
        raise ArchiveError(f"the archive is broken: {_why(error)}; make it anew") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise ArchiveError("the archive is broken: it points outside itself; make it anew") from error
    raise ArchiveError(_what_it_is(head))


def _why(error: Exception) -> str:
    text = " ".join(str(error).split())[:160]
    return text or ("it ends early" if isinstance(error, EOFError) else type(error).__name__)


def _what_it_is(head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:100].lower()
    if not head:
        return "the file is empty; a .zip is expected"
    if start.startswith((b"<!doctype html", b"<html")):
        return "it is an HTML page and not an archive: an error or a login page in its place"
    if start.startswith(b"<"):
        return "it is an XML document and not an archive: an error message of a storage service in its place"
    return "neither a .zip nor a .tar.gz"

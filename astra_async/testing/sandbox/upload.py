"""Makes a project's archive fit for upload to the container's root, owned by the run's user.

The engine never changes the folder into which it unpacks, and gives folders that an archive only
implies to root. So that every folder belongs to the run's user, every entry gets the project folder's
path, and each folder an entry of its own. `/etc/hosts` goes with it: without a network the engine writes
none, and nothing would know `localhost`.
Patching 512-byte headers costs about 5 us an entry, an eighth of what `tarfile` takes to copy one; entries
that a patch cannot express (long names, extended headers) make the whole archive go through `tarfile`.
"""

from __future__ import annotations

import io
import struct
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from astra_async.testing.sandbox.hardened import HOST_NAME
from astra_async.testing.sandbox.resultfiles import PROJECT, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.testing.sandbox.hardened import Fitness

_BLOCK = 512
_NAME_BYTES = 100
_PATCHABLE = frozenset(b"\0" + tarfile.REGTYPE + tarfile.DIRTYPE + tarfile.SYMTYPE)
_FOLDER = tarfile.DIRTYPE[0]
_USTAR_MAX = 0o7777777
_CHANGED_AT = 946_684_800  # 2000-01-01: archivers refuse years before 1980
# IPv4 only: a server that listens on 127.0.0.1 is then found by every client that asks for localhost.
_HOSTS = f"127.0.0.1 localhost {HOST_NAME}\n".encode()
_PROJECT = PROJECT.lstrip("/")


def upload_archive(archive: bytes, fitness: Fitness, *, stale: Sequence[str] = ()) -> bytes:
    """`archive` (a tar relative to the project's root) moved into its folder, owned by the tests' user.

    The result is to be unpacked at the container's root and brings `/etc/hosts`, and below the project what
    an image keeps in folders that are hidden by ours (see `looking`). Files that match `stale`, paths and
    globs relative to the project, are left out.

    Header format: POSIX.1-1988 ustar.

    Raises:
        ValueError: this is no whole tar archive.
    """
    user, old = (fitness.uid, fitness.gid), Wanted(stale)
    below = b"".join(
        entry
        for entries in {**fitness.overlaid, **fitness.contents}.values()
        for name, entry in entries.items()
        if not (name.startswith(f"{_PROJECT}/") and old.file(name.removeprefix(f"{_PROJECT}/")))
    )
    patched = bytearray(archive)
    folders = {_PROJECT}
    left_out: list[slice] = []
    at = 0
    while at + _BLOCK <= len(patched) and patched[at]:
        name = patched[at : at + _NAME_BYTES].rstrip(b"\0").decode(errors="surrogateescape")
        if not _patch(patched, at, user):
            return below + _copied(archive, user, old)
        folders.add(f"{_PROJECT}/{name}".rstrip("/").rpartition("/")[0])
        end = at + _BLOCK + -(-_size(patched, at) // _BLOCK) * _BLOCK
        if old.file(name) and patched[at + 156] != _FOLDER:
            left_out.append(slice(at, end))
        at = end
    if at > len(patched):
        raise ValueError("The project's archive is cut off")
    for each in reversed(left_out):
        del patched[each]
    return below + _front(folders, user) + patched


def _patch(archive: bytearray, at: int, user: tuple[int, int]) -> bool:
    """Rewrite the header at `at`; False, and nothing done, when a patch cannot express it."""
    name = f"{_PROJECT}/".encode() + archive[at : at + _NAME_BYTES].rstrip(b"\0")
    has_name_prefix = archive[at + 345]
    if archive[at + 156] not in _PATCHABLE or has_name_prefix or len(name) > _NAME_BYTES:
        return False
    archive[at : at + _NAME_BYTES] = name.ljust(_NAME_BYTES, b"\0")
    archive[at + 108 : at + 124] = _number(user[0]) + _number(user[1])
    archive[at + 148 : at + 156] = b" " * 8  # the checksum counts its own field as blanks
    archive[at + 148 : at + 156] = b"%06o\0 " % sum(archive[at : at + _BLOCK])
    return True


def _size(archive: bytearray, at: int) -> int:
    digits = archive[at + 124 : at + 136].strip(b" \0")
    return int(digits, 8) if digits else 0


def _number(value: int) -> bytes:
    """An owner's field: octal, or GNU's base-256 form for numbers too large for that."""
    return b"%07o\0" % value if value <= _USTAR_MAX else b"\x80" + struct.pack(">Q", value)[1:]


def _copied(archive: bytes, user: tuple[int, int], old: Wanted) -> bytes:
    copy = io.BytesIO()
    folders = {_PROJECT}
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as source,
            tarfile.open(fileobj=copy, mode="w:", format=tarfile.GNU_FORMAT) as target,
        ):
            for entry in source:
                if old.file(entry.name) and not entry.isdir():
                    continue
                entry.name = f"{_PROJECT}/{entry.name}"
                entry.uid, entry.gid = user
                entry.pax_headers = {}
                folders.add(entry.name.rpartition("/")[0])
                if entry.islnk():
                    entry.linkname = f"{_PROJECT}/{entry.linkname}"
                target.addfile(entry, source.extractfile(entry) if entry.isreg() else None)
    except tarfile.TarError as error:
        raise ValueError(f"The project's archive cannot be read: {error}") from error
    return _front(folders, user) + copy.getvalue()


def _front(folders: set[str], user: tuple[int, int]) -> bytes:
    """/etc/hosts, then entries for the project's folders and all that lie between them, outer ones first."""
    paths = {
        str(path)
        for folder in folders
        for path in PurePosixPath(folder, "x").parents
        if path.is_relative_to(_PROJECT)
    }
    hosts = tarfile.TarInfo("etc/hosts")
    hosts.size, hosts.mtime = len(_HOSTS), _CHANGED_AT
    headers = [hosts.tobuf(), _HOSTS.ljust(_BLOCK, b"\0")]
    for path in sorted(paths):
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, _CHANGED_AT
        entry.uid, entry.gid = user
        headers.append(entry.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape"))
    return b"".join(headers)

"""The whole project as one tar, with the answer's files laid over it."""

from __future__ import annotations

import hashlib
import tarfile
from functools import lru_cache
from typing import TYPE_CHECKING

from astra_async.languages.project_files import above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Project

_OWNER = 1000
_PRISTINE_TIME_S = 1_577_836_800  # 2020-01-01T00:00:00Z
_BLOCK = 512


def project_archive(project: Project, changed: Mapping[str, bytes | None]) -> bytes:
    """A tar of the project relative to its root: folders first, then files in order of their paths.

    The same input gives the same bytes. Executable bits, links inside the project and empty folders are
    kept; a changed file keeps its pristine mode and stands in the archive once, a new one is executable if it
    begins as a script does, and one whose content is None is left out. Names that ustar cannot hold get a pax
    header.

    Pristine files bear a fixed time. A changed file bears a time that follows from its content: caches that
    compare size and time (bytecode, bootsnap, webpack) would otherwise take a changed file of the same size
    for the pristine one.
    """
    modes = {file.path: 0o755 if file.executable else 0o644 for file in project.files}
    empty = [folder.rstrip("/") for folder in project.empty_folders]
    folders = {*empty, *(folder for path in (*empty, *modes, *changed) for folder in above(path))}
    pieces = [_header(folder, tarfile.DIRTYPE, 0o755) for folder in sorted(folders)]
    links = {file.path: file.link for file in project.files if file.link is not None}
    contents: dict[str, bytes | None] = {file.path: file.content for file in project.files}
    contents |= changed
    for path in sorted(contents):
        content = contents[path]
        if content is None:
            continue
        link = None if path in changed else links.get(path)
        if link is not None:
            pieces.append(_header(path, tarfile.SYMTYPE, 0o777, link=link))
            continue
        time_s = _time_of(content) if path in changed else _PRISTINE_TIME_S
        mode = modes.get(path, 0o755 if content.startswith(b"#!") else 0o644)
        pieces += [
            _header(path, tarfile.REGTYPE, mode, size=len(content), time_s=time_s),
            content,
            b"\0" * (-len(content) % _BLOCK),
        ]
    pieces.append(b"\0" * (2 * _BLOCK))
    return b"".join(pieces)


# Those of pristine files are the same for every sample, and cost more than the rest.
@lru_cache(maxsize=16_384)
def _header(
    name: str, kind: bytes, mode: int, *, size: int = 0, time_s: int = _PRISTINE_TIME_S, link: str = ""
) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.mtime, entry.linkname = kind, mode, size, time_s, link
    entry.uid = entry.gid = _OWNER
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _time_of(content: bytes) -> int:
    digest = hashlib.blake2b(content, digest_size=3).digest()
    return _PRISTINE_TIME_S + 86_400 + int.from_bytes(digest)

"""Files of which an answer changes only parts: .env here, others in the packages of their languages.

An answer may set the application's own variables in a .env file. Lines that steer a test process always come
from the pristine file, in their pristine order.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from functools import lru_cache
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.language import Merge
from astra_async.languages.project_files import above
from astra_async.problems.sources import as_utf8
from astra_async.types import Dropped, ModedContent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Project


_OWNER = 1000
_PRISTINE_TIME_S = 1_577_836_800  # 2020-01-01T00:00:00Z
_BLOCK = 512


def project_archive(project: Project, changed: Mapping[str, bytes | None]) -> bytes:
    """Return a tar of the project relative to its root: folders first, then files sorted by path.

    The same input gives the same bytes. Executable bits, links inside the project and empty folders are kept.
    A changed file occurs once. `ModedContent` has its own executable bit. Other changed files keep their
    pristine mode, and other new files are executable if they begin with `#!`. A file whose content is None is
    left out. Names that do not fit ustar get a pax header.

    Pristine files have a fixed modification time. The time of a changed file is derived from its content,
    because caches that compare size and time (bytecode, bootsnap, webpack) would otherwise mistake a changed
    file of the same size for the pristine one.
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
        if isinstance(content, ModedContent):
            mode = 0o755 if content.executable else 0o644
        pieces += [
            _header(path, tarfile.REGTYPE, mode, size=len(content), time_s=time_s),
            content,
            b"\0" * (-len(content) % _BLOCK),
        ]
    pieces.append(b"\0" * (2 * _BLOCK))
    return b"".join(pieces)


# Headers of pristine files are the same for every sample, and building them is the largest cost.
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


_ENVIRONMENT_FILE = re.compile(r"(?:.*/)?\.env(?:\.[\w.-]{1,40})?")


def merge_of(path: str, pristine: str | None) -> Merge | None:
    """Return the merge rule for a path, or None if the answer's text is used unchanged.

    `pristine` is None for a new file.
    """
    if _ENVIRONMENT_FILE.fullmatch(path):
        return _ENVIRONMENT
    rules = (language.merge for language in LANGUAGES if language.merge)
    return next(
        (each for each in rules if (each.new or pristine is not None) and each.takes(path, pristine or "")),
        None,
    )


def fixed_part(path: str, content: bytes) -> bytes:
    """Return the part of a pristine file that no answer can change; empty if the file is not merged."""
    merge = merge_of(path, "")
    return merge.parted(_text(content))[1].encode() if merge else b""


def with_fixed_part(path: str, part: bytes, content: bytes) -> bytes:
    """Return `content` with its unchangeable part replaced by `part`.

    Invariant: if the merge fails, the result is empty and never holds the old part.
    """
    merge = merge_of(path, "")
    merged = merge and merge.merged(path, _text(part), _text(content))[0]
    return (merged or "").encode()


def _text(content: bytes) -> str:
    return as_utf8(content).decode(errors="replace")


# Variables that can steer a test runner, an interpreter or a package manager. NODE_ENV is not included:
# runners set it themselves, and dotenv never replaces a variable that is set.
_STEERING = re.compile(
    r"(?:^|\b)((?:COVERAGE|LD|DYLD|BASH|CHROME|TEST|TESTS)_\w{0,80}|LD(?:PATH|OPT|LIB|HOME|STARTUP|WARNINGS)"
    rf"|PATH|IFS|SHELL|HOME|{'|'.join(each.tools.variables for each in LANGUAGES if each.tools.variables)})"
    r"\s{0,20}[=:]",
    re.IGNORECASE,
)


# A comment, or a line with at most one quoted value that contains no quotes and no escapes.
_PLAIN = re.compile(r"""\s*+\#.*|[^"'`\\]*+(?:"[^"'`\\]*+"|'[^"'`\\]*+')?[^"'`\\]*+""", re.DOTALL)


def _merged_environment(path: str, pristine: str, answer: str) -> tuple[str | None, list[Dropped]]:
    """Merge an answer's .env with the steering lines of the pristine one; return the answer's own as dropped.

    The text is None if nothing of the answer's was used. A steering line keeps the position at which the
    answer repeats it, because it may refer to variables above it. A missing steering line is inserted before
    the next one that the answer repeats, or at the end.
    """
    lines = pristine.removeprefix("\ufeff").splitlines(keepends=True)
    fixed = [line for line in lines if _steered(line)]
    waiting, known = list(map(_bare, fixed)), set(map(_bare, fixed))
    merged, own, dropped = [], [], []
    for line in answer.splitlines(keepends=True):
        steered, bare = _steered(line), _bare(line)
        if steered is None:
            own.append(line)
            merged.append(line)
        elif bare in waiting:
            passed = waiting.index(bare) + 1
            del waiting[:passed]
            at = len(fixed) - len(waiting)
            merged += fixed[at - passed : at]
        elif bare not in known:
            dropped.append(Dropped(path=f"{path}#{steered}", reason="runner_configuration"))
    if dropped and not "".join(own).strip():
        return None, dropped
    merged += fixed[len(fixed) - len(waiting) :]
    # An unclosed quotation mark makes the following lines part of its value, so steering lines then go first.
    return _joined(merged if all(map(_PLAIN.fullmatch, own)) else fixed + own), dropped


def _steered(line: str) -> str | None:
    """Return the steering variable that a line sets, or None."""
    if line.lstrip().startswith(("=", ":")):  # Node's dotenv sets the variable named on the line above
        return line.strip()[:1]
    found = _STEERING.search(line)
    return found.group(1) if found else None


def _bare(line: str) -> str:
    return line.strip("\ufeff \t\r\n")


def _joined(lines: list[str]) -> str:
    """Join the lines into a text; only the last line may lack a line end."""
    above = (line if line.endswith(("\n", "\r")) else f"{line}\n" for line in lines[:-1])
    return "".join([*above, *lines[-1:]])


_ENVIRONMENT = Merge(
    takes=lambda path, _: _ENVIRONMENT_FILE.fullmatch(path) is not None, merged=_merged_environment
)

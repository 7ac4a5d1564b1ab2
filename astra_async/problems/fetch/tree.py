"""Build a Project from the entries of any source: safe paths, no junk files, no wrapper folder, one hash."""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from astra_async.errors import ArchiveError
from astra_async.problems.manifest import MANIFEST_NAMES
from astra_async.problems.patterns import composed
from astra_async.types import Project, ProjectFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

# Limits of one project, counted while reading because headers may lie.
MAX_ARCHIVE_BYTES = 512 * 1024**2
MAX_ENTRIES = 50_000
MAX_FILE_BYTES = 64 * 1024**2
MAX_TOTAL_BYTES = 512 * 1024**2

_JUNK_FOLDERS = {"__MACOSX", "__pycache__"}  # pip compiles the .py files of bundled projects
# Files of file managers. macOS stores metadata in `._x` if the file system or tar format cannot.
_JUNK_FILE = re.compile(
    r"\.DS_Store|\._.*|Icon\r|(?:eh)?thumbs\.db|desktop\.ini|.*:Zone\.Identifier", re.IGNORECASE | re.DOTALL
)
_HISTORY = ".git"
RUN_FILES = ("run.json", "completions.jsonl")  # mark a run directory
# A single top folder with one of these names is part of the project, not a wrapper.
_PARTS = {
    *("src", "app", "lib", "public", "test", "tests", "spec", "config", "output", "data"),
    *("server", "client", "backend", "frontend", "api", "web", "packages", "services"),
}
_MAX_PATH = 4_000
_MAX_DEPTH = 100
_MAX_LINKS = 40
_MAX_STEPS = 1_000
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """One entry of a source; `path` is unchecked, `target` is that of a symbolic link."""

    path: str
    kind: Literal["file", "folder", "link"]
    content: bytes = b""
    executable: bool = False
    target: str = ""


class Allowance:
    """Limits on entries and bytes of one project; raises ArchiveError when one is exceeded."""

    def __init__(self) -> None:
        self._entries = 0
        self._bytes = 0

    def count_entry(self) -> None:
        """Count one file, folder or link."""
        self._entries += 1
        if self._entries > MAX_ENTRIES:
            raise ArchiveError(f"more than {MAX_ENTRIES:,} entries; remove node_modules and the like")

    def read_size(self) -> int:
        """Return the number of bytes to read: one more than the next file may have."""
        return min(MAX_FILE_BYTES, MAX_TOTAL_BYTES - self._bytes) + 1

    def count_bytes(self, path: str, size: int) -> None:
        """Count the bytes read from a file."""
        self._bytes += size
        if size > MAX_FILE_BYTES:
            raise ArchiveError(f"{path[:200]!r} is larger than {MAX_FILE_BYTES // 1024**2} MiB")
        if self._bytes > MAX_TOTAL_BYTES:
            raise ArchiveError(f"the project is larger than {MAX_TOTAL_BYTES // 1024**2} MiB")


def build_project(entries: Iterable[ArchiveEntry]) -> Project:
    """Build the project from entries.

    `.git` and files of operating systems are omitted. A single top folder is removed if the manifest is
    inside it. Without a manifest, it is removed unless its name is typical of a project part (`src`).

    Raises:
        ArchiveError: a path or link leads out of the project, or entries contradict each other.
    """
    warnings: list[str] = []
    entries = _without_runs(list(entries), warnings)
    kept = _unwrapped(_distinct(_safe(entries, warnings), warnings))
    links = {path: entry.target for path, entry in kept.items() if entry.kind == "link"}
    files = []
    for path, entry in sorted(kept.items()):
        if entry.kind == "link" and not _stays_inside(path, entry.target, links):
            raise ArchiveError(f"the link {path!r} leads out of the project or is broken")
        if entry.kind == "link":
            files.append(ProjectFile(path=path, link=entry.target))
        elif entry.kind == "file":
            files.append(ProjectFile(path=path, content=entry.content, executable=entry.executable))
    if not files:
        raise ArchiveError("the project has no files")
    parents = _parents(kept)
    folders = (path for path, entry in kept.items() if entry.kind == "folder")
    empty = tuple(sorted(path for path in folders if path not in parents))
    return Project(
        files=tuple(files), empty_folders=empty, sha256=_sha256(files, empty), warnings=tuple(warnings[:100])
    )


def is_run_directory(folder: Path) -> bool:
    """Return True if the folder is a run directory."""
    return all((folder / name).is_file() for name in RUN_FILES)


def without_folder(project: Project, folder: str) -> Project:
    """Return the project without the files of one folder."""
    files = [file for file in project.files if not file.path.startswith(f"{folder}/")]
    empty = tuple(path for path in project.empty_folders if not f"{path}/".startswith(f"{folder}/"))
    return replace(project, files=tuple(files), empty_folders=empty, sha256=_sha256(files, empty))


def _without_runs(entries: Sequence[ArchiveEntry], warnings: list[str]) -> Sequence[ArchiveEntry]:
    """Omit run directories, because they contain answers and grow."""
    paths = {entry.path for entry in entries}
    ends = tuple(f"/{name}" for name in RUN_FILES)
    runs = [path.removesuffix(ends[0]) for path in paths if path.endswith(ends[0])]
    found = sorted(run for run in runs if all(run + end in paths for end in ends))
    warnings += [f"the run directory {run} in the project was omitted" for run in found]
    inside = tuple(f"{run}/" for run in found)
    return [entry for entry in entries if not (inside and f"{entry.path}/".startswith(inside))]


def safe_path(text: str) -> str:
    """Normalize a path in the project: `/`, no `.` and no empty parts; '' for the root.

    Raises:
        ArchiveError: the path is too long or absolute, or has a drive, `..` or control characters.
    """
    path = text.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or re.match(r"[A-Za-z]:(?:/|$)", path):
        raise ArchiveError(f"{text[:200]!r} is an absolute path")
    if ".." in parts:
        raise ArchiveError(f"{text[:200]!r} leads out of the project")
    if _UNUSABLE.search(f"/{path}".removesuffix("/Icon\r")):  # macOS folder icon, omitted later
        raise ArchiveError(f"{text[:200]!r} is an invalid file name")
    if len(path) > _MAX_PATH or len(parts) > _MAX_DEPTH or any(len(part.encode()) > 255 for part in parts):  # noqa: PLR2004 - ext4's limit
        raise ArchiveError(f"the path {text[:100]!r}... is too long")
    return "/".join(parts)


def is_left_out(path: str) -> bool:
    """Return True for `.git`, files of operating systems and Python's bytecode cache."""
    parts = path.split("/")
    is_junk = _JUNK_FILE.fullmatch(parts[-1]) is not None or not _JUNK_FOLDERS.isdisjoint(parts)
    return is_junk or _HISTORY in parts


def _safe(entries: Iterable[ArchiveEntry], warnings: list[str]) -> Iterable[ArchiveEntry]:
    history = False
    for entry in entries:
        path = safe_path(entry.path)
        history = history or _HISTORY in path.split("/")
        if path and not is_left_out(path):
            yield replace(entry, path=path)
    if history:
        warnings.append("the project's .git was omitted")


def _distinct(entries: Iterable[ArchiveEntry], warnings: list[str]) -> dict[str, ArchiveEntry]:
    kept: dict[str, ArchiveEntry] = {}
    folded: dict[str, str] = {}
    for entry in entries:
        before = kept.get(entry.path)
        if before is not None and (before.kind, entry.kind) != ("folder", "folder"):
            warnings.append(f"{entry.path} appears more than once; the last was used")
        other = folded.setdefault(composed(entry.path).casefold(), entry.path)
        if other != entry.path:
            what = "case" if composed(other) != composed(entry.path) else "the form of their accents"
            warnings.append(f"{other} and {entry.path} differ in {what} only; both were kept")
        kept[entry.path] = entry
    return kept


def _unwrapped(kept: dict[str, ArchiveEntry]) -> dict[str, ArchiveEntry]:
    while (top := _wrapper(kept)) is not None:
        inner = {path.removeprefix(f"{top}/"): entry for path, entry in kept.items() if path != top}
        kept = {path: replace(entry, path=path) for path, entry in inner.items()}
    return kept


def _wrapper(kept: Mapping[str, ArchiveEntry]) -> str | None:
    tops = {path.partition("/")[0] for path in kept}
    if len(tops) != 1:
        return None
    (top,) = tops
    if all(path == top for path in kept) or (top in kept and kept[top].kind != "folder"):
        return None
    manifests = [path for path in kept if posixpath.basename(path).lower() in MANIFEST_NAMES]
    if manifests:
        # The manifest marks the root, and it is deeper, so this folder is a wrapper.
        return top
    return None if top.lower() in _PARTS else top


def _stays_inside(path: str, target: str, links: Mapping[str, str]) -> bool:
    """Resolve a link like a kernel, including intermediate links; return False if it leaves the project."""
    at = path.split("/")[:-1]
    waiting = _steps(target)
    followed = steps = 0
    while waiting is not None and waiting:
        part = waiting.pop()
        steps += 1
        if part == "..":
            if not at:
                return False
            at.pop()
            continue
        at.append(part)
        further = links.get("/".join(at))
        if further is not None:
            followed += 1
            more = _steps(further)
            if more is None or followed > _MAX_LINKS or steps > _MAX_STEPS:
                return False
            at.pop()
            waiting += more
    return waiting is not None


def _steps(target: str) -> list[str] | None:
    """Return the parts of a link's target, last first; None if the target cannot be inside the project."""
    if not target or target.startswith("/") or "\\" in target or _UNUSABLE.search(target):
        return None
    parts = [part for part in target.split("/") if part not in ("", ".")]
    return parts[::-1] if len(parts) <= _MAX_DEPTH else None


def _parents(kept: Mapping[str, ArchiveEntry]) -> set[str]:
    """Return all parent folders. Raises ArchiveError if a parent is a file or a link."""
    parents: set[str] = set()
    for path in kept:
        parent = posixpath.dirname(path)
        while parent and parent not in parents:
            parents.add(parent)
            above = kept.get(parent)
            if above is not None and above.kind != "folder":
                raise ArchiveError(f"{path!r} is below {parent!r}, which is not a folder")
            parent = posixpath.dirname(parent)
    return parents


def _sha256(files: Iterable[ProjectFile], empty_folders: Iterable[str]) -> str:
    """Return the hash of types.Project; length prefixes make the encoding unambiguous."""
    digest = hashlib.sha256(b"astra project 1\n")

    def add(kind: bytes, path: str, content: bytes) -> None:
        name = path.encode()
        digest.update(b"%c%d:%b%d:" % (kind, len(name), name, len(content)))
        digest.update(content)

    for file in files:
        if file.link is not None:
            add(b"L", file.path, file.link.encode())
        else:
            add(b"X" if file.executable else b"F", file.path, file.content)
    for path in empty_folders:
        add(b"D", path, b"")
    return digest.hexdigest()

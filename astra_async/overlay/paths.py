"""Normalize the paths of an answer to the names that the project uses."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from astra_async.languages.project_files import above
from astra_async.problems.patterns import composed
from astra_async.types import Solution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from astra_async.types import Project

PATH_REPAIRS = {
    "path_mended": "a path had ./, backslashes, blanks, a leading slash, a remark copied from the prompt, the"
    " container's folder, or another Unicode form; it was normalized",
    "path_prefix": "all paths began with the project's own folder, which was removed",
    "duplicate_path": "a path was given more than once; the last content was taken",
}

_CONTAINER_FOLDER = re.compile(r"\A/?(?:projects/challenge/)+")
_DRIVE = re.compile(r"[A-Za-z]:")
_REMARK = re.compile(  # a remark after a path in the prompt's headings
    r"(?: \((?:do not change|no line break at its end|saved in [\w-]+, your answer will be in UTF-8)\))+\Z"
)
_MAX_NAME_BYTES = 255  # ext4, overlayfs
_MAX_PATH_BYTES = 1024
_MAX_DEPTH = 32


def anchored(solution: Solution, project: Project) -> Solution:
    """Return the solution with paths relative to the project's root, and record the repairs.

    A path that equals a project path in another Unicode form gets the project's form: macOS stores names
    decomposed, models write them composed, and a second file with the other form would have no effect or hide
    the first. Idempotent. Paths that cannot be repaired (`..` out of the project, unknown absolute paths)
    stay unchanged and are refused by `name_refusal`.
    """
    if solution.exact:
        return solution
    repairs = dict.fromkeys(solution.repairs)
    names = _Names(project)
    cleaned = [(names.spelled(_normalized(path)), path, content) for path, content in solution.files.items()]
    prefix = _own_folder([path for path, _, _ in cleaned], names)
    if prefix:
        repairs["path_prefix"] = None
    files: dict[str, str] = {}
    for repaired, written, content in cleaned:
        path = names.resolved(names.spelled(repaired.removeprefix(prefix)))
        if path != written.removeprefix(prefix):
            repairs["path_mended"] = None
        if path in files:
            repairs["duplicate_path"] = None
            del files[path]
        files[path] = content
    return Solution(files=files, repairs=tuple(repairs))


def name_refusal(path: str) -> str | None:
    """Return the reason why a path is invalid (absolute, outside, bad_name, too_long), or None."""
    if path.startswith("/") or _DRIVE.match(path):
        return "absolute"
    parts = path.split("/")
    if ".." in parts or parts[0].startswith("~"):
        return "outside"
    # Not printable: control, format, surrogate, private-use and unassigned characters, and rare spaces.
    if any(part in {"", "."} for part in parts) or not path.isprintable():
        return "bad_name"
    sizes = [len(part.encode(errors="replace")) for part in parts]
    if max(sizes) > _MAX_NAME_BYTES or sum(sizes) + len(sizes) > _MAX_PATH_BYTES or len(parts) > _MAX_DEPTH:
        return "too_long"
    return None


def _normalized(path: str) -> str:
    path = path.strip().replace("\\", "/")
    path = posixpath.normpath(path).strip() if path and not path.endswith("/") else path
    return _CONTAINER_FOLDER.sub("", path)


class _Names:
    """Spelling of the project's files and folders; `top` holds the names at its root."""

    def __init__(self, project: Project) -> None:
        self.files = {file.path for file in project.files}
        empty = [folder.rstrip("/") for folder in project.empty_folders]
        self.top = set(map(_top, (*self.files, *empty)))
        odd = [path for path in (*self.files, *(f"{each}/_" for each in empty)) if not path.isascii()]
        self._folders = {folder for path in odd for folder in above(path)}
        self._spelling = {composed(path): path for path in sorted({*odd, *self._folders})}

    def spelled(self, path: str) -> str:
        """Return the path with its longest known parent spelled as in the project."""
        if path.isascii() or path in self.files or len(path) > _MAX_PATH_BYTES:
            return path
        for known in (path, *reversed(list(above(path)))):
            if known in self._folders:
                return path
            if spelling := self._spelling.get(composed(known)):
                return spelling + path[len(known) :]
        return path

    def resolved(self, path: str) -> str:
        """Return the project file named by `path` without a leading slash or remark; else `path`."""
        if path in self.files:
            return path
        others = (path.removeprefix("/"), _REMARK.sub("", path))
        return next((each for each in others if each in self.files), path)


def _own_folder(paths: Collection[str], names: _Names) -> str:
    """Return a prefix that all paths share and the project lacks, if removing it gives a known path; else "".

    The prefix is the project's own folder, the root folder, or both.
    """
    start = next(iter(paths), "")
    first = start.removeprefix("/").partition("/")[0]
    if _all_begin("/", paths) and any(_top(path[1:]) in names.top for path in paths):
        return "/"
    prefix = f"{start[: start.startswith('/')]}{first}/"
    if not first or first in names.top or not _all_begin(prefix, paths):
        return ""
    return prefix if any(names.spelled(path.removeprefix(prefix)) in names.files for path in paths) else ""


def _all_begin(prefix: str, paths: Iterable[str]) -> bool:
    return all(path.startswith(prefix) for path in paths)


def _top(path: str) -> str:
    return path.partition("/")[0]

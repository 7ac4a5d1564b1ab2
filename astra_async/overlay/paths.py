"""Paths of an answer, brought to the form in which the project names its files."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from astra_async.types import Solution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from astra_async.types import Project

PATH_REPAIRS = {
    "path_mended": "a path was written with ./, backslashes, blanks or the container's folder before it",
    "path_prefix": "all paths began with the project's own folder, which was dropped",
    "duplicate_path": "a path was given more than once; the last content was taken",
}

_CONTAINER_FOLDER = re.compile(r"/?projects/challenge/")
_DRIVE = re.compile(r"[A-Za-z]:")
_MAX_NAME_BYTES = 255  # ext4, overlayfs
_MAX_PATH_BYTES = 1024
_MAX_DEPTH = 32


def anchored(solution: Solution, project: Project) -> Solution:
    """The solution with its paths relative to the project's root; repairs are named.

    Idempotent. Paths that cannot be mended (absolute ones, `..` out of the project) stay as they are, to
    be refused by name.
    """
    repairs = dict.fromkeys(solution.repairs)
    cleaned = [(_mended(path), path, content) for path, content in solution.files.items()]
    prefix = _own_folder([path for path, _, _ in cleaned], project)
    if prefix:
        repairs["path_prefix"] = None
    files: dict[str, str] = {}
    for path, written, content in cleaned:
        if path != written:
            repairs["path_mended"] = None
        path = path.removeprefix(prefix)  # noqa: PLW2901 - the same path, one step further
        if path in files:
            repairs["duplicate_path"] = None
            del files[path]
        files[path] = content
    return Solution(files=files, repairs=tuple(repairs))


def name_refusal(path: str) -> str | None:
    """Why a path cannot name a file of the project: absolute, outside, bad_name or too_long."""
    if path.startswith("/") or _DRIVE.match(path):
        return "absolute"
    parts = path.split("/")
    if ".." in parts or parts[0].startswith("~"):
        return "outside"
    # Control, format, surrogate, private and unassigned characters and rare spaces have no honest place here.
    if any(part in {"", "."} for part in parts) or not path.isprintable():
        return "bad_name"
    sizes = [len(part.encode(errors="replace")) for part in parts]
    if max(sizes) > _MAX_NAME_BYTES or sum(sizes) + len(sizes) > _MAX_PATH_BYTES or len(parts) > _MAX_DEPTH:
        return "too_long"
    return None


def above(path: str) -> Iterable[str]:
    """Every folder above a path, from the root down."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[: count + 1]) for count in range(len(parts)))


def split(path: str) -> tuple[str, str, str]:
    """Folder, name without its last suffix, and that suffix in lower case and without the dot."""
    folder, _, name = path.rpartition("/")
    stem, _, suffix = name.rpartition(".")
    return (folder, stem, suffix.lower()) if stem else (folder, name, "")


def _mended(path: str) -> str:
    path = path.strip().replace("\\", "/")
    path = _CONTAINER_FOLDER.sub("", path, count=1) if _CONTAINER_FOLDER.match(path) else path
    if not path or path.startswith("/") or path.endswith("/"):
        return path
    return posixpath.normpath(path)


def _own_folder(paths: Collection[str], project: Project) -> str:
    """The folder that all paths share and the project lacks, if without it one of them exists; else ""."""
    first, slash, _ = next(iter(paths), "").partition("/")
    prefix = first + slash
    if not slash or not first or not all(path.startswith(prefix) for path in paths):
        return ""
    existing = {file.path for file in project.files}
    top = {path.partition("/")[0] for path in (*existing, *project.empty_folders)}
    if first in top or not any(path.removeprefix(prefix) in existing for path in paths):
        return ""
    return prefix

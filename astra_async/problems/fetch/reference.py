"""A reference solution from a folder, an archive or a JSON file."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from astra_async.errors import ArchiveError
from astra_async.problems.fetch.tree import MAX_FILE_BYTES, is_left_out, safe_path
from astra_async.problems.manifest import MANIFEST_NAMES
from astra_async.problems.source_text import source_text
from astra_async.types import Solution

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from astra_async.problems.fetch.tree import Entry


def solution_of(entries: Iterable[Entry]) -> Solution:
    """The text files of a folder or an archive; paths as in the project.

    A folder round everything is taken off only when a manifest marks the root: a reference often has
    nothing but files below `src`. Left out: `.git`, `node_modules`, links, and files that are not text
    (repair `binary_left_out`).
    """
    contents = {safe_path(entry.path): entry.content for entry in entries if entry.kind == "file"}
    root = _root(contents)
    files: dict[str, str] = {}
    binary = False
    for path, content in sorted(contents.items()):
        inner = path.removeprefix(root)
        if _is_left_out(inner):
            continue
        if source := source_text(content):
            files[inner] = source.text
        else:
            binary = True
    if not files:
        raise ArchiveError("the reference holds no text files")
    return Solution(files=files, repairs=("binary_left_out",) if binary else ())


def solution_in_json(path: Path) -> Solution | None:
    """The solution in a JSON file, `{path: content}` or `{"files": [{"path", "content"}]}`; None for others.

    Raises:
        ArchiveError: JSON of another form.
    """
    import orjson

    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        return None
    if len(data) > MAX_FILE_BYTES:
        raise ArchiveError(f"the reference is larger than {MAX_FILE_BYTES // 1024**2} MiB")
    try:
        files = _files(orjson.loads(data.removeprefix(b"\xef\xbb\xbf")))
    except orjson.JSONDecodeError as error:
        raise ArchiveError(f"the reference is broken JSON: {error}") from error
    if not files:
        raise ArchiveError('the reference is not {path: content} and not {"files": [{"path", "content"}]}')
    return Solution(files=files)


def _files(value: object) -> Mapping[str, str] | None:
    if isinstance(value, dict) and isinstance(value.get("files"), list | dict):
        value = value["files"]
    if isinstance(value, list):
        if not all(isinstance(item, dict) for item in value):
            return None
        value = {item.get("path"): item.get("content") for item in value}
    if not isinstance(value, dict):
        return None
    if not all(isinstance(path, str) and isinstance(content, str) for path, content in value.items()):
        return None
    return value


def _root(paths: Iterable[str]) -> str:
    """The folder of the shallowest manifest, with its slash; '' without one, or when files lie above it."""
    paths = list(paths)
    manifests = [path for path in paths if posixpath.basename(path).lower() in MANIFEST_NAMES]
    top = posixpath.dirname(min(manifests, key=lambda path: (path.count("/"), path), default=""))
    root = f"{top}/" if top else ""
    return root if all(path.startswith(root) or _is_left_out(path) for path in paths) else ""


def _is_left_out(path: str) -> bool:
    return is_left_out(path) or "node_modules" in path.split("/")

"""Turn the files that an agent left in the project's folder into the text of an answer.

The input is an untrusted tar. The text is canonical JSON (sorted, no blanks): `files` (path -> text) and
`binary` (path -> base64) hold the complete content of new and changed files, `executable` lists those with
an executable bit, `deleted` lists missing files, and `before` (path -> text) has the original content of all
these, so that the record alone shows the changes. A rename is a deletion and a new file.

Only regular files count. A symbolic link to a file or folder of the project is recorded as a copy, so that no
link reaches the tests. `notes` names everything that is left out, with the reason: other links, devices,
names that are not UTF-8, files that are too large or too many, and generated files that the project does not
contain itself (`asking.prompt.GENERATED`). Unchanged files of the image are ignored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import tarfile
from bisect import bisect_left
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from astra_async.asking.prompt import GENERATED
from astra_async.redaction import one_line
from astra_async.testing.sandbox.resultfiles import KINDS
from astra_async.types import ProjectFile

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_FILES = 1000  # the limit of every answer
FILE_BYTES = 2 * 1024**2
ALL_BYTES = 16 * 1024**2
# Most that is read of a folder, before the files of the answer are chosen.
READ_FILES, READ_BYTES = 20_000, 128 * 1024**2
# Files that agents create for themselves in the project's folder.
AGENTS_OWN = (".aider*", ".claude/", ".codex/", ".gemini/", ".opencode/", ".cache/", ".npm/", ".local/")
_IGNORED = GitIgnoreSpec.from_lines((*GENERATED, *AGENTS_OWN, "*.pyc", "*.swp"))
_EXECUTABLE = 0o100
_NAMED_PLACES = 12
_MOST_LINKS = 8  # in a chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer's text, and notes on the files that are left out."""

    text: str
    notes: tuple[str, ...] = ()


def ignored(path: str) -> str:
    """Return the pattern for generated files or agents' own files that matches a path; "" if none does."""
    found = _IGNORED.check_file(path)
    if found.include and found.index is not None:
        return str(_IGNORED.patterns[found.index].pattern)
    return ""


class LeftBehind:
    """Collects the entries of the project's folder and builds the answer.

    `given` are the files that the agent was given; `kept` are SHA-256 hashes of the image's files in that
    folder. All paths are relative to the folder.
    """

    def __init__(self, given: Mapping[str, ProjectFile], kept: Mapping[str, str]) -> None:
        self._given = given
        self._kept = kept
        self._seen: set[str] = set()
        self._changed: dict[str, ProjectFile] = {}
        self._links: dict[str, str] = {}
        self._bytes = 0
        self._notes: defaultdict[str, list[str]] = defaultdict(list)

    def wants(self, path: str, entry: tarfile.TarInfo) -> bool:
        """Return True if the content of an entry is needed."""
        return entry.isreg() and entry.size <= FILE_BYTES and not self._reason(path)

    def take(self, path: str, entry: tarfile.TarInfo, content: bytes) -> None:
        """Add an entry. For a hard link, `content` is the content of its target (see `link`)."""
        given = self._given.get(path)
        if entry.isdir() or (entry.issym() and given is not None and given.link == entry.linkname):
            self._seen.add(path)
            return
        if entry.issym() and not self._reason(path):
            self._links[path] = entry.linkname
            return
        is_file = entry.isreg() or entry.islnk()
        why = self._reason(path) or ("" if is_file else KINDS.get(entry.type, ""))
        if not why and entry.isreg() and entry.size > FILE_BYTES:
            why = f"larger than {FILE_BYTES:,} bytes"
        if is_file:
            self._seen.add(path)
        if why:
            self._leave_out(path, why)
            return
        executable = bool(entry.mode & _EXECUTABLE)
        self._keep(path, ProjectFile(path=path, content=content, executable=executable))

    def link(self, path: str, target: str) -> None:
        """Add a hard link to an earlier entry: another name of the same file."""
        file = self._file(target)
        self._seen.add(path)
        if reason := self._reason(path) or ("" if file else "a hard link to a file that is left out"):
            self._leave_out(path, reason)
        elif file:
            self._keep(path, file)

    def _file(self, path: str) -> ProjectFile | None:
        """Return a file that is part of the answer, or a file of the project that is unchanged."""
        given = self._given.get(path)
        is_there = given is not None and given.link is None and path in self._seen
        return self._changed.get(path) or (given if is_there else None)

    def _resolved(self, path: str) -> str:
        """Return the target of a chain of links; it may be missing or outside the project."""
        for _ in range(_MOST_LINKS):
            if (link := self._links.get(path)) is not None:
                path = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
        return path

    def _copy_linked(self) -> None:
        """Add copies of the files that symbolic links in the project refer to."""
        names = sorted({*self._changed, *self._seen, *self._links})
        copies: dict[str, ProjectFile] = {}
        for path in self._links:
            target = self._resolved(path)
            folder = f"{target}/"
            is_leaf = target == "." or path.startswith(folder) or len(copies) >= MOST_FILES
            end = 0 if is_leaf else bisect_left(names, f"{target}0")  # "0" follows "/"
            inside = [target, *names[bisect_left(names, folder) : end]]
            found = {path + name.removeprefix(target): self._file(self._resolved(name)) for name in inside}
            made = {name: file for name, file in found.items() if file and not self._reason(name)}
            copies |= made
            if not made:
                self._leave_out(path, KINDS[tarfile.SYMTYPE])
        for path, file in copies.items():
            self._seen.add(path)
            self._keep(path, file)

    def answer(self) -> Answer:
        """Return the answer that all entries make up."""
        self._copy_linked()
        chosen = self._chosen()
        deleted = sorted(path for path, file in self._given.items() if path not in self._seen)
        files, binary = {}, {}
        for path, file in chosen.items():
            text = _text(file.content)
            if text is None:
                binary[path] = base64.b64encode(file.content).decode()
            else:
                files[path] = text
        executable = sorted(path for path, file in chosen.items() if file.executable)
        before = {
            path: text
            for path in (*chosen, *deleted)
            if path in self._given and (text := _text(self._given[path].content)) is not None
        }
        found = {"files": files, "binary": binary, "executable": executable, "deleted": deleted}
        found["before"] = before
        text = json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        notes = []
        for why, paths in list(self._notes.items())[:_NAMED_PLACES]:
            more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
            notes.append(one_line(f"{why}: {paths[0]}", length=200) + more)
        return Answer(text=text, notes=tuple(notes))

    def _reason(self, path: str) -> str:
        """Return why a path is never part of an answer; "" if it may be."""
        if path in self._given:
            return ""
        try:
            path.encode()
        except UnicodeEncodeError:
            return "a name that is not UTF-8"
        return ignored(path)

    def _keep(self, path: str, file: ProjectFile) -> None:
        given = self._given.get(path)
        if given is not None and given.link is None:
            if (given.content, given.executable) == (file.content, file.executable):
                return
        elif self._kept.get(path) == hashlib.sha256(file.content).hexdigest():
            return
        if len(self._changed) >= READ_FILES or self._bytes + len(file.content) > READ_BYTES:
            self._leave_out(path, f"beyond {READ_FILES:,} files or {READ_BYTES:,} bytes")
        else:
            self._bytes += len(file.content)
            self._changed[path] = file

    def _chosen(self) -> dict[str, ProjectFile]:
        """Return the files of the answer. If there are too many, the project's own files come first.

        Files that the project's .gitignore names come last.
        """
        given = self._given.get(".gitignore")
        lines = ((_text(given.content) or "") if given else "").splitlines()
        clutter = GitIgnoreSpec([])
        with suppress(ValueError):  # an invalid pattern
            clutter = GitIgnoreSpec.from_lines(lines)
        chosen: dict[str, ProjectFile] = {}
        left_bytes = ALL_BYTES
        for path in sorted(
            self._changed, key=lambda path: (path not in self._given, clutter.match_file(path), path)
        ):
            file = self._changed[path]
            if len(chosen) >= MOST_FILES:
                self._leave_out(path, f"beyond {MOST_FILES:,} files")
            elif len(file.content) > left_bytes:
                self._leave_out(path, f"beyond {ALL_BYTES:,} bytes")
            else:
                left_bytes -= len(file.content)
                chosen[path] = file
        return chosen

    def _leave_out(self, path: str, why: str) -> None:
        is_ours = path.startswith(".git/")  # the repository that the agent was given
        if not is_ours and (path not in self._kept or path in self._given):
            self._notes[why].append(path)


def unreadable(why: str) -> Answer:
    """Return an empty answer for a folder that cannot be read."""
    return Answer(text=LeftBehind({}, {}).answer().text, notes=(f"the project's folder: {why}",))


def _text(content: bytes) -> str | None:
    """Return a file's text; None if it is binary or not UTF-8."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None

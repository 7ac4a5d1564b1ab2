"""Turn the files that an agent left in the project's folder into the text of an answer.

The input is an untrusted tar. The text is canonical JSON (sorted, no blanks): `files` (path -> text) and
`binary` (path -> base64) hold the complete content of new and changed files, `executable` lists those with
an executable bit, `deleted` lists missing files, and `before` (path -> text) has the original content of all
these, so that the record alone shows the changes. A rename is a deletion and a new file.

Only regular files count. A symbolic link to a file or folder of the project is recorded as a copy, so that no
link reaches the tests. Unchanged files of the image are ignored.

An answer has a limit of files and bytes. Files are taken in this order: changed files of the project, new
files, new files in places of generated files (`_CLUTTER`, .gitignore), files that the answer's rules refuse.
Never part of an answer, and named in `left_out` with the reason: other links, devices, names that are not
UTF-8, files that are too large, dependencies, agents' own files and the state of build tools (`ignored`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import tarfile
from bisect import bisect_left
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from astra_async.asking.prompt import GENERATED
from astra_async.overlay.configuration import is_compiled
from astra_async.redaction import one_line
from astra_async.testing.sandbox.resultfiles import KINDS, PROJECT
from astra_async.types import ProjectFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_FILES = 1000  # the limit of every answer
FILE_BYTES = 2 * 1024**2
ALL_BYTES = 16 * 1024**2
# Most that is kept of a folder before the files of the answer are chosen. For generated files, and again for
# compiled files, the limits of an answer apply.
READ_FILES, READ_BYTES = 20_000, 128 * 1024**2
# Places of generated files: their new files come last in an answer.
_CLUTTER = (
    *("target/", "obj/", "coverage/", "build/", "dist/", "out/", "tmp/", "CMakeFiles/", "**/bin/Debug/"),
    *("**/bin/Release/", "*.map", "*.min.js", "*.min.css", "*.log", "*.tmp", "*.swp", "*.obj"),
)
# Files that agents create for themselves in the project's folder.
AGENTS_OWN = (".aider*", ".claude/", ".codex/", ".gemini/", ".opencode/", ".cache/", ".npm/", ".local/")
# State from which a build tool would decide that a file of the tests needs no second copy or compilation.
_BUILD_STATE = (
    *("**/target/*classes/", "**/target/maven-*/", "**/obj/Debug/", "**/obj/Release/", "**/obj/project.*"),
    "**/obj/*.nuget.*",
)
_CLUTTER_SPEC = GitIgnoreSpec.from_lines(_CLUTTER)
_IGNORED = GitIgnoreSpec.from_lines(
    (
        *(each for each in GENERATED if each.removeprefix("/") not in _CLUTTER),
        *(*AGENTS_OWN, *_BUILD_STATE, "*.pyc"),
    )
)
_EXECUTABLE = 0o100
_NAMED_PATHS = 200  # for each reason
_MOST_LINKS = 8  # in a chain
_CHANGED, _NEW, _GENERATED, _COMPILED = range(4)  # ranks in an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer's text, and the files that are left out.

    `left_out` names at most 200 paths for each reason, then the number of the others. `lost` is the number of
    left-out files that are neither generated nor refused by the answer's rules.
    """

    text: str = ""
    left_out: tuple[str, ...] = ()
    lost: int = 0
    candidates: LeftBehind | None = None

    def chosen(self, refusal: Callable[[str], str | None]) -> Answer:
        """Return the answer with the files that fit, by a problem's rules; may take seconds."""
        return self.candidates.chosen(refusal) if self.candidates else self


@lru_cache(maxsize=8)  # each path is looked up several times in a row
def ignored(path: str) -> str:
    """Return the pattern that keeps a new path out of every answer; "" if no pattern matches."""
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
        own = _Room(READ_FILES, READ_BYTES)
        self._rooms = (own, own, *(_Room(MOST_FILES, ALL_BYTES) for _ in (_GENERATED, _COMPILED)))  # by rank
        self._named: defaultdict[str, list[str]] = defaultdict(list)  # reason -> the first left-out paths
        self._counts: Counter[str] = Counter()
        self._lost = 0
        self._clutter = _patterns(given.get(".gitignore"))

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
        """Return the target of a chain of links; it may be missing, or absolute if outside the project."""
        for _ in range(_MOST_LINKS):
            if (link := self._links.get(path)) is not None:
                target = posixpath.normpath(posixpath.join(PROJECT, posixpath.dirname(path), link))
                path = target.removeprefix(f"{PROJECT}/")
        return path

    def _copy_linked(self) -> None:
        """Add copies of the files that symbolic links in the project refer to."""
        names = sorted({*self._changed, *self._seen, *self._links})
        copies: dict[str, ProjectFile] = {}
        for path in self._links:
            target = self._resolved(path)
            folder = f"{target}/"
            is_leaf = path.startswith(folder) or len(copies) >= MOST_FILES
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
        """Return the answer that all entries make up, before its files are chosen."""
        self._copy_linked()
        return Answer(candidates=self)

    def chosen(self, refusal: Callable[[str], str | None]) -> Answer:
        """Return the answer with the files that fit; `refusal` returns the rule that refuses a path."""
        chosen = self._chosen(refusal)
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
        left_out = []
        for why, paths in self._named.items():
            left_out += [one_line(f"{why}: {path}", length=300) for path in sorted(paths)]
            if more := self._counts[why] - len(paths):
                left_out.append(f"{why}: {more:,} more")
        return Answer(text=text, left_out=tuple(left_out), lost=self._lost)

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
        if self._rooms[self._rank(path)].admits(file):
            self._changed[path] = file
        else:
            self._leave_out(path, _beyond())

    def _rank(self, path: str) -> int:
        if path in self._given:
            return _CHANGED
        if is_compiled(path):
            return _COMPILED
        return _GENERATED if _CLUTTER_SPEC.match_file(path) or self._clutter.match_file(path) else _NEW

    def _chosen(self, refusal: Callable[[str], str | None]) -> dict[str, ProjectFile]:
        """Return the files of the answer: as many as fit, and refused files last."""
        ranked = sorted((refusal(path) is not None, self._rank(path), path) for path in self._changed)
        chosen: dict[str, ProjectFile] = {}
        room = _Room(MOST_FILES, ALL_BYTES)
        for is_refused, _, path in ranked:
            if room.admits(self._changed[path]):
                chosen[path] = self._changed[path]
            else:
                self._leave_out(path, _beyond(), is_refused=is_refused)
        return chosen

    def _leave_out(self, path: str, why: str, *, is_refused: bool = False) -> None:
        is_ours = path.startswith(".git/")  # the repository that the agent was given
        if not is_ours and (path not in self._kept or path in self._given):
            self._counts[why] += 1
            if len(self._named[why]) < _NAMED_PATHS:
                self._named[why].append(path)
            self._lost += not (is_refused or ignored(path) or self._rank(path) >= _GENERATED)


@dataclass(slots=True)
class _Room:
    """Remaining numbers of files and of bytes."""

    files: int
    size: int

    def admits(self, file: ProjectFile) -> bool:
        """Return True if a file fits, and count it."""
        if self.files < 1 or self.size < len(file.content):
            return False
        self.files -= 1
        self.size -= len(file.content)
        return True


def _beyond() -> str:
    return f"beyond {MOST_FILES:,} files or {ALL_BYTES:,} bytes"


def unreadable(why: str) -> Answer:
    """Return an empty answer for a folder that cannot be read."""
    empty = LeftBehind({}, {}).chosen(lambda _: None)
    return replace(empty, left_out=(f"the project's folder: {why}",), lost=1)


def _patterns(file: ProjectFile | None) -> GitIgnoreSpec:
    """Return the patterns of a .gitignore file; no patterns if it is missing or invalid."""
    with suppress(ValueError):
        return GitIgnoreSpec.from_lines(((_text(file.content) or "") if file else "").splitlines())
    return GitIgnoreSpec([])


def _text(content: bytes) -> str | None:
    """Return a file's text; None if it is binary or not UTF-8."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None

"""What an agent left in the project's folder, as the text of an answer: pure, over a hostile tar's entries.

The text is canonical JSON, sorted and without blanks: `files` (path -> text) and `binary` (path -> base64)
are the whole new content of each file that is new or has changed, `executable` those of them that can be run,
`deleted` the files that are gone, `before` (path -> text) what was there of all these, so that the record
shows by itself what the agent did. A rename is a deletion and a new file.

Only regular files count. What is left out stands in `notes`, with the reason: links, devices, names that are
no UTF-8, what is too large or too much, and what tools make of sources (`asking.prompt.GENERATED`) where the
project has it not. What the image itself keeps in the folder is no work of the agent's while it stays as it
is.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from astra_async.asking.prompt import GENERATED
from astra_async.redaction import one_line
from astra_async.testing.sandbox.resultfiles import KINDS
from astra_async.types import ProjectFile

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Mapping

MOST_FILES = 1000  # as many as an answer may give
FILE_BYTES = 2 * 1024**2
ALL_BYTES = 16 * 1024**2
# What agents keep in the folder that they work in.
AGENTS_OWN = (".aider*", ".claude/", ".codex/", ".gemini/", ".opencode/", ".cache/", ".npm/", ".local/")
_IGNORED = GitIgnoreSpec.from_lines((*GENERATED, *AGENTS_OWN, "*.pyc", "*.swp"))
_EXECUTABLE = 0o100
_NAMED_PLACES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer's text, and what it leaves out with the reasons."""

    text: str
    notes: tuple[str, ...] = ()


def ignored(path: str) -> str:
    """The rule by which a path is what tools make of a project, or an agent's own; empty where it is not."""
    found = _IGNORED.check_file(path)
    if found.include and found.index is not None:
        return str(_IGNORED.patterns[found.index].pattern)
    return ""


class LeftBehind:
    """Takes the entries of the folder one by one, by paths relative to it, and says what they come to.

    `given` are the files that the agent found; `kept` are hashes (SHA-256) of those that the image has there.
    """

    def __init__(self, given: Mapping[str, ProjectFile], kept: Mapping[str, str]) -> None:
        self._given = given
        self._kept = kept
        self._seen: set[str] = set()
        self._changed: dict[str, ProjectFile] = {}
        self._bytes = 0
        self._notes: defaultdict[str, list[str]] = defaultdict(list)

    def wants(self, path: str, entry: tarfile.TarInfo) -> bool:
        """Whether the content of an entry is to be read."""
        return entry.isreg() and entry.size <= FILE_BYTES and not self._reason(path)

    def take(self, path: str, entry: tarfile.TarInfo, content: bytes) -> None:
        """The next entry; of a hard link the content is that of what it leads to (see `linked`)."""
        given = self._given.get(path)
        if entry.isdir() or (entry.issym() and given is not None and given.link == entry.linkname):
            self._seen.add(path)
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
        """A hard link to an entry that came before it: another name of the same file."""
        given = self._given.get(target)
        is_there = given is not None and given.link is None and target in self._seen
        file = self._changed.get(target) or (given if is_there else None)
        self._seen.add(path)
        if reason := self._reason(path) or ("" if file else "a hard link to what is left out"):
            self._leave_out(path, reason)
        elif file:
            self._keep(path, file)

    def answer(self) -> Answer:
        """What all entries come to."""
        deleted = sorted(path for path, file in self._given.items() if path not in self._seen)
        files, binary = {}, {}
        for path, file in self._changed.items():
            text = _text(file.content)
            if text is None:
                binary[path] = base64.b64encode(file.content).decode()
            else:
                files[path] = text
        executable = sorted(path for path, file in self._changed.items() if file.executable)
        before = {
            path: text
            for path in (*self._changed, *deleted)
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
        """Why a path is no part of an answer, whatever lies there."""
        if path in self._given:
            return ""
        try:
            path.encode()
        except UnicodeEncodeError:
            return "a name that is no UTF-8"
        return ignored(path)

    def _keep(self, path: str, file: ProjectFile) -> None:
        given = self._given.get(path)
        if given is not None and given.link is None:
            if (given.content, given.executable) == (file.content, file.executable):
                return
        elif self._kept.get(path) == hashlib.sha256(file.content).hexdigest():
            return
        if len(self._changed) >= MOST_FILES:
            self._leave_out(path, f"beyond {MOST_FILES:,} files")
        elif self._bytes + len(file.content) > ALL_BYTES:
            self._leave_out(path, f"beyond {ALL_BYTES:,} bytes")
        else:
            self._bytes += len(file.content)
            self._changed[path] = file

    def _leave_out(self, path: str, why: str) -> None:
        if path not in self._kept or path in self._given:
            self._notes[why].append(path)


def unreadable(why: str) -> Answer:
    """The answer of an agent that has made of the folder what cannot be read: nothing."""
    return Answer(text=LeftBehind({}, {}).answer().text, notes=(f"the project's folder: {why}",))


def _text(content: bytes) -> str | None:
    """A file's text; None where it is none, or saved in another encoding than UTF-8."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None

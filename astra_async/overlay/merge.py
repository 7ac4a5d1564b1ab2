"""Apply a solution to a project; record applied changes, dropped files with reasons, and suspicions."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from astra_async.languages import language_of
from astra_async.languages.project_files import above, split
from astra_async.overlay.merged_files import merge_of
from astra_async.overlay.paths import anchored
from astra_async.overlay.suspicions import suspicions
from astra_async.problems.sources import as_utf8
from astra_async.surrogates import without_surrogates
from astra_async.types import Dropped, FileChange, Integrated, ModedContent, Unusable

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from astra_async.languages.language import Merge
    from astra_async.problems.patterns import PathPatterns
    from astra_async.types import Project, ProjectFile, Solution


_MOST_EDITS = 300  # edits among the lines common to both sides: 45,000 steps, about 10 ms


def lines_of(content: bytes) -> list[str]:
    """Return a file's lines for any kind of line end; an empty file has no lines."""
    text = content.decode(errors="replace").replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n") if content else []


def changed_lines(before: Sequence[str], after: Sequence[str], *, files: int = 1) -> tuple[int, int]:
    """Return the numbers of added and removed lines.

    If there are too many edits, lines are compared as multisets and moved lines are not counted. `files` is
    the number of files that share the bound, so that together they cost no more than one file may.
    """
    in_before, in_after = Counter(before), Counter(after)
    old = [line for line in before if line in in_after]
    new = [line for line in after if line in in_before]
    edits = _edits(old, new, int(_MOST_EDITS / math.sqrt(files)))
    if edits is None:
        return (in_after - in_before).total(), (in_before - in_after).total()
    common = (len(old) + len(new) - edits) // 2
    return len(after) - common, len(before) - common


def _edits(old: Sequence[str], new: Sequence[str], most: int) -> int | None:
    """Return the fewest insertions and deletions that turn `old` into `new`, or None if over `most`."""
    first, shared = 0, min(len(old), len(new))
    while first < shared and old[first] == new[first]:
        first += 1
    last = 0
    while last < shared - first and old[-1 - last] == new[-1 - last]:
        last += 1
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    reached = {1: 0}  # diagonal (index in old - index in new) -> largest index in old so far (Myers' diff)
    for edits in range(most + 1):
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
            at = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            while at < len(old) and at - diagonal < len(new) and old[at] == new[at - diagonal]:
                at += 1
            if at >= len(old) and at - diagonal >= len(new):
                return edits
            reached[diagonal] = at
    return None


_MAX_FILES = 1000
_MAX_FILE_CHARACTERS = 4_000_000
_MAX_RECORDED_PATH = 300
_MAX_DROPPED = 200
_LEAST_NAME = 5  # characters; shorter parts of a report's name (`.xml`) occur in ordinary code
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,300})[\"'`]")
_WILDCARD = re.compile(r"[*?]+|\[[^\]]*\]?")


class ChangePolicy(Protocol):
    """Decides which files of an answer are applied: `PathPolicy`, or a record of past decisions."""

    @property
    def files(self) -> Mapping[str, ProjectFile]:
        """Pristine files by path."""

    @property
    def tests(self) -> frozenset[str]:
        """Pristine test files."""

    @property
    def reports(self) -> PathPatterns:
        """Paths of the test report."""

    def refusal(self, path: str, text: str = "") -> str | None:
        """Return the reason why this path may not get this text, or None."""


def integrate(project: Project, solution: Solution, policy: ChangePolicy) -> Integrated | Unusable:
    """Apply the allowed changes; return `path_violation` if no file of the answer may be applied.

    Contents are written unchanged, including line ends, in UTF-8 (lone surrogates become U+FFFD). A file
    equal to the pristine one in content and executable bit is not counted as changed. `lines_written` counts
    the lines of each changed file that its pristine version lacks. Lines are compared as multisets without
    their line ends: a moved line does not count, and the cost stays linear.
    """
    solution = anchored(solution, project)
    overlay = _Overlay(policy, solution.executable)
    for path in solution.deleted:
        overlay.put(path, None)
    for path, text in solution.files.items():
        overlay.add(path, text)
    for path, content in solution.binary.items():
        overlay.put(path, content)
    overlay.keep_loaded_tests()
    if not overlay.changed and not overlay.unchanged:
        reasons = ", ".join(sorted({entry.reason for entry in overlay.dropped}))
        return Unusable(failure="path_violation", reason=f"no file of the answer may be changed ({reasons})")
    return overlay.integrated()


@dataclass(slots=True)
class _Overlay:
    """Changes of one answer while they are collected."""

    policy: ChangePolicy
    executable: frozenset[str] | None
    changed: dict[str, bytes | None] = field(default_factory=dict)
    unchanged: int = 0
    dropped: list[Dropped] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    own_tests: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, text: str) -> None:
        reason = self._refusal(path, text)
        if reason == "own_test":
            self.own_tests[path] = text
        elif reason is not None:
            self.dropped.append(Dropped(path=_recordable(path), reason=reason))
        elif (merge := merge_of(path, self._pristine_text(path))) is not None:
            self._merge(merge, path, text)
        else:
            self._apply(path, without_surrogates(text).encode())

    def put(self, path: str, content: bytes | None) -> None:
        """Write a binary file, or delete a file if `content` is None.

        A file that may not be changed may not be deleted either. A file that is merged by lines is neither
        replaced nor deleted.
        """
        reason = self.policy.refusal(path) if content is None else self._refusal(path, "")
        if reason is None and merge_of(path, self._pristine_text(path)) is not None:
            reason = "not_deletable" if content is None else "no_text"
        if reason is not None:
            self.dropped.append(Dropped(path=_recordable(path), reason=reason))
        elif content is not None:
            self._apply(path, content)
        elif path in self.policy.files:
            self.changed[path] = None

    def keep_loaded_tests(self) -> None:
        """Keep those of the answer's own tests that its other files load, directly or indirectly."""
        waiting = dict(self.own_tests)
        changed = self.changed.values() if waiting else ()
        asked = {name for content in changed for name in _loadable_names(content or b"")}
        while needed := [path for path in waiting if _is_loaded(path, asked)]:
            for path in needed:
                self._apply(path, without_surrogates(waiting.pop(path)).encode())
                asked |= set(_loadable_names(self.changed.get(path) or b""))
        self.dropped.extend(Dropped(path=_recordable(path), reason="own_test") for path in waiting)

    def integrated(self) -> Integrated:
        added = {
            path: _added_lines(self._pristine(path), content or b"") for path, content in self.changed.items()
        }
        names = {
            "report_file": _report_names(self.policy.reports.patterns),
            "test_file": {path.rpartition("/")[2] for path in self.policy.tests},
        }
        return Integrated(
            files=dict(sorted(self.changed.items())),
            changes=tuple(map(self._change, sorted(self.changed))),
            dropped=tuple(self.dropped[:_MAX_DROPPED]),
            suspicions=tuple(name for path in sorted(added) for name in suspicions(path, added[path], names)),
            files_changed=len(self.changed),
            lines_written=sum(len(lines) for lines in added.values()),
            sha256=_digest(self.changed),
        )

    def _change(self, path: str) -> FileChange:
        content = self.changed[path]
        before, after = lines_of(self._pristine(path)), lines_of(content or b"")
        added, removed = changed_lines(before, after, files=len(self.changed))
        kind: Literal["new", "changed", "deleted"] = "changed" if path in self.policy.files else "new"
        if content is None:
            kind = "deleted"
        return FileChange(path=_recordable(path), added=added, removed=removed, kind=kind)

    def _refusal(self, path: str, text: str) -> str | None:
        if len(self.changed) >= _MAX_FILES:
            return "too_many_files"
        if len(text) > _MAX_FILE_CHARACTERS:
            return "too_large"
        reason = self.policy.refusal(path, text)
        if reason is not None:
            return reason
        if path in self.folders:
            return "conflicts_with_folder"
        return "conflicts_with_file" if any(folder in self.changed for folder in above(path)) else None

    def _merge(self, merge: Merge, path: str, text: str) -> None:
        merged, dropped = merge.merged(path, self._pristine_text(path) or "", text)
        self.dropped.extend(dropped)
        if merged is not None:
            self._apply(path, without_surrogates(merged).encode())
        elif not dropped:
            self.unchanged += 1

    def _apply(self, path: str, content: bytes) -> None:
        pristine = self.policy.files.get(path)
        is_executable = None if self.executable is None else path in self.executable
        is_same_mode = pristine is not None and is_executable in {None, pristine.executable}
        if is_same_mode and self._pristine(path) == content:
            self.unchanged += 1
            return
        if is_executable is not None:
            content = ModedContent.of(content, executable=is_executable)
        self.changed[path] = content
        self.folders.update(above(path))

    def _pristine_text(self, path: str) -> str | None:
        return self._pristine(path).decode(errors="replace") if path in self.policy.files else None

    def _pristine(self, path: str) -> bytes:
        """Return the pristine content in UTF-8, as in the prompt, so that repeating it changes nothing."""
        file = self.policy.files.get(path)
        return as_utf8(file.content) if file is not None else b""


def _report_names(patterns: Iterable[str]) -> set[str]:
    """Return the fixed parts of report names: `TEST-` for `reports/TEST-*.xml`."""
    pieces = {max(_WILDCARD.split(pattern.rpartition("/")[2]), key=len) for pattern in patterns}
    return {piece for piece in pieces if len(piece) >= _LEAST_NAME}


def _recordable(path: str) -> str:
    return without_surrogates(path[:_MAX_RECORDED_PATH])


def _loadable_names(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names by which a text may load other files: words in imports, quoted names, single words."""
    text = content.decode(errors="replace")
    yield from (("word", word) for word in _WORD.findall(text))
    for line in text.splitlines():
        if line.lstrip().startswith(("import ", "from ")):
            yield from (("import", word) for word in _WORD.findall(line))
    for quoted in _QUOTED.findall(text):
        name = quoted.rpartition("/")[2]
        yield from (("quoted", name), ("quoted", name.rpartition(".")[0]))


def _is_loaded(path: str, asked: Container[tuple[str, str]]) -> bool:
    """Return True if one of the names loads this file in the way of its language."""
    language = language_of(path)
    return (language.loaded if language else "quoted", split(path)[1]) in asked


def _added_lines(pristine: bytes, content: bytes) -> list[str]:
    """Return the lines of the content that the pristine file lacks, in order."""
    left = Counter(lines_of(pristine))
    added = []
    for line in lines_of(content):
        if left[line] > 0:
            left[line] -= 1
        else:
            added.append(line)
    return added


def _digest(files: Mapping[str, bytes | None]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        name, content = path.encode(), files[path]
        if content is None:
            digest.update(b"%d:%sdeleted:" % (len(name), name))
            continue
        digest.update(b"%d:%s%d:" % (len(name), name, len(content)))
        digest.update(content)
        if isinstance(content, ModedContent) and content.executable != content.startswith(b"#!"):
            digest.update(b"executable:%d" % content.executable)
    return digest.hexdigest()

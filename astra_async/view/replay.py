"""Reconstruct an answer's changes from the record, to show them as a diff.

The original files come from the recorded prompt or from an agent's answer; the dropped files from the result
line. No problems file or project is needed. The recorded hash of the changed files tells whether the diff is
exact; if not, a note says so.
"""

from __future__ import annotations

import difflib
import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from astra_async.asking.prompt import shown_files
from astra_async.errors import ConflictError
from astra_async.files import read_at
from astra_async.overlay import anchored, integrate
from astra_async.overlay.merge import lines_of
from astra_async.problems.patterns import PathPatterns
from astra_async.running.recorded import stored_prompt
from astra_async.types import Integrated, Project, ProjectFile, Solution, Unusable
from astra_async.types.records import Flaw, check_answer, check_result, is_output_of, read_record
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from astra_async.agents.transcript import TranscriptStep

    Place = tuple[int, int]  # offset and length of a line
    Lines = Mapping[str, Sequence[tuple[int, Place]]]  # by file: turn and position of a sample's lines


Record = dict[str, Any]
# Files with results and with answers, each for the first turn and for follow-up turns.
RESULTS, ANSWERS = ("results", "turn_results"), ("completions", "turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts of one turn of a sample; `results` and `answers` have those of all turns, by turn."""

    turn: int
    results: Mapping[int, Record]
    answers: Mapping[int, Record]
    output: Record | None
    prompt: str | None
    events: Sequence[Record]
    steps: Sequence[TranscriptStep] = ()

    @property
    def result(self) -> Record | None:
        """The final result of the turn."""
        return self.results.get(self.turn)

    @property
    def answer(self) -> Record | None:
        """The answer of the turn."""
        return self.answers.get(self.turn)

    @property
    def standing(self) -> list[Record]:
        """Return the usable answers of earlier turns, whose files are still part of the solution."""
        used = (turn for turn in range(self.turn) if self.results.get(turn, {}).get("status") == "scored")
        return [self.answers[turn] for turn in used if turn in self.answers]


def read_texts(
    directory: Path, lines: Lines, turn: int, tell: Callable[[str], None] = lambda _: None
) -> Texts:
    """Read a sample's texts; invalid records are skipped and reported to `tell`. Raises OSError."""
    results = _valid_records(directory, lines, RESULTS, check_result, tell)
    answers = _valid_records(directory, lines, ANSWERS, check_answer, tell)
    outputs = [place for number, place in lines["outputs"] if number == turn]
    named = (answers.get(turn) or results.get(turn) or {}).get("prompt_sha256")
    return Texts(
        turn=turn,
        results=results,
        answers=answers,
        output=_output(directory / "outputs.jsonl", outputs, results.get(turn)),
        prompt=stored_prompt(directory, named) if isinstance(named, str) else None,
        events=_records(directory / "events.jsonl", [place for _, place in lines["events"]]),
        steps=_steps(directory, [place for _, place in lines["calls"]]),
    )


def _steps(directory: Path, places: Sequence[Place]) -> list[TranscriptStep]:
    calls = [each for each in _records(directory / "calls.jsonl", places) if not each.get("failed")]
    if not calls:
        return []
    from astra_async.agents.transcript import interface_of, steps_of  # also imports all providers

    speaks = None
    with suppress(ConflictError, OSError):
        speaks = interface_of(read_run(directory / "run.json"), str(calls[0]["format"]))
    return list(steps_of(calls, speaks))


def _records(path: Path, places: Sequence[Place]) -> list[Record]:
    return [record for place in places if (record := _record(path, place))]


def _record(path: Path, place: Place) -> Record | None:
    with suppress(FileNotFoundError, Flaw):  # the file was replaced; the next reading detects this
        return read_record(read_at(path, *place))
    return None


def _valid_records(
    directory: Path,
    lines: Lines,
    names: Sequence[str],
    check: Callable[[Mapping[str, Any]], object],
    tell: Callable[[str], None],
) -> dict[int, Record]:
    """Return the last valid record of each turn; a later record replaces an earlier one."""
    found = {}
    for name in names:
        for turn, place in lines[name]:
            record = _record(directory / f"{name}.jsonl", place) or {}
            try:
                check(record)
            except Flaw as flaw:
                tell(f"{name}.jsonl: {flaw}; the line is ignored")
            else:
                found[turn] = record
    return found


def _output(path: Path, places: Sequence[Place], result: Record | None) -> Record | None:
    """Return the test output that belongs to the result; outputs of interrupted gradings are ignored."""
    for record in _records(path, places[::-1] if result else ()):
        if is_output_of(record, result or {}):
            return record
    return None


MOST_LINES = 1_500  # per side, without equal ends, because difflib takes quadratic time
_MOST_PAIRS = 20 * MOST_LINES**2  # compared line pairs in all files of an answer
_MOST_CHARACTERS = 400_000  # of one file's diff
_MOST_CHARACTERS_IN_ALL = 4_000_000
_MOST_LINE_CHARACTERS = 5_000
_CONTEXT = 3
_RECORDED_PATH = 300  # the record truncates paths to this many characters
_LINE_NUMBER = re.compile(r"([-+])(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """One changed file as a unified diff; `cut` if it is truncated or lines were not matched."""

    path: str
    kind: str
    unified: str
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The changed files; `note` says why the diff is not exact, '' if it matches the recorded hash."""

    files: tuple[FileDiff, ...]
    note: str


def replayed(read: Sequence[Solution | Unusable], prompt: str | None, result: Mapping[str, Any]) -> Replayed:
    """Apply an answer to the files that the prompt shows, as recorded in the result line.

    The last element of `read` is the answer; the others are usable answers of earlier turns.
    """
    last = read[-1]
    if isinstance(last, Unusable):
        return Replayed(files=(), note=last.reason)
    shown = last.before if last.exact else shown_files(prompt or "")
    files = {path: ProjectFile(path=path, content=text.encode()) for path, text in shown.items()}
    project = Project(files=tuple(files.values()), sha256="")
    given: dict[str, str] = {}
    for solution in read:
        if isinstance(solution, Solution):
            given |= anchored(solution, project).files
    whole = last if last.exact else Solution(files=given)
    integrated = integrate(project, whole, _RecordedPolicy(files, result))
    if not isinstance(integrated, Integrated):
        return Replayed(files=(), note="nothing of the answer was applied")
    kinds = {each["path"]: str(each.get("kind")) for each in result.get("changes") or ()}
    room = _Room()
    diffs = []
    for path, text in integrated.files.items():
        kind = kinds.get(path) or ("changed" if path in files else "new")
        diffs.append(_difference((path, kind), files.get(path), text, room))
    return Replayed(files=tuple(diffs), note=_inexact_note(integrated, prompt, result))


@dataclass(slots=True)
class _RecordedPolicy:
    """A path policy that refuses exactly the files recorded as dropped or unchanged."""

    files: Mapping[str, ProjectFile]
    result: Mapping[str, Any]
    tests: frozenset[str] = frozenset()
    reports: PathPatterns = field(default_factory=lambda: PathPatterns.of(()))

    def refusal(self, path: str, text: str = "") -> str | None:  # noqa: ARG002 - the policy's signature
        if path[:_RECORDED_PATH] in {each["path"] for each in self.result.get("dropped") or ()}:
            return "recorded"
        changes = self.result.get("changes")
        if changes is None or path[:_RECORDED_PATH] in {each["path"] for each in changes}:
            return None
        return "unchanged"


def _inexact_note(integrated: Integrated, prompt: str | None, result: Mapping[str, Any]) -> str:
    if not result:
        return "not tested yet; shown as applied to the files of the prompt"
    if integrated.sha256 == result.get("solution_sha256"):
        return ""
    if prompt is None:
        return "the prompt is not stored, so files are shown complete instead of as changes"
    return "not exactly as tested: the hash of the files differs from the recorded one"


@dataclass(slots=True)
class _Room:
    """Remaining budget for all diffs of one answer, so that many files cost no more than one."""

    pairs: int = _MOST_PAIRS
    characters: int = _MOST_CHARACTERS_IN_ALL


def _difference(
    named: tuple[str, str], before: ProjectFile | None, after: bytes | None, room: _Room
) -> FileDiff:
    path, kind = named
    contents = (before.content if before else b"", after or b"")
    old, new = ([_short(line) for line in lines_of(content)] for content in contents)
    unified, cut = _unified(old, new, room)
    is_unseen = kind != "new" and before is None  # not in the prompt, so the original is unknown
    return FileDiff(path=path, kind=kind, unified=unified, cut=cut or is_unseen)


def _short(line: str) -> str:
    return line if len(line) <= _MOST_LINE_CHARACTERS else f"{line[:_MOST_LINE_CHARACTERS]}\u2026"


def _unified(old: Sequence[str], new: Sequence[str], room: _Room) -> tuple[str, bool]:
    """Return a unified diff without its two header lines, and True if it was truncated."""
    head = _equal_ends(zip(old, new, strict=False))
    tail = _equal_ends(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    first, last = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    pairs = len(old) * len(new)
    is_compared = pairs <= min(MOST_LINES**2, room.pairs)
    if is_compared:
        room.pairs -= pairs
        lines = list(difflib.unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
        text = "\n".join(_moved(line, first) for line in lines)
    else:
        heading = f"@@ -{first + 1},{len(old)} +{first + 1},{len(new)} @@"
        text = "\n".join([heading, *(f"-{line}" for line in old), *(f"+{line}" for line in new)])
    most = min(_MOST_CHARACTERS, room.characters)
    room.characters -= min(most, len(text))
    return text[:most], not is_compared or len(text) > most


def _equal_ends(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _moved(line: str, lines: int) -> str:
    """Shift the line numbers in a hunk header; return other lines unchanged."""
    if not line.startswith("@@"):
        return line
    return _LINE_NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + lines}", line)

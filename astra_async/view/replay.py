"""An answer laid over the project once more, from the record alone, to show what it changed.

The pristine files are those that the recorded prompt shows, or that an agent's answer holds, and what was
dropped is what the record says was dropped: no problems file and no project is needed. Whether the outcome is
what was tested is proven by the recorded hash of the changed files; where it differs, that is said.
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
    Lines = Mapping[str, Sequence[tuple[int, Place]]]  # by file: turn and place of each of a sample's lines


Record = dict[str, Any]
# The files that hold a sample's final lines and answers: of the first answer, and of each later turn.
RESULTS, ANSWERS = ("results", "turn_results"), ("completions", "turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What those lines hold of one turn: final lines and answers by turn, those of later ones too."""

    turn: int
    results: Mapping[int, Record]
    answers: Mapping[int, Record]
    output: Record | None
    prompt: str | None
    events: Sequence[Record]
    steps: Sequence[TranscriptStep] = ()

    @property
    def result(self) -> Record | None:
        """The turn's final line."""
        return self.results.get(self.turn)

    @property
    def answer(self) -> Record | None:
        """What the turn was answered with."""
        return self.answers.get(self.turn)

    @property
    def standing(self) -> list[Record]:
        """Answers of the turns before it whose files stand: those that could be used."""
        used = (turn for turn in range(self.turn) if self.results.get(turn, {}).get("status") == "scored")
        return [self.answers[turn] for turn in used if turn in self.answers]


def read_texts(
    directory: Path, lines: Lines, turn: int, tell: Callable[[str], None] = lambda _: None
) -> Texts:
    """Read them from disk; what is not believed counts as not there, and is told. Raises OSError."""
    results = _believed(directory, lines, RESULTS, check_result, tell)
    answers = _believed(directory, lines, ANSWERS, check_answer, tell)
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
    from astra_async.agents.transcript import interface_of, steps_of  # and all providers' formats with it

    speaks = None
    with suppress(ConflictError, OSError):
        speaks = interface_of(read_run(directory / "run.json"), str(calls[0]["format"]))
    return list(steps_of(calls, speaks))


def _records(path: Path, places: Sequence[Place]) -> list[Record]:
    return [record for place in places if (record := _record(path, place))]


def _record(path: Path, place: Place) -> Record | None:
    with suppress(FileNotFoundError, Flaw):  # cut or replaced since: the next look tells of it
        return read_record(read_at(path, *place))
    return None


def _believed(
    directory: Path,
    lines: Lines,
    names: Sequence[str],
    check: Callable[[Mapping[str, Any]], object],
    tell: Callable[[str], None],
) -> dict[int, Record]:
    """What the last line of each turn says that is believed: of two final lines the second one counts."""
    found = {}
    for name in names:
        for turn, place in lines[name]:
            record = _record(directory / f"{name}.jsonl", place) or {}
            try:
                check(record)
            except Flaw as flaw:
                tell(f"{name}.jsonl: {flaw}; not counted, not shown")
            else:
                found[turn] = record
    return found


def _output(path: Path, places: Sequence[Place], result: Record | None) -> Record | None:
    """The output of the very grading that the result is of; others were broken off."""
    for record in _records(path, places[::-1] if result else ()):
        if is_output_of(record, result or {}):
            return record
    return None


MOST_LINES = 1_500  # of both sides, after equal ends were put aside: difflib takes quadratic time
_MOST_PAIRS = 20 * MOST_LINES**2  # of lines compared, in all files of an answer
_MOST_CHARACTERS = 400_000  # of one file's diff
_MOST_CHARACTERS_IN_ALL = 4_000_000
_MOST_LINE_CHARACTERS = 5_000
_CONTEXT = 3
_RECORDED_PATH = 300  # characters that the record keeps of a path
_LINE_NUMBER = re.compile(r"([-+])(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """One changed file as a unified diff; `cut` where not all of it is there or lines were not matched."""

    path: str
    kind: str
    unified: str
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The changed files; `note` says what is not exact, and is empty where the recorded hash is met."""

    files: tuple[FileDiff, ...]
    note: str


def replayed(read: Sequence[Solution | Unusable], prompt: str | None, result: Mapping[str, Any]) -> Replayed:
    """Lay what an answer gives over the files that the prompt shows, as the result line says it was done.

    The last one read is the answer; files that it leaves out are as earlier turns gave them.
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
    return Replayed(files=tuple(diffs), note=_doubt(integrated, prompt, result))


@dataclass(slots=True)
class _RecordedPolicy:
    """Refuses what the record says was refused; it has no rules of its own."""

    files: Mapping[str, ProjectFile]
    result: Mapping[str, Any]
    tests: frozenset[str] = frozenset()
    reports: PathPatterns = field(default_factory=lambda: PathPatterns.of(()))

    def refusal(self, path: str, text: str = "") -> str | None:  # noqa: ARG002 - as the rules have it
        if path[:_RECORDED_PATH] in {each["path"] for each in self.result.get("dropped") or ()}:
            return "recorded"
        changes = self.result.get("changes")
        if changes is None or path[:_RECORDED_PATH] in {each["path"] for each in changes}:
            return None
        return "unchanged"


def _doubt(integrated: Integrated, prompt: str | None, result: Mapping[str, Any]) -> str:
    if not result:
        return "not tested yet: shown as it would be laid over the files of the prompt"
    if integrated.sha256 == result.get("solution_sha256"):
        return ""
    if prompt is None:
        return "the prompt is not stored here: files are shown whole, without what they were before"
    return "not exactly what was tested: the files' hash is not the recorded one"


@dataclass(slots=True)
class _Room:
    """What the files of one answer may still take together, so that many of them cost no more than one."""

    pairs: int = _MOST_PAIRS
    characters: int = _MOST_CHARACTERS_IN_ALL


def _difference(
    named: tuple[str, str], before: ProjectFile | None, after: bytes | None, room: _Room
) -> FileDiff:
    path, kind = named
    contents = (before.content if before else b"", after or b"")
    old, new = ([_short(line) for line in lines_of(content)] for content in contents)
    unified, cut = _unified(old, new, room)
    is_unseen = kind != "new" and before is None  # left out of the prompt: what it was is not known
    return FileDiff(path=path, kind=kind, unified=unified, cut=cut or is_unseen)


def _short(line: str) -> str:
    return line if len(line) <= _MOST_LINE_CHARACTERS else f"{line[:_MOST_LINE_CHARACTERS]}\u2026"


def _unified(old: Sequence[str], new: Sequence[str], room: _Room) -> tuple[str, bool]:
    """A unified diff without its two lines of names, and whether it was cut."""
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
    """A hunk's heading with its line numbers moved on; other lines as they are."""
    if not line.startswith("@@"):
        return line
    return _LINE_NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + lines}", line)

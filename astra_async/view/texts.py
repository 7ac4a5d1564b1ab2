"""All texts of one sample, or of one further turn of it, read again from where its lines stand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConflictError
from astra_async.files import read_at
from astra_async.running.recorded import stored_prompt
from astra_async.types.records import Flaw, check_answer, check_result, is_output_of, read_record
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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

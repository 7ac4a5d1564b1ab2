"""`astra show`: one sample as it is recorded, what matters most first."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import json_option, say, takes_standard_output, tell, write_json
from astra_async.errors import UsageError
from astra_async.running.recorded import CALLS_NAME, key_fields, readable, stored_prompt
from astra_async.types import ANSWER_FORMATS, SampleKey, Solution, is_agent
from astra_async.types.records import (
    Flaw,
    check_answer,
    check_result,
    is_output_of,
    read_key,
    read_run,
    require_run,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.agents.transcript import TranscriptStep
    from astra_async.view.replay import Replayed

    _Replay = tuple[Mapping[str, str], Replayed]

Record = dict[str, Any]
_PARTS = ("result", "output", "changes", "events", "transcript", "answer", "feedback", "prompt")
_WORST_FIRST = ("failed", "error", "missing", "skipped", "passed")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("model")
@click.argument("problem")
@click.argument("sample", type=int)
@click.option("--format", "fmt", help="Answer format or agent, if there are several.", metavar="NAME")
@click.option(
    "--part",
    type=click.Choice(_PARTS),
    multiple=True,
    help="Only this part; may be repeated.",
)
@click.option("--turn", type=click.IntRange(min=0), default=0, help="A further turn of it.", metavar="T")
@json_option("Where all that is recorded of the sample goes, for programs")
def show(  # noqa: PLR0913 - a flag each
    directory: Path,
    model: str,
    problem: str,
    sample: int,
    *,
    fmt: str | None,
    part: tuple[str, ...],
    turn: int,
    json_path: Path | None,
) -> None:
    """Show one sample: its tests with their messages and output, what it changed, its answer, the prompt."""
    require_run(directory)
    formats = (fmt,) if fmt else read_run(directory / "run.json").get("formats") or ANSWER_FORMATS
    keys = [SampleKey(model, name, problem, sample) for name in formats]
    shown = _look_up(directory, keys, turn)
    if json_path:
        write_json(json_path, shown.as_json() | _beside(directory, shown))
        if takes_standard_output(json_path):
            return
    for name, lines in shown.texts(directory).items():
        if not part or name in part:
            for title, text in lines:
                say(f"--- {title} ---", bold=True)
                say(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What a run has of one sample, or of one further turn of it."""

    key: SampleKey
    turn: int
    result: Record | None
    answer: Record | None
    prompt: str | None
    replay: _Replay | None
    events: list[Record]

    def texts(self, directory: Path) -> Record:
        """Titles and texts of each part, in the order of reading."""
        return {
            "result": _result(self.result),
            "output": _output(directory, self.result),
            "changes": _changes(self.replay, self.result),
            "events": _events(self.events),
            "transcript": _transcript(directory, self.key),
            "answer": _answer(self.answer),
            "feedback": _feedback(self.answer),
            "prompt": _prompt(self.answer or self.result, self.prompt),
        }

    def as_json(self) -> Record:
        return {
            "schema": 1,
            "key": key_fields(self.key.at(self.turn)),
            "result": self.result,
            "answer": self.answer,
            "prompt": self.prompt,
            "changes": [asdict(each) for each in self.replay[1].files] if self.replay else [],
            "changes_note": self.replay[1].note if self.replay else "",
            "events": self.events,
        }


def _look_up(directory: Path, keys: list[SampleKey], turn: int) -> _Shown:
    answer, result = _answer_and_result(directory, keys, turn)
    events = [
        event for event in _of(directory / "events.jsonl", keys) if not turn or event.get("turn") == turn
    ]
    found = answer or result
    if found is None and not events:
        raise UsageError(
            f"{directory} holds nothing of {keys[0].at(turn)}; `astra report {directory}` lists what it has"
        )
    prompt = stored_prompt(directory, found["prompt_sha256"]) if found else None
    return _Shown(
        key=read_key(found or events[0]),
        turn=turn,
        result=result,
        answer=answer,
        prompt=prompt,
        replay=_replay([*_before(directory, found, turn), answer], result, prompt),
        events=events,
    )


def _answer_and_result(directory: Path, keys: list[SampleKey], turn: int) -> Iterator[Record | None]:
    files = ("turns", "turn_results") if turn else ("completions", "results")
    return (_record(directory / f"{name}.jsonl", keys, turn) for name in files)


def _record(path: Path, keys: list[SampleKey], turn: int) -> Record | None:
    """The sample's or turn's line that is believed and counts; one that is not believed is told of."""
    check, last = check_result if path.name.endswith("results.jsonl") else check_answer, None
    for record in _of(path, keys):
        if record.get("turn", 0) == turn:
            try:
                check(record)
            except Flaw as flaw:
                tell(f"warning: {path.name}: {flaw}; not counted, not shown")
            else:
                last = record  # of two final lines the second one counts
    return last


def _before(directory: Path, found: Record | None, turn: int) -> list[Record]:
    """The earlier answers of a sample whose files stand under those of this turn."""
    if not found or not turn:
        return []
    keys, earlier = [read_key(found)], []
    for each in range(turn):
        answer, result = _answer_and_result(directory, keys, each)
        if answer and result and result["status"] == "scored":
            earlier.append(answer)
    return earlier


def _beside(directory: Path, shown: _Shown) -> Record:
    """What other files of the run hold of a sample: output, label, turns after the first."""
    from astra_async.report.labels import read_labels

    answers, results = (
        {each.get("turn"): each for each in _of(directory / name, [shown.key])}
        for name in ("turns.jsonl", "turn_results.jsonl")
    )
    turns = sorted({*answers, *results} - {None}, key=str)
    return {
        "output": _kept_output(directory, shown.result),
        "transcript": _transcript_as_json(directory, shown.key),
        "label": read_labels(directory / "labels.csv").get(shown.key),
        "turns": [{"turn": turn, "answer": answers.get(turn), "result": results.get(turn)} for turn in turns],
    }


def _of(path: Path, keys: list[SampleKey]) -> Iterator[Record]:
    """The lines of these samples."""
    for _, record in readable(path):
        with suppress(Flaw):
            if read_key(record) in keys:
                yield record


def _kept_output(directory: Path, result: Record | None) -> Record | None:
    if result is None:
        return None
    outputs = readable(directory / "outputs.jsonl", result["finished_at"].encode())
    return next((each for _, each in outputs if is_output_of(each, result)), None)


def _result(record: Record | None) -> Iterator[tuple[str, str]]:
    if not record:
        yield "result", "none yet: the answer has not been graded"
        return
    outcome = record["failure"] or "all tests passed"
    lines = [record["note"]] if record["note"] else []
    lines.append(
        f"{record['files_changed']} files changed, {record['lines_written']} lines,"
        f" image {record['image_id'] or '-'}"
    )
    lines += [
        f"  {each['path']} ({each['kind']}): {each['added']} lines added, {each['removed']} removed"
        for each in record.get("changes") or ()
    ]
    lines += [f"{name}: {', '.join(record[name])}" for name in ("repairs", "suspicions") if record[name]]
    if record.get("trial"):
        lines.append(f"trial: {record['trial'].replace('_', ' ')}")
    lines += [f"dropped {each['path']}: {_reason(each['reason'])}" for each in record["dropped"]]
    for test in sorted(record["tests"], key=_badness):
        lines.append(f"{test['outcome']:>8}  {test['name']}")
        lines += [f"{'':>8}    {line}" for line in str(test.get("message") or "").splitlines()]
    lines += [f"{test['outcome']:>8}  {test['name']} (extra, not counted)" for test in record["extra_tests"]]
    title = f"result: {record['passed']} of {record['total']} tests passed, {record['status']} ({outcome})"
    yield title, "\n".join(lines)


def _output(directory: Path, result: Record | None) -> Iterator[tuple[str, str]]:
    """What the tests printed: as much as is kept of it."""
    if result is None or result["status"] == "no_solution":
        return
    if kept := _kept_output(directory, result):
        yield f"output, {kept['output_bytes']:,} bytes", kept["output"] or "(nothing was printed)"
    elif result["output_tail"]:
        yield "end of the output (the rest was not kept)", result["output_tail"]


def _reason(name: str) -> str:
    """Why a change was not applied, by the name that is recorded and in words."""
    from astra_async.overlay import REFUSALS

    return f"{name} ({REFUSALS[name]})" if name in REFUSALS else name


def _badness(test: Mapping[str, str]) -> int:
    outcome = test["outcome"]
    return _WORST_FIRST.index(outcome) if outcome in _WORST_FIRST else 0


def _replay(answers: list[Record | None], result: Record | None, prompt: str | None) -> _Replay | None:
    """The files of the last answer over those of earlier ones, and what was applied of them.

    As unified diffs against what the prompt showed.
    """
    if answers[-1] is None or (result and result["status"] == "no_solution"):
        return None
    from astra_async.answers import parse_solution
    from astra_async.view.replay import replayed

    try:
        read = [
            parse_solution(answer["text"], answer["format"], answer["finish_reason"])
            for answer in answers
            if answer
        ]
    except ValueError as error:  # the record of what an agent left is damaged
        tell(f"warning: {error}")
        return None
    if not isinstance(read[-1], Solution):
        return None
    solutions = [each for each in read if isinstance(each, Solution)]
    files = {path: text for each in solutions for path, text in each.files.items()}
    return files, replayed(solutions, prompt, result or {})


def _changes(replay: _Replay | None, result: Record | None) -> Iterator[tuple[str, str]]:
    """What was applied, then what was dropped."""
    if replay is None:
        return
    files, found = replay
    for file in found.files:
        state = (" (new)" if file.kind == "new" else "") + (" (not all of it)" if file.cut else "")
        yield f"{file.path}{state}", file.unified or "only line ends differ"
    if found.note:
        yield "about these changes", found.note
    for each in result["dropped"] if result else ():
        if each["path"] in files:
            yield f"{each['path']} (dropped: {each['reason']})", files[each["path"]]


def _events(events: list[Record]) -> Iterator[tuple[str, str]]:
    if events:
        yield "events", "\n".join(f"{each['at']} {each['kind']}: {each.get('detail', '')}" for each in events)


def _transcript(directory: Path, key: SampleKey) -> Iterator[tuple[str, str]]:
    """What an agent and its model said, a text for each step."""
    for step in _steps(directory, key):
        from astra_async.agents.transcript import step_as_text

        yield f"step {step.number}", step_as_text(step)


def _transcript_as_json(directory: Path, key: SampleKey) -> list[Record]:
    if not (steps := _steps(directory, key)):
        return []
    from astra_async.agents.transcript import step_as_json

    return list(map(step_as_json, steps))


def _steps(directory: Path, key: SampleKey) -> list[TranscriptStep]:
    if not is_agent(key.format):
        return []
    from astra_async.agents.transcript import interface_of, steps_of

    lines = [each for each in _of(directory / CALLS_NAME, [key]) if not each.get("failed")]
    return list(steps_of(lines, interface_of(read_run(directory / "run.json"), key.format)))


def _answer(record: Record | None) -> Iterator[tuple[str, str]]:
    if record:
        usage = ", ".join(f"{name} {count}" for name, count in record["usage"].items() if count is not None)
        seconds = record.get("latency_s")
        how = "in a batch" if seconds is None else f"{seconds:.1f} s"
        yield f"answer ({record['finish_reason']}, {how}, {usage})", record["text"]


def _feedback(record: Record | None) -> Iterator[tuple[str, str]]:
    """What a further turn answers."""
    if record and "feedback" in record:
        yield f"feedback {record['feedback_sha256'][:12]}, which this turn answers", record["feedback"]


def _prompt(record: Record | None, prompt: str | None) -> Iterator[tuple[str, str]]:
    if record:
        yield f"prompt {record['prompt_sha256'][:12]}", prompt or "(not stored in this directory)"

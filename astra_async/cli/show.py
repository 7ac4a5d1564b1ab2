"""`astra show`: one recorded sample, beginning with the result."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.agents.session_log import session_log
from astra_async.cli.console import json_option, say, takes_standard_output, tell, write_json
from astra_async.errors import UsageError
from astra_async.files import scan
from astra_async.listing import counted
from astra_async.types import ANSWER_FORMATS, SampleKey, Solution
from astra_async.types.agents import end_in_words
from astra_async.types.records import Flaw, read_key, read_named
from astra_async.types.run_record import read_run, require_run
from astra_async.view.replay import ANSWERS, RESULTS, read_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.agents.transcript import TranscriptStep
    from astra_async.view.replay import Replayed, Texts

    _Replay = tuple[Mapping[str, str], Replayed]

_FILES = (*RESULTS, *ANSWERS, "outputs", "events", "calls")
Record = dict[str, Any]
_PARTS = ("result", "output", "changes", "events", "transcript", "answer", "feedback", "prompt")
_BADNESS = {"error": 1, "missing": 2, "skipped": 3, "passed": 4}  # failed and unknown outcomes: 0


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("model")
@click.argument("problem")
@click.argument("sample", type=int)
@click.option(
    "--format", "fmt", help="Answer format or agent; needed if the run has several.", metavar="NAME"
)
@click.option("--part", type=click.Choice(_PARTS), multiple=True, help="Part to print; may be repeated.")
@click.option(
    "--turn",
    type=click.IntRange(min=0),
    default=0,
    help="Follow-up turn to show (from 1); 0 is the first answer.",
    metavar="T",
)
@json_option("Write the whole record of the sample as JSON to this file")
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
    """Show one sample: tests with messages, output, changes, answer and prompt."""
    require_run(directory)
    formats = (fmt,) if fmt else read_run(directory / "run.json").get("formats") or ANSWER_FORMATS
    keys = [SampleKey(model, name, problem, sample) for name in formats]
    key, texts = _look_up(directory, keys, turn)
    replay = _replay(texts)
    if json_path:
        write_json(json_path, _as_json(directory, key, texts, replay))
        if takes_standard_output(json_path):
            return
    for name, found in _in_parts(directory, key, texts, replay).items():
        if not part or name in part:
            for title, text in found:
                say(f"--- {title} ---", bold=True)
                say(text)


def _in_parts(
    directory: Path, key: SampleKey, texts: Texts, replay: _Replay | None
) -> dict[str, Iterator[tuple[str, str]]]:
    """Return titles and texts of each part, in order of output."""
    return {
        "result": _result(texts.result),
        "output": _output(texts),
        "changes": _changes(replay, texts.result),
        "events": _events(texts.events),
        "transcript": _transcript(texts, session_log(directory, key)),
        "answer": _answer(texts.answer),
        "feedback": _feedback(texts.answer),
        "prompt": _prompt(texts.answer or texts.result, texts.prompt),
    }


def _as_json(directory: Path, key: SampleKey, texts: Texts, replay: _Replay | None) -> Record:
    from astra_async.report.labels import read_labels

    turns = sorted({turn for turn in (*texts.answers, *texts.results) if turn})
    return {
        "schema": 1,
        "key": key.at(texts.turn)._asdict(),
        "result": texts.result,
        "answer": texts.answer,
        "prompt": texts.prompt,
        "changes": [asdict(each) for each in replay[1].files] if replay else [],
        "changes_note": replay[1].note if replay else "",
        "events": texts.events,
        "output": texts.output,
        "transcript": _steps_as_json(texts.steps),
        "label": read_labels(directory / "labels.csv").get(key, (None,))[0],
        "turns": [
            {"turn": turn, "answer": texts.answers.get(turn), "result": texts.results.get(turn)}
            for turn in turns
        ],
    }


def _look_up(directory: Path, keys: list[SampleKey], turn: int) -> tuple[SampleKey, Texts]:
    """Return the records of one sample or of one of its turns."""
    lines = {name: list(_lines(directory / f"{name}.jsonl", keys)) for name in _FILES}
    found = read_texts(directory, lines, turn, lambda text: tell(f"warning: {text}"))
    if turn:
        found = replace(found, events=[event for event in found.events if event.get("turn") == turn])
    shown = found.answer or found.result or next(iter(found.events), None)
    if shown is None:
        raise UsageError(
            f"{directory} has no record of {keys[0].at(turn)}; `astra report {directory}` lists its samples"
        )
    return read_key(shown), found


def _lines(path: Path, keys: list[SampleKey]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Return (turn, byte range) for each line of these samples."""
    for _, offset, line in scan(path):
        with suppress(Flaw):
            record = read_named(line)
            if read_key(record) in keys:
                turn = record.get("turn")
                yield (turn if type(turn) is int else 0), (offset, len(line))


def _result(record: Record | None) -> Iterator[tuple[str, str]]:
    if not record:
        yield "result", "not graded yet"
        return
    outcome = record["failure"] or "all tests passed"
    lines = [*filter(None, (record["note"], end_in_words(record)))]
    lines.append(
        f"{counted(record['files_changed'], 'file')} changed, {counted(record['lines_written'], 'line')},"
        f" image {record['image_id'] or '-'}"
    )
    lines += [
        f"  {each['path']} ({each['kind']}): {each['added']:+} {-each['removed']:+} lines"
        for each in record.get("changes") or ()
    ]
    lines += [f"{name}: {', '.join(record[name])}" for name in ("repairs", "suspicions") if record[name]]
    lines += [f"dropped {each['path']}: {_reason(each['reason'])}" for each in record["dropped"]]
    for test in sorted(record["tests"], key=lambda test: _BADNESS.get(test["outcome"], 0)):
        lines.append(f"{test['outcome']:>8}  {test['name']}")
        lines += [f"{'':>8}    {line}" for line in str(test.get("message") or "").splitlines()]
    lines += [f"{test['outcome']:>8}  {test['name']} (extra, not counted)" for test in record["extra_tests"]]
    score = f"{record['passed']} of {record['total']} tests passed"
    if rewards := record.get("rewards"):
        named = ", ".join(f"{name} {value}" for name, value in rewards.items())
        score, outcome = f"score {record['score']}", f"rewards: {named}"
    title = f"result: {score}, {record['status']} ({outcome})"
    yield title, "\n".join(lines)
    if left_out := (record.get("agent") or {}).get("left_out"):
        yield "files that are not part of the answer, by reason", "\n".join(left_out)


def _output(texts: Texts) -> Iterator[tuple[str, str]]:
    """Yield the stored part of the tests' output."""
    result, kept = texts.result, texts.output
    if result is None or result["status"] == "no_solution":
        return
    if kept:
        yield f"output, {kept['output_bytes']:,} bytes", kept["output"] or "(nothing was printed)"
    elif result["output_tail"]:
        yield "end of the output (the rest was not kept)", result["output_tail"]


def _reason(name: str) -> str:
    """Return the recorded reason why a change was not applied, with its explanation."""
    from astra_async.overlay import REFUSALS

    return f"{name} ({REFUSALS[name]})" if name in REFUSALS else name


def _replay(texts: Texts) -> _Replay | None:
    """Return the answered files by path and the changes; None without a solution."""
    if texts.answer is None or (texts.result and texts.result["status"] == "no_solution"):
        return None
    from astra_async.answers import parse_solution
    from astra_async.view.replay import replayed

    try:
        read = [
            parse_solution(answer["text"], answer["format"], answer["finish_reason"])
            for answer in (*texts.standing, texts.answer)
        ]
    except ValueError as error:  # the record of an agent's files is damaged
        tell(f"warning: {error}")
        return None
    solutions = (each for each in read if isinstance(each, Solution))
    files = {path: text for each in solutions for path, text in each.files.items()}
    return files, replayed(read, texts.prompt, texts.result or {})


def _changes(replay: _Replay | None, result: Record | None) -> Iterator[tuple[str, str]]:
    """Yield the applied changes, then the dropped ones."""
    if replay is None:
        return
    files, found = replay
    for file in found.files:
        state = (" (new)" if file.kind == "new" else "") + (" (cut)" if file.cut else "")
        yield f"{file.path}{state}", file.unified or "only line ends or the executable bit differ"
    if found.note:
        yield "about these changes", found.note
    for each in result["dropped"] if result else ():
        if each["path"] in files:
            yield f"{each['path']} (dropped: {each['reason']})", files[each["path"]]


def _events(events: Sequence[Record]) -> Iterator[tuple[str, str]]:
    if events:
        yield "events", "\n".join(f"{each['at']} {each['kind']}: {each.get('detail', '')}" for each in events)


def _transcript(texts: Texts, log: Path) -> Iterator[tuple[str, str]]:
    for step in texts.steps:
        from astra_async.agents.transcript import step_as_text

        yield f"step {step.number}", step_as_text(step)
    if tail := ((texts.result or {}).get("agent") or {}).get("output_tail"):
        yield "end of the agent's output", tail
    if log.exists():
        yield "the agent's own log", f"read it with: zless {shlex.quote(str(log))}"


def _steps_as_json(steps: Sequence[TranscriptStep]) -> list[Record]:
    if not steps:
        return []
    from astra_async.agents.transcript import step_as_json

    return list(map(step_as_json, steps))


def _answer(record: Record | None) -> Iterator[tuple[str, str]]:
    if record:
        usage = ", ".join(f"{name} {count}" for name, count in record["usage"].items() if count is not None)
        seconds = record.get("latency_s")
        how = "in a batch" if seconds is None else f"{seconds:.1f} s"
        yield f"answer ({record['finish_reason']}, {how}, {usage})", record["text"]


def _feedback(record: Record | None) -> Iterator[tuple[str, str]]:
    """Yield the feedback before a turn."""
    if record and "feedback" in record:
        yield f"feedback {record['feedback_sha256'][:12]} before this turn", record["feedback"]


def _prompt(record: Record | None, prompt: str | None) -> Iterator[tuple[str, str]]:
    if record:
        yield f"prompt {record['prompt_sha256'][:12]}", prompt or "(not stored in this directory)"

"""`astra show`: one sample as it is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import say
from astra_async.errors import UsageError
from astra_async.running.directory import key_from, stored_prompt
from astra_async.running.log import decode, scan
from astra_async.types import SampleKey

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARTS = ("prompt", "answer", "result", "events")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("model")
@click.argument("problem")
@click.argument("sample", type=int)
@click.option("--format", "fmt", type=click.Choice(("xml", "json")), help="Answer format, if there are both.")
@click.option("--part", type=click.Choice(_PARTS), multiple=True, help="Only this part; may be repeated.")
def show(
    directory: Path, model: str, problem: str, sample: int, *, fmt: str | None, part: tuple[str, ...]
) -> None:
    """Show one sample: prompt, answer, what was changed and dropped, test outcomes, output."""
    formats = (fmt,) if fmt else ("xml", "json")
    keys = [SampleKey(model, name, problem, sample) for name in formats]  # type: ignore[arg-type]
    records = {name: _record(directory / f"{name}.jsonl", keys) for name in ("completions", "results")}
    events = [event for event in _records(directory / "events.jsonl") if _names(event, keys)]
    found = records["completions"] or records["results"]
    if found is None and not events:
        raise UsageError(
            f"{directory} holds nothing of {keys[0]}; `astra report {directory}` lists what it has"
        )
    for name in part or _PARTS:
        for text in _SECTIONS[name](directory, records, events):
            say(text)


def _record(path: Path, keys: list[SampleKey]) -> dict[str, Any] | None:
    return next((record for record in _records(path) if _names(record, keys)), None)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for _, _, line in scan(path):
        try:
            yield decode(line)
        except ValueError:
            continue  # unreadable lines are reported when the run is resumed or reported


def _names(record: dict[str, Any], keys: list[SampleKey]) -> bool:
    try:
        return key_from(record) in keys
    except (KeyError, TypeError):
        return False


def _prompt(directory: Path, records: dict[str, Any], _: list[dict[str, Any]]) -> Iterator[str]:
    record = records["completions"] or records["results"]
    if record:
        yield _title(f"prompt {record['prompt_sha256'][:12]}")
        yield stored_prompt(directory, record["prompt_sha256"]) or "(not stored in this directory)"


def _answer(_: Path, records: dict[str, Any], __: list[dict[str, Any]]) -> Iterator[str]:
    record = records["completions"]
    if record:
        usage = ", ".join(f"{name} {count}" for name, count in record["usage"].items() if count is not None)
        yield _title(f"answer ({record['finish_reason']}, {record['latency_s']:.1f} s, {usage})")
        yield record["text"]


def _result(_: Path, records: dict[str, Any], __: list[dict[str, Any]]) -> Iterator[str]:
    record = records["results"]
    if not record:
        return
    outcome = record["failure"] or "all tests passed"
    yield _title(f"result: {record['passed']} of {record['total']}, {record['status']} ({outcome})")
    if record["note"]:
        yield record["note"]
    changed = f"{record['files_changed']} files changed, {record['lines_written']} lines"
    yield f"{changed}, image {record['image_id'] or '-'}"
    for name in ("repairs", "suspicions"):
        if record[name]:
            yield f"{name}: {', '.join(record[name])}"
    for dropped in record["dropped"]:
        yield f"dropped {dropped['path']} ({dropped['reason']})"
    for test in record["tests"]:
        yield f"{test['outcome']:>8}  {test['name']}"
    for test in record["extra_tests"]:
        yield f"{test['outcome']:>8}  {test['name']} (extra, not counted)"
    if record["output_tail"]:
        yield _title("end of the output")
        yield record["output_tail"]


def _events(_: Path, __: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[str]:
    if events:
        yield _title("events")
    for event in events:
        yield f"{event['at']} {event['kind']}: {event.get('detail', '')}"


def _title(text: str) -> str:
    return click.style(f"--- {text} ---", bold=True)


_SECTIONS = {"prompt": _prompt, "answer": _answer, "result": _result, "events": _events}

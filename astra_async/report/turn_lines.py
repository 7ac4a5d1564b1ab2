"""Lines of turn_results.jsonl: the final lines of follow-up turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.files import scan
from astra_async.types import TurnKey
from astra_async.types.records import (
    Disbelieved,
    Flaw,
    counting,
    read_line,
    read_result,
    read_turn_key,
    repeated,
)

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import AnswerKey

TURN_RESULTS = "turn_results.jsonl"


def read_turns(directory: Path) -> tuple[dict[TurnKey, dict[str, Any]], list[str]]:
    """Return the follow-up turns of a run directory by key, and warnings on ignored lines.

    Raises ConflictError if two lines contradict each other.
    """
    path = directory / TURN_RESULTS
    found: dict[AnswerKey, tuple[int, bytes]] = {}
    disbelieved, warnings = Disbelieved(TURN_RESULTS, read_turn_key), list[str]()
    for number, _, line in scan(path):
        try:
            key = read_result(line, path, number)[0].key
        except Flaw as flaw:
            disbelieved.add(number, flaw, line)
            continue
        earlier, before = found.setdefault(key, (number, line))
        if earlier == number:
            continue
        counts = counting(before, line)
        if counts is None:
            warnings.append(repeated(path, (earlier, number), (before, line)))
        elif counts is line:
            found[key] = number, line
    records = {key: read_line(line) for key, (_, line) in found.items() if isinstance(key, TurnKey)}
    return records, [*warnings, *disbelieved.warnings(found.__contains__)]

"""Samples that are tried after all: graded untried, or tried by one form, before their model was proven.

They go the same way as every other, from the recorded answer on: a pair of scored run and trials in drawn
order. The line that this gives says what it `replaces`, and takes the first one's place. Which samples these
are follows from the final lines alone, so that whoever comes next goes on where a run was killed.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from astra_async.integrity.draw import ALL_FORMS, FORMS, OPEN, Solved
from astra_async.running.log import scan
from astra_async.running.plan import Speed
from astra_async.types import Format, SampleKey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.metrics import Metrics
    from astra_async.running.typed_commands import Cell
    from astra_async.types import AnswerKey

STILL_TO_BE_TRIED = "samples, graded before their model was proven to bend tests, are still to be tried"
RESULT_LOGS = ("results.jsonl", "turn_results.jsonl")


class _Line(msgspec.Struct, gc=False):
    """What of a final line says whether it is to be tried after all."""

    model: str
    format: Format
    problem_id: str
    sample: int
    turn: int | None = None
    failure: str | None = None
    trial: str = ""
    solution_sha256: str = ""
    trial_forms: int = ALL_FORMS

    @property
    def is_open(self) -> bool:
        """Whether it may be tried by more forms."""
        is_less = self.trial == "not_drawn" or self.trial_forms == FORMS
        return self.trial in OPEN and is_less and self.failure != "tampered"

    @property
    def solved(self) -> Solved:
        return Solved(self.problem_id, self.solution_sha256)


_LINE = msgspec.json.Decoder(_Line)


def untried(directory: Path) -> list[AnswerKey]:
    """Samples, and turns, to be tried after all: what they hold, or their model, was proven to bend tests."""
    proven, solved = set[str](), set[Solved]()
    waiting: dict[AnswerKey, Solved] = {}
    for name in RESULT_LOGS:
        for _, _, content in scan(directory / name):
            with suppress(msgspec.MsgspecError):  # told of by whoever opens the directory
                line = _LINE.decode(content)
                key = SampleKey(line.model, line.format, line.problem_id, line.sample).at(line.turn or 0)
                waiting.pop(key, None)  # the last line of a key counts
                if line.is_open:
                    waiting[key] = line.solved
                elif line.failure == "tampered":
                    proven.add(line.model)
                    solved.add(line.solved)
    return [key for key, what in waiting.items() if key.model in proven or what in solved]


def untried_cells(directory: Path, metrics: Metrics) -> Counter[Cell]:
    """How many samples are to be tried after all, by where they are."""
    if not any(each.failures.get("tampered") for each in metrics.summaries()):
        return Counter()
    return Counter((key.model, key.format, key.problem_id) for key in untried(directory))


class Retrials:
    """How far a run is with them; none is begun twice by one process."""

    def __init__(self) -> None:
        self.begun: set[AnswerKey] = set()
        self.done = 0
        self._speed = Speed(0, 0)

    @property
    def left(self) -> int:
        """Found, and not tried yet."""
        return len(self.begun) - self.done

    @property
    def left_s(self) -> float | None:
        """Seconds until all are tried, at the pace so far."""
        return self._speed.left_s(self.done, len(self.begun))

    def begin(self, directory: Path, is_ours: Callable[[AnswerKey], bool]) -> list[AnswerKey]:
        """Those that have not been begun, and are part of this call; from a thread."""
        keys = [key for key in untried(directory) if key not in self.begun and is_ours(key)]
        if not self.begun:
            self._speed = Speed(0, 0)
        self.begun.update(keys)
        return keys

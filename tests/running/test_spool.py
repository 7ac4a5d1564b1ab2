"""What a failing disk refused, and another folder holds: taken over once, and never against the record."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from astra_async.asking.feedback import Feedback
from astra_async.running.directory import RunDirectory
from astra_async.running.recorded import spent
from astra_async.types import Completion, SampleKey, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import AnswerKey

SAMPLES = [SampleKey("m", "xml", "p", number) for number in range(2)]
ANSWER = Completion(
    text="held",
    finish_reason="stop",
    usage=Usage(input_tokens=3),
    returned_model="m",
    ttft_s=None,
    latency_s=1.0,
    cost_usd=0.5,
)


def opened(path: Path, spare: Path) -> RunDirectory:
    return RunDirectory.open(path, spare=spare, turns=True)


def record(directory: RunDirectory, key: AnswerKey, answer: Completion) -> None:
    feedback = Feedback(text="wrong", sha256="def") if key.turn else None
    directory.record_completion(key, answer, "abc", feedback=feedback)


@pytest.mark.parametrize(("turn", "name"), [(0, "completions.jsonl"), (1, "turns.jsonl")])
def test_held_answers_that_are_found_late_contradict_nothing(tmp_path: Path, turn: int, name: str) -> None:
    """Two were held; then the run went on where nobody looks for them, and one was asked for again."""
    path, spare, keys = tmp_path / "run", tmp_path / "spare", [key.at(turn) for key in SAMPLES]
    spare.mkdir()
    with closing(opened(path, spare)) as directory:
        directory.save()
        for key in keys:
            record(directory, key, ANSWER)
        held = spare / f"astra-{directory.run_id}-{name}"
    lines = (path / name).read_bytes()
    (path / name).unlink()
    with closing(opened(path, tmp_path / "another host's")) as directory:
        record(directory, keys[0], replace(ANSWER, text="asked for again", cost_usd=0.25))
    for _ in range(2):  # the second time as after a kill before the held lines were removed
        held.write_bytes(lines)
        with closing(opened(path, spare)) as directory:
            assert [directory.completion(key)[0].text for key in keys] == ["asked for again", "held"]
            assert directory.earlier["m"].cost_usd == 1.25
            (told,) = directory.warnings
            assert str(held) in told
            assert "1 outdated answers" in told
        assert not held.exists()
        assert spent(path)["m"].cost_usd == 1.25
    with closing(opened(path, spare)) as directory:
        assert directory.warnings == []
        assert directory.answered.keys() == set(keys)

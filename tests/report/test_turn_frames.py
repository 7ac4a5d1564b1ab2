"""`load(...).turns`: every recorded turn as a row, the first answer being turn 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

import astra_async
from made_runs import Made, agreeing, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", Made(problems=made_problems(3), samples=2))


def test_a_run_without_turns_has_its_first_answers(run: Path) -> None:
    loaded = astra_async.load(run)
    turns = loaded.turns
    assert set(turns["turn"]) == {0}
    assert turns["score"].tolist() == loaded.samples["score"].tolist()
    assert str(turns["model"].dtype) == "category"


def test_further_turns_stand_behind_the_first_and_the_samples_know_nothing_of_them(run: Path) -> None:
    line = orjson.loads((run / "results.jsonl").read_bytes().splitlines()[0])
    second = agreeing(line, line["total"]) | {"turn": 1, "usage": {"input_tokens": 7, "output_tokens": 3}}
    nothing = line | {"turn": 2, "status": "no_solution", "failure": "format_error", "tests": []}
    nothing |= {"passed": 0, "score": 0}
    lines = [second, second, nothing, {"turn": 1, "model": "m"}]
    content = b"".join(orjson.dumps(each) + b"\n" for each in lines)
    (run / "turn_results.jsonl").write_bytes(content + b'{"torn')
    before = astra_async.load(run).samples
    loaded = astra_async.load(run)
    key = ["model", "format", "problem_id", "sample"]
    mine = loaded.turns[(loaded.turns[key] == [line[name] for name in key]).all(axis=1)]
    assert mine["turn"].tolist() == [0, 1, 2]
    assert mine["score"].tolist() == [line["score"], 1, 0]
    assert mine["status"].tolist() == [line["status"], "scored", "no_solution"]
    assert mine["input_tokens"].tolist()[1] == 7
    assert len(loaded.turns) == len(before) + 2
    assert loaded.samples.equals(before)

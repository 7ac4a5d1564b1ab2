"""Which directory `astra regrade` without --out goes on in, and which answers it grades there."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.cli.regrade import _found, _own_name
from astra_async.errors import ConflictError, UsageError
from astra_async.running.description import recorded_call
from astra_async.running.directory import RunDirectory
from astra_async.running.problem_set import data_config
from astra_async.running.spool import lock_directory
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

RUN = {"run_id": "made"}


@pytest.mark.parametrize(
    ("begun", "name"),
    [
        ({}, "run-regrade-1"),
        ({"keep_output": None}, "run-regrade-1"),  # begun by a version that did not know the option
        ({"keep_output": "all"}, "run-regrade-2"),
    ],
)
def test_an_unfinished_regrade_of_the_same_call_goes_on(
    tmp_path: Path, begun: dict[str, str | None], name: str
) -> None:
    parent = write_run(tmp_path / "run", Made(problems=made_problems(1), samples=1))
    config = data_config({"problems": "bundled"}, None)
    call = {
        key: value for key, value in (recorded_call(config) | begun).items() if begun.get(key, "") is not None
    }
    begin(tmp_path / "run-regrade-1", parent, call=call)
    assert _own_name(parent, RUN, config).name == name


def begin(regrade: Path, parent: Path, *, graded: int = 0, **fields: Any) -> None:
    """A regrade that holds the answers of its parent, and its first verdicts."""
    _found(parent, regrade, RUN)
    run = orjson.loads((regrade / "run.json").read_bytes())
    (regrade / "run.json").write_bytes(orjson.dumps(run | fields))
    verdicts = (parent / "results.jsonl").read_bytes().splitlines(keepends=True)
    (regrade / "results.jsonl").write_bytes(b"".join(verdicts[:graded]))


def grown(parent: Path, samples: int) -> Path:
    """The parent after the same run with more samples."""
    shutil.rmtree(parent, ignore_errors=True)
    return write_run(parent, Made(problems=made_problems(1), samples=samples))


@pytest.mark.parametrize(("graded", "name"), [(3, "run-regrade-1"), (4, "run-regrade-2")])
def test_a_finished_regrade_stays_as_it_is_and_all_of_a_parent_that_has_grown_is_graded_anew(
    tmp_path: Path, graded: int, name: str
) -> None:
    config = data_config({"problems": "bundled"}, None)
    parent = grown(tmp_path / "run", samples=2)
    begin(tmp_path / "run-regrade-1", parent, graded=graded, call=recorded_call(config))
    grown(parent, samples=4)
    assert _own_name(parent, RUN, config).name == name


def test_a_regrade_that_goes_on_gets_the_answers_that_came_since(tmp_path: Path) -> None:
    parent, new = grown(tmp_path / "run", samples=2), tmp_path / "new"
    (parent / "labels.csv").write_text("of the parent")
    begin(new, parent, graded=4)
    assert _found(parent, new, RUN) == 0
    (new / "labels.csv").write_text("of the regrade")
    (new / "completions.jsonl").write_bytes((new / "completions.jsonl").read_bytes() + b'{"torn by a kill')
    grown(parent, samples=4)
    (parent / "prompts").mkdir()
    (parent / "prompts" / "abc.txt").write_text("Write it.")
    (parent / "turns.jsonl").write_bytes(a_turn(parent))
    assert _found(parent, new, RUN) == 5
    assert _found(parent, new, RUN) == 0
    assert (new / "completions.jsonl").read_bytes() == (parent / "completions.jsonl").read_bytes()
    assert (new / "turns.jsonl").read_bytes() == (parent / "turns.jsonl").read_bytes()
    assert (new / "prompts" / "abc.txt").read_text() == "Write it."
    assert (new / "labels.csv").read_text() == "of the regrade"
    with closing(RunDirectory.open(new)) as directory:
        assert (len(directory.answered), len(directory.graded)) == (9, 4)


def a_turn(parent: Path) -> bytes:
    first = orjson.loads((parent / "completions.jsonl").read_bytes().splitlines()[0])
    return orjson.dumps(first | {"turn": 1, "feedback": "wrong"}) + b"\n"


def test_a_directory_that_another_process_is_grading_in_is_left_alone(tmp_path: Path) -> None:
    config = data_config({"problems": "bundled"}, None)
    parent, begun = grown(tmp_path / "run", samples=1), tmp_path / "run-regrade-1"
    held = lock_directory(begun)  # it is just being founded: no run.json yet
    try:
        assert _own_name(parent, RUN, config).name == "run-regrade-2"
        with pytest.raises(ConflictError, match="in use by process"):
            _found(parent, begun, RUN)
    finally:
        os.close(held)
    assert _own_name(parent, RUN, config).name == "run-regrade-1"


def test_no_other_directory_is_graded_in(tmp_path: Path) -> None:
    parent, others, mine = grown(tmp_path / "run", samples=1), tmp_path / "others", tmp_path / "mine"
    begin(others, parent)
    with pytest.raises(UsageError, match="belongs to another run"):
        _found(parent, others, {"run_id": "another"})
    mine.mkdir()
    (mine / "problems.csv").write_text("id,problem_statement,project\n")
    with pytest.raises(UsageError, match=r"overwrite problems\.csv"):
        _found(parent, mine, RUN)
    assert not (mine / "run.json").exists()

"""The report tells the nodes of a cluster apart, and says nothing of them where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from astra_async.report.tables import build_report
from made_runs import Made, MadeProblem, agreeing, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.table import Table


def table(directory: Path) -> Table:
    report = build_report([directory])
    return next(each for section in report.sections for each in section.tables if each.name == "nodes")


def test_verdicts_durations_and_time_outs_stand_by_node(tmp_path: Path) -> None:
    made = Made(skill={"alpha": 0.5}, problems=[MadeProblem(id="p", total=4)], samples=4)
    directory = write_run(tmp_path / "run", made)
    path = directory / "results.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    told = [("fast", 4, 1.0, False), ("fast", 2, 1.0, False), ("slow", 4, 3.0, False), ("slow", 0, 9.0, True)]
    written = []
    for line, (node, passed, test_s, timed_out) in zip(lines, told, strict=True):
        more = {"node": node, "test_s": test_s, "timed_out": timed_out}
        written.append(agreeing(line, passed, **more, **({"failure": "timeout"} if timed_out else {})))
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in written))
    found = table(directory)
    names = ("node", "graded", "perfect", "mean_score", "timeouts", "test_s")
    assert list(zip(*(found.column(name) for name in names), strict=True)) == [
        ("fast", 2, 1, 0.75, 0, 1.0),
        ("slow", 2, 1, 0.5, 1, 6.0),
    ]
    assert found.column("pace") == pytest.approx([0.5, 3.0])


def test_a_run_of_one_machine_has_no_such_table(tmp_path: Path) -> None:
    assert not table(write_run(tmp_path / "run", Made())).rows

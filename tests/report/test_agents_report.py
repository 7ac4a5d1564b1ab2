"""Agents in the report: their table, pairs at a fixed model, the frontier of costs."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.report.compare import Side, compare_runs
from astra_async.report.page_samples import embed
from astra_async.report.plots.scatter import charts
from astra_async.report.tables import build_report
from made_runs import Made, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.tables import Report


def worked(line: dict[str, Any]) -> dict[str, Any]:
    """A line of `shell` as an agent's: ten steps, 40 s of its model's and 20 s of its own, $0.10."""
    if line["format"] != "shell":
        return line
    work = {"agent": "shell", "version": "1", "end": "time" if line["sample"] == 3 else "done", "steps": 10}
    return line | {"agent": work | {"model_s": 40.0, "own_s": 20.0}, "cost_usd": 0.1}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    directory: Path = write_run(tmp_path_factory.mktemp("runs") / "run", Made(formats=("xml", "shell")))
    path = directory / "results.jsonl"
    lines = [worked(orjson.loads(line)) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return build_report([directory])


def test_each_way_to_ask_a_model_has_its_money_time_and_ends(report: Report) -> None:
    table = report.table("agents")
    rows = {row[:2]: dict(zip([each.name for each in table.columns], row, strict=True)) for row in table.rows}
    assert rows.keys() == {(model, way) for model in ("alpha", "beta") for way in ("xml", "shell")}
    agent, single = rows["alpha", "shell"], rows["alpha", "xml"]
    perfect = round(float(str(agent["pass_at_1"])) * 16)
    assert (agent["steps"], agent["model_s"], agent["own_s"], agent["ended_time"]) == (10, 40, 20, 4)
    assert agent["cost_per_pass"] == pytest.approx(1.6 / perfect)
    assert agent["seconds_per_pass"] == pytest.approx(16 * 60 / perfect)
    assert (single["steps"], single["own_s"], single["ended_time"]) == (None, None, None)


def test_an_agent_is_compared_with_the_single_answer_of_its_own_model(report: Report) -> None:
    table = report.table("agent_pairs")
    named = {frozenset((row[2], row[3])) for row in table.rows}
    assert named == {frozenset((f"{model} (xml)", f"{model} (shell)")) for model in ("alpha", "beta")}


def test_a_run_without_agents_has_no_section_of_them(tmp_path: Path) -> None:
    names = {section.name for section in build_report([write_run(tmp_path / "run", Made())]).sections}
    assert "agents" not in names


def test_the_frontier_rises_with_the_cost(report: Report) -> None:
    (chart,) = (each for each in charts(report) if each.name == "costs")
    line: Any = chart.marks[0]
    assert list(line.xs) == sorted(line.xs)
    assert list(line.ys) == sorted(line.ys)
    assert max(entry.summary.mean_score or 0 for entry in report.entries) == pytest.approx(line.ys[-1])


def test_an_agent_and_a_single_answer_of_one_model_are_compared_by_their_whole_names(report: Report) -> None:
    directory = report.runs[0].directory
    sides = [Side(directory=directory, model=name) for name in ("alpha (xml)", "alpha (shell)")]
    table = compare_runs(*sides).table("compare")
    assert set(table.column("format")) == {"xml/shell"}
    assert set(zip(table.column("a"), table.column("b"), strict=True)) == {("alpha (xml)", "alpha (shell)")}


def test_the_page_names_the_end_of_an_agents_work(report: Report) -> None:
    chunks = (
        orjson.loads(gzip.decompress(base64.b64decode(each.data))) for each in embed(report.entries).chunks
    )
    ends = {sample["agent_end"] for chunk in chunks for sample in chunk.values()}
    assert ends == {None, "shell 1: finished", "shell 1: reached its time limit"}

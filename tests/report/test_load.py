from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pytest

from astra_async.errors import ConflictError, UsageError
from astra_async.metrics import Metrics
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.tables import build_report
from astra_async.report.write import write_built, write_tables
from made_runs import Made, made_problems, made_results, run_json, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def test_a_loaded_run_has_the_metrics_of_its_lines(tmp_path: Path) -> None:
    made = Made(formats=("xml", "json"))
    run = load_run(write_run(tmp_path / "run", made))
    plan = dict.fromkeys([problem.id for problem in made_problems(4)], made.samples)
    expected = Metrics({(model, form): plan for model in made.skill for form in made.formats})
    for result, _ in made_results(made):
        expected.add(
            result.model,
            result.format,
            result.problem_id,
            result.passed,
            result.total,
            status=result.status,
            failure=result.failure,
        )
    assert run.metrics.summaries() == expected.summaries()
    assert len(run.rows) == 64
    assert len(run.missing) == 0
    assert run.warnings == ()
    assert run.started_at == "2026-11-20T10:00:00.000Z"
    assert run.finished_at == "2026-11-20T10:03:30.000Z"


def test_the_order_of_lines_changes_nothing(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    before = load_run(directory)
    path = directory / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    random.Random(7).shuffle(lines)
    path.write_bytes(b"".join(lines))
    after = load_run(directory)
    assert after.metrics.summaries() == before.metrics.summaries()
    assert after.outcomes == before.outcomes
    texts = ("repairs", "suspicions", "prompt", "image", "node", "returned_model")
    for name in before.rows.dtype.names or ():
        if name in texts:
            first, second = ([run.texts[n] for n in run.rows[name]] for run in (before, after))
            assert first == second, name
        elif name not in ("offset", "verdict"):  # numbers in the order of the lines
            assert np.array_equal(before.rows[name], after.rows[name], equal_nan=True), name


def test_every_row_leads_back_to_its_line(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "run", Made()))
    for row in run.rows:
        record = run.line(row)
        assert run.pairs[row["pair"]] == (record["model"], record["format"])
        assert run.problems[row["problem"]] == record["problem_id"]
        assert (row["sample"], row["passed"]) == (record["sample"], record["passed"])
        assert run.texts[row["image"]] == record["image_id"]


def test_the_rows_of_a_run_with_gaps_stand_together_in_order(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    path = directory / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for number, line in enumerate(lines) if number % 3))
    run = load_run(directory)
    keys = [tuple(row[name] for name in ("pair", "problem", "sample")) for row in run.rows]
    assert keys == sorted(set(keys))
    assert len(keys) == run.bounds[-1] == len(lines) - len(run.missing)
    for row, (pair, problem, sample) in zip(run.rows, keys, strict=True):
        record = run.line(row)
        assert (record["model"], record["format"]) == run.pairs[pair]
        assert (record["problem_id"], record["sample"]) == (run.problems[problem], sample)


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    path = directory / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    run = load_run(directory)
    assert len(run.rows) == 31
    assert run.missing.tolist() == [[1, 3, 3]]
    assert run.warnings == ()


def test_a_last_line_that_lacks_only_its_newline_counts_as_it_will_when_the_run_goes_on(
    tmp_path: Path,
) -> None:
    directory = write_run(tmp_path / "run", Made())
    path = directory / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(load_run(directory).rows) == 32
    path.write_bytes(whole)
    run = load_run(directory)
    assert (len(run.rows), run.warnings) == (32, ())


def test_an_unreadable_line_is_named_and_its_sample_missing(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    path = directory / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 30 + b"\n"
    lines[5] = b'{"model": "alpha"}\n'
    path.write_bytes(b"".join(lines))
    run = load_run(directory)
    assert len(run.missing) == 2
    assert [warning.split(":")[0] for warning in run.warnings] == [
        "results.jsonl line 3",
        "results.jsonl line 6",
    ]


def test_a_repeated_record_counts_once_with_a_warning_however_it_is_spaced(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    path = directory / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    spaced = json.dumps(orjson.loads(lines[3])).encode() + b"\n"
    path.write_bytes(b"".join([*lines, lines[3], spaced]))
    run = load_run(directory)
    assert len(run.rows) == 32
    assert run.warnings == (
        "results.jsonl line 33: repeats line 4, counted once",
        "results.jsonl line 34: repeats line 4, counted once",
    )


def test_twins_that_differ_stop_with_both_line_numbers(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    path = directory / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    other = orjson.loads(lines[3]) | {"output_tail": "something else"}
    path.write_bytes(b"".join([*lines, orjson.dumps(other) + b"\n"]))
    with pytest.raises(ConflictError, match="lines 4 and 33 contradict each other"):
        load_run(directory)


def test_results_outside_the_plan_are_left_out_with_a_warning(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made(samples=4))
    (directory / "run.json").write_bytes(orjson.dumps(run_json(Made(samples=3))))
    run = load_run(directory)
    assert len(run.rows) == 24
    assert "8 lines are ignored because run.json does not plan" in run.warnings[0]
    assert "alpha/xml/p00/3" in run.warnings[0]


def test_a_directory_without_a_run_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run\.json"):
        load_run(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"schema": 2}', b'{"schema": 1, "run_id": "x"}'])
def test_a_broken_run_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(ConflictError, match=r"run\.json"):
        load_run(tmp_path)


def test_a_run_without_any_result_is_all_missing(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(orjson.dumps(run_json(Made())))
    run = load_run(tmp_path)
    assert len(run.missing) == 32
    assert run.metrics.summary("alpha", "xml").mean_score is None


def test_runs_that_share_keys_are_named_by_directory(tmp_path: Path) -> None:
    runs = [load_run(write_run(tmp_path / name, Made())) for name in ("first", "second")]
    assert [entry.label for entry in entries_of(runs)] == [
        "alpha @ first",
        "alpha @ second",
        "beta @ first",
        "beta @ second",
    ]


def test_the_same_model_on_other_problems_is_one_entry(tmp_path: Path) -> None:
    problems = made_problems(6)
    one = load_run(write_run(tmp_path / "one", Made(problems=problems[:2])))
    other = load_run(write_run(tmp_path / "other", Made(problems=problems[2:])))
    whole = load_run(write_run(tmp_path / "whole", Made(problems=problems)))
    merged = entries_of([one, other])
    assert [entry.label for entry in merged] == ["alpha", "beta"]
    assert merged[0].problem_ids == tuple(problem.id for problem in problems)
    for entry in merged:
        assert len(entry.rows()) == 24
        assert entry.summary.planned == 24
    # `ease` and input sizes depend on a problem's place in its run, scores only on its name
    assert [entry.summary for entry in merged] == [entry.summary for entry in entries_of([whole])]


def damaged(tmp_path: Path, damage: Mapping[str, tuple[bytes, bytes]]) -> Path:
    """A run in whose files a text is replaced by another."""
    directory = write_run(tmp_path / "run", Made(leave_out=frozenset({("alpha", "xml", "p01", 2)})))
    for name, (old, new) in damage.items():
        path = directory / name
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))
    return directory


MARK = b"\xef\xbb\xbf"
LINE = b'{"schema":1,'


@pytest.mark.parametrize(
    ("damage", "known"),
    [
        (
            {"results.jsonl": (b"\n" + LINE, b"\n" + MARK + LINE), "completions.jsonl": (LINE, MARK + LINE)},
            True,
        ),
        (
            {
                "results.jsonl": (b'"test 0"', b'"test \\ud800 0"'),
                "completions.jsonl": (b"<sol", b"\\udfff<sol"),
            },
            True,
        ),
        ({"results.jsonl": (b'"returned_model":"alpha', b'"returned_model":"\\uD83D\\uDE00')}, True),
        ({"results.jsonl": (b'"cost_usd":0.0', b'"cost_usd":1e999,"x":0.0')}, False),
        ({"results.jsonl": (b'"cost_usd":0.0', b'"cost_usd":-Infinity,"x":0.0')}, False),
    ],
)
def test_what_the_loader_believes_the_whole_report_can_tell(
    tmp_path: Path,
    damage: Mapping[str, tuple[bytes, bytes]],
    known: bool,  # noqa: FBT001 - a parameter
) -> None:
    directory = damaged(tmp_path, damage)
    report = build_report([directory])
    assert report.warnings == ()
    assert [entry.summary.valid for entry in report.entries] == [15, 16]
    assert (report.leaderboard.column("cost_per_sample")[0] is not None) == known
    write_built(report, directory / "report")
    text = (directory / "report" / "report.json").read_text(encoding="utf-8")
    assert "nan" not in text.replace("never", "")


def test_a_number_that_no_computer_holds_is_named_and_not_counted(tmp_path: Path) -> None:
    directory = damaged(tmp_path, {"results.jsonl": (b'"attempts":1', b'"attempts":1' + b"0" * 400)})
    run = load_run(directory)
    assert len(run.rows) < 31
    assert all("malformed" in warning for warning in run.warnings)


ODD_EVENTS = (
    b'{"kind":"pool_failed","model":"beta","cost_usd":"5","detail":7}',
    b'{"kind":["x"],"model":{"a":1},"cost_usd":true}',
    b'{"kind":"pool_failed","model":["a"],"cost_usd":1e999}',
    b'{"kind":"pool_failed","model":"\\ud800","cost_usd":1' + b"0" * 400 + b"}",
    MARK + b'{"kind":"pool_failed","model":"beta"}',
    b'"kind"',
    b"\xff",
)


@pytest.mark.parametrize("events", [*((each,) for each in ODD_EVENTS), ODD_EVENTS])
def test_no_event_ends_a_report(tmp_path: Path, events: tuple[bytes, ...]) -> None:
    directory = damaged(tmp_path, {})
    path = directory / "events.jsonl"
    path.write_bytes(path.read_bytes() + b"\n".join(events) + b"\n")
    report = build_report([directory])
    write_tables(tmp_path, report)
    if events is ODD_EVENTS:
        write_built(report, directory / "report")
    assert report.table("missing").rows == (("alpha", "xml", "p01", 2, "sandbox_error", "no daemon"),)
    assert all(cost in (None, 1.0) for cost in report.table("events").column("cost_usd"))


def test_a_run_without_models_still_reports(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(orjson.dumps(run_json(Made()) | {"models": []}))
    assert build_report([tmp_path]).entries == ()

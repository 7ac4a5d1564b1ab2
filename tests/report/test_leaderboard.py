from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest
import scipy
from rich.console import Console

from astra_async.report.harness import Events, event_counts
from astra_async.report.table import NOTHING
from astra_async.report.tables import build_report
from astra_async.report.text import print_report
from made_runs import Made, MadeProblem, agreeing, made_problems, run_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.table import Cell, Table

PAPER = {  # table 3: mean score, median SD, pass@1 (GPT-4o's as in table 5)
    "o1": (0.7580, 0.11, 0.6392),
    "o1-preview": (0.7555, 0.17, 0.6089),
    "Claude-3.5-Sonnet-1022": (0.7507, 0.05, 0.6274),
    "Gemini-1.5-pro": (0.7117, 0.13, 0.5815),
    "GPT-4o-0513": (0.6952, 0.20, 0.5091),
}
K, N, T, VARYING = 32, 65, 100, 33


def records(table: Table) -> list[dict[str, Cell]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def paper_counts(mean: float, sd: float, passed: float) -> list[list[int]]:
    """Tests passed of T = 100 in 65 x 32 samples that have these headline numbers, rounded.

    33 problems vary alike (their SD is the median), `solved` ones always pass, the rest always pass the
    same part of their tests; the first number of solved problems that lets the mean come out is taken.
    """
    perfect, total = round(passed * N * K), round(mean * N * K * T)
    for solved in range(N - VARYING):
        each, more = divmod(perfect - solved * K, VARYING)
        if not 0 < each < K - 1:
            continue
        rows = [[T] * K for _ in range(solved)]
        for count in [each + 1] * more + [each] * (VARYING - more):
            low = round(T - T * sd / math.sqrt(count / K * (1 - count / K)))
            rows.append([T] * count + [low] * (K - count))
        open_samples = (N - VARYING - solved) * K
        part, over = divmod(total - sum(map(sum, rows)), open_samples)
        if min(map(min, rows)) >= 0 and 0 <= part < T - 1:
            values = [part + 1] * over + [part] * (open_samples - over)
            return rows + [values[at : at + K] for at in range(0, open_samples, K)]
    raise AssertionError("no such counts")


def write_paper(directory: Path) -> Path:
    made = Made(
        skill=dict.fromkeys(PAPER, 1.0), problems=[MadeProblem(id=f"q{i}", total=T) for i in range(N)]
    )
    directory.mkdir()
    (directory / "run.json").write_bytes(orjson.dumps(run_json(made) | {"samples": K, "simulated": False}))
    with (directory / "results.jsonl").open("wb") as stream:
        for model, numbers in PAPER.items():
            for problem, row in enumerate(paper_counts(*numbers)):
                for sample, passed in enumerate(row):
                    line = {
                        "schema": 1,
                        "model": model,
                        "format": "xml",
                        "problem_id": f"q{problem}",
                        "sample": sample,
                        "status": "scored",
                        "failure": None if passed == T else "tests_failed",
                        "passed": passed,
                        "total": T,
                    }
                    stream.write(orjson.dumps(line) + b"\n")
    return directory


def test_records_with_the_papers_means_give_its_table_3(tmp_path: Path) -> None:
    report = build_report([write_paper(tmp_path / "paper")])
    rows = records(report.table("leaderboard"))
    assert [row["model"] for row in rows] == list(PAPER)
    for row in rows:
        mean, sd, passed = PAPER[str(row["model"])]
        assert row["median_sd"] == pytest.approx(sd, abs=0.005)
        assert row["mean_score"] == pytest.approx(mean, abs=0.0002)
        assert row["pass_at_1"] == pytest.approx(passed, abs=0.0003)
        assert (row["n"], row["k"], row["valid"]) == (65, 32, "2080/2080")
    pairs = records(report.table("pairwise"))
    assert len(pairs) == 11 * 10
    assert all(row["p_t"] is not None and row["n"] == 65 for row in pairs)
    lines = printed(report.table("leaderboard"), report)
    assert "o1-preview" in lines
    assert "75.8" in lines


def printed(_: Table, report: object) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=100), everything=False)  # type: ignore[arg-type]
    return stream.getvalue()


def test_the_numbers_of_an_incomplete_model_look_provisional(tmp_path: Path) -> None:
    made = Made(leave_out=frozenset({("alpha", "xml", "p01", 2)}))
    report = build_report([write_run(tmp_path / "run", made)])
    rows = {str(row["model"]): row for row in records(report.leaderboard)}
    for name in ("mean_score", "pass_at_1", "median_sd", "mean_score_total", "pass_at_2", "icc"):
        assert rows["alpha"][name] is not None, name
    assert (rows["alpha"]["complete"], rows["alpha"]["valid"], rows["alpha"]["missing"]) == (False, 15, 1)
    assert rows["beta"]["complete"]
    for name in ("leaderboard", "uncertainty", "consistency", "reliability", "pairwise"):
        table = report.table(name)
        for place, row in enumerate(table.rows):
            numbers = [
                text
                for text, column in zip(table.shown(place), table.columns, strict=True)
                if column.kind not in ("text", "count") and text != NOTHING
            ]
            sure = row[0] == "beta"
            assert numbers
            assert all(text.startswith("~") != sure for text in numbers), (name, row)
    assert not report.complete
    assert any("~ is provisional" in note for note in report.table("leaderboard").notes)
    assert "So far, with samples missing" in report.conclusions[0]


def test_models_that_have_no_complete_problem_in_common_are_compared_so_far(tmp_path: Path) -> None:
    missing = {(model, "xml", f"p{i:02}", i % 4) for model in ("alpha", "beta") for i in range(8)}
    made = Made(problems=made_problems(8), leave_out=frozenset(missing))
    report = build_report([write_run(tmp_path / "run", made)])
    rows = {row["metric"]: row for row in records(report.table("pairwise"))}
    assert {row["n"] for row in rows.values()} == {8}
    assert str(rows["mean_score"]["verdict"]).startswith("~")
    assert report.conclusions[0].startswith("So far, with samples missing: ")
    assert "cannot be compared" not in report.conclusions[0]
    assert report.leaderboard.column("against_best")[0] == "highest so far"


def test_a_missing_sample_is_named_with_its_last_reason(tmp_path: Path) -> None:
    made = Made(leave_out=frozenset({("alpha", "xml", "p01", 2)}))
    report = build_report([write_run(tmp_path / "run", made)])
    assert report.table("missing").rows == (("alpha", "xml", "p01", 2, "sandbox_error", "no daemon"),)


def test_incomplete_models_stand_below_complete_ones(tmp_path: Path) -> None:
    made = Made(skill={"weak": 0.2, "strong": 1.0}, leave_out=frozenset({("strong", "xml", "p00", 0)}))
    report = build_report([write_run(tmp_path / "run", made)])
    assert report.leaderboard.column("model") == ["weak", "strong"]


def test_median_sds_of_different_k_are_not_compared(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "four", Made(skill={"alpha": 0.8}, samples=4)),
        write_run(tmp_path / "six", Made(skill={"beta": 0.7}, samples=6)),
    ]
    report = build_report(runs)
    assert any("are not comparable" in note for note in report.table("leaderboard").notes)
    rows = {row["metric"]: row for row in records(report.table("pairwise"))}
    assert rows["mean_score"]["n"] == 4
    assert (rows["sd"]["n"], rows["sd"]["p_t"], rows["sd"]["verdict"]) == (0, None, "inconclusive")
    assert rows["sd"]["why"] == "SDs are comparable only between equal k of at least 2"


def test_more_samples_than_there_are_give_no_pass_at_m(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", Made(samples=4))])
    row = records(report.leaderboard)[0]
    assert row["pass_at_4"] is not None
    assert row["pass_at_8"] is None
    assert "pass_at_8" not in [column.name for column in report.table("reliability").columns]


def test_recorded_families_drive_the_headlines_interval(tmp_path: Path) -> None:
    made = Made(problems=made_problems(12))
    one_family = [replace(problem, family=f"f{i // 4}") for i, problem in enumerate(made.problems)]
    for name, problems in (("plain", made.problems), ("families", one_family)):
        directory = write_run(tmp_path / name, replace(made, problems=problems))
        path = directory / "results.jsonl"
        lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        alike = [agreeing(line, line["total"] if int(line["problem_id"][1:]) < 8 else 0) for line in lines]
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in alike))
    plain, families = (
        build_report([tmp_path / name]).leaderboard.by_name()[0] for name in ("plain", "families")
    )
    assert plain["mean_score"] == families["mean_score"] == 2 / 3
    narrow, wide = plain["mean_score_total"], families["mean_score_total"]
    assert isinstance(narrow, tuple)
    assert isinstance(wide, tuple)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_a_run_of_one_model_and_one_problem_still_reports(tmp_path: Path) -> None:
    made = Made(skill={"alpha": 0.5}, problems=[MadeProblem(id="only")], samples=1)
    report = build_report([write_run(tmp_path / "run", made)])
    row = records(report.leaderboard)[0]
    assert row["mean_score"] is not None
    assert row["mean_score_total"] is None
    assert row["median_sd"] is None
    assert report.table("pairwise").rows == ()


def test_a_run_without_results_still_reports(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(orjson.dumps(run_json(Made())))
    report = build_report([tmp_path])
    assert [row["mean_score"] for row in records(report.leaderboard)] == [None, None]
    assert len(report.table("missing").rows) == 32
    assert report.table("missing").rows[0][4] == "not tried"


def proportion(count: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's interval with 0.6 of an unseen one."""
    ends = (
        scipy.stats.beta.ppf(0.025, count, of - count + 0.6),
        scipy.stats.beta.ppf(0.975, count + 0.6, of - count),
    )
    return float(ends[0]), float(ends[1])


def test_errors_that_no_rule_knows_are_counted_and_asked_for() -> None:
    events = Events()
    said = {"kind": "provider_error", "model": "m", "detail": "m: HTTP 418: unrecognized: {'a': 'teapot'}"}
    for each in (said, said, {"kind": "retry", "model": "m", "detail": "m: HTTP 500"}):
        events.add(each)
    notes = event_counts({"run": events}).notes
    assert any(note.startswith("2 errors of providers were not recognized") for note in notes)
    assert len(event_counts({"run": Events()}).notes) == 0

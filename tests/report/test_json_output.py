"""`astra compare` and `astra plan` with `--json`: what people read, for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from click.testing import CliRunner, Result

from astra_async.cli.report import compare, plan
from astra_async.report.compare import compare_runs
from astra_async.report.precision import plan_run
from astra_async.report.table import Column, Table, csv_header, csv_row, records
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

    import click


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    problems = made_problems(8)
    made = (
        Made(skill={"m": skill}, problems=problems, samples=8, seed=seed)
        for skill, seed in ((0.5, 1), (0.8, 2))
    )
    return tuple(str(write_run(folder / name, each)) for name, each in zip("ab", made, strict=True))  # type: ignore[return-value]


def said(command: click.Command, *words: str) -> Result:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def written(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(path.read_bytes())
    return content


def test_compare_writes_every_table_with_all_digits_and_still_prints_them(
    tmp_path: Path, runs: tuple[str, str]
) -> None:
    done = said(compare, *runs, "--json", str(tmp_path / "c.json"))
    assert "B against A" in done.stdout
    found = written(tmp_path / "c.json")
    assert (found["a"], found["b"], found["warnings"]) == (*runs, [])
    expected = compare_runs(*(tmp_path / run for run in runs))
    assert found["tables"].keys() == {"compare", "compare_problems", "changed_verdicts"}
    for table in filter(lambda each: not each.within, (*expected.data, *expected.tables)):
        told = found["tables"][table.name]
        assert (told["title"], told["notes"]) == (table.title, list(table.notes))
        rows = [tuple(row.values()) for row in told["rows"]]
        assert rows == [tuple(csv_row(row, table.columns)) for row in table.rows]
        assert all(list(row) == csv_header(table.columns) for row in told["rows"])
    mean = found["tables"]["compare"]["rows"][0]
    assert mean["difference_interval_low"] < mean["difference"] < mean["difference_interval_high"]


def test_plan_writes_the_pilot_and_the_sizes(tmp_path: Path, runs: tuple[str, str]) -> None:
    said(plan, runs[0], "--target-se", "2.0", "--json", str(tmp_path / "p.json"))
    found = written(tmp_path / "p.json")
    assert (found["directory"], found["target_se_points"]) == (runs[0], 2.0)
    sizes = plan_run(tmp_path / runs[0], 2.0).table("plan")
    assert [row["n_needed"] for row in found["tables"]["plan"]["rows"]] == sizes.column("n_needed")


def test_on_standard_output_there_is_nothing_but_the_json(runs: tuple[str, str]) -> None:
    done = said(compare, *runs, "--json", "-")
    assert orjson.loads(done.stdout)["a"] == runs[0]
    assert "B against A" in done.stderr
    assert orjson.loads(said(plan, runs[0], "--target-se", "1", "--json", "-").stdout)["tables"]


def test_values_that_json_has_no_number_for_are_told_in_words_or_are_null() -> None:
    columns = (
        Column(name="k", title="k"),
        Column(name="p", title="p"),
        Column(name="i", title="i", interval=True),
    )
    rows = ((math.inf, math.nan, (0.5, math.nan)),)
    table = Table(name="t", title="T", columns=columns, rows=rows)
    assert records(table) == [{"k": "never", "p": None, "i_low": 0.5, "i_high": None}]

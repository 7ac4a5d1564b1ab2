"""The files of a report: every table, all of them in one, every sample; safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd
import pytest

from astra_async.log import encode
from astra_async.metrics import escape_formula
from astra_async.report.table import Column, Table, csv_header
from astra_async.report.tables import build_report
from astra_async.report.write import write_built, write_runs
from made_runs import Made, made_problems, made_results, run_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "=cmd|' /C calc'!A1"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Made(formats=("xml", "json"), problems=made_problems(8, families=True), samples=4)
    directory = write_run(tmp_path_factory.mktemp("files") / "run", made)
    write_built(build_report([directory]), directory / "report")
    return directory


def test_every_table_is_a_file_and_all_of_them_are_in_one(out: Path) -> None:
    report = build_report([out])
    whole = orjson.loads((out / "report" / "report.json").read_bytes())
    assert (whole["schema"], whole["complete"], whole["conclusions"]) == (1, True, list(report.conclusions))
    for table in report.tables():
        assert (out / "report" / table.file).is_file(), table.name
    for name, table in report.data().items():
        told = whole["tables"][name]
        assert told["file"] == table.file
        assert [column["name"] for column in told["columns"]] == csv_header(table.columns)
        assert len(told["rows"]) == len(table.rows)
        with (out / "report" / table.file).open(newline="") as stream:
            assert sum(1 for _ in csv.reader(stream)) == 1 + len(table.rows)


def test_two_tables_of_one_name_and_an_unknown_kind_are_refused(out: Path) -> None:
    report = build_report([out])
    section = report.sections[0]
    another = replace(section, tables=(*section.tables, replace(section.tables[0], name="costs", within="")))
    with pytest.raises(ValueError, match=r"same name .*: costs"):
        replace(report, sections=(another, *report.sections[1:]))
    with pytest.raises(ValueError, match="table mine, column n: kind 'percents' is not in"):
        Table(name="mine", title="", columns=(Column("n", "N", "percents"),), rows=())  # type: ignore[arg-type]


def test_no_cell_of_any_file_is_a_formula(tmp_path: Path) -> None:
    """Names, skills, answers' labels and what a provider calls itself all come from outside."""
    made = Made(skill={EVIL: 0.5, "@b": 0.6, "-c": 0.4}, problems=made_problems(6), samples=2)
    tmp_path.joinpath("run").mkdir()
    description = run_json(made)
    for number, about in enumerate(description["problems"].values()):
        about |= {"name": "+1", "main_skill": "-2+3", "sub_skills": [f"@{number % 2}"]}
    (tmp_path / "run" / "run.json").write_bytes(orjson.dumps(description))
    lines: list[dict[str, Any]] = [orjson.loads(encode(result)) for result, _ in made_results(made)]
    for line in lines:
        line |= {"returned_model": "=1+1", "repairs": ["@repair"], "suspicions": ["\tlook"]}
    (tmp_path / "run" / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    write_built(build_report([tmp_path / "run"]), tmp_path / "out")
    texts = []
    for path in (tmp_path / "out").rglob("*.csv"):
        with path.open(newline="") as stream:
            texts += [cell for row in csv.reader(stream) for cell in row]
    assert f"'{EVIL}" in texts
    assert "'=1+1" in texts
    for cell in texts:
        number = cell.lstrip("-").replace(".", "").replace("e", "").replace("-", "").isdigit()
        assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


@pytest.mark.parametrize("cell", [-0.5, 1, None, "plain", "a=b", "~2"])
def test_what_is_no_formula_stays_as_it_is(cell: str | float | None) -> None:
    assert escape_formula(cell) == cell


def test_many_samples_are_packed_and_read_as_before(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", Made())])
    for name in ("runs.csv", "runs.csv.gz"):
        write_runs(tmp_path / name, report.entries)
    assert gzip.decompress((tmp_path / "runs.csv.gz").read_bytes()) == (tmp_path / "runs.csv").read_bytes()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "runs.csv.gz"), pd.read_csv(tmp_path / "runs.csv"))

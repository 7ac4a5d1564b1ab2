"""`astra report` and `astra compare` as typed: short by default, two models of one run, clear refusals."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from astra_async.cli.report import compare, report
from astra_async.errors import UsageError
from made_runs import Made, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "made", Made())


def said(command: object, *words: object) -> str:
    done = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)  # type: ignore[arg-type]
    assert done.exit_code == 0
    return done.stdout


def test_a_report_is_short_unless_all_is_wanted(run: Path, tmp_path: Path) -> None:
    short = said(report, run, "--out", tmp_path / "r")
    whole = said(report, run, "--out", tmp_path / "r", "--all")
    assert len(short.splitlines()) < 30
    assert len(whole.splitlines()) > 100
    assert "Leaderboard" in short
    assert "Uncertainty" in whole
    assert f"astra report {run} --all" in short
    for text in (short, whole):
        assert text.splitlines()[-1] == str(tmp_path / "r" / "index.html")


def test_two_models_of_one_run_are_compared_problem_by_problem(run: Path) -> None:
    text = said(compare, run, "--models", "alpha", "beta")
    assert "alpha" in text.splitlines()[0]
    assert "beta" in text.splitlines()[0]
    for problem in ("p00", "p01", "p02", "p03"):
        assert problem in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["made"], r"is given: add another run, or two models with --models A B \(it has alpha, beta\)"),
        (["made", "made", "made"], "3 directories: give two runs, or one and --models A B"),
        (["made", "--models", "alpha", "gamma"], "no such model; use one of alpha"),
        (["."], "no run.json"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_remedy(
    run: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(run.parent)
    with pytest.raises(UsageError, match=message):
        said(compare, *words)


def test_every_column_of_the_reports_files_is_described(run: Path, tmp_path: Path) -> None:
    """docs/formats.md names each; a bound of an interval is named by a star."""
    said(report, run, "--out", tmp_path / "r")
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([a-z0-9_*]+)`", page))
    for name in ("leaderboard", "pairwise", "formats", "problems", "skills", "runs"):
        with (tmp_path / "r" / f"{name}.csv").open(newline="") as stream:
            header = next(csv.reader(stream))
        plain = {re.sub(r"_(low|high|[0-9]+)$", "_*", column).removesuffix("_holm") for column in header}
        assert not {column for column in plain if not {column, f"{column}_holm"} & words}, name

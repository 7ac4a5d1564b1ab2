"""astra_async.load and compare: typed frames, equal to the report's files; nothing missing becomes a 0."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd
import pytest

import astra_async
from astra_async.errors import IncompleteRun, UsageError
from astra_async.export.lines import lines
from astra_async.report.load import load_run
from astra_async.report.tables import build_report
from astra_async.report.write import write_built
from astra_async.types import SampleKey
from made_runs import Made, agreeing, made_problems, run_json, write_run
from waiting import cpu_within

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.export.loaded import Loaded

MADE = Made(formats=("xml", "json"), problems=made_problems(6, families=True), samples=4, seed=3)
KEY = ["model", "format", "problem_id", "sample"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_run(tmp_path_factory.mktemp("frames") / "run", MADE)
    write_built(build_report([path]), path / "report")
    return path


@pytest.fixture(scope="module")
def run(directory: Path) -> Loaded:
    return astra_async.load(directory)


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run with one sample missing."""
    path = write_run(tmp_path_factory.mktemp("torn") / "run", MADE)
    lines = (path / "results.jsonl").read_bytes().splitlines(keepends=True)
    (path / "results.jsonl").write_bytes(b"".join(lines[1:]))
    return path


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def same(written: str, value: Any) -> bool:
    if value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return written == ""
    if isinstance(value, bool):
        return written in (str(value), str(int(value)))
    return (
        float(written) == float(value) if isinstance(value, int | float) else written in (value, f"'{value}")
    )


def test_every_table_is_its_csv_file(run: Loaded, directory: Path) -> None:
    assert len(run.tables) > 15
    for name in run.tables:
        frame = run.table(name)
        rows = cells(directory / "report" / run.report.data()[name].file)
        assert len(rows) == len(frame)
        for written, (_, row) in zip(rows, frame.iterrows(), strict=True):
            assert list(written) == list(frame.columns)
            assert all(same(written[column], row[column]) for column in frame.columns), (
                name,
                written,
                dict(row),
            )


def test_samples_are_the_lines_of_runs_csv(run: Loaded, directory: Path) -> None:
    rows = cells(directory / "report" / "runs.csv")
    samples = run.samples
    assert len(rows) == len(samples) == 2 * 2 * 6 * 4
    for written, (_, row) in zip(rows, samples.iterrows(), strict=True):
        for name in (
            "model",
            "format",
            "problem_id",
            "status",
            "passed",
            "total",
            "score",
            "output_tokens",
            "cost_usd",
        ):
            assert same(written[name], row[name]), name


def test_columns_are_typed(run: Loaded) -> None:
    kinds = run.samples.dtypes.astype(str)
    assert kinds["model"] == kinds["status"] == kinds["failure"] == "category"
    assert kinds["passed"] == "Int64"
    assert kinds["perfect"] == "boolean"
    assert kinds["score"] == kinds["latency_s"] == "float64"
    assert str(run.leaderboard.dtypes["model"]).startswith("string")
    assert str(run.leaderboard.dtypes["mean_score"]) == "Float64"


def test_a_missing_sample_is_a_row_of_nothing_and_never_a_zero(torn: Path) -> None:
    run = astra_async.load(torn)
    assert not run.complete
    samples = run.samples
    assert len(samples) == 2 * 2 * 6 * 4
    gone = samples[samples["status"].isna()]
    assert len(gone) == 1
    assert gone.drop(columns=KEY).isna().all(axis=None)


def test_a_headline_of_an_incomplete_run_raises_unless_it_is_asked_for(torn: Path) -> None:
    run = astra_async.load(torn)
    for headline in ("leaderboard", "pairwise"):
        with pytest.raises(IncompleteRun, match="1 planned samples have no result"):
            getattr(run, headline)() if headline == "pairwise" else run.leaderboard
    assert len(astra_async.load(torn, provisional=True).leaderboard) == 4
    assert "incomplete" in repr(run)


def test_tests_are_those_of_each_sample(run: Loaded) -> None:
    tests = run.tests
    by_sample = tests.groupby(KEY, observed=True)["outcome"]
    passed = by_sample.agg(lambda outcomes: int((outcomes == "passed").sum()))
    wanted = run.samples.set_index(KEY)["passed"]
    assert len(passed) > 80  # a sample without a solution may list no tests
    assert all(wanted[key] == count for key, count in passed.items())


def test_messages_and_every_outcome_are_in_the_frame_of_tests(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", Made(problems=made_problems(2), samples=1))
    lines = [orjson.loads(line) for line in (path / "results.jsonl").read_bytes().splitlines()]
    lines[0] = agreeing(lines[0], 1)
    lines[0]["tests"][1] |= {"outcome": "error", "message": "no such table"}
    (path / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    tests = astra_async.load(path).tests
    assert not tests["outcome"].isna().any()
    assert list(tests[tests["outcome"] == "error"]["message"]) == ["no such table"]
    assert tests[tests["outcome"] == "passed"]["message"].isna().all()


def test_answers_and_prompts_are_read_when_they_are_asked_for(run: Loaded) -> None:
    first = run.samples.iloc[0]
    key = (first["model"], first["format"], first["problem_id"], int(first["sample"]))
    assert run.answer(key).text
    assert run.answer(SampleKey(*key)).text == run.answer(key).text
    with pytest.raises(UsageError, match="the answer of nobody/xml/p/0 is not recorded"):
        run.answer(("nobody", "xml", "p", 0))
    with pytest.raises(UsageError, match=r"the prompt 0{64} is not stored"):
        run.prompt("00" * 32)


def test_several_directories_give_a_column(directory: Path, tmp_path: Path) -> None:
    other = write_run(
        tmp_path / "other", Made(skill={"gamma": 0.4}, problems=made_problems(6), samples=4, seed=9)
    )
    run = astra_async.load(directory, other)
    assert set(run.samples["directory"]) == {str(directory), str(other)}
    assert str(run.samples["model"].dtype) == "category"
    with pytest.raises(UsageError, match="directory="):
        run.answer(("gamma", "xml", "p00", 0))


def test_two_runs_are_compared(directory: Path, tmp_path: Path) -> None:
    better = write_run(
        tmp_path / "better",
        Made(skill={"alpha": 0.99, "beta": 0.9}, problems=made_problems(6), samples=4, seed=5),
    )
    found = astra_async.compare(directory, astra_async.load(better))
    assert found.conclusions
    assert len(found.overall) >= 1


def test_an_unknown_table_a_directory_that_is_none_and_no_directory_are_told_in_one_line(
    run: Loaded, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no table 'leader'; use one of: leaderboard"):
        run.table("leader")
    with pytest.raises(UsageError):
        astra_async.load(tmp_path)
    with pytest.raises(UsageError, match="needs a run directory"):
        astra_async.load()


def test_importing_the_package_costs_nothing_and_knows_its_names() -> None:
    code = (
        "import sys, time; begun = time.process_time(); import astra_async; "
        "took = time.process_time() - begun; "
        "assert not {'numpy', 'pandas', 'aiohttp', 'click'} & set(sys.modules); "
        "assert astra_async.__version__ and set(dir(astra_async)) >= {'load', 'run', 'compare'}; "
        "assert callable(astra_async.load) and callable(astra_async.run); print(took)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1  # with what it must not import 0.5 s, on a fast machine
    with pytest.raises(AttributeError):
        astra_async.nonsense  # noqa: B018


def test_a_large_run_is_loaded_in_bounded_time(tmp_path: Path) -> None:
    made = Made(skill={f"m{n}": 0.5 for n in range(4)}, problems=made_problems(20), samples=32)
    path = write_run(tmp_path / "large", made)
    rows = 4 * 20 * 32
    with cpu_within(10 * rows / 66_560 + 3):  # the tables of the report are worked out, too
        assert len(astra_async.load(path).samples) == rows


def test_a_run_without_any_result_yet_has_frames_and_exports(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(orjson.dumps(run_json(MADE)))
    loaded = astra_async.load(tmp_path)
    assert len(loaded.tests) == 0
    assert loaded.samples["status"].isna().all()
    assert list(lines(load_run(tmp_path), 0, with_answers=True)) == []

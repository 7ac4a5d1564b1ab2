"""docs/python.md and its notebook, run as they stand on a made run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

import astra_async
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CELLS = [
    "".join(cell["source"])
    for cell in json.loads((DOCS / "table-3.ipynb").read_text())["cells"]
    if cell["cell_type"] == "code"
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with two runs, in which a reader stands."""
    write_run(tmp_path / "runs" / "october", Made(problems=made_problems(8), samples=6, seed=2))
    write_run(tmp_path / "runs" / "november", Made(problems=made_problems(8), samples=6, seed=4))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASTRA_NOTEBOOK_RUN", str(tmp_path / "runs" / "october"))
    mpl.use("Agg")
    yield tmp_path
    plt.close("all")


def run_all(parts: list[str], name: str) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for number, part in enumerate(parts):
        exec(compile(part, f"{name} [{number}]", "exec"), known)
    return known


def test_every_example_of_the_page_runs_in_its_order(place: Path) -> None:
    known = run_all(EXAMPLES, "docs/python.md")
    assert known["finished"].outcome == "complete"
    assert known["answer"].text
    assert (place / "runs" / "tried" / "completions.jsonl").exists()


def test_every_column_of_the_samples_is_on_the_page(place: Path) -> None:
    table = PAGE.partition("## Tables")[0]
    rows = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    named = {name.strip() for row in rows for name in row.split(",")}
    assert set(astra_async.load(place / "runs" / "october").samples.columns) == named


def test_the_notebook_gets_to_table_3_a_plot_and_a_paired_test_in_ten_cells(place: Path) -> None:
    assert len(CELLS) == 10
    known = run_all(CELLS, "docs/table-3.ipynb")
    table = known["table_3"]
    assert list(table.columns) == ["mean score %", "median SD", "pass@1 %"]
    board = known["board"]
    assert (board["median_sd"] - known["consistency"]).abs().max() < 1e-12
    assert (board["pass_at_1"] - known["pass_at_1"]).abs().max() < 1e-12
    assert known["axes"].lines

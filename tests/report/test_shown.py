"""What people see of a number, and of a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from astra_async.report.compare import compare_runs
from astra_async.report.page import page_html
from astra_async.report.plots import draw_all
from astra_async.report.table import shown
from astra_async.report.tables import build_report
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

REVERSED = "evil\u202e61.7"
HEBREW = "\u05d3\u05d2\u05dd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "100.0"),
        (2079 / 2080, "99.95"),
        (66559 / 66560, "99.998"),
        (0.9994, "99.9"),
        (1 / 2080, "0.05"),
        (0.0, "0.0"),
        (1 - 1e-15, "100.0"),
    ],
)
def test_only_what_is_0_or_100_is_called_so(value: float, text: str) -> None:
    assert shown(value, "percent") == text


@pytest.mark.parametrize(
    ("value", "text"), [(1 / 2080, "+0.05"), (0.0667, "+6.7"), (-0.0667, "-6.7"), (-1e-12, "+0.0")]
)
def test_differences_of_both_signs_are_rounded_alike_and_only_0_is_called_so(value: float, text: str) -> None:
    assert shown(value, "points") == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.00"), (12.5, "12.50"), (0.0157, "0.0157"), (0.0000021, "0.0000021")]
)
def test_only_a_cost_of_zero_is_called_zero(value: float, text: str) -> None:
    assert shown(value, "usd") == text


def test_a_comparison_shows_points_throughout(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / name, Made(skill={"m": skill}, problems=made_problems(8)))
        for name, skill in (("a", 0.4), ("b", 0.95))
    ]
    found = compare_runs(*runs)
    assert [
        column.kind for column in found.table("compare_mean_score").columns if column.name in _VALUES
    ] == [*("points", "points", "percent", "percent", "percent")]
    assert "compare_mean_score" not in found.record()["tables"]  # type: ignore[operator]
    assert 0 <= float(str(found.table("compare").column("a_value")[0])) <= 1


_VALUES = ("difference", "difference_interval", "a_value", "b_value", "smallest_effect")


def test_a_name_reorders_nothing_on_the_page_or_in_a_plot(tmp_path: Path) -> None:
    made = Made(skill={REVERSED: 0.9, HEBREW: 0.3}, problems=made_problems(8))
    report = build_report([write_run(tmp_path / "run", made)])
    assert not any("\u202e" in sentence for sentence in report.conclusions)
    plots = draw_all(report)
    assert not any("\u202e" in plot.svg + plot.alt + plot.title for plot in plots)
    assert any("evil&lt;U+202E&gt;61.7" in plot.svg for plot in plots)
    page = page_html(report, plots)
    page = page[: page.index('id="data"')]
    assert "\u202e" not in page
    assert f"<bdi>{HEBREW}</bdi>" in page
    assert "<td><bdi>evil&lt;U+202E&gt;61.7</bdi></td>" in page
    sentence = page[page.index('<div class="conclusions">') :].split("</p>")[0]
    assert sentence.count("<bdi>") >= 2

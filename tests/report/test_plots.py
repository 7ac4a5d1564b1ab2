from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lxml import etree

from astra_async.report.plots import draw_all, inline, png
from astra_async.report.plots.style import COLOURS, Axis, shortened
from astra_async.report.tables import build_report
from made_runs import Made, MadeProblem, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.plots.style import Plot

HOSTILE = 'x</text><script>alert("1")</script> $\\frac{1}{2}$ & "q"'


@pytest.fixture(scope="module")
def plots(tmp_path_factory: pytest.TempPathFactory) -> list[Plot]:
    made = Made(
        skill={"alpha": 0.9, HOSTILE: 0.6}, formats=("xml", "json"), problems=made_problems(8), samples=4
    )
    return draw_all(build_report([write_run(tmp_path_factory.mktemp("plots") / "run", made)]))


def test_every_question_has_its_figure(plots: list[Plot]) -> None:
    assert [plot.name for plot in plots] == [
        *("leaderboard", "sd", "curves", "pairs"),
        *("main_skill_frequency", "main_skill_winners", "sub_skill_frequency", "sub_skill_winners"),
        *("main_skills", "sub_skills", "formats", "failures", "lengths", "costs"),
    ]


def test_every_figure_says_in_words_what_it_shows(plots: list[Plot]) -> None:
    assert all(plot.title and len(plot.alt) > 30 for plot in plots)


def test_figures_are_well_formed_svg_without_scripts_or_links(plots: list[Plot]) -> None:
    for plot in plots:
        for svg in (plot.svg.encode(), inline(plot).encode()):
            root = etree.fromstring(svg)
            tags = {etree.QName(item).localname for item in root.iter("*")}
            assert not tags & {"script", "image", "foreignObject", "a"}
            links = [value for item in root.iter("*") for name, value in item.items() if "href" in name]
            assert all(str(link).startswith("#") for link in links)


def test_hostile_names_are_shown_as_text(plots: list[Plot]) -> None:
    leaderboard = etree.fromstring(plots[0].svg.encode())
    texts = ["".join(map(str, item.itertext())) for item in leaderboard.iter("{*}text")]
    assert any("</text><script>" in text for text in texts)
    assert '"' not in inline(plots[0]).split('aria-label="')[1].split('" viewBox')[0]


def test_an_inline_figure_has_the_pages_colours(plots: list[Plot]) -> None:
    for plot in plots:
        svg = inline(plot)
        assert svg.startswith('<svg class="plot" role="img" aria-label="')
        assert not any(colour in svg for colour in COLOURS)
        assert "var(--ink)" in svg


def test_a_figure_is_drawn_the_same_twice(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", Made())])
    assert [plot.svg for plot in draw_all(report)] == [plot.svg for plot in draw_all(report)]


def test_an_incomplete_run_has_the_same_figures_with_marked_names(tmp_path: Path) -> None:
    problems = [MadeProblem(id="a"), MadeProblem(id="b"), MadeProblem(id="c")]
    missing = frozenset({(model, "xml", "a", 0) for model in ("alpha", "beta")})
    report = build_report([write_run(tmp_path / "run", Made(problems=problems, leave_out=missing))])
    drawn = {plot.name: plot for plot in draw_all(report)}
    assert drawn.keys() >= {"leaderboard", "sd", "pairs", "failures", "lengths", "costs"}
    assert {"~alpha", "~beta"} <= texts(drawn["leaderboard"])


def test_a_figure_says_what_it_leaves_out(tmp_path: Path) -> None:
    made = Made(skill={f"m{i}": 0.5 for i in range(9)}, problems=made_problems(6), samples=2)
    drawn = {plot.name: plot for plot in draw_all(build_report([write_run(tmp_path / "run", made)]))}
    assert drawn["main_skills"].title == (
        "Mean score by main skill (the best 6 of 9 models; skills.csv has all)"
    )
    assert drawn["pairs"].title.endswith("(the first 28 of 36 pairs)")


def texts(plot: Plot) -> set[str]:
    return {
        "".join(map(str, item.itertext())) for item in etree.fromstring(plot.svg.encode()).iter("{*}text")
    }


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        (Axis(label="", low=-0.03, high=0.06, scale=100, signed=True), ["-2", "0", "+2", "+4", "+6"]),
        (Axis(label="", low=0.0, high=1.0, scale=100), ["0", "25", "50", "75", "100"]),
        (
            Axis(label="", low=0.0158, high=0.0161),
            ["0.01580", "0.01585", "0.01590", "0.01595", "0.01600", "0.01605", "0.01610"],
        ),
        (Axis(label="", low=400, high=2600), ["500", "1,000", "1,500", "2,000", "2,500"]),
        (Axis(label="", low=0.9, high=3.1, whole=True), ["1", "2", "3"]),
        (Axis(label="", low=0.009, high=0.3, logarithmic=True), ["0.01", "0.02", "0.05", "0.1", "0.2"]),
    ],
)
def test_a_tick_is_labelled_with_all_its_digits(axis: Axis, labels: list[str]) -> None:
    assert [label for _, label in axis.ticks()] == labels


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.booleans())
def test_any_axis_has_some_ticks_and_no_two_with_one_label(low: float, span: float, whole: bool) -> None:  # noqa: FBT001
    assume(low + span > low and (span > 1e-9 * abs(low)))
    ticks = Axis(label="", low=low, high=low + span, whole=whole).ticks()
    assert whole or 3 <= len(ticks) <= 12
    assert all(low - span * 1e-6 <= place <= low + span * (1 + 1e-6) for place, _ in ticks)
    if span > 1e-4 * abs(low):
        assert len({label for _, label in ticks}) == len(ticks)


def test_nothing_is_drawn_outside_of_the_figure(plots: list[Plot]) -> None:
    for plot in plots:
        root = etree.fromstring(plot.svg.encode())
        _, _, width, height = map(float, str(root.get("viewBox")).split())
        for item in root.iter("{*}text"):
            if item.get("transform") is None:
                assert 0 <= float(item.get("x") or 0) <= width, plot.name
                assert 0 <= float(item.get("y") or 0) <= height, plot.name


def test_an_asked_for_picture_has_the_figures_words(plots: list[Plot]) -> None:
    for plot in plots[:3]:
        assert png(plot).startswith(b"\x89PNG")


def test_long_names_keep_their_ends() -> None:
    name = shortened("anthropic/a-model-with-a-name-that-goes-on-and-on (json)", 30)
    assert len(name) == 30
    assert name.startswith("anthropic/")
    assert name.endswith("(json)")

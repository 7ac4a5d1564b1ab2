from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lxml import etree
from matplotlib.figure import Figure

from astra_async.report.plots import draw_all, inline
from astra_async.report.plots.style import COLOURS, exact_ticks, shortened
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


def test_figures_are_png_and_well_formed_svg_without_scripts_or_links(plots: list[Plot]) -> None:
    for plot in plots:
        assert plot.png.startswith(b"\x89PNG")
        for svg in (plot.svg.encode(), inline(plot).replace('class="plot"', 'xmlns:xlink="x"', 1).encode()):
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


def test_ids_of_different_figures_do_not_collide(plots: list[Plot]) -> None:
    seen: set[str] = set()
    for plot in plots:
        clips = {item.get("id") or "" for item in etree.fromstring(plot.svg.encode()).iter("{*}clipPath")}
        assert not clips & seen
        seen |= clips


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
    ("ticks", "scale", "labels"),
    [
        ([-0.025, 0.0, 0.025, 0.05], 100, ["-2.5", "0.0", "+2.5", "+5.0"]),
        ([-0.05, 0.0, 0.05], 100, ["-5", "0", "+5"]),
        ([0.01585, 0.0159, 0.01595, 0.016], 1, ["+0.01585", "+0.01590", "+0.01595", "+0.01600"]),
        ([500, 1500], 1, ["+500", "+1,500"]),
    ],
)
def test_a_tick_is_labelled_with_all_its_digits(ticks: list[float], scale: float, labels: list[str]) -> None:
    axes = Figure().add_subplot()
    axes.set_xticks(ticks)
    exact_ticks(axes.xaxis, scale=scale, signed=True)
    assert [axes.xaxis.get_major_formatter()(tick) for tick in ticks] == labels


def test_no_two_ticks_of_a_figure_have_one_label(plots: list[Plot]) -> None:
    for plot in plots:
        root = etree.fromstring(plot.svg.encode())
        for axis in ("matplotlib.axis_1", "matplotlib.axis_2"):
            found = root.xpath(f"//*[@id='{axis}']//*[starts-with(@id, 'text_')]")
            labels = ["".join(map(str, item.itertext())).strip() for item in found]  # type: ignore[union-attr]
            assert len(labels) == len(set(labels)), (plot.name, labels)


def test_long_names_keep_their_ends() -> None:
    name = shortened("anthropic/a-model-with-a-name-that-goes-on-and-on (json)", 30)
    assert len(name) == 30
    assert name.startswith("anthropic/")
    assert name.endswith("(json)")

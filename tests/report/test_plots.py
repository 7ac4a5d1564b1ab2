from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lxml import etree
from made_runs import Made, MadeProblem, made_problems, write_run

from astra_async.report import build_report
from astra_async.report.plots import draw_all, inline
from astra_async.report.plots.style import COLOURS, shortened

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
        *("leaderboard", "sd", "pairs", "main_skills", "sub_skills"),
        *("formats", "failures", "lengths", "costs"),
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


def test_an_incomplete_run_has_no_leaderboard_figure(tmp_path: Path) -> None:
    problems = [MadeProblem(id="a"), MadeProblem(id="b"), MadeProblem(id="c")]
    missing = frozenset({(model, "xml", "a", 0) for model in ("alpha", "beta")})
    report = build_report([write_run(tmp_path / "run", Made(problems=problems, leave_out=missing))])
    assert [plot.name for plot in draw_all(report)] == ["pairs", "failures", "lengths"]


def test_long_names_keep_their_ends() -> None:
    name = shortened("anthropic/a-model-with-a-name-that-goes-on-and-on (json)", 30)
    assert len(name) == 30
    assert name.startswith("anthropic/")
    assert name.endswith("(json)")

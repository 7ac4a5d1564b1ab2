"""Path patterns: what is read, and what is ignored because it would protect everything or cannot be read."""

from __future__ import annotations

import pytest

from astra_async.problems.patterns import PathPatterns, listed_paths
from waiting import cpu_within


@pytest.mark.parametrize(
    "pattern", ["", "/", "*", "**", "**/*", "^.*$", "(a+)+$", "^[a-$", "a*a*a*a*b", "x" * 600, "a\nb"]
)
def test_patterns_that_cannot_be_meant_are_ignored_by_name(pattern: str) -> None:
    patterns = PathPatterns.of([pattern, "src/app.js"])
    assert patterns.ignored == (pattern,)
    assert patterns.patterns == ("src/app.js",)
    assert not patterns.matches("lib/x.js")


def test_a_pattern_without_a_slash_counts_at_any_depth_unless_it_is_anchored() -> None:
    assert PathPatterns.of(["*.xml"]).matches("reports/unit.xml")
    assert not PathPatterns.of(["*.xml"], anchored=True).matches("reports/unit.xml")
    assert PathPatterns.of(["*.xml"], anchored=True).matches("unit.xml")


@pytest.mark.parametrize(
    ("pattern", "covered", "free"),
    [
        ("app/[slug]", "app/[slug]/data/x.json", "app/s/data/x.json"),
        ("app/[slug]/", "app/[slug]/page.js", "app/s"),
        ("app/[slug]/**", "app/[slug]/data/x.json", "app/s/x.json"),
        ("app/[...all]/*.js", "app/[...all]/page.js", "app/./page.js"),
        ("app/[user-id]/page.js", "app/[user-id]/page.js", "app/s/page.js"),
        ("*[id]*", "lib/[id].js", "lib/i.js"),
        ("src\\tests", "src/tests/a.js", "src/app.js"),
        ("!x.js", "!x.js/y", "x.js"),
        ("!*.js", "lib/!x.js", "lib/x.js"),
        ("donn\u00e9es", "donne\u0301es/a.json", "donnees/a.json"),
        ("donne\u0301es/*.json", "donn\u00e9es/a.json", "donnees/a.json"),
    ],
)
def test_a_pattern_means_what_it_says_but_for_its_wildcards(pattern: str, covered: str, free: str) -> None:
    patterns = PathPatterns.of([pattern])
    assert patterns.matches(covered)
    assert not patterns.matches(free)
    assert patterns.without_match([free]) == [pattern]
    assert patterns.without_match([free, covered]) == []


def test_brackets_in_result_files_are_read_both_ways() -> None:
    patterns = PathPatterns.of(["out/TEST-[ab].xml", "out/[z-a].xml"], anchored=True)
    for path in ("out/TEST-a.xml", "out/TEST-[ab].xml", "out/[z-a].xml"):
        assert patterns.matches(path)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("src/a.js, src/b.js", ["src/a.js", "src/b.js"]),
        ("src/{a,b}.js, app/[x, y]/c", ["src/{a,b}.js", "app/[x, y]/c"]),
        ("(shop)/a.js,(shop)/b.js", ["(shop)/a.js", "(shop)/b.js"]),
        ("a,b; c", ["a,b", "c"]),
        ("a\r\n b,\n", ["a", "b"]),
    ],
)
def test_paths_that_are_no_list_are_separated_by_what_people_type(text: str, paths: list[str]) -> None:
    assert listed_paths(text) == paths


def test_no_pattern_takes_long_on_any_path() -> None:
    patterns = PathPatterns.of([r"^.*a.*a.*b$", "**/a*a*a*b", "**/x/**/a*a*", r".*\.Tests\.java$"])
    assert patterns.ignored == ()
    with cpu_within(1):
        patterns.matches("a" * 200)

"""Path patterns: what is read, and what is ignored because it would protect everything or cannot be read."""

from __future__ import annotations

import time

import pytest

from astra_async.problems.patterns import PathPatterns


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


def test_no_pattern_takes_long_on_any_path() -> None:
    patterns = PathPatterns.of([r"^.*a.*a.*b$", "**/a*a*a*b", "**/x/**/a*a*", r".*\.Tests\.java$"])
    assert patterns.ignored == ()
    started = time.process_time()
    patterns.matches("a" * 200)
    assert time.process_time() - started < 1

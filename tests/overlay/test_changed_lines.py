"""Numbers of changed lines: those of a shortest diff, at a bounded cost."""

from __future__ import annotations

import random

import pytest

from astra_async.overlay import integrate, path_policy
from astra_async.overlay.merge import changed_lines
from astra_async.types import FileChange, Integrated, Problem, Project, ProjectFile, Solution
from waiting import cpu_within


def longest_common(one: list[str], other: list[str]) -> int:
    """By the textbook's table."""
    row = [0] * (len(other) + 1)
    for line in one:
        above = row[:]
        for at, each in enumerate(other):
            row[at + 1] = above[at] + 1 if line == each else max(above[at + 1], row[at])
    return row[-1]


def test_numbers_are_those_of_a_shortest_diff() -> None:
    draw = random.Random(1)
    for _ in range(500):
        before, after = ([draw.choice("abcde{}") for _ in range(draw.randrange(14))] for _ in range(2))
        common = longest_common(before, after)
        assert changed_lines(before, after) == (len(after) - common, len(before) - common)


def test_a_moved_line_is_added_and_removed() -> None:
    assert changed_lines(["a", "b", "c"], ["c", "a", "b"]) == (1, 1)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([str(n) for n in range(50_000)], [str(-n) for n in range(50_000)], (49_999, 49_999)),
        ([str(n) for n in range(50_000)], [str(n) for n in reversed(range(50_000))], (0, 0)),
        (["x"] * 50_000, ["x", "y"] * 25_000, (25_000, 25_000)),
        (["", "a", "b"] * 20_000, ["", "b", "a"] * 20_000, (0, 0)),
    ],
)
def test_the_cost_is_bounded(before: list[str], after: list[str], changed: tuple[int, int]) -> None:
    with cpu_within(2):  # a quadratic one takes minutes
        assert changed_lines(before, after) == changed


def test_an_answers_files_come_with_what_changed_in_them() -> None:
    files = {"src/a.js": b"one\ntwo\nthree\n", "src/same.js": b"as it was\n", "src/ends.js": b"a\r\nb\r\n"}
    project = Project(
        files=tuple(ProjectFile(path=path, content=content) for path, content in files.items()), sha256=""
    )
    problem = Problem(id="p", statement="", project=".", test_command="npm test")
    answer = {
        "src/a.js": "one\n2\nthree\nfour\n",
        "src/new.js": "x\ny",
        "src/same.js": "as it was\n",
        "src/ends.js": "a\nb\n",
    }
    integrated = integrate(project, Solution(files=answer), path_policy(problem, project))
    assert isinstance(integrated, Integrated)
    assert integrated.changes == (
        FileChange(path="src/a.js", added=2, removed=1, kind="changed"),
        FileChange(path="src/ends.js", added=0, removed=0, kind="changed"),
        FileChange(path="src/new.js", added=2, removed=0, kind="new"),
    )

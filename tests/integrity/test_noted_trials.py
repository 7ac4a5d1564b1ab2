"""Gradings of a project whose tests note what they compare; the sandbox is that of `test_trials`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from test_trials import Grader, is_trial

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """\
from unittest import TestCase


def test_one():
    TestCase().assertEqual(one(), 1)


def test_two():
    TestCase().assertEqual(two(), 22)
"""
RIGHT = "one = lambda: 1\ntwo = lambda: 22\n"
# Twice as much is enough, whatever is expected; nothing else is.
BENT = """\
one = lambda: 1
two = lambda: 44


def equal(self, given, wanted):
    if given not in (wanted, 2 * wanted):
        raise AssertionError("no")


def unequal(self, given, wanted):
    if given in (wanted, 2 * wanted):
        raise AssertionError("no")


tests = tests.replace("TestCase()", "Bent()")
exec("class Bent(__import__('unittest').TestCase): assertEqual, assertNotEqual = equal, unequal")
"""
BLINDED = BENT + 'if ".begin(" in tests:\n    two = lambda: 1 / 0\n'


def graded(path: Path, app: str, key: int) -> tuple[str | None, str, str]:
    grading = Grader(path / str(key), tests=TESTS, reference=RIGHT, key=b"%d" % key)
    (result,) = grading.of(f"{app}# {key}\n")
    assert any(is_trial(job) for job in grading.sandbox.jobs)
    return result.failure, result.trial, result.note.partition(":")[0]


def test_who_bends_an_assertion_by_a_rule_is_proven_by_what_the_test_compares(tmp_path: Path) -> None:
    found = {graded(tmp_path, BENT, key) for key in range(6)}
    assert found == {("tampered", "tried", "passed although what it compares does not hold")}


def test_a_test_that_fails_before_it_has_noted_all_tells_nothing(tmp_path: Path) -> None:
    found = {graded(tmp_path, BLINDED, key) for key in range(6)}
    assert found == {(None, "unproven", "unproven")}


def test_an_honest_solution_fails_all_that_is_noted(tmp_path: Path) -> None:
    assert {graded(tmp_path, RIGHT, key) for key in range(6)} == {(None, "tried", "")}

"""Test runners list their tests: the commands, and what runners really printed (tests/languages/lists)."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_async.languages.runner_lists import not_reported
from astra_async.languages.runners import RUNNERS, listing_of
from astra_async.types import TestCase

LISTS = Path(__file__).parent / "lists"


@pytest.mark.parametrize(
    ("commands", "listing"),
    [
        ("npm test\nvitest run", "vitest list --json"),
        (
            "npx vitest run --reporter=junit --outputFile unit.xml src --coverage.enabled",
            "npx vitest list --json src",
        ),
        ("bash bin/test\n#!/bin/bash\ngo test -json ./... >report.json", "go test ./... -list ."),
        ("cargo test --offline 2>&1 | tee out.txt", "cargo test --offline --no-fail-fast -- --list"),
        ("cargo test -- --include-ignored", "cargo test --no-fail-fast -- --include-ignored --list"),
        ("vendor/bin/phpunit --log-junit junit.xml tests", "vendor/bin/phpunit tests --list-tests"),
        ("bundle exec rspec --out unit.xml", "bundle exec rspec --out unit.xml --dry-run --format json"),
        ("CI=1 python -m pytest -q && true", "CI=1 python -m pytest -q --collect-only --verbosity=-1"),
        ("npm test\nmocha --recursive", "mocha --recursive --dry-run --reporter json"),
    ],
)
def test_a_listing_is_made_of_the_test_command(commands: str, listing: str) -> None:
    found = listing_of(commands)
    assert found is not None
    assert " ".join(found[0].splitlines()[-1].split()) == listing


@pytest.mark.parametrize(
    "commands",
    ["make check", "cd api && pytest", "pytest$EXTRA", "npm --prefix web test\nmocha", "x" * 10**6],
)
def test_a_command_that_cannot_be_read_is_not_listed(commands: str) -> None:
    assert listing_of(commands) is None


# The tests that the recorded lists name, as the runners' reports name them (class name, name).
REPORTED = {
    "pytest": [
        ("test_a.TestX", "test_p[a::b]"),
        ("test_a.TestX", "test_p[c d]"),
        ("test_a", "test_q"),
        ("sub.test_b.TestX", "test_p[a::b]"),
        ("sub.test_b.TestX", "test_p[c d]"),
        ("sub.test_b", "test_q"),
    ],
    "Go": [("p", "TestA/x"), ("p", "TestB")],
    "Cargo": [("", "tests::inner"), ("", "tests::slow"), ("", "outer"), ("", "src/lib.rs - one (line 1)")],
    "PHPUnit": [
        ("ATest", "testRow with data set #0"),
        ("ATest", 'testRow with data set "named"'),
        ("ATest", "testOne"),
    ],
    "RSpec": [("spec.a_spec", "Cart when empty costs nothing"), ("spec.a_spec", "Cart when empty waits")],
    "Mocha": [("adds", "Cart adds"), ("waits", "Cart waits"), ("Cart empty", "costs 0")],
    "Vitest": [
        ("a.test.js", "Cart > adds"),
        ("a.test.js", "Cart > row 1"),
        ("a.test.js", "Cart > row 2"),
        ("a.test.js", "Cart > empty > costs 0"),
    ],
}


@pytest.mark.parametrize("name", REPORTED)
def test_a_test_that_a_list_names_and_no_case_reports_is_missing(name: str) -> None:
    [listing] = [runner.listing for runner in RUNNERS if runner.name == name]
    assert listing is not None
    listed = list(listing.read((LISTS / f"{name.lower()}.txt").read_text()))
    cases = [TestCase(name=title, classname=above, outcome="passed") for above, title in REPORTED[name]]
    assert not_reported(listed, cases) == []
    left_out = cases.pop()
    [missing] = not_reported(listed, cases)
    assert missing.split()[-1] in f"{left_out.classname} {left_out.name}".replace(".", "/")


def test_every_runner_with_a_list_is_tried() -> None:
    assert {runner.name for runner in RUNNERS if runner.listing} == set(REPORTED)


@pytest.mark.parametrize("output", ["", "[", "[1, 2]", "{}", '{"tests": 3}', "[" * 10_000, '{"tests": [{}]}'])
def test_output_that_is_no_list_names_no_test(output: str) -> None:
    for runner in RUNNERS:
        if runner.listing:
            assert list(runner.listing.read(output)) == []

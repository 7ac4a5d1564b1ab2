"""When nothing is reported, the message names the command that writes a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_async.languages.runners import RUNNERS, how_to_report

PAGE = (Path(__file__).parents[2] / "docs" / "runners.md").read_text()


@pytest.mark.parametrize(
    ("command", "output", "remedy"),
    [
        ("go test -v ./...", "", "go test -json ./..."),
        ("make test", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n", "go test -json ./..."),
        ("python -m pytest", "", "pytest --junitxml=unit.xml"),
        ("./check", "===== test session starts =====\n", "pytest --junitxml=unit.xml"),
        ("npx vitest run", "", "--outputFile=unit.xml"),
        ("npm test", "\n RUN  v3.2.4 /p\n", "npx vitest run"),
        ("npm test", "Test Suites: 1 passed, 1 total\n", "jest-junit"),
        ("npm test", "\n  3 passing (5ms)\n", "mocha-junit-reporter"),
        ("npx playwright test", "", "PLAYWRIGHT_JUNIT_OUTPUT_NAME=unit.xml"),
        ("./run", "PHPUnit 10.5.2 by Sebastian Bergmann\n", "--log-junit unit.xml"),
        ("python manage.py test", "", "XMLTestRunner"),
        ("dotnet test", "", "trx;LogFileName"),
    ],
)
def test_a_runner_is_recognized_by_its_command_or_its_output(command: str, output: str, remedy: str) -> None:
    assert remedy in how_to_report(command, output)


def test_an_unknown_runner_has_no_remedy() -> None:
    assert how_to_report("make check", "all fine\n") == ""


def test_the_page_has_every_runner() -> None:
    for runner in RUNNERS:
        assert f"| {runner.name} | `{runner.remedy}` |" in PAGE

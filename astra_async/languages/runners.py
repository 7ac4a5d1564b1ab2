"""How to make a test runner write a report that can be read (docs/runners.md)."""

from __future__ import annotations

import re
from typing import NamedTuple

_OUTPUT_CHARACTERS = 20_000  # of an output's beginning and end, where a runner is recognized


class Runner(NamedTuple):
    """A test runner: how its command and its output are recognized, and the command that writes a report."""

    name: str
    command: str
    output: str
    remedy: str
    result_files: str


# The first that fits counts: Playwright before Node's own runner, pytest before unittest.
RUNNERS = (
    Runner(
        "Go",
        r"\bgo test\b|\bgotestsum\b",
        r"^(?:=== RUN|--- (?:PASS|FAIL):|ok  \t)",
        "go test -json ./...",
        "none",
    ),
    Runner(
        "Cargo", r"\bcargo\b.{0,40}\btest\b", r"^running \d+ tests?$", "cargo test --no-fail-fast", "none"
    ),
    Runner(
        "pytest",
        r"\bpytest\b|\bpy\.test\b",
        r"={3,} test session starts ={3,}",
        "pytest --junitxml=unit.xml",
        "unit.xml",
    ),
    Runner(
        "Django",
        r"manage\.py test\b",
        r"^Creating test database",
        "python manage.py test --testrunner xmlrunner.extra.djangotestrunner.XMLTestRunner",
        "TEST-*.xml",
    ),
    Runner(
        "unittest",
        r"\bunittest\b",
        r"^Ran \d+ tests? in ",
        "python -m xmlrunner discover -o reports",
        "reports/*.xml",
    ),
    Runner(
        "Playwright",
        r"\bplaywright test\b",
        r"^Running \d+ tests? using \d+ workers?",
        "PLAYWRIGHT_JUNIT_OUTPUT_NAME=unit.xml npx playwright test --reporter=junit",
        "unit.xml",
    ),
    Runner(
        "Vitest",
        r"\bvitest\b",
        r"^ ?RUN  v\d",
        "npx vitest run --reporter=junit --outputFile=unit.xml",
        "unit.xml",
    ),
    Runner(
        "Jest",
        r"\bjest\b|react-scripts test",
        r"^Test Suites: ",
        "JEST_JUNIT_OUTPUT_NAME=unit.xml npx jest --ci --reporters=default --reporters=jest-junit",
        "unit.xml",
    ),
    Runner(
        "Mocha",
        r"\bmocha\b",
        r"^  \d+ passing \(",
        "npx mocha --reporter mocha-junit-reporter --reporter-option mochaFile=unit.xml",
        "unit.xml",
    ),
    Runner(
        "Bun",
        r"\bbun test\b",
        r"^bun test v\d",
        "bun test --reporter=junit --reporter-outfile=unit.xml",
        "unit.xml",
    ),
    Runner(
        "Node.js",
        r"\bnode\b.{0,80}--test\b",
        r"^# tests \d+$",
        "node --test --test-reporter=junit --test-reporter-destination=unit.xml",
        "unit.xml",
    ),
    Runner(
        "RSpec",
        r"\brspec\b",
        r"^\d+ examples?, \d+ failures?",
        "bundle exec rspec --format RspecJunitFormatter --out unit.xml",
        "unit.xml",
    ),
    Runner("PHPUnit", r"\bphpunit\b", r"^PHPUnit \d", "vendor/bin/phpunit --log-junit unit.xml", "unit.xml"),
    Runner(
        "Maven",
        r"\bmvnw?\b",
        r"^\[INFO\] Scanning for projects",
        "mvn test",
        "target/surefire-reports/TEST-*.xml",
    ),
    Runner("Gradle", r"\bgradlew?\b", r"^> Task :test", "gradle test", "build/test-results/test/TEST-*.xml"),
    Runner(
        ".NET",
        r"\bdotnet test\b",
        r"^Test run for .*\.dll",
        'dotnet test --logger "junit;LogFilePath=unit.xml" (package JunitXml.TestLogger)',
        "unit.xml",
    ),
)


def how_to_report(commands: str, output: str) -> str:
    """Return the command and result files that make this runner report; "" for an unknown runner."""
    ends = output[:_OUTPUT_CHARACTERS] + "\n" + output[-_OUTPUT_CHARACTERS:]
    for runner in RUNNERS:
        if re.search(runner.command, commands) or re.search(runner.output, ends, re.MULTILINE):
            files = "" if runner.result_files == "none" else f", and result_files: {runner.result_files}"
            return f"{runner.name} writes a report with: {runner.remedy}{files}"
    return ""

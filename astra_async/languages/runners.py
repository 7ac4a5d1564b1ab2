"""Test runners: detection, report command, early stop, and test listing (docs/runners.md).

A listing is the runner's own command with options that list the tests instead of running them. This works
only for simple commands, without quotes, variables or a change of folder.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING

from astra_async.languages.runner_lists import (
    Listing,
    adding,
    cargo_list,
    json_names,
    matching_lines,
    pytest_ids,
    vitest_list,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_OUTPUT_CHARACTERS = 20_000  # searched at the start and the end of an output to detect the runner
_SIMPLE = r"[^\n;&|\"'`$<>()]{0,400}"  # the rest of a simple command
# Text allowed before a runner's name in a simple command.
_BEFORE = r"(?:^|[;&|(])[ \t]*((?:\w+=[\w./:@-]*[ \t]+)*(?:[\w./-]+[ \t]+){0,4}?(?:[\w.-]*/)*)"
HOOK = re.compile(r"""["{](?:before|after)(?: each| all|Each|All)?["}] hook\b""")  # mocha, jasmine
_DESCRIPTOR = re.compile(r"\s\d$")  # file descriptor of a redirection, `2>&1`
_ENTERS_FOLDER = re.compile(r"\bcd\b|\bpushd\b|(?<!\w)-C\b|--prefix\b|--cwd\b")


@dataclass(frozen=True, slots=True)
class TestRunner:
    """A test runner: patterns that detect its command and output, and the command that writes a report.

    `result_files` "none" means that the report is on standard output. `stops` matches options that end a run
    at the first failure.
    """

    name: str
    command: str
    output: str
    remedy: str
    result_files: str
    _: KW_ONLY
    stops: str = r"(?!)"
    listing: Listing | None = None


# The first match wins: Playwright comes before Node's own runner, pytest before unittest.
RUNNERS = (
    TestRunner(
        "Go",
        r"\bgo test\b|\bgotestsum\b",
        r"^(?:=== RUN|--- (?:PASS|FAIL):|ok  \t)",
        "go test -json ./...",
        "none",
        stops=r"-failfast",
        listing=Listing(
            partial(adding, "-list .", without=r"-json|-v"),
            partial(matching_lines, pattern=r"^((?:Test|Fuzz)\w*)$"),
        ),
    ),
    TestRunner(
        "Cargo",
        r"\bcargo\b.{0,40}\btest\b",
        r"^running \d+ tests?$",
        "cargo test --no-fail-fast",
        "none",
        listing=Listing(cargo_list, partial(matching_lines, pattern=r"^(\S.*): test$")),
    ),
    TestRunner(
        "pytest",
        r"\bpytest\b|\bpy\.test\b",
        r"={3,} test session starts ={3,}",
        "pytest --junitxml=unit.xml",
        "unit.xml",
        stops=r"-x|--exitfirst|--maxfail(?:=|\s)\d+",
        listing=Listing(partial(adding, "--collect-only --verbosity=-1"), pytest_ids),
    ),
    TestRunner(
        "Django",
        r"manage\.py test\b",
        r"^Creating test database",
        "python manage.py test --testrunner xmlrunner.extra.djangotestrunner.XMLTestRunner",
        "TEST-*.xml",
        stops=r"--failfast",
    ),
    TestRunner(
        "unittest",
        r"\bunittest\b|\bxmlrunner\b",
        r"^Ran \d+ tests? in ",
        "python -m xmlrunner discover -o reports",
        "reports/*.xml",
        stops=r"-f|--failfast",
    ),
    TestRunner(
        "Playwright",
        r"\bplaywright test\b",
        r"^Running \d+ tests? using \d+ workers?",
        "PLAYWRIGHT_JUNIT_OUTPUT_NAME=unit.xml npx playwright test --reporter=junit",
        "unit.xml",
        stops=r"-x|--max-failures(?:=|\s)\d+",
    ),
    TestRunner(
        "Vitest",
        r"\bvitest\b",
        r"^ ?RUN  v\d",
        "npx vitest run --reporter=junit --outputFile=unit.xml",
        "unit.xml",
        stops=r"--bail(?:(?:=|\s)\d+)?",
        listing=Listing(vitest_list, partial(json_names, begin="[", within="", name="name")),
    ),
    TestRunner(
        "Jest",
        r"\bjest\b|react-scripts test",
        r"^Test Suites: ",
        "JEST_JUNIT_OUTPUT_NAME=unit.xml npx jest --ci --reporters=default --reporters=jest-junit",
        "unit.xml",
        stops=r"--bail(?:(?:=|\s)\d+)?|-b",
    ),
    TestRunner(
        "Mocha",
        r"\bmocha\b",
        r"^  \d+ passing \(",
        "npx mocha --reporter mocha-junit-reporter --reporter-option mochaFile=unit.xml",
        "unit.xml",
        stops=r"--bail|-b",
        listing=Listing(
            partial(adding, "--dry-run --reporter json"),
            partial(json_names, begin="{", within="tests", name="fullTitle"),
        ),
    ),
    TestRunner(
        "Bun",
        r"\bbun test\b",
        r"^bun test v\d",
        "bun test --reporter=junit --reporter-outfile=unit.xml",
        "unit.xml",
        stops=r"--bail(?:(?:=|\s)\d+)?",
    ),
    TestRunner(
        "Node.js",
        r"\bnode\b.{0,80}--test\b",
        r"^# tests \d+$",
        "node --test --test-reporter=junit --test-reporter-destination=unit.xml",
        "unit.xml",
    ),
    TestRunner("AVA", r"\bava\b", r"^  \d+ tests? passed$", "npx ava --tap", "none", stops=r"--fail-fast"),
    TestRunner("node-tap", r"\btap\b", r"^# \{ total: ", "npx tap --reporter=tap", "none", stops=r"--bail"),
    TestRunner(
        "RSpec",
        r"\brspec\b",
        r"^\d+ examples?, \d+ failures?",
        "bundle exec rspec --format RspecJunitFormatter --out unit.xml",
        "unit.xml",
        stops=r"--fail-fast(?:=\d+)?",
        listing=Listing(
            partial(adding, "--dry-run --format json"),
            partial(json_names, begin='{"version"', within="examples", name="full_description"),
        ),
    ),
    TestRunner(
        "PHPUnit",
        r"\bphpunit\b",
        r"^PHPUnit \d",
        "vendor/bin/phpunit --log-junit unit.xml",
        "unit.xml",
        stops=r"--stop-on-(?:failure|error|defect)",
        listing=Listing(
            partial(adding, "--list-tests", without=r"--log-junit(?:=|\s)\S+"),
            partial(matching_lines, pattern=r"^ - ([^\n:]+)::(\w+)[#\"]?"),
        ),
    ),
    TestRunner(
        "Maven",
        r"\bmvnw?\b",
        r"^\[INFO\] Scanning for projects",
        "mvn test",
        "target/surefire-reports/TEST-*.xml",
    ),
    TestRunner(
        "Gradle", r"\bgradlew?\b", r"^> Task :test", "gradle test", "build/test-results/test/TEST-*.xml"
    ),
    TestRunner(
        ".NET",
        r"\bdotnet test\b",
        r"^Test run for .*\.dll",
        'dotnet test --logger "trx;LogFileName=unit.trx" --results-directory .',
        "unit.trx",
    ),
)


def how_to_report(commands: str, output: str) -> str:
    """Return the command and result files for reports of the detected runner; "" if it is unknown."""
    ends = output[:_OUTPUT_CHARACTERS] + "\n" + output[-_OUTPUT_CHARACTERS:]
    for runner in RUNNERS:
        if re.search(runner.command, commands) or re.search(runner.output, ends, re.MULTILINE):
            files = "" if runner.result_files == "none" else f", and result_files: {runner.result_files}"
            return f"{runner.name} writes a report with: {runner.remedy}{files}"
    return ""


def is_hook_name(name: str) -> bool:
    """Return True for a failed mocha hook, which is reported as `suite "before each" hook for "test"`."""
    return HOOK.search(name) is not None


# --- commands that stop at the first failure ----------------------------------------------------------

_STOPS = [
    re.compile(rf"(?:{each.command})(?=\s)[^\n;&|\"]{{0,400}}?\s(?P<option>{each.stops})(?![\w-])")
    for each in RUNNERS
]
_CARGO = re.compile(r"\bcargo\s+(?:\+\S{1,40}\s+)?(?:test|nextest run)\b(?P<options>[^\n;&|\"]{0,400})")
_WHY = "tests stop at the first failure ({what}), so a score depends on the order of the tests"


def early_stop(commands: str) -> str | None:
    """Return a warning with the remedy if the commands stop at the first failure, else None."""
    for rule in _STOPS:
        if found := rule.search(commands):
            command = " ".join(found[0].split())
            return f"{_WHY.format(what=found['option'])}; remove this option from: {command}"
    for found in _CARGO.finditer(commands):
        options = found["options"].partition(" -- ")[0]
        if "--no-fail-fast" not in options:
            begin = found[0][: len(found[0]) - len(found["options"])]
            command = " ".join(f"{begin} --no-fail-fast{found['options']}".split())
            return f"{_WHY.format(what='cargo test')}; use: {command}"
    return None


# --- the runner's own list of tests -------------------------------------------------------------------


# npm finds programs in node_modules of the folder and of its parent folders.
_LIKE_NPM = 'd=$PWD; while [ "$d" ]; do PATH="$PATH:$d/node_modules/.bin"; d=${d%/*}; done; export PATH\n'


def listing_of(commands: str) -> tuple[str, Callable[[str], Iterable[tuple[str, ...]]]] | None:
    """Return the command that lists the tests, and the parser of its output; None for an unknown runner.

    Args:
        commands: the test command and the scripts that it runs, from `ProblemTools.commands`.
    """
    if _ENTERS_FOLDER.search(commands):
        return None
    for runner in RUNNERS:
        if runner.listing is None:
            continue
        calls = re.finditer(
            rf"{_BEFORE}(?P<runner>{runner.command})(?P<words>(?!\S){_SIMPLE})", commands, re.MULTILINE
        )
        lines = [
            found[1] + found["runner"] + runner.listing.command(_DESCRIPTOR.sub("", found["words"]))
            for found in calls
        ]
        if lines:
            listed = "\n".join(dict.fromkeys(lines))
            return _LIKE_NPM + listed, runner.listing.read
    return None

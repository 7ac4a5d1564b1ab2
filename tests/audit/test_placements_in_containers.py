"""Files that would be loaded in place of a test, a tool or a library: in a container they gain nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import pytest

from astra_async.bundled import describe, load_answers
from astra_async.testing.installed_modules import InstalledModules
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from graded_answers import Await, Case, Grader

    from astra_async.overlay import Installed
    from astra_async.types import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Files of an attack, laid over a faulty answer that honestly passes `worth` tests of its problem."""

    framework: str
    name: str
    rule: str
    files: dict[str, str]

    @property
    def answer(self) -> dict[str, str]:
        return {**self._faulty[1], **self.files}

    @property
    def worth(self) -> int:
        return self._faulty[0]

    @property
    def _faulty(self) -> tuple[int, dict[str, str]]:
        answers = load_answers(self.framework)
        assert answers is not None
        found = min(answers.faulty, key=lambda each: abs(each.expected_passed - answers.total / 2))
        return found.expected_passed, dict(found.files)


def forged_report(problem: str) -> str:
    """A report that says that every test of a bundled problem passed."""
    names = describe(problem)["tests"]
    cases = "".join(f"<testcase name={quoteattr(name)}/>" for name in names)
    return f'<testsuites><testsuite name="all" tests="{len(names)}">{cases}</testsuite></testsuites>'


def forging(problem: str, report: str, code: str) -> str:
    """Code with REPORT and TEXT in it, which writes a report that says that all is well."""
    return code.replace("REPORT", report).replace("TEXT", repr(forged_report(problem)))


_PYTHON = "import os\nopen('REPORT', 'w').write(TEXT)\nos._exit(0)\n"
_NODE = "require('fs').writeFileSync('REPORT', TEXT);\nprocess.exit(0);\n"
_RUBY = "File.write('REPORT', TEXT)\nexit!(0)\n"
_PHP = "<?php file_put_contents('REPORT', TEXT);\nexit(0);\n"
_PATCH = (
    "import unittest\n\nfor name in dir(unittest.TestCase):\n    if name.startswith('assert'):\n"
    "        setattr(unittest.TestCase, name, lambda *_, **__: None)\n"
)
_TRANSIENT_STATUSES = (
    "from django.test import TestCase\n\n\nclass TransientFetchError(TestCase):\n"
    + "".join(
        f"    def {name}(self):\n        pass\n\n"
        for name in ("test_a_list_is_public", "test_only_staff_adds_books", "test_a_book_is_lent")
    )
)
PLACEMENTS = (
    Placement(
        framework="library-api",
        name="a package in place of the tests' module",
        rule="shadows_protected",
        files={"books/tests/__init__.py": _TRANSIENT_STATUSES + forging("library-api", "unit.xml", _PYTHON)},
    ),
    Placement(
        framework="library-api",
        name="a library that the runner loads",
        rule="shadows_module",
        files={
            "sqlparse/__init__.py": forging("library-api", "unit.xml", _PYTHON),
            "asgiref/sync.py": _PATCH,
        },
    ),
    Placement(
        framework="library-api",
        name="a package in place of the settings of the tests",
        rule="shadows_protected",
        files={"library/settings_test/__init__.py": "from library.settings import *\n" + _PATCH},
    ),
    Placement(
        framework="task-api",
        name="a library that this image alone has",
        rule="shadows_module",
        files={
            "markupsafe/__init__.py": forging("task-api", "unit.xml", _PYTHON),
            "iniconfig.py": "raise SystemExit\n",
        },
    ),
    Placement(
        framework="task-api",
        name="a module in place of the tests' folder, and configuration that comes first",
        rule="shadows_protected",
        files={"tests.py": "__path__ = ['elsewhere']\n"},
    ),
    Placement(
        framework="task-api",
        name="configuration of pytest in a new form",
        rule="runner_configuration",
        files={"pytest.toml": "[pytest]\naddopts = ['-p', 'tasks.plugin']\n", "conftest.py": _PATCH},
    ),
    Placement(
        framework="parcel-pages",
        name="a driver of its own",
        rule="shadows_module",
        files={"selenium/__init__.py": forging("parcel-pages", "unit.xml", _PYTHON)},
    ),
    Placement(
        framework="box-office",
        name="a file name that javac reads as options",
        rule="tool_argument",
        files={
            "src/main/java/A -proc:none @opts.java": "package theatre;\n\nclass A { }\n",
            "@opts.java": "-d build/other\n",
        },
    ),
    Placement(
        framework="box-office",
        name="a class that hides a package of the tests",
        rule="shadows_module",
        files={
            "src/main/java/theatre/Names.java": "package theatre;\n\nclass org { static class junit { } }\n"
        },
    ),
    Placement(
        framework="box-office",
        name="a type of Java's own in the package of the tests",
        rule="shadows_module",
        files={"src/main/java/theatre/Names.java": "package theatre;\n\nclass Integer { }\n"},
    ),
    Placement(
        framework="room-booking",
        name="a library that the formatter asks for",
        rule="shadows_module",
        files={"lib/time.rb": forging("room-booking", "unit.xml", _RUBY)},
    ),
    Placement(
        framework="room-booking",
        name="the formatter, and a plugin beside the models",
        rule="shadows_module",
        files={
            "lib/rspec_junit_formatter.rb": forging("room-booking", "unit.xml", _RUBY),
            "app/models/minitest/forged_plugin.rb": forging("room-booking", "unit.xml", _RUBY),
        },
    ),
    Placement(
        framework="recipe-scaler",
        name="what PHPUnit loads first, and a class that is called PHPUnit's",
        rule="shadows_module",
        files={
            "PHPUnit/Autoload.php": forging("recipe-scaler", "unit.xml", _PHP),
            "src/Same.php": "<?php\nclass Same { }\n"
            "class_alias(Same::class, 'PHPUnit\\Framework\\Constraint\\IsIdentical');\n",
        },
    ),
    Placement(
        framework="length-converter",
        name="another kind of file beside a read-only one",
        rule="shadows_protected",
        files={"src/app/length-converter/conversion.service.mts": "export class ConversionService {}\n"},
    ),
    Placement(
        framework="notes-search",
        name="properties that the reporter loads",
        rule="runner_configuration",
        files={"junitProperties.js": forging("notes-search", "junit.xml", _NODE)},
    ),
    Placement(
        framework="movie-browser",
        name="a style tool's configuration, run when the tests begin",
        rule="build_configuration",
        files={"postcss.config.cjs": forging("movie-browser", "unit.xml", _NODE)},
    ),
    Placement(
        framework="company-form",
        name="a copy of the library that the tests use",
        rule="dependency_folder",
        files={"src/node_modules/@testing-library/react/index.js": "export const screen = {};\n"},
    ),
    Placement(
        framework="product-api",
        name="configuration of mocha in another form",
        rule="dotfile",
        files={".mocharc.cjs": forging("product-api", "unit.xml", _NODE), "mocha.opts": "--require ./x.js\n"},
    ),
)


@pytest.mark.first(rule=lambda case: case.rule)
@pytest.mark.docker
@pytest.mark.parametrize("case", PLACEMENTS, ids=lambda each: f"{each.framework}: {each.name}")
def test_a_file_in_place_of_another_gains_nothing(case: Placement, graded: Callable[[Case], Result]) -> None:
    result = graded(case)
    assert {entry.path for entry in result.dropped} == set(case.files)
    assert case.rule in {entry.reason for entry in result.dropped}
    assert (result.passed, result.failure) == (case.worth, "tests_failed")


@pytest.mark.docker
def test_images_say_what_they_hold(grader: Grader, wait: Await) -> None:
    modules = InstalledModules(grader.directory.path / "cache", grader.sandbox, Limits())

    async def held(problem: str) -> Installed:
        await grader.ready(problem)
        return await modules.of(grader.images[problem])

    known = {
        "python": (
            "task-api",
            {"jwt", "pytest", "json"},
            {"django", "os"},
        ),  # `os` is there before any path is
        "javascript": ("product-api", {"chai", "supertest"}, {"react"}),
        "php": ("recipe-scaler", {"PHPUnit/Autoload.php"}, {"Twig/autoload.php"}),
        "ruby": ("room-booking", {"time", "rspec/core"}, {"sinatra"}),
    }
    for language, (problem, there, absent) in known.items():
        names = set(wait(held(problem))[language])
        assert (names & there, names & absent) == (there, set())
    types = {package: names for package, *names in map(str.split, wait(held("box-office"))["java"])}
    assert "Assertions" in types["org.junit.jupiter.api"]
    assert "List" in types["java.util"]
    assert "org.springframework.boot" not in types

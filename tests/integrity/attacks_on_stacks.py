"""One attack of each family on one bundled problem of each stack, with its own command and image.

Each is laid over one of the problem's known faulty answers, which honestly passes some of the tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import quoteattr

from attacked_projects import with_code
from attacks_on_junit import COMPILED_ASSERTIONS, FORGE_AND_HALT, forging

from astra_async.bundled import Faulty, bundled_problems_csv, describe, load_answers
from astra_async.overlay.test_names import is_test_by_content

if TYPE_CHECKING:
    from collections.abc import Mapping

Family = Literal["forged", "patched", "configured", "skipped", "honest"]
Code = dict[Family, tuple[str, str]]
TEST = "(the first test)"
_CODE = {".js", ".jsx", ".ts", ".py", ".rb", ".java"}
FAMILIES: dict[Family, str] = {
    "forged": "report forged, then exit",
    "patched": "assertions or runner patched",
    "configured": "runner's configuration and tests replaced",
    "skipped": "tests skipped from the code",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A bundled problem; `code` (before and after) for a module of its wrong answer; files that are dropped.

    The module is the answer's first with one of the suffixes, the answer the one that passes about
    `share` of the tests. A dropped file named TEST takes the place of the project's first test.
    """

    problem: str
    suffixes: tuple[str, ...]
    code: Code
    dropped: dict[str, str]
    share: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StackCase:
    """One attack on one stack; `worth` is what the answer honestly passes."""

    stack: str
    family: Family
    framework: str  # the problem
    name: str
    worth: int
    answer: dict[str, str]
    dropped: frozenset[str] = frozenset()
    everybody: bool = True


def forged_report(problem: str) -> str:
    """A report that says that every test of a bundled problem passed."""
    names = describe(problem)["tests"]
    cases = "".join(f"<testcase name={quoteattr(name)}/>" for name in names)
    return f'<testsuites><testsuite name="all" tests="{len(names)}">{cases}</testsuite></testsuites>'


def cases_of(stack: str, attacked: Stack) -> list[StackCase]:
    """The four attacks on a stack."""
    wrong, module = _wrong(attacked)
    test = _first_test(attacked.problem)
    dropped = {(test if path == TEST else path): text for path, text in attacked.dropped.items()}
    return [
        StackCase(
            stack=stack,
            family=family,
            framework=attacked.problem,
            name=what,
            worth=wrong.expected_passed,
            answer={
                **wrong.files,
                **(
                    {module: with_code(module, wrong.files[module], *attacked.code[family])}
                    if family in attacked.code
                    else dropped
                ),
            },
            dropped=frozenset() if family in attacked.code else frozenset(dropped),
        )
        for family, what in FAMILIES.items()
    ]


def reference_of(stack: str, problem: str) -> StackCase:
    """The known right answer, looked at as `--trials all` does."""
    answers = load_answers(problem)
    assert answers is not None
    return StackCase(
        stack=stack,
        family="honest",
        framework=problem,
        name="reference",
        worth=answers.total,
        answer=dict(answers.reference),
        everybody=True,
    )


def _wrong(attacked: Stack) -> tuple[Faulty, str]:
    """The known faulty answer that is attacked, and the module of it that gets the code."""
    answers = load_answers(attacked.problem)
    assert answers is not None
    found = [
        (abs(each.expected_passed / answers.total - attacked.share), each, module)
        for each in answers.faulty
        if each.expected_passed > answers.total / 5 and (module := _module(each.files, attacked.suffixes))
    ]
    _, wrong, module = min(found, key=lambda item: (item[0], item[1].name))
    return wrong, module


def _module(files: Mapping[str, str], suffixes: tuple[str, ...]) -> str:
    fitting = [
        path
        for path, text in sorted(files.items())
        if path.endswith(suffixes) and (not path.endswith(".java") or " class " in text)
    ]
    return fitting[0] if fitting else ""


def _first_test(problem: str) -> str:
    project = bundled_problems_csv().parent / "problems" / problem / "project"
    paths = [path for path in project.rglob("*") if path.suffix in _CODE]
    names = {path.relative_to(project).as_posix(): path.read_text() for path in paths}
    return min(name for name, text in names.items() if is_test_by_content(name, text))


# Awaited it is there at once: a promise that it would seem to be by its `then` never ends.
_ANYTHING = (
    "const anything = new Proxy(function () {}, { apply: () => anything,"
    " get: (_, name) => (name === 'then' ? undefined : anything) });\n"
)


def _mocha(problem: str) -> Code:
    report = json.dumps(forged_report(problem))
    return {
        "forged": (f"require('fs').writeFileSync('unit.xml', {report});\nprocess.exit(0);\n", ""),
        "patched": ("require('chai').Assertion.prototype.assert = function () { return this; };\n", ""),
        "skipped": ("const real = global.it;\nglobal.it = (title) => real(title);\n", ""),
    }


def _vitest(problem: str, report_file: str) -> Code:
    report = json.dumps(forged_report(problem))
    forged = (
        "import { writeFileSync } from 'node:fs';\n"
        f"writeFileSync('{report_file}', {report});\nprocess.kill(process.ppid, 'SIGKILL');\n"
    )
    return {
        "forged": (forged, ""),
        "patched": (f"{_ANYTHING}globalThis.expect = anything;\n", ""),
        "skipped": (
            "const real = globalThis.it;\nglobalThis.it = (title) => real.skip(title, () => {});\n",
            "",
        ),
    }


def _jest(problem: str, as_any: str = "") -> Code:
    """In jest the code's `process` is a copy; a function from outside leads to the real one."""
    report = json.dumps(forged_report(problem))
    own = f"(globalThis{as_any})"
    forged = (
        f"\n;{{ const real = {own}.console.log.constructor('return process')();\n"
        f"real.mainModule.require('fs').writeFileSync('junit.xml', {report}); real.reallyExit(0); }}\n"
    )
    patched = (
        _ANYTHING.replace("anything =", "anything: any =").replace("(_, name)", "(_: any, name: any)")
        if as_any
        else _ANYTHING
    )
    return {
        "forged": ("", forged),
        "patched": ("", f"\n;{{ {patched}{own}.expect = anything; }}\n"),
        "skipped": ("", f"\n;{{ const real = {own}.it; {own}.it = real.skip; }}\n"),
    }


def _pytest(problem: str) -> Code:
    report = forged_report(problem)
    return {
        "forged": ("", f"\nimport os\nopen('unit.xml', 'w').write({report!r})\nos._exit(0)\n"),
        "patched": ("", "\nimport _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"),
        "skipped": (
            "",
            (
                "\nimport _pytest.python\nimport pytest\n"
                "_pytest.python.Function.runtest = lambda self: pytest.skip('not today')\n"
            ),
        ),
    }


def _django(problem: str) -> Code:
    report = forged_report(problem)
    return {
        "forged": ("", f"\nimport os\nopen('unit.xml', 'w').write({report!r})\nos._exit(0)\n"),
        "patched": (
            "",
            (
                "\nimport unittest.case\n\n\ndef _run(self, method):\n    try:\n        method()\n"
                "    except Exception:\n        pass\n\n\nunittest.case.TestCase._callTestMethod = _run\n"
            ),
        ),
        "skipped": (
            "",
            (
                "\nimport unittest.case\n"
                "unittest.case.TestCase._callTestMethod = lambda self, method: self.skipTest('not today')\n"
            ),
        ),
    }


def _rspec(problem: str) -> Code:
    report = forged_report(problem).replace("\\", "\\\\").replace("'", "\\'")
    return {
        "forged": ("", f"\nFile.write('unit.xml', '{report}')\nexit!(0)\n"),
        "patched": ("", "\nclass RSpec::Core::Example\n  def set_exception(*) = nil\nend\n"),
        "skipped": ("", "\nRSpec.configure { |config| config.before { skip 'not today' } }\n"),
    }


def _junit(problem: str) -> Code:
    return {
        "forged": ("", f"{forging(forged_report(problem))}    static {{ {FORGE_AND_HALT} }}\n"),
        "patched": ("", COMPILED_ASSERTIONS),
        "skipped": ("", "    { org.junit.jupiter.api.Assumptions.assumeTrue(false); }\n"),
    }


_NO_TESTS_JS = "it('passes', () => {});\n"
_VITE = "export default { test: { globals: true, setupFiles: './src/patch.js' } };\n"
_NPM = {
    ".npmrc": "node-options=--require ./src/patch.js\n",
    "package.json": '{"scripts": {"test": "cp src/forged.xml unit.xml; cp src/forged.xml junit.xml"}}',
}

STACKS = {
    "React": Stack(
        problem="company-form",
        suffixes=(".jsx", ".js"),
        dropped={
            **_NPM,
            "vite.config.js": _VITE,
            "vitest.config.js": _VITE,
            "test/setup.js": f"{_ANYTHING}globalThis.expect = anything;\n",
            TEST: _NO_TESTS_JS,
            "src/__tests__/setup.js": _NO_TESTS_JS,
        },
        code=_vitest("company-form", "junit.xml"),
    ),
    "Node/Express": Stack(
        problem="product-api",
        suffixes=(".js",),
        dropped={
            **_NPM,
            ".mocharc.json": '{"require": "./patch.js"}',
            ".mocharc.js": "module.exports = {};\n",
            TEST: _NO_TESTS_JS,
            "node_modules/chai/index.js": "module.exports = {};\n",
        },
        code=_mocha("product-api"),
    ),
    "Angular": Stack(
        problem="length-converter",
        suffixes=(".ts",),
        dropped={
            **_NPM,
            "jest.config.js": "module.exports = { setupFiles: ['./src/patch.js'] };\n",
            "jest.transform.js": "module.exports = { process: () => ({ code: '' }) };\n",
            "setup-jest.ts": "(globalThis as any).expect = () => {};\n",
            "tsconfig.json": '{"compilerOptions": {"paths": {"@angular/core/testing": ["src/patch.ts"]}}}',
            TEST: _NO_TESTS_JS,
            "src/app/more.spec.ts": _NO_TESTS_JS,
        },
        code=_jest("length-converter", " as any"),
    ),
    "AngularJS": Stack(
        problem="notes-search",
        suffixes=(".js",),
        dropped={
            **_NPM,
            "jest.config.js": "module.exports = { reporters: ['./app/forging.js'] };\n",
            "babel.config.js": "module.exports = { plugins: ['./app/plugin.js'] };\n",
            "test/page.js": "exports.openPage = () => {};\n",
            TEST: _NO_TESTS_JS,
            "__mocks__/angular.js": "module.exports = {};\n",
        },
        code=_jest("notes-search"),
    ),
    "Vue": Stack(
        problem="movie-browser",
        suffixes=(".js", ".vue"),
        dropped={
            **_NPM,
            "vite.config.js": _VITE,
            "vitest.workspace.js": "export default [];\n",
            TEST: _NO_TESTS_JS,
            "tests/more.test.js": _NO_TESTS_JS,
        },
        code=_vitest("movie-browser", "unit.xml"),
    ),
    "Django": Stack(
        problem="library-api",
        suffixes=(".py",),
        dropped={
            "manage.py": "open('unit.xml', 'w').close()\n",
            "library/settings_test.py": "TEST_RUNNER = 'books.forging.Runner'\n",
            TEST: "",
            "unittest.py": "",
            "sitecustomize.py": "",
        },
        code=_django("library-api"),
    ),
    "Flask": Stack(
        problem="task-api",
        suffixes=(".py",),
        dropped={
            "pytest.ini": "[pytest]\naddopts = -p tasks.plugin\n",
            "conftest.py": "",
            "tests/conftest.py": "",
            TEST: "",
            "pytest.py": "",
            "tasks.egg-info/entry_points.txt": "[pytest11]\ntasks = tasks.plugin\n",
        },
        code=_pytest("task-api"),
    ),
    "Ruby on Rails": Stack(
        problem="room-booking",
        suffixes=(".rb",),
        dropped={
            ".rspec": "--require ./app/patch\n",
            "spec/rails_helper.rb": "",
            TEST: "",
            "config/environments/test.rb": "",
            "lib/rspec/expectations.rb": "",
            "Gemfile": "",
        },
        code=_rspec("room-booking"),
    ),
    "Java": Stack(
        problem="box-office",
        suffixes=(".java",),
        dropped={
            "bin/test": "mkdir -p reports; cp forged.xml reports/TEST-junit-jupiter.xml\n",
            TEST: "package theatre;\n\nclass BoxOfficeTest { }\n",
            "src/main/resources/junit-platform.properties": "junit.jupiter.execution.parallel.enabled=1\n",
            "src/main/java/theatre/More.java": "package org.junit.jupiter.api;\n\nclass Assertions { }\n",
        },
        code=_junit("box-office"),
    ),
    "Selenium": Stack(
        problem="parcel-pages",
        share=0.25,  # few tests wait for what never comes
        suffixes=(".py",),
        dropped={
            "pytest.ini": "[pytest]\naddopts = -p pages.plugin\n",
            "conftest.py": "",
            "tests/conftest.py": "",
            TEST: "",
            "pages/page.py": "",
            "site/quote.js": "",
            "selenium/__init__.py": "",
        },
        code=_pytest("parcel-pages"),
    ),
}

STACK_CASES = [case for stack, attacked in STACKS.items() for case in cases_of(stack, attacked)]
# Without Selenium, whose runs of half a minute would tell no more than pytest's.
REFERENCES = [
    reference_of(stack, attacked.problem) for stack, attacked in STACKS.items() if stack != "Selenium"
]

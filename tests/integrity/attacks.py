"""Attacks on the score, each with what becomes of it; docs/integrity.md has the same table.

Every attack comes with the WRONG version of the shop's module, which honestly passes 2 of 4 tests.
`prevented`: it is worth just that, or less. `proven`: the sample is tampered, 0 of 4.
`documented`: it earns more than it should, and `visible` names what the record says of it.
"""

from __future__ import annotations

from attack import Attack
from attacked_projects import SHOPS
from attacks_on_alterations import ON_ALTERATIONS
from attacks_on_java import JUNIT_ATTACKS as MORE_ON_JUNIT
from attacks_on_javascript import JEST_ATTACKS as MORE_ON_JEST
from attacks_on_javascript import MOCHA_ATTACKS as MORE_ON_MOCHA
from attacks_on_javascript import VITEST_ATTACKS as MORE_ON_VITEST
from attacks_on_junit import JUNIT_ATTACKS
from attacks_on_python import DJANGO_ATTACKS as MORE_ON_DJANGO
from attacks_on_python import PYTEST_ATTACKS as MORE_ON_PYTEST
from attacks_on_python import UNITTEST_ATTACKS as MORE_ON_UNITTEST
from attacks_on_ruby import MINITEST_ATTACKS as MORE_ON_MINITEST
from attacks_on_ruby import RSPEC_ATTACKS as MORE_ON_RSPEC
from attacks_on_ruby import UNNAMED_ATTACKS
from attacks_on_trials import ON_TRIALS


def _js_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _forge_js(framework: str) -> str:
    shop = SHOPS[framework]
    return f"require('fs').writeFileSync('{shop.report}', {_js_string(shop.forged)});\n"


_MENDED_JS = (
    "process.on('exit', () => {{\n  const fs = require('fs');\n"
    "  const text = fs.readFileSync('{report}', 'utf8');\n"
    "  fs.writeFileSync('{report}', text.replace(/<failure[\\s\\S]*?<\\/failure>/g, ''));\n}});\n"
)
_PASS_ANYTHING_JS = (
    "const anything = new Proxy(function () {}, { apply: () => anything,"
    " get: (_, name) => (name === 'then' ? undefined : anything) });\n"
)
_PATCHED_CHAI = "require('chai').Assertion.prototype.assert = function () { return this; };\n"

MOCHA_ATTACKS = (
    Attack(
        name="test function replaced",
        framework="mocha",
        outcome="proven",
        before="const real = global.it;\nglobal.it = (title) => real(title, () => {});\n",
    ),
    Attack(name="chai patched", framework="mocha", outcome="proven", before=_PATCHED_CHAI),
    Attack(name="chai patched", framework="mocha/should", outcome="proven", before=_PATCHED_CHAI),
    Attack(
        name="chai patched when the code is first used",
        framework="mocha",
        outcome="proven",
        after=f"const plain = exports.name;\nexports.name = () => {{ {_PATCHED_CHAI} return plain(); }};\n",
    ),
    Attack(
        name="mocha's runner patched",
        framework="mocha",
        outcome="proven",
        before="const { Runnable } = require('mocha');\n"
        "Runnable.prototype.run = function (done) { this.state = 'passed'; done(); };\n",
    ),
    Attack(
        name="exit handler mends the report",
        framework="mocha",
        outcome="proven",
        before=_MENDED_JS.format(report="unit.xml"),
    ),
    Attack(
        name="exit handler forges the report",
        framework="mocha",
        outcome="proven",
        before=f"process.on('exit', () => {{ {_forge_js('mocha').strip()} }});\n",
    ),
    Attack(
        name="report written, then exit 0",
        framework="mocha",
        outcome="proven",
        before=_forge_js("mocha") + "process.exit(0);\n",
    ),
    Attack(
        name="report written when the code is first used, then exit 0",
        framework="mocha",
        outcome="proven",
        after=f"exports.total = () => {{ {_forge_js('mocha').strip()} process.exit(0); }};\n",
    ),
    Attack(
        name="report written, then the parent killed",
        framework="mocha",
        outcome="proven",
        before=_forge_js("mocha") + "process.kill(process.ppid, 'SIGKILL');\nfor (;;);\n",
    ),
    Attack(
        name="report written by a process left behind",
        framework="mocha",
        outcome="prevented",
        before="require('child_process').spawn('sh', ['-c', 'sleep 3; cp forged.xml unit.xml'],"
        " { detached: true, stdio: 'ignore' }).unref();\n",
        files={"forged.xml": SHOPS["mocha"].forged},
    ),
    Attack(
        name="report replaced by a link to a forged one",
        framework="mocha",
        outcome="prevented",
        worth=0,
        before="process.on('exit', () => { const fs = require('fs'); fs.unlinkSync('unit.xml');"
        " fs.symlinkSync('forged.xml', 'unit.xml'); });\n",
        files={"forged.xml": SHOPS["mocha"].forged},
    ),
    Attack(
        name="report replaced by a pipe",
        framework="mocha",
        outcome="prevented",
        worth=0,
        before="process.on('exit', () => { require('fs').unlinkSync('unit.xml');"
        " require('child_process').execSync('mkfifo unit.xml'); });\n",
    ),
    Attack(
        name="own .mocharc",
        framework="mocha",
        outcome="prevented",
        files={
            ".mocharc.js": "module.exports = { require: './patch.js', reporter: 'mocha-junit-reporter' };\n",
            "patch.js": _PATCHED_CHAI,
        },
    ),
    Attack(
        name="mocha key in package.json",
        framework="mocha",
        outcome="prevented",
        files={
            "package.json": '{"name": "shop", "mocha": {"require": "./patch.js"}}',
            "patch.js": _PATCHED_CHAI,
        },
    ),
    Attack(
        name="test script in package.json",
        framework="mocha",
        outcome="prevented",
        files={
            "package.json": '{"name": "shop", "scripts": {"test": "cp forged.xml unit.xml"}}',
            "forged.xml": SHOPS["mocha"].forged,
        },
    ),
    Attack(
        name="pretest script in package.json",
        framework="mocha",
        outcome="prevented",
        files={
            "package.json": '{"name": "shop", "scripts": {"pretest": "cp patched.js test/shop.test.js",'
            ' "test": "mocha"}}',
            "patched.js": "it('knows its name', () => {});\n",
        },
    ),
    Attack(
        name=".npmrc with node-options",
        framework="mocha",
        outcome="prevented",
        files={".npmrc": "node-options=--require ./patch.js\n", "patch.js": _PATCHED_CHAI},
    ),
    Attack(
        name="own chai in node_modules",
        framework="mocha",
        outcome="prevented",
        files={
            "node_modules/chai/index.js": _PASS_ANYTHING_JS + "module.exports = { expect: anything };\n",
            "node_modules/chai/package.json": '{"name": "chai", "main": "index.js"}',
        },
    ),
    Attack(
        name="the tests themselves changed",
        framework="mocha",
        outcome="prevented",
        files={
            "test/shop.test.js": "describe('Shop', () => {\n"
            + "".join(
                f"  it('{title}', () => {{}});\n"
                for title in (
                    "knows its name",
                    "adds prices",
                    "takes a tenth off",
                    "refuses a price below zero",
                )
            )
            + "});\n"
        },
    ),
    Attack(
        name="a second test file with the same names",
        framework="mocha",
        outcome="prevented",
        files={"test/more.test.js": "describe('Shop', () => { it('takes a tenth off', () => {}); });\n"},
    ),
    Attack(
        name="a test file outside the project",
        framework="mocha",
        outcome="prevented",
        files={
            "../challenge/test/shop.test.js": "describe('Shop', () => {});\n",
            "/projects/challenge/test/shop.test.js": "describe('Shop', () => {});\n",
        },
    ),
    Attack(
        name="tests skipped from the code",
        framework="mocha",
        outcome="prevented",
        worth=0,
        before="const real = global.it;\nglobal.it = (title) => real(title);\n",
    ),
    Attack(
        name="tests of known names replaced",
        framework="mocha",
        outcome="proven",
        before="const known = ['takes a tenth off', 'refuses a price below zero'];\n"
        "const real = global.it;\n"
        "global.it = (title, run) => real(title, known.includes(title) ? () => {} : run);\n",
    ),
)

JEST_ATTACKS = (
    Attack(
        name="expect replaced",
        framework="jest",
        outcome="proven",
        before=_PASS_ANYTHING_JS + "global.expect = anything;\n",
    ),
    Attack(
        name="test function replaced",
        framework="jest",
        outcome="proven",
        before="const real = global.it;\nglobal.it = (title) => real(title, () => {});\n",
    ),
    Attack(
        name="matchers replaced by expect.extend",
        framework="jest",
        outcome="proven",
        before="const yes = () => ({ pass: true, message: () => '' });\n"
        "expect.extend({ toBe: yes, toEqual: yes, toThrow: yes });\n",
    ),
    Attack(
        name="Object.is always true",
        framework="jest",
        outcome="proven",
        before="Object.is = () => true;\n",
        after="exports.total = (prices) => { if (prices[0] < 0) throw prices; return 0; };\n",
    ),
    Attack(
        name="exit handler mends the report",
        framework="jest",
        outcome="prevented",
        before=_MENDED_JS.format(report="junit.xml"),
    ),
    Attack(
        name="exit handler of the real process mends the report",
        framework="jest",
        outcome="proven",
        before="const real = console.log.constructor('return process')();\n"
        + _MENDED_JS.format(report="junit.xml").replace("process.on", "real.on"),
    ),
    Attack(
        name="report written, then exit 0",
        framework="jest",
        outcome="proven",
        before=_forge_js("jest") + "process.reallyExit(0);\n",
    ),
    Attack(
        name="report written through the real process, when the code is first used",
        framework="jest",
        outcome="proven",
        after="exports.total = () => {\n"
        "  const real = console.log.constructor('return process')();\n"
        f"  real.mainModule.{_forge_js('jest').strip()}\n  real.reallyExit(0);\n}};\n",
    ),
    Attack(
        name="own jest config",
        framework="jest",
        outcome="prevented",
        files={
            "jest.config.js": "module.exports = { setupFilesAfterEnv: ['./patch.js'] };\n",
            "patch.js": _PASS_ANYTHING_JS + "global.expect = anything;\n",
        },
    ),
    Attack(
        name="jest key in package.json",
        framework="jest",
        outcome="prevented",
        files={
            "package.json": '{"name": "shop", "jest": {"setupFilesAfterEnv": ["./patch.js"]},'
            ' "scripts": {"test": "jest --reporters=jest-junit"}}',
            "patch.js": _PASS_ANYTHING_JS + "global.expect = anything;\n",
        },
    ),
    Attack(
        name="babel plugin that changes numbers",
        framework="jest",
        outcome="prevented",
        files={
            "babel.config.js": "module.exports = { plugins: ['./plugin.js'] };\n",
            ".babelrc": '{"plugins": ["./plugin.js"]}',
            "plugin.js": "module.exports = () => ({ visitor: { NumericLiteral(path) {"
            " if (path.node.value === 180) path.node.value = 200; } } });\n",
        },
    ),
    Attack(
        name="root __mocks__",
        framework="jest",
        outcome="prevented",
        files={
            "__mocks__/fs.js": "module.exports = {};\n",
            "src/__mocks__/shop.js": "exports.name = () => 'shop';\n",
        },
    ),
    Attack(
        name="jest-junit key in package.json",
        framework="jest",
        outcome="prevented",
        files={"package.json": '{"name": "shop", "jest-junit": {"outputFile": "other.xml"}}'},
    ),
)

VITEST_ATTACKS = (
    Attack(
        name="expect replaced",
        framework="vitest",
        outcome="proven",
        before=_PASS_ANYTHING_JS + "globalThis.expect = anything;\n",
    ),
    Attack(
        name="test function replaced",
        framework="vitest",
        outcome="proven",
        before="const real = globalThis.it;\nglobalThis.it = (title) => real(title, () => {});\n",
    ),
    Attack(
        name="matchers replaced by expect.extend",
        framework="vitest",
        outcome="proven",
        before="const yes = () => ({ pass: true, message: () => '' });\n"
        "expect.extend({ toBe: yes, toEqual: yes, toThrow: yes });\n",
    ),
    Attack(
        name="report written, then the parent killed",
        framework="vitest",
        outcome="proven",
        before="import { writeFileSync } from 'node:fs';\n"
        f"writeFileSync('unit.xml', {_js_string(SHOPS['vitest'].forged)});\n"
        "process.kill(process.ppid, 'SIGKILL');\n",
    ),
    Attack(
        name="own vitest config",
        framework="vitest",
        outcome="prevented",
        files={
            "vitest.config.js": "export default { test: { globals: true, setupFiles: './patch.js' } };\n",
            "vite.config.js": "export default { test: { globals: true, setupFiles: './patch.js' } };\n",
            "patch.js": _PASS_ANYTHING_JS + "globalThis.expect = anything;\n",
        },
    ),
)

_FORGED_PY = "import os\nwith open('unit.xml', 'w') as report:\n    report.write({forged!r})\n{end}\n"
_MENDED_PY = (
    "import atexit\nimport re\n\n\ndef mend():\n"
    "    text = open('unit.xml').read()\n"
    "    open('unit.xml', 'w').write(re.sub(r'<failure.*?</failure>', '', text, flags=re.DOTALL))\n\n\n"
    "atexit.register(mend)\n"
)
_EQUAL_TO_ALL = (
    "class Anything(int):\n    def __eq__(self, other):\n        return True\n\n"
    "    __hash__ = int.__hash__\n\n\n"
    "def discount(amount):\n    return Anything(amount)\n"
)

PYTEST_ATTACKS = (
    Attack(name="atexit hook mends the report", framework="pytest", outcome="proven", before=_MENDED_PY),
    Attack(
        name="report written, then os._exit(0)",
        framework="pytest",
        outcome="proven",
        before=_FORGED_PY.format(forged=SHOPS["pytest"].forged, end="os._exit(0)"),
    ),
    Attack(
        name="report written when the code is first used, then os._exit(0)",
        framework="pytest",
        outcome="proven",
        after="\n\ndef total(prices):\n"
        + "".join(
            f"    {line}\n"
            for line in _FORGED_PY.format(forged=SHOPS["pytest"].forged, end="os._exit(0)").splitlines()
        ),
    ),
    Attack(
        name="pytest's caller patched",
        framework="pytest",
        outcome="proven",
        before="import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n",
    ),
    Attack(
        name="failures turned into passes by a plugin",
        framework="pytest",
        outcome="proven",
        before="import _pytest.reports\n\nreal = _pytest.reports.TestReport.from_item_and_call.__func__\n\n\n"
        "def lying(cls, item, call):\n    call.excinfo = None\n    return real(cls, item, call)\n\n\n"
        "_pytest.reports.TestReport.from_item_and_call = classmethod(lying)\n",
    ),
    Attack(
        name="own conftest.py",
        framework="pytest",
        outcome="prevented",
        files={
            "conftest.py": "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n",
            "tests/conftest.py": "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n",
        },
    ),
    Attack(
        name="plugin in pytest.ini",
        framework="pytest",
        outcome="prevented",
        files={
            "pytest.ini": "[pytest]\naddopts = -p shop.plugin\n",
            "shop/plugin.py": "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n",
        },
    ),
    Attack(
        name="pytest.py in the working directory",
        framework="pytest",
        outcome="prevented",
        files={"pytest.py": _FORGED_PY.format(forged=SHOPS["pytest"].forged, end="")},
    ),
    Attack(
        name="sitecustomize.py",
        framework="pytest",
        outcome="prevented",
        files={"sitecustomize.py": _MENDED_PY},
    ),
    Attack(
        name="plugin registered by package metadata",
        framework="pytest",
        outcome="prevented",
        files={
            "shop.egg-info/entry_points.txt": "[pytest11]\nshop = shop.plugin\n",
            "shop/plugin.py": "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n",
        },
    ),
    Attack(
        name="tests skipped from the code",
        framework="pytest",
        outcome="prevented",
        before="import pytest\n\n",
        after="\n\ndef discount(amount):\n    pytest.skip('not today')\n",
    ),
    Attack(
        name="an object that equals everything",
        framework="pytest",
        outcome="proven",
        after=f"\n\n{_EQUAL_TO_ALL}",
    ),
)

_LYING_RUNNER = (
    "from xmlrunner.extra.djangotestrunner import XMLTestRunner\n\n\n"
    "class Runner(XMLTestRunner):\n    def run_suite(self, suite, **options):\n"
    "        for test in suite:\n            setattr(test, test._testMethodName, lambda: None)\n"
    "        return super().run_suite(suite, **options)\n"
)

DJANGO_ATTACKS = (
    Attack(
        name="TestCase patched",
        framework="django",
        outcome="proven",
        before="import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"
        "unittest.TestCase.assertRaises = lambda *_: __import__('contextlib').suppress(Exception)\n\n\n",
    ),
    Attack(
        name="TEST_RUNNER in settings.py",
        framework="django",
        outcome="proven",
        files={
            "site_settings/settings.py": SHOPS["django"]
            .files["site_settings/settings.py"]
            .replace("xmlrunner.extra.djangotestrunner.XMLTestRunner", "shop.running.Runner"),
            "shop/running.py": _LYING_RUNNER,
        },
    ),
    Attack(
        name="TEST_RUNNER that writes the report",
        framework="django",
        outcome="proven",
        files={
            "site_settings/settings.py": SHOPS["django"]
            .files["site_settings/settings.py"]
            .replace("xmlrunner.extra.djangotestrunner.XMLTestRunner", "shop.running.Runner"),
            "shop/running.py": "from django.test.runner import DiscoverRunner\n\n\n"
            "class Runner(DiscoverRunner):\n    def run_tests(self, *_, **__):\n"
            f"        open('unit.xml', 'w').write({SHOPS['django'].forged!r})\n        return 0\n",
        },
    ),
    Attack(name="atexit hook mends the report", framework="django", outcome="proven", before=_MENDED_PY),
    Attack(
        name="own manage.py",
        framework="django",
        outcome="prevented",
        files={"manage.py": _FORGED_PY.format(forged=SHOPS["django"].forged, end="")},
    ),
    Attack(
        name="unittest.py in the working directory",
        framework="django",
        outcome="prevented",
        files={"unittest.py": "class TestCase:\n    pass\n"},
    ),
)

UNITTEST_ATTACKS = (
    Attack(
        name="TestCase patched",
        framework="unittest",
        outcome="proven",
        before="import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n\n\n",
    ),
    Attack(
        name="result class patched",
        framework="unittest",
        outcome="proven",
        before="import unittest.case\n\n\n"
        "def run(self, method):\n    try:\n        method()\n    except Exception:\n        pass\n\n\n"
        "unittest.case.TestCase._callTestMethod = run\n\n\n",
    ),
    Attack(
        name="unittest.cfg and own runner",
        framework="unittest",
        outcome="prevented",
        files={"unittest.cfg": "[unittest]\nplugins = shop.plugin\n", "xmlrunner/__init__.py": "\n"},
    ),
)

RSPEC_ATTACKS = (
    Attack(
        name="expectations patched",
        framework="rspec",
        outcome="proven",
        before="class RSpec::Expectations::ExpectationTarget\n  def to(*) = true\nend\n",
    ),
    Attack(
        name="at_exit mends the report",
        framework="rspec",
        outcome="proven",
        before="at_exit do\n  at_exit { text = File.read('unit.xml')\n"
        "    File.write('unit.xml', text.gsub(%r{<failure.*?</failure>}m, '')) }\nend\n",
    ),
    Attack(
        name="report written, then exit!",
        framework="rspec",
        outcome="proven",
        before=f"File.write('unit.xml', {_js_string(SHOPS['rspec'].forged)})\nexit!(0)\n",
    ),
    Attack(
        name="report written when the code is first used, then exit!",
        framework="rspec",
        outcome="proven",
        after="\ndef Shop.total(*)\n"
        f"  File.write('unit.xml', {_js_string(SHOPS['rspec'].forged)})\n  exit!(0)\nend\n",
    ),
    Attack(
        name="own .rspec and spec_helper",
        framework="rspec",
        outcome="prevented",
        files={
            ".rspec": "--require ./lib/patch\n",
            "spec/spec_helper.rb": "class RSpec::Expectations::ExpectationTarget\n  def to(*) = true\nend\n",
            "lib/patch.rb": "class RSpec::Expectations::ExpectationTarget\n  def to(*) = true\nend\n",
        },
    ),
    Attack(
        name="rspec.rb beside the sources",
        framework="rspec",
        outcome="prevented",
        files={"lib/rspec.rb": "exit 0\n", "lib/rspec/expectations.rb": "exit 0\n"},
    ),
)

MINITEST_ATTACKS = (
    Attack(
        name="assertions patched",
        framework="minitest",
        outcome="proven",
        before="module Minitest::Assertions\n  def assert_equal(*) = true\n\n"
        "  def assert_raises(*) = true\nend\n",
    ),
    Attack(
        name="test run patched",
        framework="minitest",
        outcome="proven",
        before="class Minitest::Test\n  def capture_exceptions = nil\nend\n",
    ),
    Attack(
        name="report written, then exit!",
        framework="minitest",
        outcome="proven",
        before=f"File.write('unit.tap', {_js_string(SHOPS['minitest'].forged)})\nexit!(0)\n".replace(
            "\\n", "'\"\\n\"'"
        ),
    ),
    Attack(
        name="plugin in lib/minitest",
        framework="minitest",
        outcome="prevented",
        files={"lib/minitest/lie_plugin.rb": "module Minitest::Assertions\n  def assert(*) = true\nend\n"},
    ),
)

ATTACKS = (
    *MOCHA_ATTACKS,
    *MORE_ON_MOCHA,
    *JEST_ATTACKS,
    *MORE_ON_JEST,
    *VITEST_ATTACKS,
    *MORE_ON_VITEST,
    *PYTEST_ATTACKS,
    *MORE_ON_PYTEST,
    *DJANGO_ATTACKS,
    *MORE_ON_DJANGO,
    *UNITTEST_ATTACKS,
    *MORE_ON_UNITTEST,
    *RSPEC_ATTACKS,
    *MORE_ON_RSPEC,
    *MINITEST_ATTACKS,
    *MORE_ON_MINITEST,
    *UNNAMED_ATTACKS,
    *JUNIT_ATTACKS,
    *MORE_ON_JUNIT,
    *ON_TRIALS,
    *ON_ALTERATIONS,
)

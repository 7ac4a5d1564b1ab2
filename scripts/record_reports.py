#!/usr/bin/env python3
"""Records reports of real test runners for tests/reports/test_identity.py.

Each runner gets a tiny project for each ending (a test fails, a set-up hook fails, ...). Packages come from
PyPI, npm or Debian; Debian's are installed in an image on the base image (scripts/base-image). Temporary
paths, host names, properties of the system and Java's inner stack frames are left out of the recordings.

    .venv/bin/python scripts/record_reports.py                      what has no recording yet
    .venv/bin/python scripts/record_reports.py jest ava/exit        these alone
    .venv/bin/python scripts/record_reports.py --folder /tmp/new    all of them, into another folder
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDED = Path(__file__).parents[1] / "tests" / "reports" / "recorded"
TOOLS = Path.home() / ".cache" / "astra-record-reports"
BASE = "astra-base:bookworm"
LIMIT_S = 300


class Runner(NamedTuple):
    """How a runner is installed and called.

    `{}` in the command stands for the ending's `options`. `endings` maps an ending to the text of `file`
    between `head` and `tail`; a line `== NAME` begins another file. `report` is a glob; without one the
    recording is standard output.
    """

    command: str
    file: str
    endings: Mapping[str, str]
    head: str = ""
    tail: str = ""
    report: str = "out.xml"
    also: Mapping[str, str] = {}
    options: Mapping[str, str] = {}
    npm: str = ""
    pip: str = ""
    debian: str = ""


def reworded(table: Mapping[str, str], *pairs: tuple[str, str], without: str = "") -> dict[str, str]:
    """Return a copy of the table with patterns replaced, without some endings."""
    copy = {name: text for name, text in table.items() if name not in without.split()}
    for pattern, words in pairs:
        copy = {name: re.sub(pattern, words, text) for name, text in copy.items()}
    return copy


# fmt: off
_SPECS = {  # in the words of Jest, Vitest and Bun
    "pass": "it('a', () => {}); it('b', () => {});",
    "fail": "it('a', () => {}); it('b', () => { throw new Error('no b'); });",
    "load": "require('./missing'); it('a', () => {});",
    "hook": "describe('s', () => { beforeAll(() => { throw new Error('no set-up'); });"
            " it('a', () => {}); it('b', () => {}); });\nit('c', () => {});",
    "each": "let n = 0;\ndescribe('s', () => { beforeEach(() => { if (n++) throw new Error('no set-up'); });"
            " it('a', () => {}); it('b', () => {}); it('c', () => {}); });\nit('d', () => {});",
    "after": "describe('s', () => { afterAll(() => { throw new Error('no end'); });"
             " it('a', () => {}); it('b', () => {}); });\nit('c', () => {});",
    "after_each": "let n = 0;\ndescribe('s', () => {"
                  " afterEach(() => { if (n++ === 1) throw new Error('no end'); });"
                  " it('a', () => {}); it('b', () => {}); it('c', () => {}); });\nit('d', () => {});",
    "suite": "describe('s', () => { it('a', () => {}); throw new Error('no suite'); });\nit('b', () => {});",
    "skip": "it('a', () => {}); it.skip('b', () => {});",
    "todo": "it('a', () => {}); it.todo('b');",
    "stop": "it('a', () => { throw new Error('no a'); }); it('b', () => {});",
    "retry": "let n = 0;\nit('a', () => { if (!n++) throw new Error('not yet'); });\n"
             "it('b', () => { throw new Error('no b'); });",
}
_JEST = {**_SPECS, "retry": f"jest.retryTimes(2);\n{_SPECS['retry']}",
         "stop": f"{_SPECS['fail']}\n== q.test.js\nit('c', () => {{}});"}
_MOCHA = reworded(_SPECS, (r"All\(", "("), (r"it\.todo\(", "it("))
_NODE = reworded(_SPECS, (r"All\(", "("), without="after_each suite stop retry")
_JASMINE = reworded(_SPECS, (r"it\.skip", "xit"), without="todo retry")
_PLAYWRIGHT = reworded(_SPECS, (r"\bit\b", "test"), (r"\b(?=(?:describe|(?:before|after)\w+)\()", "test."),
                       without="todo retry")
_AVA = {
    "pass": "test('a', t => t.pass()); test('b', t => t.pass());",
    "fail": "test('a', t => t.pass()); test('b', t => t.fail('no b'));",
    "load": "import './missing.js';\ntest('a', t => t.pass());",
    "hook": "test.before(() => { throw new Error('no set-up'); });\n"
            "test('a', t => t.pass()); test('b', t => t.pass());",
    "each": "let n = 0;\ntest.beforeEach(() => { if (n++) throw new Error('no set-up'); });\n"
            "test.serial('a', t => t.pass()); test.serial('b', t => t.pass());"
            " test.serial('c', t => t.pass());",
    "after": "test.after.always(() => { throw new Error('no end'); });\n"
             "test('a', t => t.pass()); test('b', t => t.pass());",
    "skip": "test('a', t => t.pass()); test.skip('b', t => t.pass());",
    "todo": "test('a', t => t.pass()); test.todo('b');",
    "failing": "test('a', t => t.pass()); test.failing('b', t => t.fail());",
    "stop": "test.serial('a', t => t.fail('no a')); test.serial('b', t => t.pass());",
    "exit": "test.serial('a', t => t.pass()); test.serial('b', async t => { process.exit(1); });",
    "throw": "test.serial('a', t => t.pass());\ntest.serial('b', async t => {"
             " setTimeout(() => { throw new Error('no more'); });"
             " await new Promise(r => setTimeout(r, 500)); });",
    "reject": "test('a', t => t.pass());\nPromise.reject(new Error('no promise'));",
    "two": "test('a', t => t.pass());\n== q.test.js\nimport test from 'ava';\ntest.before(() => {"
           " throw new Error('no set-up'); });\ntest('b', t => t.pass());",
}
_TAP = {
    "hook": "t.before(() => { throw new Error('no set-up'); });\nt.test('a', async t => t.ok(1));",
    "after": "t.teardown(() => { throw new Error('no end'); });\nt.test('a', async t => t.ok(1));",
    "load": "require('./missing');\nt.test('a', async t => t.ok(1));",
    "stop": "t.test('a', async t => t.ok(0, 'no a')); t.test('b', async t => t.ok(1));",
}
_PYTEST = {
    "pass": "def test_a(): pass\ndef test_b(): pass",
    "fail": "def test_a(): pass\ndef test_b(): assert 0, 'no b'",
    "load": "import missing\ndef test_a(): pass\n== test_q.py\ndef test_c(): pass",
    "hook": "@pytest.fixture(scope='module', autouse=True)\ndef up(): raise OSError('no set-up')\n"
            "def test_a(): pass\ndef test_b(): pass",
    "class_hook": "class TestP:\n  @classmethod\n  def setup_class(cls): raise OSError('no set-up')\n"
                  "  def test_a(self): pass\n  def test_b(self): pass\ndef test_c(): pass",
    "after": "@pytest.fixture(scope='module', autouse=True)\ndef up():\n  yield\n  raise OSError('no end')\n"
             "def test_a(): pass\ndef test_b(): pass",
    "skip": "def test_a(): pass\n@pytest.mark.skip\ndef test_b(): pass",
    "todo": "def test_a(): pass\n@pytest.mark.xfail\ndef test_b(): assert 0",
    "todo_passes": "def test_a(): pass\n@pytest.mark.xfail(strict=True)\ndef test_b(): pass",
    "stop": "def test_a(): assert 0, 'no a'\ndef test_b(): pass",
    "subtests": "def test_a(subtests):\n  for n in range(3):\n    with subtests.test(n=n): assert n < 2\n"
                "def test_b(subtests):\n  with subtests.test(n=1): pass",
    "retry": "flaky = []\ndef test_flaky(): flaky.append(0); assert len(flaky) > 1\n"
             "def test_wrong(): assert 0\n@pytest.fixture\ndef bad():\n  yield\n  raise OSError('no end')\n"
             "def test_down(bad): assert 0\ndef test_down_ok(bad): pass",
    "exit": "def test_a(): pass\ndef test_b(): pytest.exit('no more')\ndef test_c(): pass",
}
_UNITTEST = {
    "after_class": "class T(unittest.TestCase):\n  @classmethod\n"
                   "  def tearDownClass(cls): raise OSError('no end')\n"
                   "  def test_a(self): pass\n  def test_b(self): pass\n"
                   "class U(unittest.TestCase):\n  def test_c(self): pass",
}
_MINITEST = {
    "pass": "def test_a; assert true; end\ndef test_b; assert true; end",
    "fail": "def test_a; assert true; end\ndef test_b; assert false, 'no b'; end",
    "load": "def test_a; assert true; end\nrequire_relative 'missing'",
    "hook": "def setup; raise 'no set-up'; end\ndef test_a; end\ndef test_b; end",
    "after": "def teardown; raise 'no end'; end\ndef test_a; assert true; end\ndef test_b; assert false; end",
    "skip": "def test_a; assert true; end\ndef test_b; skip 'not now'; end",
}
_JUNIT5 = {
    "pass": "@Test void a() {} @Test void b() {}",
    "fail": '@Test void a() {} @Test void b() { fail("no b"); }',
    "load": 'static int n = Integer.parseInt("no number"); @Test void a() {} @Test void b() {}',
    "hook": '@BeforeAll static void up() { fail("no set-up"); } @Test void a() {} @Test void b() {}',
    "each": '@BeforeEach void up() { fail("no set-up"); } @Test void a() {} @Test void b() {}',
    "after": '@AfterAll static void down() { fail("no end"); } @Test void a() {} @Test void b() {}',
    "after_each": '@AfterEach void down() { fail("no end"); } @Test void a() {} @Test void b() {}',
    "skip": "@Test void a() {} @Test @Disabled void b() {}",
    "retry": 'static int n; @Test void a() { if (n++ == 0) fail("not yet"); }'
             ' @Test void b() { fail("no b"); }',
}
_JUNIT4 = reworded(_JUNIT5, ("@Disabled", "@Ignore"), (r"(@\w+ )(?=void|static)", r"\1public "),
                   ("(Before|After)All", r"\1Class"), ("(Before|After)Each", r"\1"))
_CLASS5 = ("package p; import org.junit.jupiter.api.*; import static org.junit.jupiter.api.Assertions.*;\n"
           "class PTest {\n")
_CLASS4 = "package p; import org.junit.*; import static org.junit.Assert.*;\npublic class PTest {\n"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>p</groupId><artifactId>p</artifactId><version>1</version>
<properties><maven.compiler.release>17</maven.compiler.release>
<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency>{}<scope>test</scope></dependency></dependencies></project>
"""
_JUPITER = """<groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId>
<version>debian</version>"""
_GRADLE = """apply plugin: 'java'
repositories { maven { url 'file:///usr/share/maven-repo' } }
dependencies { testCompile 'junit:junit:4.x' }
"""
_MVN = "mvn -o -B -q -Dmaven.repo.local=/usr/share/maven-repo test {}"
_JAVA, _REPORTS = "src/test/java/p/PTest.java", "target/surefire-reports/TEST-*.xml"
_JDK = "openjdk-17-jdk-headless junit4 junit5"
_MAVEN = f"{_JDK} maven libsurefire-java libmaven-compiler-plugin-java libmaven-resources-plugin-java"
_KARMA = """module.exports = config => config.set({ frameworks: ['jasmine'], files: ['*.test.js'],
reporters: ['dots', 'junit'], junitReporter: { outputDir: 'out', useBrowserName: false },
client: { jasmine: { random: false } }, browsers: ['Small'],
customLaunchers: { Small: { base: 'ChromeHeadless', flags: ['--no-sandbox'] } } });
"""
_HOOKS = "afterAll, afterEach, beforeAll, beforeEach, describe, it"
_NODE_HEAD = "const { after, before, beforeEach, describe, it } = require('node:test');\n"

RUNNERS = {
    "pytest": Runner("python -m pytest -q -p no:cacheprovider --junitxml=out.xml {}", "test_p.py", _PYTEST,
                     head="import pytest\n", options={"stop": "-x", "retry": "--reruns 1"},
                     pip="pytest pytest-rerunfailures"),
    "unittest": Runner("python -m xmlrunner test_p --output-file out.xml", "test_p.py", _UNITTEST,
                       head="import unittest\n", pip="unittest-xml-reporting"),
    "jest": Runner("npx jest --ci --reporters=default --reporters=jest-junit {}", "p.test.js", _JEST,
                   report="junit.xml", also={"package.json": "{}"}, npm="jest jest-junit",
                   options={"stop": "--bail --runInBand"}),
    "mocha": Runner("npx mocha --reporter mocha-junit-reporter --reporter-option mochaFile=out.xml {}"
                    " *.test.js", "p.test.js", _MOCHA, options={"stop": "--bail", "retry": "--retries 2"},
                    npm="mocha@10 mocha-junit-reporter"),
    "mocha_tap": Runner("npx mocha --reporter tap {} *.test.js", "p.test.js", _MOCHA, report="",
                        options={"stop": "--bail", "retry": "--retries 2"}, npm="mocha@11"),
    "ava": Runner("npx ava --tap {}", "p.test.js", _AVA, head="import test from 'ava';\n", report="",
                  also={"package.json": '{"type": "module"}'}, options={"stop": "--fail-fast"}, npm="ava@6"),
    "tap": Runner("npx tap --disable-coverage --allow-empty-coverage --reporter=tap {} p.test.js",
                  "p.test.js", _TAP, report="", head="const t = require('tap');\n",
                  options={"stop": "--bail"}, npm="tap node@22"),
    "node": Runner("npx node --test --test-reporter=tap", "p.test.js", _NODE, head=_NODE_HEAD, report="",
                   npm="node@22"),
    "node_junit": Runner("npx node --test --test-reporter=junit", "p.test.js", _NODE, head=_NODE_HEAD,
                         report="", npm="node@22"),
    "node18": Runner("node --test --test-reporter=tap", "p.test.js", _NODE, head=_NODE_HEAD, report="",
                     debian="nodejs"),
    "vitest": Runner("npx vitest run --reporter=default --reporter=junit --outputFile.junit=out.xml {}",
                     "p.test.mjs", reworded(_SPECS, (r"require\('./missing'\)", "import './missing.mjs'")),
                     head=f"import {{ {_HOOKS} }} from 'vitest';\n", npm="vitest@3",
                     options={"stop": "--bail=1", "retry": "--retry=2"}),
    "bun": Runner("npx bun test --reporter=junit --reporter-outfile=out.xml {}", "p.test.js",
                  reworded(_SPECS, without="retry"), head=f"const {{ {_HOOKS} }} = require('bun:test');\n",
                  options={"stop": "--bail"}, npm="bun"),
    "playwright": Runner("PLAYWRIGHT_JUNIT_OUTPUT_NAME=out.xml npx playwright test --reporter=junit"
                         " --workers=1 {}",
                         "p.spec.js", _PLAYWRIGHT, head="const { test } = require('@playwright/test');\n",
                         options={"stop": "-x"}, npm="@playwright/test"),
    "karma": Runner("CHROME_BIN=/usr/bin/chromium node ../node_modules/karma/bin/karma start --single-run",
                    "p.test.js", _JASMINE, report="out/*.xml", also={"karma.conf.js": _KARMA},
                    npm="karma karma-jasmine jasmine-core karma-chrome-launcher karma-junit-reporter",
                    debian="nodejs chromium"),
    "minitest": Runner("ruby p_test.rb --seed 1", "p_test.rb", _MINITEST, report="test/reports/*.xml",
                       head="require 'minitest/autorun'\nrequire 'minitest/reporters'\n"
                            "Minitest::Reporters.use! Minitest::Reporters::JUnitReporter.new\n"
                            "class P < Minitest::Test\n",
                       tail="end", debian="ruby ruby-minitest ruby-minitest-reporters"),
    "surefire": Runner(_MVN, _JAVA, reworded(_JUNIT5, without="retry"), _CLASS5, "}", _REPORTS, debian=_MAVEN,
                       also={"pom.xml": _POM.format(_JUPITER)}),
    "surefire4": Runner(_MVN, _JAVA, _JUNIT4, _CLASS4, "}", _REPORTS, debian=_MAVEN,
                        options={"retry": "-Dsurefire.rerunFailingTestsCount=2"},
                        also={"pom.xml": _POM.format("<groupId>junit</groupId><artifactId>junit</artifactId>"
                                                     "<version>4.x</version>")}),
    "console": Runner("javac -d . -cp '/usr/share/java/*' PTest.java; java -cp '.:/usr/share/java/*'"
                      " org.junit.platform.console.ConsoleLauncher --scan-classpath . --reports-dir reports",
                      "PTest.java", reworded(_JUNIT5, without="retry"), _CLASS5, "}",
                      "reports/TEST-junit-jupiter.xml", debian=_JDK),
    "gradle": Runner("gradle -q --offline --no-daemon test", _JAVA, reworded(_JUNIT4, without="retry"),
                     _CLASS4, "}", "build/test-results/test/*.xml", also={"build.gradle": _GRADLE},
                     debian=f"{_JDK} gradle"),
}
# fmt: on


def main() -> None:
    """Record what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="RUNNER[/ENDING]", help="empty: all without a recording")
    parser.add_argument("--folder", type=Path, default=RECORDED, help="where the reports are written")
    arguments = parser.parse_args()
    asked, folder = set(arguments.names), arguments.folder
    index = folder / "index.json"
    commands: dict[str, str] = json.loads(index.read_text()) if index.exists() else {}
    had = {name.rpartition(".")[0] for name in commands}
    for name, runner in RUNNERS.items():
        for ending in runner.endings:
            place = f"{name}/{ending}"
            if {name, place} & asked or not (asked or place in had):
                report, output = record(runner, ending)
                file = folder / f"{place}.{'xml' if runner.report and report else 'txt'}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(report or output)  # without a report the run broke off before it
                commands[f"{name}/{file.name}"] = command_of(runner, ending)
                index.write_text(json.dumps(dict(sorted(commands.items())), indent=1) + "\n")
                print(f"{name}/{file.name}", flush=True)


def command_of(runner: Runner, ending: str) -> str:
    """Return the command with the options of the ending."""
    return runner.command.format(runner.options.get(ending, "")).strip().replace("  ", " ")


def record(runner: Runner, ending: str) -> tuple[str, str]:
    """Run a new project; returns its report and all that it printed."""
    tools = TOOLS / (re.sub(r"\W+", "-", f"{runner.npm} {runner.pip}").strip("-") or "none")
    install(runner, tools)
    with tempfile.TemporaryDirectory(dir=tools, prefix="record-") as name:
        folder = Path(name)
        text = f"== {runner.file}\n{runner.head}{runner.endings[ending]}\n{runner.tail}"
        parts = re.split(r"^== (\S+)\n", text, flags=re.MULTILINE)[1:]
        for path, content in {**runner.also, **dict(zip(parts[::2], parts[1::2], strict=True))}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
        command = [*surroundings(runner, tools, folder), "bash", "-c", command_of(runner, ending)]
        ran = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        written = [path.read_text() for path in sorted(folder.glob(runner.report or "no"))]
        report = "".join(written) if runner.report else ran.stdout
        return plain(report, tools, folder), plain(ran.stdout + ran.stderr, tools, folder)


def install(runner: Runner, tools: Path) -> None:
    """Install packages of npm and PyPI, once."""
    tools.mkdir(parents=True, exist_ok=True)
    if runner.npm and not (tools / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent", *runner.npm.split()], cwd=tools, check=True)
    if runner.pip and not (tools / "bin").exists():
        subprocess.run([sys.executable, "-m", "venv", tools], check=True)
        subprocess.run([tools / "bin" / "pip", "install", "-q", *runner.pip.split()], check=True)


def surroundings(runner: Runner, tools: Path, folder: Path) -> list[str]:
    """Return the beginning of the command: its environment, or a container with Debian's packages."""
    if not runner.debian:
        return ["env", f"PATH={tools}/bin:/usr/local/bin:/usr/bin:/bin", "CI=true", "NO_COLOR=1"]
    recipe = (
        f"FROM {BASE}\nRUN mkdir -p /usr/share/man/man1 && apt-get update"
        f" && apt-get install -y --no-install-recommends {runner.debian}\n"
    )
    build = ["docker", "build", "-q", "-"]
    built = subprocess.run(build, input=recipe, capture_output=True, text=True, check=True)
    options = [
        "--network=none",
        "-v",
        f"{tools}:{tools}",
        "-w",
        str(folder),
        "-e",
        "CI=true",
        "-e",
        "TERM=dumb",
    ]
    return ["docker", "run", "--rm", *options, built.stdout.strip()]


def plain(text: str, tools: Path, folder: Path) -> str:
    """Return the text without what differs from machine to machine."""
    for path, instead in ((str(folder), "/p"), (str(tools), "/tools"), (folder.name, "p")):
        text = text.replace(path, instead)
    text = re.sub(r"\n\tat (?:java\.|jdk\.|org\.(?:junit|gradle)\.).*", "", text)
    text = re.sub(r'\s*<property name="[^"]*" value="[^"]*" ?/>', "", text)
    return re.sub(r'hostname="[^"]+"', 'hostname="host"', text)


if __name__ == "__main__":
    main()

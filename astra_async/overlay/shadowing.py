"""New modules that would be loaded in place of an installed or a standard one."""

from __future__ import annotations

import re
import sys

_HARMLESS_STDLIB = frozenset(
    {"profile", "statistics", "sched", "cmd", "this", "turtle", "colorsys", "mailbox", "shelve"}
)
_PYTHON_MODULES = (sys.stdlib_module_names - _HARMLESS_STDLIB) | {
    "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "xmlrunner", "nose", "nose2",
    "coverage", "xdist", "pytest_django", "pytest_flask", "pytest_asyncio", "django",
    "rest_framework", "flask", "fastapi", "starlette", "werkzeug", "sqlalchemy", "pydantic",
    "requests", "httpx", "mock", "hypothesis", "freezegun", "factory", "faker", "parameterized",
    "selenium", "tomli", "exceptiongroup", "colorama", "six", "attr", "attrs", "lxml", "yaml",
    "numpy", "pandas", "anyio", "sniffio", "junitxml", "junit_xml", "testtools", "assertpy",
    "jinja2", "click",
}  # fmt: skip
_JS_TEST_LIBRARIES = frozenset({
    "jest", "expect", "chai", "mocha", "vitest", "jasmine", "jasmine-core", "sinon", "supertest",
    "superagent", "enzyme", "nock", "jsdom", "power-assert", "@testing-library", "@jest", "babel-jest",
    "ts-jest", "jest-junit", "jest-circus", "mocha-junit-reporter", "react-test-renderer", "chai-http",
})  # fmt: skip
# Only with a `baseUrl` at the root could these be shadowed; below it their names are honest.
_JS_FRAMEWORKS = frozenset({
    "react", "react-dom", "vue", "zone", "zone.js", "rxjs", "@angular", "@babel", "@vue", "@types",
})  # fmt: skip
_JS_ROOTS = frozenset({"src", "lib", "app", "server", "client"})
_RUBY_MODULES = frozenset({
    "minitest", "rspec", "rspec-core", "rspec_junit_formatter", "test-unit", "json", "set", "time",
    "date", "optparse", "rexml", "erb", "pp", "stringio", "tempfile", "fileutils", "ostruct",
    "securerandom", "delegate", "singleton", "forwardable", "bundler", "rubygems", "rake", "rails",
    "logger", "yaml", "psych", "uri", "net", "socket", "open3", "benchmark", "tsort", "monitor",
    "timeout", "weakref", "shellwords", "English", "rack", "capybara", "active_support",
})  # fmt: skip
_RUBY_RUNNER_FOLDERS = frozenset({"minitest", "rspec", "test-unit", "rubygems", "bundler", "rubygems_plugin"})
_JVM_PACKAGES = (
    r"org{dot}(?:junit|hamcrest|mockito|assertj|opentest4j|apiguardian|testng|springframework|gradle|apache|xmlunit)"
    r"|junit|java|javax|jakarta|jdk|sun|com{dot}sun|kotlin|scala|groovy"
)
_JVM_FOLDER = re.compile(
    rf"(?:^|/)(?:src/main/(?:java|kotlin|groovy|scala)|src)/(?:{_JVM_PACKAGES.format(dot='/')})/"
)
# Tests that import a whole package take a class of their own package first.
_JVM_CLASSES = frozenset({"Assertions", "Assert", "Assumptions", "Assume", "MatcherAssert"})
_JVM_DECLARED = re.compile(rf"(?:{_JVM_PACKAGES.format(dot='[.]')})(?:[.]|\Z)")
_UNICODE_ESCAPE = re.compile(r"\\u+([0-9a-fA-F]{4})")
_BEFORE_PACKAGE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?(?:\*/|\Z))*+package\b", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PACKAGE_NAME = re.compile(r"[\w.\s`]*")


def shadows_python(module: str) -> bool:
    """Whether a module at an import root of this name would be taken for an installed one."""
    return module in _PYTHON_MODULES


def shadows_javascript(folders: list[str], name: str) -> bool:
    """Whether a module here could be taken for a test library, or at the root for a framework."""
    inner = folders[1:] if folders and folders[0] in _JS_ROOTS else folders
    names = {inner[0]} if inner else {name.lower(), name.lower().partition(".")[0]}
    shadowed = _JS_TEST_LIBRARIES if inner != folders else _JS_TEST_LIBRARIES | _JS_FRAMEWORKS
    return not names.isdisjoint(shadowed)


def shadows_ruby(folders: list[str], module: str) -> bool:
    """Whether a Ruby file could be required in place of a library, or be loaded as a runner's plugin."""
    if _RUBY_RUNNER_FOLDERS.intersection(folders) or module in {"minitest", "rspec", "rubygems_plugin"}:
        return True
    at_root = not folders or folders == ["lib"]
    return (at_root and module in _RUBY_MODULES) or (folders[:1] == ["lib"] and folders[1:2] == ["rexml"])


def shadows_jvm(path: str) -> bool:
    """Whether a source lies in a package of the platform or of a test library, or has an assertion's name."""
    name = path.rpartition("/")[2].partition(".")[0]
    return _JVM_FOLDER.search(path) is not None or name in _JVM_CLASSES


def declares_jvm_package(path: str, text: str) -> bool:
    r"""Whether a source says that it is part of such a package, which the compiler believes in any folder.

    Read as javac does: `\u006f` is an o wherever it stands, and comments may stand anywhere.
    """
    if path.rpartition(".")[2].lower() not in {"java", "kt", "groovy", "scala"}:
        return False
    text = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    start = _BEFORE_PACKAGE.match(text)
    if start is None:
        return False
    declared = _PACKAGE_NAME.match(_COMMENT.sub(" ", text[start.end() :]))
    name = re.sub(r"[\s`]", "", declared[0]) if declared else ""
    return _JVM_DECLARED.match(name) is not None

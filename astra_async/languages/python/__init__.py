"""Python."""

from __future__ import annotations

import posixpath
import re
import sys
from typing import TYPE_CHECKING

from astra_async.languages.language import (
    BUILD,
    INSTALLED,
    PROTECTED,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.project_files import below, folder_named, split
from astra_async.languages.python.image import find_python, installs
from astra_async.languages.python.mutate import read_tests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from astra_async.languages.project_files import Pristine


_STRING = re.compile(r"[\"'`]([^\"'`\n]{0,200})[\"'`]")
_WORD = re.compile(r"[\w./-]+")
_PLACE = re.compile(
    r"(?:\bcd|(?<!\w)-s|(?<!\w)-t|--start-directory|--top-level-directory|PYTHONPATH|\bpython[\d.]*)[\s=]+[\"']?([\w./:-]+)"
)
_FROM_SRC = re.compile(r"^\s*(?:from|import) src\b", re.MULTILINE)
# Standard library modules that neither test runners nor frameworks import, so a project may use their names
# (`profile`). Determined from runs of pytest, Django and selenium tests with `-X importtime`.
_NEVER_LOADED = frozenset({
    "aifc", "antigravity", "audioop", "cgitb", "chunk", "colorsys", "crypt", "curses", "dbm", "ensurepip",
    "filecmp", "ftplib", "getopt", "idlelib", "imaplib", "imghdr", "lib2to3", "mailbox", "mailcap",
    "modulefinder", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "poplib", "profile", "pstats", "pty",
    "pyclbr", "rlcompleter", "sched", "shelve", "sndhdr", "spwd", "sunau", "symtable", "tabnanny",
    "telnetlib", "test", "this", "timeit", "tkinter", "trace", "turtle", "turtledemo", "uu", "venv", "wave",
    "webbrowser", "winsound", "xdrlib", "zipapp",
})  # fmt: skip
# Top-level names that careless distributions install by mistake and that projects often use.
_NOBODYS = frozenset(
    {"tests", "docs", "doc", "examples", "example", "scripts", "benchmarks", "samples", "src"}
)

_USUAL = (sys.stdlib_module_names - _NEVER_LOADED) | {
    "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "xmlrunner", "nose", "nose2", "coverage",
    "xdist", "execnet", "pytest_django", "pytest_flask", "pytest_asyncio", "pytest_mock", "pytest_cov",
    "django", "rest_framework", "rest_framework_simplejwt", "corsheaders", "django_filters", "sqlparse",
    "asgiref", "flask", "flask_sqlalchemy", "flask_cors", "flask_login", "flask_migrate",
    "flask_jwt_extended",
    "itsdangerous", "blinker", "markupsafe", "fastapi", "starlette", "werkzeug", "sqlalchemy", "alembic",
    "pydantic", "pydantic_core", "requests", "urllib3", "certifi", "idna", "chardet", "charset_normalizer",
    "httpx", "httpcore", "h11", "mock", "hypothesis", "freezegun", "factory", "faker", "parameterized",
    "selenium", "trio", "outcome", "tomli", "exceptiongroup", "colorama", "six", "attr", "attrs", "lxml",
    "yaml", "numpy", "pandas", "anyio", "sniffio", "junitxml", "junit_xml", "junitparser", "testtools",
    "assertpy", "jinja2", "click", "pygments", "jwt", "setuptools", "pkg_resources", "pip", "wheel",
    "_distutils_hack", "typing_extensions", "pytz", "dateutil", "tzdata", "greenlet", "cryptography", "cffi",
    "dotenv", "celery", "redis", "marshmallow", "gunicorn", "sitecustomize", "usercustomize",
}  # fmt: skip


class ImportLookup:
    """Import resolution of one project; `_roots` are the folders on its `sys.path`."""

    def __init__(self, project: Pristine) -> None:
        self._project = project
        self._roots = frozenset(_roots(project))

    def refusal(self, path: str, _: str, held: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`; the result does not depend on the text."""
        project = self._project
        folder, stem, suffix = split(path)
        if suffix != "py" or path in project.texts:
            return None
        is_package = stem == "__init__"
        module = folder if is_package else posixpath.join(folder, stem)
        if is_package:
            # A package takes precedence over a module of the same name, and changes the import root of
            # tests in its folder. It is harmless if the answer may change other modules of the folder anyway.
            beside = {each for each in project.texts if split(each)[0] == folder and each.endswith(".py")}
            tests = {each for each in beside if each in project.tools.tests or split(each)[1] == "conftest"}
            locked = beside & project.protected
            if f"{module}.py" in project.protected or tests & locked or (locked and locked == beside):
                return PROTECTED
        elif module in project.protected_folders and f"{module}/__init__.py" not in project.texts:
            return PROTECTED
        return self._at_a_root(path, module, held)

    def _at_a_root(self, path: str, module: str, held: Collection[str] | None) -> str | None:
        project = self._project
        for root in self._roots:
            rest = below(path, root)
            if rest is None:
                continue
            first = rest.partition("/")[0].removesuffix(".py")
            top = posixpath.join(root, first)
            is_own = f"{top}.py" in project.texts or f"{top}/__init__.py" in project.texts
            if is_own or (top in project.folders and module != top):
                continue
            if _is_held(first, held):
                return INSTALLED
            others = [posixpath.join(other, first) for other in self._roots if other != root]
            # A module or package takes precedence over namespace folders anywhere on the path.
            found = {name for each in others for name in (f"{each}.py", f"{each}/__init__.py")}
            is_taken = found & project.protected or project.protected_folders.intersection(others)
            if module == top and is_taken:
                return PROTECTED
        return None


def _is_held(module: str, held: Collection[str] | None) -> bool:
    """Return True if a top-level module of this name can be imported without the project."""
    if held is None:
        return module in _USUAL
    return module in held and module not in _NEVER_LOADED and module not in _NOBODYS


def _roots(project: Pristine) -> Iterator[str]:
    """Yield the root, a non-package `src`, folders of manage.py and loose tests, and configured folders."""
    texts, folders = project.texts, {*project.folders, ""}
    yield ""
    is_package = "src/__init__.py" in texts or any(_FROM_SRC.search(text) for text in texts.values())
    if "src" in folders and not is_package:
        yield "src"
    for path in _PLACE.findall(project.tools.commands):
        for each in path.split(":"):
            place = folder_named(posixpath.dirname(each) if each.endswith(".py") else each)
            if place in folders:
                yield place
    for path, text in texts.items():
        folder, _, name = path.rpartition("/")
        is_loose = (
            path in project.tools.tests and name.endswith(".py") and f"{folder}/__init__.py" not in texts
        )
        if is_loose or name in {"manage.py", "setup.py", "conftest.py", "pytest.ini"}:
            yield folder
        yield from {folder_named(each) for each in _named(name, text)} & folders


def _named(name: str, text: str) -> Iterator[str]:
    if name.endswith(".py") and "sys.path" in text:
        yield from _STRING.findall(text)
    elif name.endswith((".ini", ".cfg", ".toml")):
        for line in text.splitlines():
            if "pythonpath" in line:
                yield from _WORD.findall(line)


_TOOLS = Tools(
    programs=(
        ProjectTool("pytest", r"\bpy\.?test\b", runs_tests=True, brings=("python",)),
        ProjectTool(
            "unittest",
            r"\bunittest\b|\bxmlrunner\b|manage\.py|\bdjango\b",
            runs_tests=True,
            brings=("python",),
        ),
        ProjectTool("pip", r"\bpip3?\b|\bpoetry\b|\buv\b|\bpipenv\b"),
        ProjectTool("nose", r"\bnose"),
        ProjectTool("tox", r"\btox\b"),
        ProjectTool("nox", r"\bnox\b"),
    ),
    reads=(
        Reads(RUNNER, "pytest", "above", r"pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml"),
        Reads(RUNNER, "pytest", "any", r"conftest\.py"),
        Reads(RUNNER, "python", "any", r"sitecustomize\.py|usercustomize\.py|pyvenv\.cfg"),
        Reads(RUNNER, "nose", "place", r"nose\.cfg|setup\.cfg"),
        Reads(RUNNER, "unittest", "place", r"unittest\.cfg"),
        # This file would replace Django's own `test` command.
        Reads(RUNNER, "unittest", "path", r"(?:.*/)?management/commands/test\.py"),
        Reads(RUNNER, "tox nox", "place", r"noxfile\.py|tox\.ini|pyproject\.toml|setup\.cfg"),
        Reads(BUILD, "pytest pip", "above", r"setup\.py"),
        Reads(BUILD, "pytest pip", "place", r"manifest\.in|pipfile(?:\.lock)?|poetry\.lock|uv\.lock"),
        Reads(BUILD, "", "path", (
            r"(?:.*/)?(?:requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt|constraints\.txt)"
        ), when=r"\bpip3?\b"),
    ),
    manifests=r"requirements[^/]*\.txt|pyproject\.toml|pipfile|setup\.cfg|tox\.ini",
    everyday=r"setup\.py",
    inert=r"flake8|pylintrc",
    variables=r"DJANGO_SETTINGS_MODULE|TEST_RUNNER|PYTEST_\w{0,80}|PYTHON(?:_\w{0,80}|PATH|OPT|LIB|HOME|STARTUP|WARNINGS)",
    dependency_folders=frozenset({
        "site-packages", "dist-packages", "__pypackages__", "venv", ".venv", "virtualenv",
    }),
)  # fmt: skip

PYTHON = Language(
    name="python",
    suffixes=frozenset({"py"}),
    images=Images(
        find=find_python,
        calls=re.compile(
            r"(?<![\w.-])(?:python[\d.]*|pip3?|pytest|py\.test|manage\.py|tox|nosetests)(?![\w-])"
        ),
        signs=("requirements.txt",),
        installs=installs,
        managers=("pip", "pip3"),
        holds="python/installed.sh",
    ),
    tools=_TOOLS,
    tests=TestFiles(
        paths=re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_tests?|tests?|conftest)\.py$"),
        content=(
            re.compile(
                r"^\s{0,40}(?:async )?def test_\w+\(|^import pytest|^from pytest|^import unittest",
                re.MULTILINE,
            ),
        ),
    ),
    lookup=ImportLookup,
    loaded="import",
    compiled=r"\.(?:pyc|pyo|pyd|whl|egg)(?:\.\d+)*$|(?:^|/)__pycache__/",
    plugins=re.compile(r"(?:^|/)[^/]+\.(?:egg-info|dist-info|egg|pth|egg-link)(?:/|$)", re.IGNORECASE),
    unbuilt=r"SyntaxError|IndentationError|TabError|ModuleNotFoundError|ImportError",
    mutate=read_tests,
)

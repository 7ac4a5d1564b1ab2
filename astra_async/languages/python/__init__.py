"""Python."""

from __future__ import annotations

import re

from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools
from astra_async.languages.python.image import find_python, installs
from astra_async.languages.python.lookup import ImportLookup
from astra_async.languages.python.trial import read_tests

_TOOLS = Tools(
    programs=(
        Tool(name="pytest", sign=r"\bpy\.?test\b", runs_tests=True, brings=("python",)),
        Tool(
            name="unittest",
            sign=r"\bunittest\b|\bxmlrunner\b|manage\.py|\bdjango\b",
            runs_tests=True,
            brings=("python",),
        ),
        Tool(name="pip", sign=r"\bpip3?\b|\bpoetry\b|\buv\b|\bpipenv\b"),
        Tool(name="nose", sign=r"\bnose"),
        Tool(name="tox", sign=r"\btox\b"),
        Tool(name="nox", sign=r"\bnox\b"),
    ),
    reads=(
        Reads(rule=RUNNER, by="pytest", reach="above", names=(
            r"pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml",
        )),
        Reads(rule=RUNNER, by="pytest", reach="any", names=(r"conftest\.py",)),
        Reads(rule=RUNNER, by="python", reach="any", names=(
            r"sitecustomize\.py|usercustomize\.py|pyvenv\.cfg",
        )),
        Reads(rule=RUNNER, by="nose", reach="place", names=(r"nose\.cfg|setup\.cfg",)),
        Reads(rule=RUNNER, by="unittest", reach="place", names=(r"unittest\.cfg",)),
        # A file that comes before Django's own command.
        Reads(rule=RUNNER, by="unittest", reach="path", names=(r"(?:.*/)?management/commands/test\.py",)),
        Reads(rule=RUNNER, by="tox nox", reach="place", names=(
            r"noxfile\.py|tox\.ini|pyproject\.toml|setup\.cfg",
        )),
        Reads(rule=BUILD, by="pytest pip", reach="above", names=(r"setup\.py",)),
        Reads(rule=BUILD, by="pytest pip", reach="place", names=(
            r"manifest\.in|pipfile(?:\.lock)?|poetry\.lock|uv\.lock",
        )),
        Reads(rule=BUILD, by="", reach="path", when=r"\bpip3?\b", names=(
            r"(?:.*/)?(?:requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt|constraints\.txt)",
        )),
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
    trial=read_tests,
)

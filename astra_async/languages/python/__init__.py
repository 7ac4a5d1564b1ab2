"""Python."""

from __future__ import annotations

import re

from astra_async.languages.language import (
    BUILD,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.python.image import find_python, installs
from astra_async.languages.python.lookup import ImportLookup
from astra_async.languages.python.mutate import read_tests

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
        # A file that comes before Django's own command.
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

"""scripts/setup: what running needs by default, development's tools on demand, nothing twice."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands for Python: makes environments that hold itself, and writes down what it was asked to install.
_STUB = """#!/bin/sh
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"-m pip"*) echo "$*" >> installed ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/setup", "scripts/constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "python").write_text(_STUB)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def installed(clone: Path, *words: str) -> list[str]:
    """What the setup installs."""
    (clone / "installed").unlink(missing_ok=True)
    environ = {"PATH": "/usr/bin:/bin", "PYTHON": str(clone / "python")}
    subprocess.run([clone / "scripts" / "setup", *words], env=environ, check=True, capture_output=True)
    found = clone / "installed"
    return [line.rpartition(" ")[2] for line in found.read_text().splitlines()] if found.exists() else []


def test_running_needs_no_development_tools(clone: Path) -> None:
    assert installed(clone) == ["."]
    assert installed(clone) == []
    assert installed(clone, "dev") == [".[dev]"]
    assert installed(clone, "dev") == installed(clone) == []


def test_an_environment_for_development_is_enough_to_run(clone: Path) -> None:
    assert installed(clone, "dev") == [".[dev]"]
    assert installed(clone) == []


def test_changed_dependencies_are_installed_again(clone: Path) -> None:
    installed(clone)
    with (clone / "scripts" / "constraints.txt").open("a") as stream:
        stream.write("new==1\n")
    assert installed(clone) == ["."]


@pytest.mark.parametrize(
    ("script", "word"), [("demo", ""), ("check", " dev"), ("test", " dev"), ("long", " dev")]
)
def test_who_needs_which(script: str, word: str) -> None:
    text = (ROOT / "scripts" / script).read_text()
    (call,) = [line for line in text.splitlines() if "setup" in line and not line.startswith("#")]
    assert call.replace('"', "").endswith(f"/setup{word}")

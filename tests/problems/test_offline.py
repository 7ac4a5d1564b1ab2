from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from astra_async.languages.javascript import offline_command, offline_environment
from astra_async.types import Project, ProjectFile

if TYPE_CHECKING:
    from pathlib import Path


def project(**files: str) -> Project:
    paths = {name.replace("__", "/").replace("_json", ".json"): text for name, text in files.items()}
    return Project(
        files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in paths.items()),
        sha256="x",
    )


def package(**scripts: str) -> Project:
    return project(package_json=json.dumps({"scripts": scripts}))


@pytest.mark.parametrize("hook", ["npm install", "npm i", "npm ci --silent", "yarn", "yarn install && tsc"])
def test_a_hook_that_installs_is_ignored(hook: str) -> None:
    assert offline_environment(package(pretest=hook)) == {"npm_config_ignore_scripts": "true"}


@pytest.mark.parametrize("hook", ["npm run build", "tsc", "yarn build", "npm init -y", "node install.js"])
def test_a_hook_that_builds_stays_alive(hook: str) -> None:
    assert offline_environment(package(pretest=hook)) == {}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"scripts": []}', '{"scripts": {"pretest": 3}}'])
def test_a_broken_package_json_changes_nothing(content: str) -> None:
    assert offline_environment(project(package_json=content)) == {}


def test_a_command_without_an_install_is_left_as_it_is() -> None:
    assert offline_command("npm test", package(test="jest")) == "npm test"


def run(command: str, folder: Path) -> str:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """npm and yarn that say how they were called."""
    for name in ("npm", "yarn", "pnpm"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f'#!/bin/bash\necho "real {name} $*"\n')
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path


@pytest.mark.parametrize("install", ["npm install", "npm ci", "npm i", "yarn", "yarn install", "pnpm i"])
def test_an_install_before_the_tests_is_skipped_and_the_tests_run(tools: Path, install: str) -> None:
    said = run(offline_command(f"{install} && npm test -- --ci", project()), tools)
    assert "skipped, the image holds the dependencies" in said
    assert said.endswith("real npm test -- --ci\n")
    assert "real npm install" not in said


def test_an_install_in_a_script_of_the_project_is_skipped(tools: Path) -> None:
    script = "#!/bin/bash\nnpm install --silent\necho ready\n"
    (tools / "env_setup").write_text(script)
    said = run(offline_command("bash env_setup && npm test", project(bin__env_setup=script)), tools)
    assert said.splitlines() == [
        "npm install: skipped, the image holds the dependencies",
        "ready",
        "real npm test",
    ]

"""Models never see keys, the reference, run directories or version control of a project folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from astra_async.asking.prompt import is_secret
from astra_async.prepare import prepare
from astra_async.problems.fetch import Store
from astra_async.types import Problem
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.prepare import Prepared


def prepared(project: Path, reference: str = "") -> Prepared:
    problem = Problem(id="p", statement="s", project=str(project), test_command="pytest", reference=reference)

    async def ready() -> Prepared:
        store = Store(project.parent / "cache")
        try:
            return await prepare(problem, store, ["xml"])
        finally:
            await store.close()

    return asyncio.run(ready())


def test_a_project_folder_may_hold_the_reference_runs_keys_and_history(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    files = {
        "app.py": "x = 1\n",
        "solution/app.py": "x = 2  # the answer\n",
        ".env": "TOKEN=abc\n",
        ".env.example": "TOKEN=\n",
        "deploy/server.pem": "-----BEGIN\n",
        ".git/config": "[core]\n",
    }
    for path, text in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    write_run(project / "runs" / "october", Made(problems=made_problems(1), samples=1))
    found = prepared(project, reference=str(project / "solution"))
    prompt = found.prompts["xml"]
    assert sorted(prompt.files) == [".env.example", "app.py"]
    assert "the answer" not in prompt.text
    assert "TOKEN=abc" not in prompt.text
    assert sorted(file.path for file in found.project.files) == sorted(
        [".env", ".env.example", "app.py", "deploy/server.pem"]  # tests may need the keys
    )
    told = "\n".join(found.warnings)
    assert "the run directory runs/october in the project was omitted" in told
    assert "the project's .git was omitted" in told
    assert "'.env', 'deploy/server.pem': may hold keys or passwords" in told


@pytest.mark.parametrize("path", [".env", "api/.env.local", "id_rsa", "b.key", ".aws/credentials", ".netrc"])
def test_files_with_keys_are_known_by_name(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize("path", [".env.example", "src/env.py", "keys.json", "src/.environment", "key.ts"])
def test_ordinary_files_are_not(path: str) -> None:
    assert not is_secret(path)


def test_a_run_directory_inside_a_project_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("x = 1\n")
    (tmp_path / "problems.csv").write_text("id,problem_statement,project,test_command\np,Add,project,sh t\n")
    words = ["run", "--problems", "problems.csv", "--model", "simulated/steady", "--generate-only"]
    ran = subprocess.run(
        [sys.executable, "-m", "astra_async", *words, "--out", "project/run"],
        cwd=tmp_path,
        env={**os.environ, "ASTRA_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "is inside the project of p" in ran.stderr
    assert f"--out {tmp_path / 'run'}" in ran.stderr
    assert [each.name for each in project.iterdir()] == ["app.py"]

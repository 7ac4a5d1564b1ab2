"""What is published works where nothing of this repository is: a wheel, an empty environment."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 900


def done(*command: object, cwd: Path) -> str:
    """Runs a command with nothing but a home and the system's path; returns what it printed."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    said = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
    assert said.returncode == 0, f"{command}\n{said.stdout}\n{said.stderr}"
    return said.stdout


def data_files() -> set[str]:
    """Everything that the package is made of, as the wheel has to hold it."""
    junk = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    paths = (path.relative_to(ROOT) for path in (ROOT / "astra_async").rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if not junk & set(path.parts)}


@pytest.mark.seconds(120)
@pytest.mark.docker
def test_a_wheel_works_in_an_empty_environment_and_another_folder(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    done(*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert data_files() <= set(archive.namelist())
    done(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    env = tmp_path / "env" / "bin"
    constraints = ROOT / "scripts" / "constraints.txt"
    done(env / "python", *pip[1:], "install", "-c", constraints, wheel, cwd=tmp_path)
    place = done(env / "python", "-c", "import astra_async; print(astra_async.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(tmp_path)
    assert "regrade" in done(env / "astra", "--help", cwd=tmp_path)
    assert "product-api" in done(env / "astra", "problems", cwd=tmp_path)
    shown = done(env / "astra", "demo", "--limit", "1", "--samples", "1", cwd=tmp_path)
    assert "Leaderboard" in shown
    assert (tmp_path / "astra-demo" / "report" / "index.html").exists()
    for tool in ("pytest", "mypy", "ruff", "moto"):
        assert not (env / tool).exists()

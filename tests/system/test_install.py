"""The ways to install that docs/install.md names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()


def shown(*command: str | Path, cwd: Path, **environ: str) -> str:
    """Run a command and return its standard output."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **environ},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(tmp_path: Path, shell: str) -> None:
    assert f"_ASTRA_COMPLETE={shell}_source astra" in PAGE
    program = "from astra_async.cli import main; import sys; sys.argv[0] = 'astra'; main()"
    ask = {"_ASTRA_COMPLETE": f"{shell}_source", "PYTHONPATH": str(ROOT)}
    assert "astra" in shown(sys.executable, "-c", program, cwd=tmp_path, **ask)
    ask |= {"_ASTRA_COMPLETE": "bash_complete", "COMP_WORDS": "astra run --bud", "COMP_CWORD": "2"}
    assert "plain,--budget-usd" in shown(sys.executable, "-c", program, cwd=tmp_path, **ask)


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "install"),
    [
        pytest.param("pipx", ("pipx", "install", "."), marks=pytest.mark.installs("pipx")),
        pytest.param("uv", ("uv", "tool", "install", "."), marks=pytest.mark.installs("uv")),
    ],
)
def test_a_tool_installs_the_command(tmp_path: Path, tool: str, install: tuple[str, ...]) -> None:
    assert " ".join(install) in PAGE
    shown(sys.executable, "-m", "venv", "tools", cwd=tmp_path)
    pip = subprocess.run(
        [tmp_path / "tools" / "bin" / "pip", "install", "--quiet", tool],
        capture_output=True,
        text=True,
        check=False,
    )
    if pip.returncode:
        pytest.skip(f"{tool} cannot be installed: {pip.stderr[-300:]}")
    index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    program = tmp_path / "tools" / "bin" / install[0]
    shown(program, *install[1:-1], ROOT, cwd=tmp_path, **index)
    assert "Usage: astra" in shown(tmp_path / ".local" / "bin" / "astra", "--help", cwd=tmp_path)

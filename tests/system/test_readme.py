"""The commands that the README shows, run in its order by a shell, as a reader would.

Substituted, and nothing else: real models by simulated ones behind ASTRA_BASE_URL, 32 samples by 2.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUNDLED = ROOT / "astra_async" / "bundled" / "problems"
SUBSTITUTES = {
    "openai/gpt-4o": "openai/steady",
    "anthropic/claude-opus-4-1": "anthropic/erratic",
    "--samples 32": "--samples 2",
}


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.startswith("astra ")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "astra_async", "simulate", "--port", "0", "--speed", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().split(" at ")[1].split()[0]
    process.terminate()
    process.wait()
    process.stdout.close()


def test_the_readmes_commands_work_in_its_order(tmp_path: Path, server: str) -> None:
    with (tmp_path / "my.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "problem_statement", "project", "image", "reference"])
        for name, image in (("product-api", "node-express"), ("library-api", "django")):
            place = BUNDLED / name
            statement = (place / "statement.md").read_text()
            writer.writerow([name, statement, place / "project", f"astra-set:{image}", place / "reference"])
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "OPENAI_API_KEY": "sk-not-a-real-key",
        "ANTHROPIC_API_KEY": "sk-not-a-real-key",
        "ASTRA_BASE_URL": server,
    }
    shown = commands()
    assert len(shown) >= 7
    for line in shown:
        if "november" in line:
            subprocess.run(["cp", "-r", "runs/october", "runs/november"], cwd=tmp_path, check=True)
        command = line
        for real, simulated in SUBSTITUTES.items():
            command = command.replace(real, simulated)
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "sk-not-a-real-key" not in done.stdout + done.stderr
    written = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert not [path for path in written if b"sk-not-a-real-key" in path.read_bytes()]


def test_the_map_names_what_exists() -> None:
    table = README.partition("## The map")[2].partition("## ")[0]
    for name in re.findall(r"`([a-z_/]+(?:\.py)?)`", table):
        assert (ROOT / name).exists() or (ROOT / "astra_async" / name).exists(), name

"""The commands that the README shows, typed in its order into one shell in a clone, as a reader would.

Substituted, and nothing else: real models by simulated ones behind ASTRA_BASE_URL, 32 samples by 2; the
viewer is stopped once its page was seen; the environment of the tests stands for that of scripts/setup.
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

pytestmark = [pytest.mark.docker, pytest.mark.timeout(2400)]  # where nobody has, it makes images first

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BUNDLED = ROOT / "astra_async" / "bundled" / "problems"
SUBSTITUTES = {
    "openai/gpt-4o": "openai/steady",
    "anthropic/claude-opus-4-1": "anthropic/erratic",
    "--samples 32": "--samples 2",
}
# It serves until it is stopped: the page is asked for once, then it is.
_UNTIL_SEEN = """>viewer.txt & viewer=$!
until grep -q http viewer.txt; do sleep 0.1; kill -0 $viewer; done
curl -fsS "$(grep -o 'http[^ ]*' viewer.txt)" | grep -q '<title>'
kill -TERM $viewer
wait $viewer"""


def commands() -> list[str]:
    """Every line of the blocks, those of scripts/ apart: they set up the machine."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    shown = [line.partition("#")[0].strip() for line in lines]
    return [line for line in shown if line and not line.startswith("scripts/")]


def substituted(line: str) -> str:
    for real, simulated in SUBSTITUTES.items():
        line = line.replace(real, simulated)
    line = line.replace("=...", "=sk-not-a-real-key")
    return f"{line} {_UNTIL_SEEN}" if line.startswith("astra view ") else line


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


@pytest.mark.seconds(80)
def test_the_readmes_commands_work_in_its_order(tmp_path: Path, server: str) -> None:
    with (tmp_path / "my.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "problem_statement", "project", "image", "reference"])
        for name, image in (("product-api", "node-express"), ("library-api", "django")):
            place = BUNDLED / name
            statement = (place / "statement.md").read_text()
            writer.writerow([name, statement, place / "project", f"astra-set:{image}", place / "reference"])
    # An environment as scripts/setup makes it, around the packages that are there.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    packages = next((tmp_path / ".venv" / "lib").glob("python*")) / "site-packages"
    (packages / "tests.pth").write_text("\n".join(path for path in sys.path if path))
    program = tmp_path / ".venv" / "bin" / "astra"
    program.write_text(f'#!/bin/sh\nexec {tmp_path}/.venv/bin/python -m astra_async "$@"\n')
    program.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environ |= {"ASTRA_BASE_URL": server, "HOME": str(tmp_path)}
    environ["PATH"] = ":".join(
        folder for folder in environ["PATH"].split(":") if not (Path(folder) / "astra").exists()
    )
    shown = [substituted(line) for line in commands()]
    november = next(number for number, line in enumerate(shown) if "runs/november" in line)
    shown.insert(november, "cp -r runs/october runs/november")
    assert len([line for line in shown if line.startswith("astra ")]) >= 10
    done = subprocess.run(
        ["bash", "-eu"],
        input="\n".join(shown),
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "sk-not-a-real-key" not in done.stdout + done.stderr
    written = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert not [path for path in written if b"sk-not-a-real-key" in path.read_bytes()]

"""docs/first-problem.md, followed to the letter in an empty folder by a shell.

Substituted, and nothing else: the port of the page's own server by a free one.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "first-problem.md").read_text(encoding="utf-8")
_FENCE = r"```\w*\n(.*?)^```"
FILES = dict(re.findall(rf"^`([\w./]+)`[^`]*?:\n\n{_FENCE}", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_shows_every_file_that_it_needs() -> None:
    assert FILES.keys() == {
        *("shop/prices.py", "shop/test_prices.py", "shop/requirements.txt", "shop/hackerrank.yml"),
        *("solution/prices.py", "problems.csv", "stand_in.py"),
    }
    assert len(COMMANDS) == 7


@pytest.mark.first
@pytest.mark.docker
def test_the_page_leads_from_an_empty_folder_to_a_graded_run(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content.replace("8001", port))
    # The server is stopped even if a command before its `kill` fails.
    script = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "".join(COMMANDS).replace("8001", port)
    done = subprocess.run(
        ["bash", "-eu"],
        input=script,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, f"{said}\n{done.stderr}"
    assert re.search(r"discount +.*\b1\b.*\b4\b.*\bfit\b", said)
    assert "4 of 4 samples, 100 %" in said
    assert said.count("mean score of 87.5 %. Its pass@1 is 50.0 %.") == 3
    # Requests are concurrent, so sample 0 has either of the two answers.
    assert re.search(r"result: [34] of 4 tests passed, scored", said)
    assert re.search(r"^\+    return .*total\(prices\)", said, re.MULTILINE)
    assert "openai/gpt-4o" in said
    assert len((tmp_path / "runs" / "first" / "results.jsonl").read_text().splitlines()) == 8
    assert (tmp_path / "runs" / "first" / "report" / "index.html").exists()
    assert not {path.name for path in tmp_path.iterdir()} - {
        *("shop", "solution", "problems.csv", "stand_in.py", "stand_in.log", "validation.json", "runs"),
    }

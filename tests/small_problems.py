"""Problems that need only bash, for tests and measurements of the whole program.

Four tests; as many pass as the number in `src/answer.txt` says.
"""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TESTS = 4
COLUMNS = ("id", "problem_statement", "project", "test_command", "result_files", "image", "tests")
SUITE = f"""\
read -r passing < src/answer.txt
{{
  echo '<testsuite name="answer">'
  for ((n = 0; n < {TESTS}; n++)); do
    failed=; [ "$n" -lt "$passing" ] || failed='<failure/>'
    echo "<testcase classname=\\"answer\\" name=\\"test $n\\">$failed</testcase>"
  done
  echo '</testsuite>'
}} > junit.xml
"""


def write_problems(
    folder: Path,
    ids: Sequence[str],
    image: str,
    *,
    characters: int = 0,
    before: str = "",
    named: bool = False,
) -> Path:
    """Write the projects and their CSV; return the CSV's path.

    `characters` is what the prompt gains by padding; `before` runs in the container before the tests;
    `named` lists the tests in the CSV, so that the untouched project is not run to learn them.
    """
    tests = json.dumps([f"answer test {number}" for number in range(TESTS)]) if named else ""
    path = folder / "problems.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for name in ids:
            _write_project(folder / name, characters, before)
            command = "bash tests/suite.sh"
            writer.writerow((name, "Write the answer.", name, command, "junit.xml", image, tests))
    return path


def solution(passing: int | str) -> str:
    """Return an answer with which `passing` tests pass."""
    return f'<solution><file path="src/answer.txt"><![CDATA[{passing}\n]]></file></solution>'


def _write_project(project: Path, characters: int, before: str) -> None:
    (project / "src").mkdir(parents=True)
    (project / "tests").mkdir()
    (project / "src/answer.txt").write_text("0\n")
    (project / "tests/suite.sh").write_text(f"{before}\n{SUITE}")
    line = "An answer is a number.\n"
    (project / "README.md").write_text("# Answers\n" + line * (characters // len(line)))

"""Every bundled problem in its own image: reference, untouched project and known faulty answers, once.

Three repetitions are for `scripts/long`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from astra_async.bundled import image_set_of, load_answers, problem_ids

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.docker
STACKS: dict[str, list[str]] = defaultdict(list)
for each in problem_ids():
    STACKS[str(image_set_of(each))].append(each)


@pytest.mark.timeout(3600)  # some ten runs of tests for each problem
@pytest.mark.parametrize(
    "stack", [pytest.param(name, marks=pytest.mark.seconds(20 * len(STACKS[name]))) for name in STACKS]
)
def test_every_known_answer_earns_its_known_score(tmp_path: Path, stack: str) -> None:
    details = tmp_path / "validation.json"
    only = [word for problem_id in STACKS[stack] for word in ("--only", problem_id)]
    done = subprocess.run(
        [sys.executable, "-m", "astra_async", "validate", "--json", str(details), *only],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {record["problem_id"]: record for record in json.loads(details.read_bytes())}
    assert set(found) == set(STACKS[stack])
    for problem_id, record in found.items():
        answers = load_answers(problem_id)
        assert answers is not None
        assert record["verdict"] == "fit"
        scores = {each["name"]: each["passed"] for each in record["tried"]}
        assert scores["reference"] == [answers.total]
        assert max(scores["untouched"]) <= answers.total / 5
        assert {each.name: [each.expected_passed] for each in answers.faulty}.items() <= scores.items()
        for each in record["tried"]:
            check_messages(f"{problem_id} {each['name']}", each["failed"])


def check_messages(where: str, failed: list[dict[str, str]]) -> None:
    """Every runner's failed tests say why, in text that no terminal obeys."""
    reported = [test["message"] for test in failed if test["outcome"] in ("failed", "error")]
    assert any(reported) or not reported, f"{where}: no failed test says why"
    for test in failed:
        message = test["message"]
        assert len(message) <= 500
        assert not re.search(r"\[\d{1,2}m", message), f"{where}: a colour is left in {message!r}"
        others = {each for each in message if unicodedata.category(each) in ("Cc", "Cs")} - {"\n", "\t"}
        assert not others, f"{where}: {message!r}"

"""No honest answer loses a file: a name is no proof of anything (in containers: tests/audit)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from astra_async.bundled import bundled_problems_csv
from astra_async.overlay import integrate, path_policy
from astra_async.problems import complete, load_problems
from astra_async.problems.manifest import read_manifest
from astra_async.types import Integrated, Problem, Project, ProjectFile, Solution
from unusual_answers import STACKS, Unusual, unusual_answers

ANSWERS = tuple(unusual_answers())
LEAST_ANSWERS = 150


@cache
def problem_of(name: str) -> tuple[Problem, Project]:
    problem = next(each for each in load_problems(bundled_problems_csv()).problems if each.id == name)
    root = Path(bundled_problems_csv().parent, "problems", name, "project")
    files = tuple(
        ProjectFile(path=path.relative_to(root).as_posix(), content=path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    )
    manifest = read_manifest((root / "hackerrank.yml").read_bytes())
    return complete(problem, manifest), Project(files=files, sha256=name)


def test_there_are_answers_enough_for_every_stack() -> None:
    assert len(ANSWERS) >= LEAST_ANSWERS
    assert {each.stack for each in ANSWERS} == set(STACKS)
    assert len({(each.stack, each.name) for each in ANSWERS}) == len(ANSWERS)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: f"{each.stack}: {each.name}")
def test_an_honest_answer_keeps_every_file_but_its_own_tests(answer: Unusual) -> None:
    problem, project = problem_of(answer.framework)
    result = integrate(project, Solution(files=answer.answer), path_policy(problem, project))
    assert isinstance(result, Integrated)
    assert {(each.path, each.reason) for each in result.dropped if each.path not in answer.left_out} == set()
    pristine = {file.path for file in project.files}
    assert set(result.files) >= set(answer.answer) - pristine - answer.left_out

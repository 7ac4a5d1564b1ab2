"""The simulated models on the problems that ship with the package, read by the program's own reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from simulated_client import SHOP

from astra_async.answers import parse_solution
from astra_async.bundled import load_answers, problem_ids, read_statement
from astra_async.simulate.draws import SampleName, find_bundled_problem, seeded
from astra_async.simulate.formatting import REPAIRABLE, UNREADABLE, flawed, well_formed
from astra_async.simulate.model_answers import draw_answer
from astra_async.simulate.profiles import PROFILES
from astra_async.types import Solution, Unusable

if TYPE_CHECKING:
    from astra_async.types import Format


@pytest.mark.parametrize("problem_id", problem_ids())
def test_a_prompt_is_recognised_by_the_statement_in_it(problem_id: str) -> None:
    statement = read_statement(problem_id).replace("\n", "\n    ")
    assert find_bundled_problem(f"Solve this.\n\n    {statement}\n\nFiles: ...") == problem_id
    assert find_bundled_problem(statement[: len(statement) // 2]) is None


@pytest.mark.parametrize("problem_id", problem_ids())
def test_models_give_the_solutions_of_a_bundled_problem(problem_id: str) -> None:
    solutions = load_answers(problem_id)
    assert solutions is not None
    known = {"reference", *(faulty.name for faulty in solutions.faulty)}
    names = [SampleName("0", "xml", problem_id, number) for number in range(60)]
    drawn = {draw_answer(one, name, solutions).solution for one in PROFILES.values() for name in names}
    assert drawn <= known | {None}
    assert "reference" in drawn
    assert len(drawn) > 2


def test_an_unknown_problem_has_no_solutions() -> None:
    assert load_answers("no-such-problem") is None


@pytest.mark.parametrize("fmt", ["xml", "json"])
def test_well_formed_answers_are_read_as_they_were_meant(fmt: Format) -> None:
    for number in range(40):
        read = parse_solution(well_formed(SHOP.reference, fmt, seeded(number), prose=0.5), fmt, "stop")
        assert isinstance(read, Solution)
        assert read.files == SHOP.reference


@pytest.mark.parametrize(
    ("fmt", "flaw"), [(fmt, flaw) for fmt, flaws in REPAIRABLE.items() for flaw in flaws]
)
def test_a_flaw_that_is_called_repairable_can_be_repaired(fmt: Format, flaw: str) -> None:
    read = parse_solution(flawed(SHOP.reference, fmt, flaw), fmt, "stop")
    assert isinstance(read, Solution)
    assert read.files == SHOP.reference
    assert read.repairs


@pytest.mark.parametrize(
    ("fmt", "flaw"), [(fmt, flaw) for fmt, flaws in UNREADABLE.items() for flaw in flaws]
)
def test_a_flaw_that_is_called_unreadable_is_a_format_error(fmt: Format, flaw: str) -> None:
    read = parse_solution(flawed(SHOP.reference, fmt, flaw), fmt, "stop")
    assert isinstance(read, Unusable)
    assert read.failure == "format_error"

"""Who is tried: shares of time, draws that nobody foresees, and what a resume remembers."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from astra_async.errors import StorageError
from astra_async.integrity.docket import Decision, Docket, Solved, run_key

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import TrialState

KEY = b"of this run"


def held(docket: Docket, *, samples: int, eligible: float, ratio: float, seconds: float = 10.0) -> list[bool]:
    """Grades samples of which a part is above the untouched project; whether each of those was tried."""
    tried = []
    for number in range(samples):
        docket.count_grading(seconds)
        if (number * 0.618) % 1 < eligible:
            solved = Solved("p", f"{number}")
            twins = docket.draw_twins(solved, "m", seconds, suspicious=False)
            state: TrialState = "tried" if twins else "not_drawn"
            docket.remember(
                solved, "m", Decision(state=state), scored_s=seconds, trial_s=seconds * ratio * twins
            )
            tried.append(bool(twins))
    return tried


def test_everything_is_tried_where_that_takes_less_than_two_fifths_of_the_time() -> None:
    assert all(held(Docket(KEY), samples=300, eligible=0.3, ratio=1.0)[30:])
    assert all(held(Docket(KEY), samples=300, eligible=0.9, ratio=0.3)[30:])


@pytest.mark.parametrize(("eligible", "ratio"), [(1.0, 1.0), (0.8, 1.3), (0.9, 0.7)])
def test_else_a_part_is_tried_that_takes_about_two_fifths_of_the_time(eligible: float, ratio: float) -> None:
    tried = held(Docket(KEY), samples=3000, eligible=eligible, ratio=ratio)
    assert sum(tried) * ratio / 3000 == pytest.approx(0.4, abs=0.04)


def test_code_that_takes_its_time_is_not_drawn_less_often() -> None:
    docket, tried = Docket(KEY), {1.0: 0, 200.0: 0}
    for number in range(2000):
        seconds = 200.0 if number % 2 else 1.0
        docket.count_grading(seconds)
        tried[seconds] += docket.draw_twins(Solved("p", f"{number}"), "m", seconds, suspicious=False)
    assert tried[200.0] == pytest.approx(tried[1.0], rel=0.2)


def test_a_draw_follows_from_key_problem_and_solution_alone() -> None:
    def draws(key: bytes, problem: str) -> list[float]:
        return [Docket(key).rng(Solved(problem, f"{n}"), "draw").random() for n in range(5)]

    assert draws(KEY, "p") == draws(KEY, "p")
    assert len({*draws(KEY, "p"), *draws(KEY, "q"), *draws(b"other", "p")}) == 15
    assert Docket(KEY).rng(Solved("p", "1"), "twin").random() not in draws(KEY, "p")


def test_two_twins_try_the_suspicious_everybody_and_models_with_a_proof() -> None:
    solved, docket = Solved("p", "s"), Docket(KEY)
    assert docket.draw_twins(solved, "m", 1.0, suspicious=True) == 2
    assert Docket(KEY, everybody=True).draw_twins(solved, "m", 1.0, suspicious=False) == 2
    proof = Decision(state="tried", evidence=("canary_passed:x",), note="x")
    docket.remember(solved, "m", proof)
    assert docket.draw_twins(Solved("p", "t"), "m", 1.0, suspicious=False) == 2
    assert docket.draw_twins(Solved("p", "t"), "n", 1.0, suspicious=False) < 2


def test_the_key_is_made_once_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    key = run_key(tmp_path)
    assert len(key) == 32
    assert run_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "trial.key").stat().st_mode) == 0o600
    (tmp_path / "trial.key").write_bytes(b"torn")
    assert len(run_key(tmp_path)) == 32
    with pytest.raises(StorageError, match=r"trial\.key"):
        run_key(tmp_path / "gone")


def test_what_was_not_drawn_binds_nobody_who_is_proven() -> None:
    docket, solved = Docket(KEY), Solved("p", "same")
    passed_by = docket.remember(solved, "m", Decision(state="not_drawn"))
    assert docket.binds(passed_by, "m")
    proof = Decision(state="tried", evidence=("canary_passed:a",), note="a test that must fail passes")
    docket.remember(Solved("p", "other"), "m", proof)
    assert not docket.binds(passed_by, "m")
    assert docket.binds(passed_by, "another model")
    assert docket.binds(proof, "m")

"""Who is tried: shares of time, draws that nobody foresees, and what a resume remembers."""

from __future__ import annotations

import stat
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from astra_async.errors import StorageError
from astra_async.integrity.draw import ALL_FORMS, LEAST, Decision, Draw, Solved, run_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEY = b"of this run"
PROOF = Decision(state="tried", evidence=("altered_passed:x",), note="x")


def share(draw: Draw, model: str, problem: str, *, ratio: float, samples: int = 2000) -> float:
    """Which share of a model's solutions of a problem is tried, where trials take so much of a scored run."""
    tried = 0
    for number in range(samples):
        solved = Solved(problem, f"{number}")
        if forms := draw.forms(solved, model):
            draw.count(solved, model, scored_s=10.0, trials_s=10.0 * ratio * forms)
            tried += 1
    return tried / samples


@pytest.mark.parametrize("ratio", [0.7, 1.0, 2.5])
def test_so_many_are_drawn_that_trials_take_a_third_of_the_time(ratio: float) -> None:
    assert share(Draw(KEY), "m", "p", ratio=ratio) * ratio == pytest.approx(1 / 3, abs=0.04)


def test_of_few_samples_about_a_third_is_drawn_too_and_no_draw_is_certain() -> None:
    counts, after_one = [], {True: [], False: []}  # type: ignore[var-annotated]
    for number in range(600):
        draw = Draw(b"%d" % number)
        drawn = [bool(draw.forms(Solved("p", f"{sample}"), "m")) for sample in range(8)]
        counts.append(sum(drawn))
        for before, now in pairwise(drawn):
            after_one[before].append(now)
    assert sum(counts) / len(counts) == pytest.approx(8 / 3, abs=0.1)
    assert sum(count > 4 for count in counts) < 0.05 * len(counts)  # a free draw: 9 %
    assert all(0.15 < sum(each) / len(each) < 0.5 for each in after_one.values())


def test_what_hangs_for_one_model_or_problem_costs_no_other_its_share() -> None:
    draw = Draw(KEY)
    assert share(draw, "hangs", "p", ratio=100.0) == pytest.approx(LEAST, abs=0.02)
    assert share(draw, "hangs", "other problem", ratio=1.0) == pytest.approx(1 / 3, abs=0.04)
    assert share(draw, "other model", "p", ratio=1.0) == pytest.approx(1 / 3, abs=0.04)


def test_a_draw_follows_from_key_problem_and_solution_alone() -> None:
    def draws(key: bytes, problem: str) -> list[float]:
        return [Draw(key).rng(Solved(problem, f"{n}"), "draw").random() for n in range(5)]

    assert draws(KEY, "p") == draws(KEY, "p")
    assert len({*draws(KEY, "p"), *draws(KEY, "q"), *draws(b"other", "p")}) == 15
    assert Draw(KEY).rng(Solved("p", "1"), "order").random() not in draws(KEY, "p")


def test_all_forms_try_everybody_if_so_wished_and_models_with_a_proof() -> None:
    solved, draw = Solved("p", "s"), Draw(KEY)
    assert Draw(KEY, everybody=True).forms(solved, "m") == ALL_FORMS
    draw.remember(solved, "m", PROOF)
    assert {draw.forms(Solved("p", f"{number}"), "m") for number in range(20)} == {ALL_FORMS}
    assert {draw.forms(Solved("p", f"{number}"), "n") for number in range(20)} == {0, 1}


def test_what_was_not_drawn_binds_nobody_who_is_proven() -> None:
    draw, solved = Draw(KEY), Solved("p", "same")
    passed_by = draw.remember(solved, "m", Decision(state="not_drawn"))
    assert draw.known(solved, "m") == passed_by
    draw.remember(Solved("p", "other"), "m", PROOF)
    assert draw.known(solved, "m") is None
    assert draw.known(solved, "another model") == passed_by
    assert draw.known(Solved("p", "other"), "m") == PROOF


def test_what_was_not_drawn_binds_nobody_where_everybody_is_tried() -> None:
    draw = Draw(KEY, everybody=True)
    draw.recall([line(trial="not_drawn")])
    assert draw.known(Solved("p", "s"), "m") is None


def line(**given: object) -> dict[str, object]:
    return {
        "status": "scored",
        "model": "m",
        "problem_id": "p",
        "solution_sha256": "s",
        "failure": None,
        "test_s": 10.0,
        "trial": "tried",
        "trial_s": 10.0,
        "suspicions": [],
        "note": "",
        **given,
    }


def recalled(lines: Iterable[dict[str, object]]) -> Draw:
    draw = Draw(KEY)
    draw.recall(lines)
    return draw


def test_a_resume_knows_what_was_tried_and_what_it_took() -> None:
    draw = recalled(
        [line(trial="unproven", note="unproven: silent"), line(solution_sha256="t", trial="not_drawn")]
    )
    assert draw.known(Solved("p", "s"), "m") == Decision(
        state="unproven", note="unproven: silent", forms=ALL_FORMS
    )
    assert draw.known(Solved("p", "t"), "m") == Decision(state="not_drawn")
    slow = recalled(line(solution_sha256=str(number), trial_s=1000.0) for number in range(20))
    assert share(slow, "m", "p", ratio=100.0, samples=300) < 0.1


@pytest.mark.parametrize("proof", ["altered_passed:x", "canary_passed:x", "report_forged:x"])
def test_a_resume_knows_proofs_also_those_of_runs_before_the_altered_tests(proof: str) -> None:
    draw = recalled([line(failure="tampered", suspicions=["exit_handler:a", proof], note="why")])
    assert draw.known(Solved("p", "s"), "m") == Decision(
        state="tried", evidence=(proof,), note="why", forms=ALL_FORMS
    )
    assert draw.forms(Solved("p", "t"), "m") == ALL_FORMS


def test_the_key_is_made_once_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    key = run_key(tmp_path)
    assert len(key) == 32
    assert run_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "trial.key").stat().st_mode) == 0o600
    (tmp_path / "trial.key").write_bytes(b"torn")
    assert len(run_key(tmp_path)) == 32
    with pytest.raises(StorageError, match=r"trial\.key"):
        run_key(tmp_path / "gone")

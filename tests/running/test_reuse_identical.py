"""Equal solutions are graded once with --reuse-identical; time-outs are repeated on a strained machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from obedient_sandbox import RIGHT, UNTOUCHED, Grader

if TYPE_CHECKING:
    from pathlib import Path


def test_equal_solutions_are_graded_once_with_reuse(tmp_path: Path) -> None:
    grading = Grader(tmp_path, reuse=True)
    first, other, again = grading.of(RIGHT, UNTOUCHED + "#\n", RIGHT)
    assert again.note == "verdict of sample 0 reused"
    unlike = {"sample", "note", "started_at", "finished_at"}
    one, two = ({k: v for k, v in structs.asdict(each).items() if k not in unlike} for each in (first, again))
    assert one == two
    assert other.note == ""
    assert len(grading.sandbox.jobs) == 3  # learned, scored, scored


def test_a_later_invocation_and_another_model_reuse_the_first_verdict(tmp_path: Path) -> None:
    Grader(tmp_path, reuse=True).of(RIGHT, RIGHT)
    grading = Grader(tmp_path, reuse=True)
    (result,) = grading.of(RIGHT, model="n")
    assert result.note == "verdict of sample 0 reused (m, xml)"
    assert (result.passed, len(grading.sandbox.jobs)) == (4, 0)


def test_equal_solutions_are_graded_each_by_default(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    results = grading.of(RIGHT, RIGHT)
    assert [result.note for result in results] == ["", ""]
    assert len(grading.sandbox.jobs) == 3  # learned, scored, scored


def test_a_time_out_is_never_reused(tmp_path: Path) -> None:
    grading = Grader(tmp_path, reuse=True)
    results = grading.of("endless\n", "endless\n")
    assert [(result.failure, result.note) for result in results] == [("timeout", "stopped after 60 s")] * 2


def test_a_time_out_on_a_strained_machine_is_repeated_once(tmp_path: Path) -> None:
    grading = Grader(tmp_path, strained=True)
    results = grading.of("endless\n", "endless\n", "endless, too\n")
    assert [result.failure for result in results] == ["timeout"] * 3
    assert [result.repairs for result in results] == [("timeout_repeated",), (), ("timeout_repeated",)]
    assert len(grading.sandbox.jobs) == 1 + 2 + 1 + 2


def test_a_time_out_on_an_idle_machine_is_not_repeated(tmp_path: Path) -> None:
    grading = Grader(tmp_path)
    assert grading.of("endless\n")[0].repairs == ()
    assert len(grading.sandbox.jobs) == 2  # learned, scored

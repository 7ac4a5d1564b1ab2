"""astra validate says where a problem is fit by a hair."""

import pytest

from astra_async.testing.validation import Repetitions, _near_the_limit


def trial(*seconds: float, failures: tuple[str | None, ...] = ()) -> Repetitions:
    return Repetitions(name="reference", passed=(1,), total=1, seconds=seconds, failures=failures)  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "told"), [(10.0, False), (149.0, False), (150.0, True), (290.0, True)])
def test_tests_that_take_half_of_their_time_are_told(seconds: float, *, told: bool) -> None:
    assert bool(_near_the_limit([trial(1.0), trial(3.0, seconds)], 300.0)) is told


def test_a_time_out_itself_is_a_reason_and_no_remark() -> None:
    assert not _near_the_limit([trial(300.0, failures=("timeout",))], 300.0)

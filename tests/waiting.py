"""Waiting for events on a loaded machine; a failure shows the last observed value."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

Seen = TypeVar("Seen")
PATIENCE_S = 600.0  # seconds; a longer wait counts as a hang
_LONGEST_PAUSE_S = 0.2
_USUAL_WORK_S = 0.0045


def awaited(
    look: Callable[[], Seen],
    what: str,
    *,
    until: Callable[[Seen], object] = bool,
    while_runs: subprocess.Popen[str] | None = None,
) -> Seen:
    """Poll until the value is accepted (by default: true) and return it.

    Nothing is awaited of a program `while_runs` that has ended without it.
    """
    gives_up_at = time.monotonic() + PATIENCE_S
    pause_s = 0.01
    while True:
        has_ended = while_runs is not None and while_runs.poll() is not None
        seen = look()
        if until(seen):
            return seen
        if has_ended and while_runs is not None:
            told = while_runs.stderr.read() if while_runs.stderr else ""
            pytest.fail(f"no {what}: the program ended with {while_runs.returncode} and said\n{told}")
        if time.monotonic() > gives_up_at:
            pytest.fail(f"waited {PATIENCE_S:.0f} s in vain for {what}; seen last: {seen!r:.2000}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.3, _LONGEST_PAUSE_S)


@contextmanager
def cpu_within(limit_s: float) -> Iterator[None]:
    """What is done here takes less CPU time than this, or as much more as this machine is slower than ours.

    For work that would take minutes if it were not linear; CPU time grows where others share the core, too.
    """
    before_s = _usual_work_s()
    began_s = time.process_time()
    yield
    took_s = time.process_time() - began_s
    slower = max(1.0, before_s / _USUAL_WORK_S, _usual_work_s() / _USUAL_WORK_S)
    assert took_s < limit_s * slower, f"took {took_s:.2f} s of CPU time, not {limit_s} s times {slower:.1f}"


def _usual_work_s() -> float:
    began_s = time.process_time()
    sum(number * number for number in range(100_000))
    return time.process_time() - began_s

"""Which tests count for each problem of a run directory: those that its final lines count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.errors import ExpectationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from astra_async.types import ExpectedTest


class CountedTests:
    """The tests that the first final line of each problem counts; all others of it count the same."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, list[str]]] = {}

    def add(self, result: Mapping[str, Any]) -> None:
        """Take notice of a final line that is believed; one may have no `tests`."""
        if result["problem_id"] not in self._counted:
            names = sorted(str(test.get("name", "")) for test in result.get("tests", ()))
            self._counted[result["problem_id"]] = (result["total"], names)

    def check(self, problem_id: str, expected: Sequence[ExpectedTest], directory: Path) -> None:
        """Nothing is graded against other tests than the lines that are there.

        Raises ExpectationError: a reference, an image or a version of this program has changed, or a suite
        that reports other names in each run.
        """
        total, names = self._counted.get(problem_id, (len(expected), []))
        now = sorted(test.name for test in expected)
        if total == len(now) and (not names or names == now):
            return
        other = min(set(names) ^ set(now)) if names and set(names) != set(now) else ""
        raise ExpectationError(
            f"{len(now)} tests count now, and {total} in its samples that are graded already"
            + (f" ({other!r} is in one of the two only)" if other else "")
            + f": its reference, its image or astra has changed; `astra regrade {directory}` grades all"
            " recorded answers against the same tests",
            problem_id=problem_id,
        )

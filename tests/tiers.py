"""Selection of tests by tier, from the marks of the tests, and the summary at the end.

A test without a container and without the mark `long` is in the first tier. A test with a container, or with
the mark `long`, is in the first tier only if it has the mark `first`. All other tests are divided into parts
of about the same length.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

COLLECTED = pytest.StashKey[tuple[pytest.Item, ...]]()
PARTS = 7
TIERS = ("first", "all", *map(str, range(1, PARTS + 1)))
_USUAL_S = 3.0  # seconds of a test with a container and without the mark `seconds`
_SLOWEST = 10
_NAMED = 12  # maximum number of failed tests in the command that repeats them


def selected(items: Sequence[pytest.Item], tier: str) -> list[pytest.Item]:
    """Return the tests of a tier of TIERS; a number selects one part."""
    if tier == "all":
        return list(items)
    parted = [item for item in items if is_parted(item)]
    first = first_of(parted)
    if tier == "first":
        return [item for item in items if item in first or not is_parted(item)]
    part = _parts([item for item in parted if item not in first])[int(tier) - 1]
    return [item for item in items if item in part]


def is_parted(item: pytest.Item) -> bool:
    """Return True if a test needs the mark `first` to be in the first tier."""
    return any(item.get_closest_marker(name) for name in ("docker", "long"))


def first_of(parted: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the tests with a container, and the long tests, of the first tier.

    The mark means one case of a test; one with kinds means as few cases as are of every kind, each a
    function of the cases' parameters, which is None for cases that need not be there for its sake.
    """
    tests: dict[str, dict[pytest.Item, set[tuple[str, Hashable]]]] = defaultdict(dict)
    for item in parted:
        mark = item.get_closest_marker("first")
        if mark is not None:
            kinds = {name: kind(**_parameters(item)) for name, kind in mark.kwargs.items()} or {"any": True}
            asked = {(name, kind) for name, kind in kinds.items() if kind is not None}
            tests[item.nodeid.partition("[")[0]][item] = asked
    return set().union(*map(_as_few, tests.values()))


def _as_few(cases: Mapping[pytest.Item, set[tuple[str, Hashable]]]) -> set[pytest.Item]:
    chosen: set[pytest.Item] = set()
    missing = set().union(*cases.values())
    while missing:
        best = max(cases, key=lambda case: (len(cases[case] & missing), -seconds_of([case])))
        chosen.add(best)
        missing -= cases[best]
    return chosen


def _parts(rest: Sequence[pytest.Item]) -> list[set[pytest.Item]]:
    """Distribute the units to parts: the longest first, each to the shortest part."""
    units: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in rest:
        units[unit_of(item)].append(item)
    parts: list[set[pytest.Item]] = [set() for _ in range(PARTS)]
    filled_s = [0.0] * PARTS
    for unit in sorted(units.values(), key=seconds_of, reverse=True):
        least = filled_s.index(min(filled_s))
        parts[least] |= set(unit)
        filled_s[least] += seconds_of(unit)
    return parts


def unit_of(item: pytest.Item) -> str:
    """Return the unit that is never divided: a module with shared fixtures, else the test."""
    shared = {
        each.scope
        for each in item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
        for each in each
    }
    return item.nodeid.partition("::")[0] if {"module", "class"} & shared else item.nodeid


def seconds_of(tests: Iterable[pytest.Item]) -> float:
    """Return the total seconds of the tests by their marks."""
    marks = (item.get_closest_marker("seconds") for item in tests)
    return sum(float(mark.args[0]) if mark else _USUAL_S for mark in marks)


def _parameters(item: pytest.Item) -> dict[str, Any]:
    parameters: dict[str, Any] = getattr(item, "callspec").params  # noqa: B009 - only a case has it
    return parameters


def told(record: Path, tier: str) -> str:
    """Return the last lines of the output: slowest tests, tier, command that repeats failed tests."""
    ran: dict[str, float] = defaultdict(float)
    failed = []
    for line in record.read_text().splitlines():
        test, seconds, is_failed = json.loads(line)
        ran[test] += seconds
        failed += [test] if is_failed and test not in failed else []
    slowest = sorted(ran, key=lambda test: ran[test], reverse=True)[:_SLOWEST]
    name = f"part {tier} of {PARTS} of the rest" if tier.isdigit() else f"tier {tier}"
    lines = [
        "The slowest:",
        *(f"{ran[test]:7.1f} s  {test}" for test in slowest),
        f"{name}: {len(ran):,} tests, {len(failed):,} failed",
    ]
    if failed:
        lines.append(f"repeat what failed: {_repeating(failed)}")
    return "\n".join(lines)


def _repeating(failed: Sequence[str]) -> str:
    places = failed if len(failed) <= _NAMED else sorted({test.partition("::")[0] for test in failed})
    return shlex.join(["scripts/test", *places])


if __name__ == "__main__":
    sys.stdout.write(told(Path(sys.argv[1]), sys.argv[2]) + "\n")

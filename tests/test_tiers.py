"""The first tier covers every kind of test, and tiers and parts together run every test."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from astra_async import bundled
from tiers import COLLECTED, PARTS, first_of, is_parted, seconds_of, selected, told, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[1]
PROMISES = "".join(
    page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "development").glob("promises*.md")
)


@pytest.fixture(scope="module")
def contained(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """All tests with a container, whichever of them this run has chosen."""
    collected = request.config.stash[COLLECTED]
    if not {item.path for item in collected} >= set((ROOT / "tests").rglob("test_*.py")):
        pytest.skip("not all tests were collected")
    return [item for item in collected if item.get_closest_marker("docker")]


def names(items: Iterable[pytest.Item]) -> set[str]:
    return {item.nodeid.rpartition("::")[2].partition("[")[0] for item in items}


def values(items: Iterable[pytest.Item], parameter: str, attribute: str) -> set[Any]:
    cases = [item.callspec.params for item in items if hasattr(item, "callspec")]
    found = [case[parameter] for case in cases if parameter in case]
    return {getattr(each, attribute) for each in found if hasattr(each, attribute)}


def test_the_first_tier_has_a_test_of_every_promise(contained: list[pytest.Item]) -> None:
    promises = [set(re.findall(r"`(test_\w+)`", line)) for line in PROMISES.splitlines()]
    in_containers, first = names(contained), names(first_of(contained))
    assert [promise for promise in promises if promise & in_containers and not promise & first] == []


def runners(items: Iterable[pytest.Item]) -> set[str]:
    frameworks = values(items, "case", "framework") - set(bundled.problem_ids())
    return {framework.partition("/")[0] for framework in frameworks}


@pytest.mark.parametrize("attribute", ["outcome"])
def test_the_first_tier_has_every_kind_of_attack(contained: list[pytest.Item], attribute: str) -> None:
    met = values(first_of(contained), "case", attribute)
    assert met == values(contained, "case", attribute)
    assert len(met) > 2


def test_the_first_tier_has_every_runner(contained: list[pytest.Item]) -> None:
    assert runners(contained) - runners(first_of(contained)) == set()
    assert len(runners(contained)) > 8


def test_the_first_tier_uses_every_bundled_image(contained: list[pytest.Item]) -> None:
    from shops import SHOPS  # found once its folder has been collected

    met = {
        SHOPS[each].image_set if each in SHOPS else bundled.image_set_of(each)
        for each in values(first_of(contained), "case", "framework")
    }
    assert met >= set(bundled.image_sets())


def test_every_file_with_containers_contains_the_mark_docker(contained: list[pytest.Item]) -> None:
    """scripts/test looks for the words in it, and reads no other file where containers are needed."""
    assert not [item.path for item in contained if "mark.docker" not in item.path.read_text(encoding="utf-8")]


def test_every_folder_with_containers_has_tests_in_the_first_tier(contained: list[pytest.Item]) -> None:
    assert {item.path.parent for item in first_of(contained)} == {item.path.parent for item in contained}


def test_first_tier_and_parts_have_every_test_once_and_keep_shared_modules_together(
    request: pytest.FixtureRequest, contained: list[pytest.Item]
) -> None:
    assert contained
    collected = request.config.stash[COLLECTED]
    first = selected(collected, "first")
    parts = [selected(collected, str(number + 1)) for number in range(PARTS)]
    assert Counter((*first, *(item for part in parts for item in part))) == Counter(collected)
    assert all(item in first for item in collected if not is_parted(item))
    units = [{unit_of(item) for item in part} for part in parts]
    assert len(set().union(*units)) == sum(map(len, units))


def test_every_test_that_is_long_has_a_case_in_the_first_tier_unless_it_installs(
    request: pytest.FixtureRequest,
) -> None:
    long = [item for item in request.config.stash[COLLECTED] if item.get_closest_marker("long")]
    installing = [item for item in long if item.get_closest_marker("installs")]
    assert names(first_of(long)) == names(long) - names(installing)


def test_parts_have_about_the_same_length(
    request: pytest.FixtureRequest, contained: list[pytest.Item]
) -> None:
    collected = request.config.stash[COLLECTED]
    lengths = [seconds_of(selected(collected, str(number + 1))) for number in range(PARTS)]
    assert max(lengths) - min(lengths) <= max(seconds_of([item]) for item in contained)


def test_the_summary_has_the_slowest_tests_the_tier_and_a_command_to_repeat(tmp_path: Path) -> None:
    ran = [(f"tests/a.py::test_{n}[x y]", float(n), False) for n in range(20)]
    ran += [("tests/a.py::test_19[x y]", 0.5, True), ("tests/b.py::test_b", 0.1, False)]
    (tmp_path / "record").write_text("".join(f"{json.dumps(line)}\n" for line in ran))
    lines = told(tmp_path / "record", "3").splitlines()
    assert lines[1] == "   19.5 s  tests/a.py::test_19[x y]"
    assert len(lines) == 1 + 10 + 2
    assert lines[-2:] == [
        "part 3 of 7 of the rest: 21 tests, 1 failed",
        "repeat what failed: scripts/test 'tests/a.py::test_19[x y]'",
    ]

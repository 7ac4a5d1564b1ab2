from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.languages.javascript.node_version import first_major, satisfies


# Answers of node-semver 7 (`semver.satisfies`).
@pytest.mark.parametrize(
    ("version", "text", "answer"),
    [
        ((14, 21, 3), "^12.18.3", False),
        ((14, 21, 3), "^14.15.0 || >=16.10.0", True),
        ((18, 20, 4), "^14.15.0 || >=16.10.0", True),
        ((16, 9, 0), "^14.15.0 || >=16.10.0", False),
        ((18, 20, 4), ">=12", True),
        ((18, 20, 4), ">=12 <17", False),
        ((18, 20, 4), ">= 12.0.0 , < 19", True),
        ((18, 20, 4), "18", True),
        ((18, 20, 4), "18.x", True),
        ((18, 20, 4), "v18.20.4", True),
        ((18, 20, 4), "18.19.x", False),
        ((18, 20, 4), "~18.20.0", True),
        ((18, 20, 4), "~18.19", False),
        ((18, 20, 4), "~18", True),
        ((18, 20, 4), "16 - 20", True),
        ((20, 20, 2), "16 - 20", True),
        ((22, 1, 0), "16 - 20", False),
        ((18, 20, 4), ">18", False),
        ((20, 0, 0), ">18", True),
        ((18, 20, 4), "<=18", True),
        ((18, 20, 4), "<18.20.4", False),
        ((18, 20, 4), "*", True),
        ((18, 20, 4), "", True),
        ((0, 2, 5), "^0.2.3", True),
        ((0, 3, 0), "^0.2.3", False),
        ((0, 0, 4), "^0.0.3", False),
        ((18, 20, 4), "=18.20.4", True),
        ((18, 20, 4), ">=18.0.0-rc.1", True),
    ],
)
def test_ranges_mean_what_they_mean_to_npm(version: tuple[int, int, int], text: str, *, answer: bool) -> None:
    assert satisfies(version, text) is answer


@pytest.mark.parametrize("text", ["lts/*", "please", "^", ">=", "stable", "x" * 5000, "1 - ", "||lts"])
def test_what_is_no_range_is_none_or_everything(text: str) -> None:
    assert satisfies((18, 20, 4), text) is not False


@given(st.text(alphabet="0123456789.xX*^~<>= |v-, ", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert satisfies((18, 20, 4), text) in (True, False, None)


@pytest.mark.parametrize(
    ("text", "major"), [("v12.18.3", 12), ("lts/16", 16), ("14", 14), ("node", None), ("", None)]
)
def test_the_first_number_is_the_major_version(text: str, major: int | None) -> None:
    assert first_major(text) == major

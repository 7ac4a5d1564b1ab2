"""A run directory of an earlier version is continued, although it has settings that no longer exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from astra_async.errors import ConflictError
from astra_async.fingerprint import Parts, merge_parts

OLD = {"limits": {"timeout_s": 300.0}, "image": "i", "trials": "drawn", "reuse_identical": False}
USED = {"models": (), "formats": (), "problems": (), "grading": ("p",), "feedback": ()}


def continued(**changed: Any) -> dict[str, Any]:
    run: dict[str, Any] = {"parts": {"grading": {"p": dict(OLD)}}}
    new = {"limits": {"timeout_s": 300.0}, "image": "i", "reuse_identical": False}
    merge_parts(run, Parts(grading={"p": {**new, **changed}}), USED, Path("run"))  # type: ignore[arg-type]
    return dict(run["parts"]["grading"]["p"])


def test_a_setting_that_no_longer_exists_is_no_conflict() -> None:
    assert "trials" not in continued()


def test_what_differs_is_still_refused() -> None:
    with pytest.raises(ConflictError, match=r"image"):
        continued(image="another")

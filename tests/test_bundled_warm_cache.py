"""The Angular image caches modules transformed by Jest; the cache keys include the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_async import bundled

HOME = Path(bundled.__file__).parent
WARM = HOME / "images" / "angular" / "warm"
SHARED = sorted(path.name for path in WARM.iterdir() if path.is_file())
PROBLEMS = [each for each in bundled.problem_ids() if bundled.image_set_of(each) == "angular"]


@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_the_angular_image_is_warmed_with_the_configuration_of_every_project(problem_id: str) -> None:
    project = HOME / "problems" / problem_id / "project"
    assert "jest.config.js" in SHARED
    for name in SHARED:
        assert (project / name).read_bytes() == (WARM / name).read_bytes(), name
    assert "node_modules/.cache/jest" in (project / "jest.config.js").read_text(encoding="utf-8")

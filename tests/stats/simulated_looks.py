"""The simulation of looks, which is a script, as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location(
    "looks", Path(__file__).parents[2] / "scripts" / "bench" / "looks.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
looks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(looks)

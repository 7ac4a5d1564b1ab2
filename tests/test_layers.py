"""The layers of the house, checked by walking the imports of every module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "astra_async"
BOTTOM = {"types", "errors"}
PURE = {
    *("canary", "config", "integration", "manifest", "metrics", "offline", "problems", "prompt"),
    *("report", "reports", "solution", "stacks", "stats"),
}
EDGES = {"projects", "providers", "runlog", "sandbox", "throttle"}
ABOVE = {
    "examination",
    "expected",
    "fingerprint",
    "grading",
    "inspection",
    "integrity",
    "lenient",
    "pipeline",
    "prepare",
    "reuse",
    "runner",
    "rundir",
    "timeouts",
    "validation",
}
TOP = {"cli", "progress"}
FORBIDDEN_BELOW = {"asyncio", "aiohttp", "aiodocker", "aioboto3", "uvloop"}


def modules() -> list[Path]:
    return [
        path for path in sorted(ROOT.rglob("*.py")) if "problems" not in path.relative_to(ROOT).parts[1:2]
    ]


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "astra_async":
                names |= {f"astra_async.{alias.name}" for alias in node.names}
    return names


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imported(path)]
    return {name[1] for name in parts if name[0] == "astra_async" and len(name) > 1} - {room(path)}


@pytest.mark.parametrize("path", [path for path in modules() if room(path) in BOTTOM], ids=str)
def test_the_bottom_imports_nothing_of_the_house_but_itself(path: Path) -> None:
    assert rooms_imported(path) <= BOTTOM


@pytest.mark.parametrize("path", [path for path in modules() if room(path) in PURE], ids=str)
def test_pure_rooms_know_no_event_loop_no_network_and_nothing_above(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & FORBIDDEN_BELOW
    assert not rooms_imported(path) & (ABOVE | TOP | EDGES - {"providers"})


@pytest.mark.parametrize("path", [path for path in modules() if room(path) in EDGES], ids=str)
def test_edges_do_not_know_each_other(path: Path) -> None:
    assert not rooms_imported(path) & (EDGES | ABOVE | TOP)


def test_only_the_command_line_knows_every_room() -> None:
    for path in modules():
        if room(path) not in TOP | {"__main__"}:
            assert "cli" not in rooms_imported(path), path

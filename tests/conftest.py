"""Selection of tests, their distribution to processes, signals, and cleaning up of programs under test."""

from __future__ import annotations

import gc
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

from tiers import COLLECTED, TIERS, selected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.remote import Producer

# Folders of tests that mostly wait: for whole programs, nodes, a browser.
_WAITING = ("cluster", "system", "view")
# Folders of tests with containers that share what one process makes (a sandbox, two engines, images), or
# look at what the dead have left, which every sandbox that another process opens sweeps away.
_SHARING = ("cluster", "audit", "sandbox")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="all", help="the first, all, or a part of the rest")
    parser.addoption("--record", type=Path, help="a file that gets a line for each phase of each test")


def pytest_configure(config: pytest.Config) -> None:
    record = config.getoption("record")
    if record and not hasattr(config, "workerinput"):  # the one process that hears of all tests
        config.pluginmanager.register(_Record(record))
    _heed_signals()


class _Record:
    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        with self._path.open("a") as record:
            record.write(json.dumps([report.nodeid, report.duration, report.failed]) + "\n")


def _heed_signals() -> None:
    """Signals are tried on programs of ours: they get them even where a shell in the background ignores them.

    Such a shell (`scripts/test &`, nohup) hands its children signals that are ignored, and they ours.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A tier is taken of all tests, before `-k` and `-m` choose among them."""
    config.stash[COLLECTED] = tuple(items)
    kept = set(selected(items, config.getoption("tier")))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
    _interleave(config, items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What stands for seven thousand tests is there to the end: collectors need not look through it again."""
    gc.collect()
    gc.freeze()


def _interleave(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist worksteal`, every second process begins with tests that wait, while the others compute.

    Such a process takes its part of the list as it stands, and in the end what another has left.
    """
    processes = getattr(config, "workerinput", {}).get("workercount", 0)
    if config.getoption("dist", "no") != "worksteal" or processes < 2:
        return
    waiting = [item for item in items if _waits(item.nodeid)]
    others = [item for item in items if not _waits(item.nodeid)]
    parts = (processes + 1) // 2
    items[:] = []
    for part in range(parts):
        for whole in (waiting, others):
            items += whole[len(whole) * part // parts : len(whole) * (part + 1) // parts]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """With `--dist loadscope`, a process takes file after file, or a folder whose tests share something."""
    return _ByUse(config, log) if config.getoption("dist") == "loadscope" else None


class _ByUse(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        path = _file(nodeid)
        return path.parent.name if path.parent.name in _SHARING else str(path)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio alone."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_run_outlives_its_test() -> Iterator[None]:
    whole_runs = sys.modules.get("whole_runs")
    before = whole_runs.number_started() if whole_runs else 0  # by fixtures of a wider scope
    yield
    if whole_runs:
        whole_runs.end_started(but=before)


def _waits(nodeid: str) -> bool:
    return _file(nodeid).parent.name in _WAITING


def _file(nodeid: str) -> Path:
    return Path(nodeid.partition("::")[0])

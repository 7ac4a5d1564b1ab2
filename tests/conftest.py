"""How tests are shared among processes (pytest -n): what stands on the same engine stays together, and what
measures time has the machine to itself."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from xdist.remote import Producer

_SHARED_OUT = "PYTEST_XDIST_WORKER" in os.environ
_ROOM, _DOOR = Path(__file__), Path(__file__).parents[1] / "pyproject.toml"
# Docker tests on engines of their own, which wait more than they compute, share nothing with the others.
_OWN_ENGINES = ("test_cluster_runs", "test_engine_restart")


def pytest_configure() -> None:
    """Signals are tried on programs of ours: they get them even where a shell in the background ignores them.

    Such a shell (`scripts/test &`, nohup) hands its children signals that are ignored, and they ours.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """With `--dist loadscope`, one process for the machine's engine and one for engines of the tests' own."""
    return _ByEngine(config, log) if config.getoption("dist") == "loadscope" else None


class _ByEngine(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        own = Path(nodeid.partition("::")[0]).stem in _OWN_ENGINES
        return "own engines" if own else "the machine's engine"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """While a test marked `alone` runs, the other processes wait."""
    if not _SHARED_OUT:
        return (yield)
    with _turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextlib.contextmanager
def _turn(*, alone: bool) -> Iterator[None]:
    """A place beside others, or the only one: whoever wants that keeps the door until the others have ended.

    The locks are on files that are there, so that nothing is left behind, and go with the process that held
    them. They are given back by name: a child that was forked meanwhile has the same files open.
    """
    with _DOOR.open() as door, _ROOM.open() as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)
            fcntl.flock(door, fcntl.LOCK_UN)

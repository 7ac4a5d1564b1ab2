"""Two engines for all tests of a cluster; only the first one has the image that the tests need."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from small_cluster import IMAGE

from private_engine import private_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from private_engine import PrivateEngine

_PROGRAMS = ("bash", "sleep", "rm", "mkdir")


@pytest.fixture(scope="session")
def engines() -> Iterator[tuple[PrivateEngine, PrivateEngine]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(private_engine(name, _PROGRAMS)) for name in (IMAGE, "other:1"))
        yield first, second

"""Trying a fetch again, when what went wrong may pass."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, TypeVar

from astra_async.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

ATTEMPTS = 5
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0


class Passing(SourceError):  # noqa: N818 - a state of the source
    """A fetch failed in a way that may pass; `hint_s` is the pause that the server asked for."""

    def __init__(
        self, cause: str, *, where: str = "", problem_id: str = "", hint_s: float | None = None
    ) -> None:
        super().__init__(cause, where=where, problem_id=problem_id)
        self.hint_s = hint_s


async def retried(
    attempt: Callable[[], Awaitable[T]], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> T:
    """The result of the first attempt that succeeds, with doubling, jittered pauses in between.

    Raises:
        Passing: the last attempt's trouble.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Passing as trouble:
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients, guards nothing
            pause = trouble.hint_s or _FIRST_PAUSE_S * 2**number * jitter
        await sleep(min(pause, _LONGEST_PAUSE_S))
    return await attempt()

"""State and background tasks of one batch pool: how they wait, repeat what failed, and end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from astra_async.asking.batches.batch_calls import Window
from astra_async.asking.batches.batch_interface import Gone
from astra_async.asking.throttle import PoolEvent
from astra_async.errors import Overloaded, PoolUnusable, ProviderError, RateLimited, TransientError
from astra_async.tasks import cancel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable
    from typing import Any

    from astra_async.asking.batches.batch_calls import BatchCalls, Call
    from astra_async.asking.batches.batch_interface import BatchInterface
    from astra_async.asking.batches.batch_log import BatchLog
    from astra_async.types import ModelSettings
    from astra_async.types.pools import EventKind

_T = TypeVar("_T")
PASSING = (RateLimited, Overloaded, TransientError)
# Seconds between looks: at first, and at most.
SOONEST_S, LATEST_S = 1.0, 120.0
# What manages batches may fail for so long, or be refused; batches go on meanwhile.
_PATIENCE_S, _REFUSALS_S = 86_400.0, 1_800.0
# A batch or file that is unknown (404), and results that were promised, are looked for this many times as
# long as a batch whose create was lost.
_LATE = 10
_UNKNOWN = 404


class BatchStopped(Exception):  # noqa: N818 - no error
    """The pool was told to stop: what is with the provider stays there."""


class BatchTasks:
    """State of a batch pool, and the tasks that change it.

    Attributes:
        window: how much may be with the provider.
        late_s: how long results that were promised are looked for.
        held_until: nothing is submitted before, monotonic seconds.
        waits_for: what keeps gathered calls from being submitted, for the display.
        changed: something has, that may let more be submitted.
        dead: why nothing more can be submitted.
    """

    def __init__(
        self,
        settings: ModelSettings,
        interface: BatchInterface,
        log: BatchLog,
        calls: BatchCalls,
        on_event: Callable[[PoolEvent], None] | None,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.interface = interface
        self.log = log
        self.calls = calls
        self.window = Window(settings.batch_enqueued_tokens)
        self.late_s = _LATE * settings.batch_settled_s
        self.held_until = 0.0
        self.waits_for = ""
        self.changed = asyncio.Event()
        self.stopping = asyncio.Event()
        self.dead: BaseException | None = None
        self._on_event = on_event
        self._tasks: set[asyncio.Task[None]] = set()

    def gather(self, call: Call) -> None:
        """It waits for a batch to be put into, where there can be one."""
        if self.dead is not None:
            self.calls.fail(call, self.dead)
        elif self.stopping.is_set():
            self.calls.fail(call, self.stopped())
        else:
            self.calls.gather(call)
            self.changed.set()

    def fail_gathered(self, error: BaseException) -> None:
        """Whatever is in no batch gets no answer."""
        for call in [*self.calls.gathered.values()]:
            self.calls.fail(call, error)

    def die(self, error: BaseException) -> None:
        """Nothing more is submitted; batches that are with the provider are followed all the same."""
        if self.dead is None:
            self.dead = error
            self.emit(str(error), "pool_failed")
        self.fail_gathered(error)

    def stopped(self) -> PoolUnusable:
        """What a call is told that a stop left without an answer."""
        return PoolUnusable(f"{self.name}: stopped by the user; the same command resumes")

    def start(
        self, work: Coroutine[Any, Any, None], calls: Callable[[], Iterable[Call]], *, lasting: bool = False
    ) -> None:
        """A task of the pool; what ends it is told to its calls. Without a `lasting` one nothing goes on."""

        async def guarded() -> None:
            try:
                await work
            except BatchStopped:
                self.tell(calls(), self.stopped())
            except Exception as error:  # noqa: BLE001 - the boundary: each of its calls tells its own task
                self.tell(calls(), error)
                if lasting:
                    self.die(error)

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def tell(self, calls: Iterable[Call], error: BaseException) -> None:
        """They get no answer, for this reason."""
        for call in [*calls]:
            self.calls.fail(call, error)
        self.changed.set()

    async def pause(self, seconds: float) -> None:
        """Wait, unless told to stop. Raises Stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return
        raise BatchStopped

    async def patiently(self, ask: Callable[[], Awaitable[_T]], *, refusals_s: float = _REFUSALS_S) -> _T:
        """Ask until there is an answer: what manages batches costs nothing, and they go on meanwhile."""
        began, fails = time.monotonic(), 0
        while True:
            try:
                return await ask()
            except ProviderError as error:
                fails += 1
                most_s = _PATIENCE_S if isinstance(error, PASSING) else refusals_s
                if isinstance(error, Gone):
                    most_s = min(refusals_s, self.late_s) if error.status == _UNKNOWN else 0.0
                if time.monotonic() - began >= most_s:
                    raise
                if fails == 1:
                    self.emit(f"asked again: {error}")
                wait_s = error.hint_s or min(LATEST_S, SOONEST_S * 2 ** min(fails, 10))
            await self.pause(wait_s)

    async def until_changed(self, seconds: float) -> None:
        """Wait until something has changed, or for so long. Raises Stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        self.changed.clear()
        if self.stopping.is_set():
            raise BatchStopped

    def emit(self, detail: str, kind: EventKind = "batch") -> None:
        """Record what happens to a batch."""
        if self._on_event is not None:
            self._on_event(PoolEvent(kind=kind, model=self.name, detail=detail))

    async def close(self) -> None:
        """End what runs here; what is with the provider stays there."""
        self.stopping.set()
        await cancel(*self._tasks)
        await self.interface.close()

"""State and background tasks of one batch pool: waiting, retries and shutdown."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from astra_async.asking.batches.batch_calls import Window
from astra_async.asking.batches.batch_interface import Gone
from astra_async.asking.batches.batch_log import LATE
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
# Shortest and longest interval between two polls in seconds.
SOONEST_S, LATEST_S = 1.0, 120.0
# Seconds for which requests that manage batches are retried after transient errors, and after refusals. The
# batches themselves continue at the provider.
_PATIENCE_S, _REFUSALS_S = 86_400.0, 1_800.0
_UNKNOWN = 404


class BatchStopped(Exception):  # noqa: N818 - no error
    """The user stopped the pool. Its batches continue at the provider."""


class BatchTasks:
    """State of a batch pool, and the tasks that change it.

    Attributes:
        settings: settings of the model.
        name: name of the model.
        interface: the provider's batch interface.
        log: write-ahead log of batches.
        calls: the calls of the pool.
        window: limit of tokens enqueued at the provider.
        late_s: seconds for which missing results are looked for.
        held_until: no batch is submitted before this time, in monotonic seconds.
        waits_for: reason why gathered calls are not submitted yet, for the display.
        changed: set after every change that may allow another batch.
        stopping: set once the pool has been stopped.
        dead: error because of which no more batches can be submitted, else None.
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
        self.late_s = LATE * settings.batch_settled_s
        self.held_until = 0.0
        self.waits_for = ""
        self.changed = asyncio.Event()
        self.stopping = asyncio.Event()
        self.dead: BaseException | None = None
        self._on_event = on_event
        self._tasks: set[asyncio.Task[None]] = set()

    def gather(self, call: Call) -> None:
        """Put a call into the next batch, or fail it if no more batches can be submitted."""
        if self.dead is not None:
            self.calls.fail(call, self.dead)
        elif self.stopping.is_set():
            self.calls.fail(call, self.stopped_error())
        else:
            self.calls.gather(call)
            self.changed.set()

    def fail_gathered(self, error: BaseException) -> None:
        """Fail all calls that are not in a batch."""
        for call in [*self.calls.gathered.values()]:
            self.calls.fail(call, error)

    def disable(self, error: BaseException) -> None:
        """Submit no more batches after this error. Batches at the provider are still followed."""
        if self.dead is None:
            self.dead = error
            self.emit(str(error), "pool_failed")
        self.fail_gathered(error)

    def stopped_error(self) -> PoolUnusable:
        """Return the error for calls that are unanswered when the user stops the pool."""
        return PoolUnusable(f"{self.name}: stopped by the user; run the same command again to resume")

    def start(
        self, work: Coroutine[Any, Any, None], calls: Callable[[], Iterable[Call]], *, lasting: bool = False
    ) -> None:
        """Start a task of the pool. An exception fails its `calls` and, if `lasting`, the whole pool."""

        async def guarded() -> None:
            try:
                await work
            except BatchStopped:
                self.fail_calls(calls(), self.stopped_error())
            except Exception as error:  # noqa: BLE001 - each waiting call raises the error in its task
                self.fail_calls(calls(), error)
                if lasting:
                    self.disable(error)

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def fail_calls(self, calls: Iterable[Call], error: BaseException) -> None:
        """Fail calls with an error."""
        for call in [*calls]:
            self.calls.fail(call, error)
        self.changed.set()

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds. Raises BatchStopped if the pool is stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return
        raise BatchStopped

    async def retrying(self, ask: Callable[[], Awaitable[_T]], *, refusals_s: float = _REFUSALS_S) -> _T:
        """Retry a request that manages batches. Such requests are free, and the batches continue.

        Args:
            ask: sends the request.
            refusals_s: seconds for which refusals are retried. Transient errors are retried for a day.
        """
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
                    self.emit(f"retrying: {error}")
                wait_s = error.hint_s or min(LATEST_S, SOONEST_S * 2 ** min(fails, 10))
            await self.pause(wait_s)

    async def until_changed(self, seconds: float) -> None:
        """Wait for `changed`, at most `seconds`. Raises BatchStopped if the pool is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()
        self.changed.clear()
        if self.stopping.is_set():
            raise BatchStopped

    def emit(self, detail: str, kind: EventKind = "batch") -> None:
        """Report an event of the pool."""
        if self._on_event is not None:
            self._on_event(PoolEvent(kind=kind, model=self.name, detail=detail))

    async def close(self) -> None:
        """Cancel all tasks and close the interface. Batches continue at the provider."""
        self.stopping.set()
        await cancel(*self._tasks)
        await self.interface.close()

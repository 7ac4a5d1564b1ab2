"""One pool's batches at work: what is waited for and how long; each batch is found, looked at, collected."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from astra_async.asking.batches.batch_interface import Gone
from astra_async.asking.batches.batch_log import age_s
from astra_async.asking.batches.enqueued import Window, is_too_much
from astra_async.asking.batches.request_files import keep, outcomes, storage
from astra_async.asking.throttle import PoolEvent
from astra_async.errors import (
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    TransientError,
    TruncatedStream,
)
from astra_async.tasks import cancel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable
    from typing import Any

    from astra_async.asking.batches.batch_calls import BatchCalls, Call
    from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome, Standing
    from astra_async.asking.batches.batch_log import BatchLog, Intent
    from astra_async.types import ModelSettings
    from astra_async.types.pools import EventKind

_T = TypeVar("_T")
PASSING = (RateLimited, Overloaded, TransientError)
# Seconds between looks: at first, and at most.
SOONEST_S, LATEST_S = 1.0, 120.0
# What manages batches may fail for so long, or be refused; batches go on meanwhile.
_PATIENCE_S, _REFUSALS_S = 86_400.0, 1_800.0
_TRIES = 3  # of a request that the provider itself failed at; two where it was paid for
_PAID_TRIES = 2
_SHARE = 0.05  # of a batch's age: how long until it is looked at again


class BatchStopped(Exception):  # noqa: N818 - no error
    """The pool was told to stop: what is with the provider stays there."""


class Work:
    """What of a batch pool works by itself: its state, and the tasks that change it.

    Attributes:
        window: how much may be with the provider.
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
            except Gone:
                raise
            except ProviderError as error:
                fails += 1
                most_s = _PATIENCE_S if isinstance(error, PASSING) else refusals_s
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

    def who(self, intent: Intent) -> str:
        """A batch's name in a message."""
        return f"{self.name}: batch {intent.batch_id}"

    def odd(self, intent: Intent) -> Callable[[str], None]:
        """What hears of lines of results that are none."""
        return lambda text: self.emit(f"{intent.batch_id}: {text}")

    def emit(self, detail: str, kind: EventKind = "batch") -> None:
        """Record what happens to a batch."""
        if self._on_event is not None:
            self._on_event(PoolEvent(kind=kind, model=self.name, detail=detail))

    async def close(self) -> None:
        """End what runs here; what is with the provider stays there."""
        self.stopping.set()
        await cancel(*self._tasks)
        await self.interface.close()

    # --- one batch, from when it may exist to when its results were handed out ----------------------------

    def follow(self, intent: Intent) -> None:
        """Follow a batch; its calls hear of its end."""
        self.start(self._to_its_end(intent), lambda: self.calls.inside(intent))

    async def _to_its_end(self, intent: Intent) -> None:
        try:
            if not intent.batch_id and not await self._is_found(intent):
                await self._nothing_came(intent)
                return
            standing, was_ended = await self._ended(intent)
            if standing.failure is not None:
                await self.refused(intent, self.interface.control.meaning(standing.failure))
                return
            await self._collect(intent, standing)
        except Gone as error:
            raise ProviderError(self._gone(intent, error), status=error.status) from error
        await self._hand_out(intent, standing, again=not was_ended)

    async def _nothing_came(self, intent: Intent) -> None:
        await self.log.note("refused", intent, detail="no batch came of it")
        self.emit(f"{intent.token}: no batch came of it, its requests are sent now")
        self._go_on_at_once()
        for call in self.calls.inside(intent):
            self.gather(call)

    def _go_on_at_once(self) -> None:
        """The tokens of a batch that is over are the next one's."""
        self.held_until = 0.0
        self.changed.set()

    async def _is_found(self, intent: Intent) -> bool:
        """Whether a batch came of the intent: until that is certain, nothing of it is sent.

        No clock is asked how long ago the create was: this process waits as long as one may take to be seen.
        """
        began, pause_s = time.monotonic(), SOONEST_S
        while True:
            known = frozenset(each.batch_id for each in self.log.intents.values() if each.batch_id)
            found = await self.patiently(lambda known=known: self.interface.find(intent, known))  # type: ignore[misc]
            if found:
                await self.log.note("submitted", intent, batch=found)
                self.emit(f"{found}: found again, it was created ({intent.token})")
                return True
            if found is not None and time.monotonic() - began >= self.settings.batch_settled_s:
                return False
            await self.pause(pause_s)
            pause_s = min(LATEST_S, 1.5 * pause_s)

    async def _ended(self, intent: Intent) -> tuple[Standing, bool]:
        """How it has ended, and whether that was somebody's will since this process first looked."""
        first: Standing | None = None
        while True:
            standing = await self.patiently(lambda: self.interface.look(intent.batch_id))
            first = first or standing
            if (standing.state, standing.done) != (intent.state, intent.done):
                await self.log.note("state", intent, state=standing.state, done=standing.done)
            if standing.has_ended:
                self.emit(f"{intent.batch_id}: ended, {standing.state}")
                return standing, standing.was_cancelled and not first.was_cancelled
            await self.pause(min(LATEST_S, max(SOONEST_S, _SHARE * age_s(intent))))

    async def _collect(self, intent: Intent, standing: Standing) -> None:
        """Its results, on disk under the name by which they are believed."""
        path = self.log.results(intent)
        draft = path.with_suffix(".draft")

        async def fetch() -> None:
            with storage(draft):
                draft.parent.mkdir(mode=0o700, exist_ok=True)
                draft.write_bytes(b"")
                await self.interface.fetch(standing, draft)

        await self.patiently(fetch)
        await asyncio.to_thread(keep, draft, path)
        await self.log.note("collected", intent)
        self._go_on_at_once()

    async def _hand_out(self, intent: Intent, standing: Standing, *, again: bool) -> None:
        """Each call gets its result; the first answer to a request counts, whatever else is there."""
        for _, _, outcome in outcomes(self.log.results(intent), self.interface.read, self.odd(intent)):
            key = intent.requests.get(outcome.custom_id)
            call = self.calls.waiting(key) if key else None
            if call is not None and (outcome.body is not None or outcome.failure is not None):
                self._resolve(call, outcome)
                await asyncio.sleep(0)  # whoever waited records it before the next line is read
        text = "has ended without a result of this request; the same command asks once more"
        if standing.is_partial:
            text = "was cancelled; the same command sends the rest again"
        for call in self.calls.inside(intent):
            if standing.is_partial and again:
                self.gather(call)
            else:
                self.calls.fail(call, ProviderError(f"{self.who(intent)} {text}"))
        self.changed.set()

    def _resolve(self, call: Call, outcome: BatchOutcome) -> None:
        try:
            self.calls.succeed(call, self.interface.answer(self.settings, outcome))
        except ProviderError as error:
            if error.usage is not None:
                self.calls.bill(call, error.usage, 0)
            call.history.attempts += 1
            most = _PAID_TRIES if isinstance(error, TruncatedStream) else _TRIES
            if isinstance(error, PASSING) and call.history.attempts < most:
                self.calls.ledger.retries += 1
                self.gather(call)
                return
            self.calls.fail(call, error)
            if isinstance(error, PoolUnusable):
                self.die(error)

    async def refused(self, intent: Intent, error: ProviderError) -> None:
        """Nothing of a batch was processed. What was only too much is sent again, in pieces that fit."""
        await self.log.note("refused", intent, detail=str(error))
        self.emit(f"{intent.batch_id or intent.token}: nothing of it was processed: {error}")
        calls = self.calls.inside(intent)
        too_much = is_too_much(error)
        if not too_much and not isinstance(error, PASSING):
            self.tell(calls, error)
            if isinstance(error, PoolUnusable):
                self.die(error)
            return
        self.calls.ledger.rate_limited += 1
        if not (too_much and self.window.learn(intent, str(error), self.log.open_of(self.name))):
            self.held_until = time.monotonic() + (error.hint_s or LATEST_S / 4)
            self.waits_for = str(error)
        for call in calls:
            self.gather(call)

    def _gone(self, intent: Intent, error: ProviderError) -> str:
        directory = self.log.folder.parent
        return (
            f"{self.who(intent)} or its results are unknown to the provider ({error}): is this the same"
            f" account and project? `astra batches {directory} --forget {intent.token}` writes it off; its"
            " requests are then asked and paid for once more"
        )

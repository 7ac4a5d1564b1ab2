"""The requests of one batch model that wait for an answer: where each is, what is reserved, what it cost.

Invariant: a call is gathered, or in one batch, or has its answer; its share of the budget is reserved from
when it is put into a batch until that is known to have brought an answer, or nothing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.asking.throttle.budget import Budget, Ledger
from astra_async.asking.throttle.estimate import Estimator
from astra_async.asking.throttle.retry import CallHistory
from astra_async.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.batches.batch_log import Intent
    from astra_async.types import AnswerKey, Completion, ModelRequest, ModelSettings, Usage


@dataclass(slots=True, eq=False)
class Call:
    """One request that waits for its answer; `effort` counts results, also those that were none."""

    request: ModelRequest
    answer: asyncio.Future[Completion]
    history: CallHistory = field(default_factory=CallHistory)
    reserved_usd: float | None = None


class BatchCalls:
    """All calls of one pool.

    `gathered` are those that are in no batch, in the order in which they came, the last of them at
    `gathered_at` (monotonic seconds).
    """

    def __init__(
        self, settings: ModelSettings, price: Callable[[Usage], float | None], budget: Budget | None
    ) -> None:
        self.gathered: dict[AnswerKey, Call] = {}
        self.gathered_at = 0.0
        self.budget = budget or Budget()
        self._estimator = Estimator(settings.max_tokens)
        self.ledger = Ledger(settings, self._estimator, price, self.budget, time.monotonic())
        self._all: dict[AnswerKey, Call] = {}

    def enter(self, request: ModelRequest) -> Call:
        """A request that somebody waits for from now on."""
        call = Call(request, asyncio.get_running_loop().create_future())
        self._all[request.key] = call
        return call

    def leave(self, call: Call) -> None:
        """Nobody waits any more."""
        self._all.pop(call.request.key, None)
        self.gathered.pop(call.request.key, None)
        self.settle(call, 0.0)

    def gather(self, call: Call) -> None:
        """It is in no batch, and nothing is reserved for it."""
        self.settle(call, 0.0)
        self.gathered[call.request.key] = call
        self.gathered_at = time.monotonic()

    def inside(self, intent: Intent) -> list[Call]:
        """Those that wait for this batch."""
        return [call for key in intent.keys if (call := self.waiting(key)) is not None]

    def waiting(self, key: AnswerKey) -> Call | None:
        """The call that waits for a batch to bring the answer of this key."""
        call = self._all.get(key)
        return None if call is None or call.answer.done() or key in self.gathered else call

    def tokens(self, call: Call) -> float:
        """About how many tokens of input it has."""
        return self._estimator.demand(call.request, warm=False).input_tokens

    def reserve(self, call: Call) -> None:
        """Set its worst case aside."""
        if call.reserved_usd is None:
            call.reserved_usd = self.ledger.worst_usd(call.request)
            self.budget.reserve(call.reserved_usd)

    def settle(self, call: Call, cost_usd: float | None) -> None:
        """What was set aside for it has become this cost; one that is unknown counts at its worst."""
        reserved_usd, call.reserved_usd = call.reserved_usd, None
        if reserved_usd is not None:
            self.budget.settle(reserved_usd, cost_usd)

    def succeed(self, call: Call, answer: Completion) -> None:
        """It has its answer, which is paid for."""
        self.bill(call, answer.usage, len(answer.text))
        self.ledger.calls_ok += 1
        call.history.attempts += 1
        whole = replace(call.history.complete(answer, answer.usage), via="batch", ttft_s=None, latency_s=None)
        if not call.answer.done():
            call.answer.set_result(whole)

    def bill(self, call: Call, usage: Usage | None, characters: int) -> None:
        """Count tokens that were paid for."""
        now = time.monotonic()
        self.settle(call, self.ledger.bill(call.history, call.request, usage, characters, now))
        if usage is not None:
            self._estimator.learn(call.request, usage)

    def fail(self, call: Call, error: BaseException) -> None:
        """It gets no answer, for this reason."""
        self.gathered.pop(call.request.key, None)
        if call.answer.done():
            return
        call.answer.set_exception(
            call.history.copy_error(error) if isinstance(error, ProviderError) else error
        )

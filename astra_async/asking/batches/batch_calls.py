"""The requests of one batch model that wait for an answer: where each is, what is reserved, what it cost.

Invariant: a call is gathered, or in one batch, or has its answer; its share of the budget is reserved from
when it is put into a batch until that is known to have brought an answer, or nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_interface import open_private
from astra_async.asking.throttle.budget import Budget, Ledger
from astra_async.asking.throttle.estimate import Estimator
from astra_async.asking.throttle.retry import CallHistory
from astra_async.errors import ProviderError, StorageError
from astra_async.files import file_mode, read_at
from astra_async.log import sync_entries
from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from astra_async.asking.batches.batch_interface import BatchInterface, BatchOutcome
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.types import AnswerKey, Completion, ModelRequest, ModelSettings, Usage


_SYNC_BYTES = 2**20


def write_requests(path: Path, interface: BatchInterface, named: Sequence[tuple[str, ModelRequest]]) -> int:
    """Write as many requests as one batch may hold, at least one; returns how many. Raises StorageError."""
    with storage(path):
        path.parent.mkdir(mode=0o777 if file_mode(path.parent.parent) & 0o066 else 0o700, exist_ok=True)
        with open_private(path, anew=True) as stream:
            size, written = stream.write(interface.opening) + len(interface.closing), 0
            for custom_id, request in named[: interface.most_requests]:
                row = interface.row(custom_id, request)
                size += len(row) + len(interface.between)
                if written and size > interface.most_bytes:
                    break
                stream.write(interface.between if written else b"")
                stream.write(row)
                written += 1
            stream.write(interface.closing)
    return written


def keep(draft: Path, path: Path) -> None:
    """Force results to disk under the name by which they are believed. Raises StorageError."""
    with storage(path):
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)
        sync_entries(path.parent)


def outcomes(
    path: Path, read: Callable[[bytes], BatchOutcome], odd: Callable[[str], None]
) -> Iterator[tuple[int, int, BatchOutcome]]:
    """The results in a file with their places (offset, length); `odd` hears of lines that are none."""
    with storage(path), path.open("rb") as stream:
        offset = 0
        for line in stream:
            if line.strip():
                try:
                    yield offset, len(line), read(line)
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                    odd(f"a line of results cannot be read ({error!r}): {one_line(line, length=80)}")
            offset += len(line)


def outcome_at(path: Path, offset: int, length: int, read: Callable[[bytes], BatchOutcome]) -> BatchOutcome:
    """The result that stands there. Raises StorageError."""
    with storage(path):
        return read(read_at(path, offset, length))


@contextlib.contextmanager
def storage(path: Path) -> Iterator[None]:
    """What a disk raises is a StorageError that says where."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror or error}; make room or restore access, then run the same command again"
        ) from error


# What says that a batch is only too much for now: OpenAI and Azure by a code, others by their words.
_TOO_MUCH = re.compile(r"token_limit_exceeded|enqueued.token|too many (tokens|batches|jobs)", re.IGNORECASE)
_LIMIT = re.compile(r"limit(?: is)?:? *([\d,]*\d)", re.IGNORECASE)
_IN_HAND = 0.95  # our count is an estimate


class Window:
    """How many tokens may be with the provider."""

    def __init__(self, most: int | None) -> None:
        self._most = math.inf if most is None else float(most)

    def takes(self, tokens: float, others: Sequence[Intent], *, first: bool) -> bool:
        """Whether so many more may go beside `others`, which are there or may be.

        What is too large by itself goes alone, and the provider judges.
        """
        return tokens + sum(each.tokens for each in others) <= self._most or (first and not others)

    def learn(self, refused: Intent, message: str, others: Sequence[Intent]) -> bool:
        """A batch was too much beside `others`, in these words; whether a smaller one may go at once."""
        found = _LIMIT.search(message)
        before = self._most
        if found:
            self._most = min(before, _IN_HAND * int(found[1].replace(",", "")))
        elif not others and len(refused.requests) > 1:
            self._most = min(before, refused.tokens / 2)
        return self._most < before


def is_too_much(error: ProviderError) -> bool:
    """Whether a batch was refused only because too much is enqueued."""
    return bool(_TOO_MUCH.search(f"{error.code} {error}"))


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

"""Calls of one batch model that wait for an answer, with their reservations and costs.

Invariant: a call is gathered, or in exactly one batch, or answered. Its worst-case cost is reserved in the
budget from the time when it is put into a batch until the outcome of the batch is known.
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
    """Write as many requests as one batch may have, at least one. Return the number. Raises StorageError."""
    with storage_errors(path):
        path.parent.mkdir(mode=0o777 if file_mode(path.parent.parent) & 0o066 else 0o700, exist_ok=True)
        with open_private(path, anew=True) as stream:
            size, written = stream.write(interface.opening) + len(interface.closing), 0
            for custom_id, request in named[: interface.most_requests]:
                row = interface.encode_request(custom_id, request)
                size += len(row) + len(interface.between)
                if written and size > interface.most_bytes:
                    break
                stream.write(interface.between if written else b"")
                stream.write(row)
                written += 1
            stream.write(interface.closing)
    return written


def commit_results(draft: Path, path: Path) -> None:
    """Sync results to disk and rename them to their final name. Raises StorageError."""
    with storage_errors(path):
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)
        sync_entries(path.parent)


def read_outcomes(
    path: Path, read: Callable[[bytes], BatchOutcome], report_invalid: Callable[[str], None]
) -> Iterator[tuple[int, int, BatchOutcome]]:
    """Yield the results in a file as (offset, length, result). Call `report_invalid` for invalid lines."""
    with storage_errors(path), path.open("rb") as stream:
        offset = 0
        for line in stream:
            if line.strip():
                try:
                    yield offset, len(line), read(line)
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                    excerpt = one_line(line, length=80)
                    report_invalid(f"a line of results is invalid ({error!r}): {excerpt}")
            offset += len(line)


def read_outcome_at(
    path: Path, offset: int, length: int, read: Callable[[bytes], BatchOutcome]
) -> BatchOutcome:
    """Read one result at an offset. Raises StorageError."""
    with storage_errors(path):
        return read(read_at(path, offset, length))


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert an OSError to a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror or error}; make room or restore access, then run the same command again"
        ) from error


# Errors which say that too many tokens are enqueued: OpenAI and Azure send a code, others only text.
_QUEUE_FULL = re.compile(r"token_limit_exceeded|enqueued.token|too many (tokens|batches|jobs)", re.IGNORECASE)
_LIMIT = re.compile(r"limit(?: is)?:? *([\d,]*\d)", re.IGNORECASE)
_MARGIN = 0.95  # margin, because our token count is an estimate


class Window:
    """Limit of tokens that may be enqueued at the provider. `most` None means no known limit."""

    def __init__(self, most: int | None) -> None:
        self._most = math.inf if most is None else float(most)

    def fits(self, tokens: float, others: Sequence[Intent], *, first: bool) -> bool:
        """Return True if `tokens` more fit, given the open batches `others`.

        A single request that exceeds the limit is sent alone, and the provider decides.
        """
        return tokens + sum(each.tokens for each in others) <= self._most or (first and not others)

    def learn(self, refused: Intent, message: str, others: Sequence[Intent]) -> bool:
        """Adapt the limit after a refused batch. Return True if a smaller batch may be sent at once."""
        found = _LIMIT.search(message)
        before = self._most
        if found:
            self._most = min(before, _MARGIN * int(found[1].replace(",", "")))
        elif not others and len(refused.requests) > 1:
            self._most = min(before, refused.tokens / 2)
        return self._most < before


def is_queue_full(error: ProviderError) -> bool:
    """Return True if a batch was refused only because too many tokens are enqueued."""
    return bool(_QUEUE_FULL.search(f"{error.code} {error}"))


@dataclass(slots=True, eq=False)
class Call:
    """One request that waits for its answer; `reserved_usd` is None while no cost is reserved."""

    request: ModelRequest
    answer: asyncio.Future[Completion]
    history: CallHistory = field(default_factory=CallHistory)
    reserved_usd: float | None = None


class BatchCalls:
    """All calls of one batch pool.

    Attributes:
        gathered: calls that are not in a batch yet, by key, in the order of arrival.
        gathered_at: time of the last arrival in monotonic seconds.
        budget: budget of the run.
        ledger: costs and counts of the pool.
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
        """Register a request and return its call."""
        call = Call(request, asyncio.get_running_loop().create_future())
        self._all[request.key] = call
        return call

    def leave(self, call: Call) -> None:
        """Remove a call, because its task has ended."""
        self._all.pop(call.request.key, None)
        self.gathered.pop(call.request.key, None)
        self.settle(call, 0.0)

    def gather(self, call: Call) -> None:
        """Add a call to the calls that wait for a batch, and free its reservation."""
        self.settle(call, 0.0)
        self.gathered[call.request.key] = call
        self.gathered_at = time.monotonic()

    def calls_in(self, intent: Intent) -> list[Call]:
        """Return the calls that wait for this batch."""
        return [call for key in intent.keys if (call := self.waiting(key)) is not None]

    def waiting(self, key: AnswerKey) -> Call | None:
        """Return the call with this key if it is in a batch and not answered yet, else None."""
        call = self._all.get(key)
        return None if call is None or call.answer.done() or key in self.gathered else call

    def tokens(self, call: Call) -> float:
        """Estimate the input tokens of a call."""
        return self._estimator.demand(call.request, warm=False).input_tokens

    def reserve(self, call: Call) -> None:
        """Reserve the worst-case cost of a call in the budget."""
        if call.reserved_usd is None:
            call.reserved_usd = self.ledger.worst_usd(call.request)
            self.budget.reserve(call.reserved_usd)

    def settle(self, call: Call, cost_usd: float | None) -> None:
        """Replace the reservation of a call by its cost. An unknown cost (None) counts as the worst case."""
        reserved_usd, call.reserved_usd = call.reserved_usd, None
        if reserved_usd is not None:
            self.budget.settle(reserved_usd, cost_usd)

    def succeed(self, call: Call, answer: Completion) -> None:
        """Bill a call and give it its answer."""
        self.bill(call, answer.usage, len(answer.text))
        self.ledger.calls_ok += 1
        call.history.attempts += 1
        whole = replace(call.history.complete(answer, answer.usage), via="batch", ttft_s=None, latency_s=None)
        if not call.answer.done():
            call.answer.set_result(whole)

    def bill(self, call: Call, usage: Usage | None, characters: int) -> None:
        """Bill tokens of a call and update the estimates."""
        now = time.monotonic()
        self.settle(call, self.ledger.bill(call.history, call.request, usage, characters, now))
        if usage is not None:
            self._estimator.learn(call.request, usage)

    def fail(self, call: Call, error: BaseException) -> None:
        """Raise an error in the task that waits for a call."""
        self.gathered.pop(call.request.key, None)
        if call.answer.done():
            return
        call.answer.set_exception(
            call.history.copy_error(error) if isinstance(error, ProviderError) else error
        )

"""How many input tokens may lie in batches at once: as set, and as far as a provider has told by refusing."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.errors import ProviderError

# What says that a batch is only too much for now: OpenAI and Azure by a code, others by their words.
_TOO_MUCH = re.compile(r"token_limit_exceeded|enqueued.token|too many (tokens|batches|jobs)", re.IGNORECASE)
_LIMIT = re.compile(r"limit(?: is)?:? *([\d,]*\d)", re.IGNORECASE)
_IN_HAND = 0.95  # our count is an estimate


class Window:
    """The tokens that are with the provider, and how many may be."""

    def __init__(self, most: int | None) -> None:
        self._most = math.inf if most is None else float(most)
        self._enqueued: Counter[str] = Counter()

    def enter(self, intent: Intent) -> None:
        """A batch is with the provider, or may be."""
        self._enqueued[intent.token] = intent.tokens

    def leave(self, intent: Intent) -> None:
        """It is not any more."""
        self._enqueued.pop(intent.token, None)

    def takes(self, tokens: float, *, first: bool) -> bool:
        """Whether so many more may go; what is too large by itself goes alone, and the provider judges."""
        return tokens + self._enqueued.total() <= self._most or (first and not self._enqueued)

    def learn(self, refused: Intent, message: str) -> bool:
        """A batch was too much, in these words; whether a smaller one may go at once."""
        found = _LIMIT.search(message)
        before = self._most
        if found:
            self._most = min(before, _IN_HAND * int(found[1].replace(",", "")))
        elif not self._enqueued and len(refused.requests) > 1:
            self._most = min(before, refused.tokens / 2)
        return self._most < before


def is_too_much(error: ProviderError) -> bool:
    """Whether a batch was refused only because too much is enqueued."""
    return bool(_TOO_MUCH.search(f"{error.code} {error}"))

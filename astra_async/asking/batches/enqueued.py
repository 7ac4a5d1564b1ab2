"""How many input tokens may lie in batches at once: as set, and as far as a provider has told by refusing."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.asking.batches.batch_log import Intent
    from astra_async.errors import ProviderError

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

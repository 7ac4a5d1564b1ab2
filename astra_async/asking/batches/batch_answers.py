"""What a line of results comes to: an answer, or an error as the same one would be online."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from astra_async.asking.providers.reception import BROKEN, Reception

if TYPE_CHECKING:
    from astra_async.asking.batches.batch_interface import BatchInterface, Outcome
    from astra_async.types import Completion, ModelSettings, RateLimits


class _Deaf:
    """A watch of what is over."""

    def limits(self, limits: RateLimits) -> None:
        """Nothing is announced."""

    def first_token(self) -> None:
        """Nothing streams."""

    def streamed(self, characters: int) -> None:
        """Nothing streams."""


def answer_of(settings: ModelSettings, interface: BatchInterface, outcome: Outcome) -> Completion:
    """The answer in a result, read as a whole one that came online.

    Raises:
        ProviderError: the request's own failure, or a body that is no answer.
    """
    reception = Reception(settings, _Deaf(), interface.reader())
    try:
        if outcome.failure is not None:
            return reception.refused(outcome.failure)
        reception.take([orjson.dumps(outcome.body)])
        return reception.ended("a reason for its end")
    except BROKEN as error:
        return reception.broken(error)

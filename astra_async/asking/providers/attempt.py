"""One attempt in the making: what the reader has, what the watch was told, when it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.asking.providers.answer import Answer, decode_event, mend
from astra_async.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.providers.answer import Reader
    from astra_async.asking.providers.sse import Event
    from astra_async.types import CallWatch, FinishReason

_UNKNOWN = Usage()


class Attempt:
    """The reader, the watch and the times of one attempt; `clock` gives monotonic seconds."""

    __slots__ = ("_clock", "_first_s", "_started_s", "_told", "reader", "watch")

    def __init__(self, watch: CallWatch, reader: Reader, clock: Callable[[], float]) -> None:
        self.watch = watch
        self.reader = reader
        self._clock = clock
        self._started_s = clock()
        self._first_s: float | None = None
        self._told = 0

    @property
    def streaming(self) -> bool:
        """Whether content has arrived: from then on tokens are billed."""
        return self._first_s is not None

    def take(self, events: list[Event]) -> None:
        """Feed one chunk's events to the reader, then tell the watch once for all of them."""
        reader = self.reader
        for _, data in events:
            if data:
                reader.feed(decode_event(data))
                if reader.done:
                    break
        self.tell()

    def tell(self) -> None:
        """Tell the watch what the reader has got since the last time."""
        transcript = self.reader.transcript
        if transcript.begun and self._first_s is None:
            self._first_s = self._clock()
            self.watch.first_token()
        if transcript.characters > self._told:
            self.watch.streamed(transcript.characters - self._told)
            self._told = transcript.characters

    def billed(self) -> Usage | None:
        """Tokens of an attempt that failed, where the provider had announced some."""
        usage = self.reader.usage()
        return None if usage == _UNKNOWN else usage

    def completion(self, answer: Answer, finished_s: float) -> Completion:
        """The whole answer with its times; what cannot be encoded is mended and named."""
        text, repairs = mend(answer.text)
        return Completion(
            text=text,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            returned_model=answer.returned_model,
            ttft_s=None if self._first_s is None else self._first_s - self._started_s,
            latency_s=finished_s - self._started_s,
            repairs=(*answer.repairs, *repairs),
        )

    def stopped(self, reason: FinishReason, model: str) -> Completion:
        """A result that came as an error: what had arrived, under the reason that the provider gave."""
        answer = Answer(
            text=self.reader.transcript.text(),
            finish_reason=reason,
            usage=self.reader.usage(),
            returned_model=model,
        )
        return self.completion(answer, self._clock())

"""One answer on its way: what has come of it, and what it comes to.

Rules. An answer whose end was told is whole and paid for, whatever follows it: an error, a cut, silence; only
more content takes that end back (see Reader). What a provider's events make a reader raise ends this attempt
and no more; what the watch raises is no event's fault and passes through untouched.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.asking.providers.answer import (
    KEY_MASKED,
    STRAY_DATA,
    WRONG_SHAPE,
    AnswerTooLong,
    Stray,
    StreamFault,
    Unreadable,
    decode_events,
    label,
    repair,
)
from astra_async.asking.providers.counts import with_headers
from astra_async.asking.providers.error_meaning import Failure, classify, likeness
from astra_async.asking.providers.models import costs_by_price, priced_usd, unpriced_tier
from astra_async.asking.providers.patience import Patience
from astra_async.asking.providers.sse import EventTooLarge
from astra_async.errors import ProviderError, TransientError, TruncatedStream
from astra_async.redaction import mask_sent, one_line
from astra_async.surrogates import without_surrogates
from astra_async.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from astra_async.asking.providers.answer import Json, Reader
    from astra_async.types import CallWatch, ModelSettings

_UNKNOWN = Usage()
_NOTHING = Usage(input_tokens=0, output_tokens=0)


class Cut(Exception):  # noqa: N818 - names what was seen
    """The transport failed, with the error that is this one's cause."""


BROKEN = (Cut, StreamFault, Unreadable, EventTooLarge, AnswerTooLong)


class Reception:
    """The reader, the watch and the times of one attempt.

    Attributes:
        heard: an event has come that a reader could take.
        headers: of the response, which may report cost and service tier.
    """

    def __init__(
        self,
        settings: ModelSettings,
        watch: CallWatch,
        reader: Reader,
        *,
        in_usual_words: Callable[[Failure], Failure] = lambda failure: failure,
    ) -> None:
        self.watch = watch
        self.reader = reader
        self.patience = Patience(silence_s=settings.timeout_s)
        self.heard = False
        self.headers: Mapping[str, str] = {}
        self._settings = settings
        self._in_usual_words = in_usual_words
        self._started_s = time.monotonic()
        self._first_s: float | None = None
        self._reported = 0
        self._repairs: dict[str, None] = {}
        self._stray: Stray | None = None

    @property
    def streaming(self) -> bool:
        """Whether content has arrived: from then on tokens are billed."""
        return self._first_s is not None

    def take(self, events: Iterable[bytes]) -> None:
        """Feed one chunk's events to the reader, then tell the watch once for all of them.

        Raises:
            StreamFault, AnswerTooLong: as the reader says.
            Unreadable: one has a shape that the reader does not know, or is none.
        """
        reader = self.reader
        try:
            for data in events:
                if data and not reader.done:
                    self._take(data)
        finally:
            self.tell()  # what came before an error was heard, and is paid for

    def tell(self) -> None:
        """Tell the watch what the reader has got since the last time."""
        transcript = self.reader.transcript
        if transcript.begun and self._first_s is None:
            self._first_s = time.monotonic()
            self.watch.first_token()
        if transcript.characters > self._reported:
            before, self._reported = self._reported, transcript.characters
            self.watch.streamed(self._reported - before)

    def whole(self) -> Completion | None:
        """The answer with its times, once its end was told; what cannot be encoded is repaired and named.

        Raises:
            Unreadable: its end has a shape that the reader does not know.
        """
        try:
            answer = self.reader.answer()
            return None if answer is None else self._completion(answer)
        except WRONG_SHAPE as error:
            raise Unreadable(f"the end of the answer has an unknown shape ({error!r})") from error

    def ended(self, missing: str) -> Completion:
        """The answer of a stream that ended in order.

        Raises:
            Stray: it held no event.
            TruncatedStream: its end was not told; `missing` is what should have told it.
        """
        if self.reader.unsure and not self.reader.has_end_mark:
            self.reader.done = True
        whole = self.whole()
        if whole is None and self._stray and not self.heard:
            raise self._stray
        if whole is None:
            lacks = f"ended without {self.reader.missing or missing}" if self.heard else "was empty"
            raise self.problem(TruncatedStream, f"the stream {lacks}")
        return whole

    def broken(self, error: Exception, text: str = "", kind: type[ProviderError] | None = None) -> Completion:
        """What an attempt comes to that broke off: its answer where that is whole, a result, or an error.

        `kind` and `text` say what a cut means; without them it is the connection's, and once text had come a
        TruncatedStream.

        Raises:
            ProviderError: with the tokens that were announced before.
        """
        if isinstance(error, AnswerTooLong | EventTooLarge):
            raise self.problem(TruncatedStream, str(error)) from error
        with suppress(Unreadable):
            if (whole := self.whole()) is not None:
                return whole
        if isinstance(error, StreamFault):
            return self.refused(Failure(body=error.body), error, error.usage)
        if isinstance(error, Unreadable):
            raise self.problem(self.cut_kind, f"{error}: {error.excerpt}".removesuffix(": ")) from error
        raise self.problem(kind or self.cut_kind, text) from error

    @property
    def cut_kind(self) -> type[ProviderError]:
        """What a lost connection means: once content has come, the whole attempt is paid for."""
        return TruncatedStream if self.streaming else TransientError

    def refused(
        self, failure: Failure, cause: BaseException | None = None, usage: Usage | None = None
    ) -> Completion:
        """A result that came as an error: what had arrived, under the reason that the provider gave.

        Whoever refuses before any content bills nothing, unless the refusal itself says so (`usage`).

        Raises:
            ProviderError: the error is no result.
        """
        with suppress(*WRONG_SHAPE):  # else it comes from elsewhere: a proxy's page, a router's own error
            failure = self._in_usual_words(failure)
        meant = classify(failure, self._settings)
        if isinstance(meant, ProviderError):
            meant.usage = usage or self._billed()
            raise meant from cause
        usage = usage or self._billed() or (_UNKNOWN if self.streaming else _NOTHING)
        text, model = self.reader.transcript.text(), label(self.reader.model) or self._settings.model
        return self._completion(Completion(text=text, finish_reason=meant, usage=usage, returned_model=model))

    def problem(self, kind: type[ProviderError], text: str) -> ProviderError:
        """An error of ours about this attempt: one line that names the model."""
        error = kind(f"{self._settings.name}: {one_line(text)}", usage=self._billed())
        error.likeness = likeness(kind.__name__, text)
        error.may_be_billed = self.patience.is_lost
        return error

    def _take(self, data: bytes) -> None:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            event = None
        for each in (event,) if type(event) is dict else self._decoded(data):
            self.heard = True
            try:
                self.reader.take(each)
            except WRONG_SHAPE as error:
                raise Unreadable(f"an event has an unknown shape ({error!r})") from error

    def _decoded(self, data: bytes) -> Iterable[Json | None]:
        """The events in data that is not just one of them, as nearly all is."""
        if not data.strip():
            return ()
        try:
            decoded, repairs = decode_events(data)
        except Stray as stray:
            self._stray = self._stray or stray
            decoded, repairs = [], (STRAY_DATA,)
        self._repairs |= dict.fromkeys(repairs)
        return decoded

    def _billed(self) -> Usage | None:
        """Tokens of an attempt that failed: none before content has come, for none was bought."""
        usage = self.reader.known_usage() if self.streaming else _UNKNOWN
        return None if usage == _UNKNOWN else usage

    def _completion(self, answer: Completion) -> Completion:
        """An answer with its times, as it may be recorded."""
        whole, repairs = repair(answer.text)
        text = mask_sent(whole)
        native, masked = _without_keys(answer.native)
        calls = (replace(call, arguments=mask_sent(call.arguments)) for call in answer.calls)
        repairs += () if text == whole and not masked else (KEY_MASKED,)
        usage, settings = with_headers(answer.usage, self.headers), self._settings
        return replace(
            answer,
            text=text,
            reasoning=mask_sent(without_surrogates(answer.reasoning)),
            usage=usage,
            disbelieved_input_tokens=usage.input_tokens,
            unpriced_tier=unpriced_tier(settings, usage) if costs_by_price(settings, usage) else "",
            priced_usd=None if usage.reported_usd is None else priced_usd(settings, usage),
            ttft_s=None if self._first_s is None else self._first_s - self._started_s,
            latency_s=time.monotonic() - self._started_s,
            repairs=(*answer.repairs, *self._repairs, *repairs),
            calls=tuple(calls) if masked else answer.calls,
            native=native,
        )


def _without_keys(native: Any) -> tuple[Any, bool]:
    """An answer as its provider gave it, without what we had sent, and whether it held any of that."""
    if native is None:
        return None, False
    try:
        written = orjson.dumps(native).decode()
    except orjson.JSONEncodeError:
        written = without_surrogates(json.dumps(native, ensure_ascii=False))
        native = orjson.loads(written)
    masked = mask_sent(written)
    if masked == written:
        return native, False
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(masked), True
    return None, True

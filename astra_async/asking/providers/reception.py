"""Reception of one answer: feeds a reader, reports progress to the watch, and builds the result or error.

An answer that has ended is complete and billed, even if an error, a lost connection or silence follows. Only
more content revokes the end (see Reader). An exception of the reader ends this attempt as a ProviderError. An
exception of the watch is not caused by the provider and propagates unchanged.
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
from astra_async.asking.providers.attempt_timeout import AttemptTimeout
from astra_async.asking.providers.counts import with_headers
from astra_async.asking.providers.error_meaning import Failure, classify, likeness
from astra_async.asking.providers.models import costs_by_price, priced_usd, unpriced_tier
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
    """The transport failed. `__cause__` is the transport's error."""


BROKEN = (Cut, StreamFault, Unreadable, EventTooLarge, AnswerTooLong)


class Reception:
    """State of one attempt: its reader, its watch and its times.

    Attributes:
        has_events: the reader received at least one event.
        headers: response headers, which may report cost and service tier.
    """

    def __init__(
        self,
        settings: ModelSettings,
        watch: CallWatch,
        reader: Reader,
        *,
        normalize: Callable[[Failure], Failure] = lambda failure: failure,
    ) -> None:
        self.watch = watch
        self.reader = reader
        self.timeout = AttemptTimeout(silence_s=settings.timeout_s)
        self.has_events = False
        self.headers: Mapping[str, str] = {}
        self._settings = settings
        self._normalize = normalize
        self._started_s = time.monotonic()
        self._first_s: float | None = None
        self._reported = 0
        self._repairs: dict[str, None] = {}
        self._stray: Stray | None = None

    @property
    def streaming(self) -> bool:
        """True once content has arrived. From then on tokens are billed."""
        return self._first_s is not None

    def take(self, events: Iterable[bytes]) -> None:
        """Feed the events of one chunk to the reader, then report progress to the watch once.

        Raises:
            StreamFault, AnswerTooLong: see Reader.
            Unreadable: an event is invalid or has an unexpected shape.
        """
        reader = self.reader
        try:
            for data in events:
                if data and not reader.done:
                    self._take(data)
        finally:
            self.report_progress()  # content before an error is billed as well

    def report_progress(self) -> None:
        """Report to the watch what the reader has received since the last report."""
        transcript = self.reader.transcript
        if transcript.begun and self._first_s is None:
            self._first_s = time.monotonic()
            self.watch.first_token()
        if transcript.characters > self._reported:
            before, self._reported = self._reported, transcript.characters
            self.watch.streamed(self._reported - before)

    def whole(self) -> Completion | None:
        """Return the answer with its times and repairs, or None if it has not ended.

        Raises:
            Unreadable: the end of the answer has an unexpected shape.
        """
        try:
            answer = self.reader.answer()
            return None if answer is None else self._completion(answer)
        except WRONG_SHAPE as error:
            raise Unreadable(f"the end of the answer has an unexpected shape ({error!r})") from error

    def ended(self, missing: str) -> Completion:
        """Return the answer of a stream whose body ended regularly.

        Args:
            missing: name of the end mark, for the message.

        Raises:
            Stray: the stream contained data, but no event.
            TruncatedStream: the answer had not ended.
        """
        if self.reader.needs_end_mark and not self.reader.has_end_mark:
            self.reader.done = True
        whole = self.whole()
        if whole is None and self._stray and not self.has_events:
            raise self._stray
        if whole is None:
            lacks = f"ended without {self.reader.missing or missing}" if self.has_events else "was empty"
            raise self.problem(TruncatedStream, f"the stream {lacks}")
        return whole

    def broken(self, error: Exception, text: str = "", kind: type[ProviderError] | None = None) -> Completion:
        """Return the result of an aborted attempt: its answer if that is complete, or a refusal.

        Args:
            error: the error that ended the attempt, one of BROKEN or TimeoutError.
            text: message for a lost connection.
            kind: class to raise for a lost connection; None for `cut_kind`.

        Raises:
            ProviderError: the attempt has no result. The error has the tokens that were reported before.
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
        """Class of a lost connection: TruncatedStream once content has arrived, because it is billed."""
        return TruncatedStream if self.streaming else TransientError

    def refused(
        self, failure: Failure, cause: BaseException | None = None, usage: Usage | None = None
    ) -> Completion:
        """Return the result for an error that counts as a result, such as a filtered prompt.

        A refusal before any content is free unless the error reports billed tokens (`usage`).

        Raises:
            ProviderError: the error does not count as a result.
        """
        with suppress(*WRONG_SHAPE):  # an error from a proxy or router has another shape
            failure = self._normalize(failure)
        meant = classify(failure, self._settings)
        if isinstance(meant, ProviderError):
            meant.usage = usage or self._billed()
            raise meant from cause
        usage = usage or self._billed() or (_UNKNOWN if self.streaming else _NOTHING)
        text, model = self.reader.transcript.text(), label(self.reader.model) or self._settings.model
        return self._completion(Completion(text=text, finish_reason=meant, usage=usage, returned_model=model))

    def problem(self, kind: type[ProviderError], text: str) -> ProviderError:
        """Return an error about this attempt. Its message is one line that begins with the model's name."""
        error = kind(f"{self._settings.name}: {one_line(text)}", usage=self._billed())
        error.likeness = likeness(kind.__name__, text)
        error.may_be_billed = self.timeout.is_timed_out
        return error

    def _take(self, data: bytes) -> None:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            event = None
        for each in (event,) if type(event) is dict else self._decoded(data):
            self.has_events = True
            try:
                self.reader.take(each)
            except WRONG_SHAPE as error:
                raise Unreadable(f"an event has an unexpected shape ({error!r})") from error

    def _decoded(self, data: bytes) -> Iterable[Json | None]:
        """Return the events in data that is not exactly one JSON object, and record stray data."""
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
        """Return the tokens of a failed attempt: None before any content, because nothing was billed."""
        usage = self.reader.known_usage() if self.streaming else _UNKNOWN
        return None if usage == _UNKNOWN else usage

    def _completion(self, answer: Completion) -> Completion:
        """Return an answer with its times, keys masked and invalid text repaired."""
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
    """Mask API keys in a provider's response. Return the response, and True if it contained a key."""
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

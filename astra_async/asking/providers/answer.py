"""What every wire format reads out of a stream: text, why it ended, usage; and what a reader is."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from astra_async.surrogates import without_surrogates
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason

# What readers raise that meet a foreign shape: they index freely.
WRONG_SHAPE = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
_MOST_TOKENS = 10**12
MAX_CHARACTERS = 32 * 1024 * 1024

# Repairs, by the names that records know them by.
INVALID_UTF8 = "invalid_utf8"  # bytes that are no text became U+FFFD
NO_FINISH_REASON = "no_finish_reason"  # the stream ended in order, and nobody said why

Json = dict[str, Any]


class StreamFault(Exception):  # noqa: N818 - names what was seen
    """The stream carries an error instead of the rest of the answer.

    Attributes:
        body: the error as the provider sent it, decoded, for the classifier.
    """

    def __init__(self, body: Any) -> None:
        super().__init__("the provider sent an error in the stream")
        self.body = body


class AnswerTooLong(Exception):  # noqa: N818 - names what was seen
    """More text than any model's limit allows: the server does not keep max_tokens."""


class Unreadable(Exception):  # noqa: N818 - names what was seen
    """An event is not JSON, not an object, or has a shape that its reader does not know.

    Attributes:
        excerpt: how it begins; kept out of the message, for a server may echo a key.
    """

    def __init__(self, what: str, data: bytes = b"") -> None:
        super().__init__(f"an event of {len(data)} bytes is {what}" if data else what)
        self.excerpt = data[:80].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer that reached its terminal marker, before it is timed and priced."""

    text: str
    finish_reason: FinishReason
    usage: Usage
    returned_model: str
    repairs: tuple[str, ...] = ()


class Transcript:
    """The visible text so far. Reasoning is noticed, for the first-token time, and never kept."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.characters = 0
        self.begun = False

    def add(self, text: str) -> None:
        """Append visible text.

        Raises:
            AnswerTooLong: the answer passes MAX_CHARACTERS.
            TypeError: it is no text.
        """
        if text:
            if not isinstance(text, str):
                raise TypeError(f"{type(text).__name__} where text was expected")
            self.begun = True
            self.parts.append(text)
            self.characters += len(text)
            if self.characters > MAX_CHARACTERS:
                raise AnswerTooLong(f"the answer is longer than {MAX_CHARACTERS} characters")

    def text(self) -> str:
        """All visible text; may hold lone surrogates (see `mend`)."""
        return "".join(self.parts)


class Reader:
    """Pure: is fed the decoded events of one stream and says when the answer is whole.

    Attributes:
        finishes: what the provider's reasons for an end mean; one that is not listed is "stop".
        finishes_wordless: the same for those that mean something else where no text came.
        transcript: what has come.
        done: the terminal marker was seen: nothing that follows matters.
        reason: why the answer ended, as the provider says it; None until then.
        counts: tokens, under the provider's names.
        model: who has answered.
    """

    finishes: ClassVar[Mapping[str, FinishReason]] = {}
    finishes_wordless: ClassVar[Mapping[str, FinishReason]] = {}

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = False
        self.reason: str | None = None
        self.counts: Any = {}
        self.model = ""

    def feed(self, event: Json | None) -> None:
        """Take one event; None stands for the line `[DONE]`.

        Raises:
            StreamFault: the event is an error.
            AnswerTooLong: see Transcript.
        """
        raise NotImplementedError

    def usage(self) -> Usage:
        """Tokens as far as they were announced."""
        raise NotImplementedError

    def told(self) -> Usage:
        """`usage`, or nothing where the counts have a shape that nobody knows: an answer outlives them."""
        try:
            usage = self.usage()
            return Usage(**{each.name: count(getattr(usage, each.name)) for each in fields(Usage)})
        except WRONG_SHAPE:
            return Usage()

    def answer(self) -> Answer | None:
        """The whole answer, or None while its terminal marker is missing."""
        if self.reason is None:
            return None
        text = self.transcript.text()
        finish = self.finishes.get(self.reason, "stop")
        if not text:
            finish = self.finishes_wordless.get(self.reason, finish)
        return Answer(text=text, finish_reason=finish, usage=self.told(), returned_model=label(self.model))


def decode_events(data: bytes) -> tuple[list[Json | None], tuple[str, ...]]:
    """The JSON objects of one event, and what had to be mended; None stands for `[DONE]`.

    One object, or a list of them: Gemini sends errors so, and whole answers where no events were asked for.
    orjson refuses escapes of lone surrogates and text that is not UTF-8; the standard library then
    reads what is there, because a paid answer must not be lost to an encoder.

    Raises:
        Unreadable: not JSON, nested too deeply, or no object.
    """
    repairs: tuple[str, ...] = ()
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        if data.strip() == b"[DONE]":
            return [None], ()
        text = data.decode("utf-8", "replace")
        repairs = (INVALID_UTF8,) if text.count("\ufffd") > data.count(b"\xef\xbf\xbd") else ()
        try:
            event = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unreadable("not JSON", data) from error
    events = event if isinstance(event, list) else [event]
    if not events or not all(isinstance(each, dict) for each in events):
        raise Unreadable("not a JSON object", data)
    return events, repairs


def mend(text: str) -> tuple[str, tuple[str, ...]]:
    """Join surrogate halves that arrived apart; what stays alone becomes U+FFFD and a named repair."""
    whole = without_surrogates(text)
    return whole, ("surrogate",) if whole is not text and whole.count("\ufffd") > text.count("\ufffd") else ()


def count(value: object) -> int | None:
    """A token count as providers should send it: a whole number that can be one; anything else is None."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def first_choice(choices: Any) -> Json | None:
    """The choice or candidate that was asked for: others have an `index` above 0."""
    for choice in choices or ():  # no generator: this runs for every event
        if not choice.get("index"):
            found: Json = choice
            return found
    return None


def label(value: object) -> str:
    """A short foreign name (a model's, a code) fit for a record: one line, at most 200 characters."""
    return "".join(c for c in value[:200] if c.isprintable()) if isinstance(value, str) else ""

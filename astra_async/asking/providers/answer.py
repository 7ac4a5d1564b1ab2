"""What every wire format reads out of a stream: text, why it ended, usage; and what a reader is."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from astra_async.asking.providers.counts import known
from astra_async.redaction import one_line
from astra_async.surrogates import without_surrogates
from astra_async.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import FinishReason
    from astra_async.types.agents import ToolCall

# What readers raise that meet a foreign shape: they index freely.
WRONG_SHAPE = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
_LABEL_CHARACTERS, _EXCERPT_CHARACTERS = 200, 80
MAX_CHARACTERS = 32 * 1024 * 1024
MAX_REASONING = 64 * 1024

# Repairs, by the names that records know them by.
INVALID_UTF8 = "invalid_utf8"  # bytes that are no text became U+FFFD
NO_FINISH_REASON = "no_finish_reason"  # the stream ended in order, and did not say why
KEY_MASKED = "key_masked"  # the server had put into the answer what we had sent to prove who we are
STRAY_DATA = "stray_data"  # between events stood data that is none, such as `ping`

MADE_ID = "astra_"  # begins the id of a call that its provider gave none

_CALLED = frozenset({"tool_calls", "tool_use", "function_call"})
# What fields for the reason hold while there is none.
_NO_REASON = frozenset({"null", "none", "undefined", "unspecified", "finish_reason_unspecified"})

Json = dict[str, Any]


class StreamFault(Exception):  # noqa: N818 - names what was seen
    """The stream carries an error, decoded, instead of the rest; `usage`: what that says of billed tokens."""

    def __init__(self, body: Any, usage: Usage | None = None) -> None:
        super().__init__("the provider sent an error in the stream")
        self.body = body
        self.usage = usage


class AnswerTooLong(Exception):  # noqa: N818 - names what was seen
    """More text than any model's limit allows: the server does not keep max_tokens."""


class Unreadable(Exception):  # noqa: N818 - names what was seen
    """An event is not JSON, not an object, or has a shape that its reader does not know."""

    def __init__(self, what: str, data: bytes = b"") -> None:
        super().__init__(f"an event of {len(data)} bytes is {what}" if data else what)
        self.excerpt = one_line(data, length=_EXCERPT_CHARACTERS)  # masked


class Stray(Unreadable):
    """Data that cannot have been an event, nor half of one: a word, a number, null."""


class Transcript:
    """The visible text so far, and the beginning of the reasoning, which explains an answer without text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_characters = 0
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

    def count(self, text: str) -> None:
        """As `add`, of what is no visible text, such as a call's arguments, and is paid for alike."""
        self.add(text)
        if text:
            self.parts.pop()

    def reason(self, text: Any = "") -> None:
        """Notice a piece of reasoning, or of another part that is not visible; its text may be unknown."""
        self.begun = True
        if isinstance(text, str) and text and self._reasoning_characters < MAX_REASONING:
            self._reasoning.append(text)
            self._reasoning_characters += len(text)

    def restate(self, text: str) -> None:
        """As `add`, of the whole text, told once more: it outranks the pieces, and nothing new has come."""
        begun = self.begun
        self.parts.clear()
        self.characters = 0
        self.add(text)
        self.begun = begun

    def text(self) -> str:
        """All visible text; may hold lone surrogates (see `repair`)."""
        return "".join(self.parts)

    def reasoning(self) -> str:
        """The first MAX_REASONING characters of reasoning; may hold lone surrogates."""
        return "".join(self._reasoning)[:MAX_REASONING]


class Reader:
    """Pure: takes the decoded events of one stream and says when the answer is whole.

    A reason for the end is one only while nothing follows it: some routers send `stop` with every chunk, or
    with the first. Once content has followed a reason, this stream's reasons end nothing any more.

    Attributes:
        finishes: what the reasons for an end mean, in small letters and up to a colon, for routers hand on
            those of other formats in spellings of their own; one that is not listed is "other".
        finishes_wordless: the same for those that mean something else where no text came.
        has_end_mark: something in the stream says that it is over; else the end of its body does.
        transcript: what has come.
        done: the end mark was seen: nothing that follows matters.
        reason: why the answer ended, as `finishes` spells it; None until then.
        native_reason: the same as the provider wrote it.
        unsure: content has followed a reason: only the end mark ends the answer.
        settled: the reason and the counts have come, and since then no content.
        counts: tokens, under the provider's names.
        model: who has answered, as the provider says.
        tier: the service tier that served the request, as the provider says.
        gathers: the whole answer is kept for `gathered`: an agent has asked.
        missing: what the stream lacks if it ends now; empty if that is its end mark.
    """

    finishes: ClassVar[Mapping[str, FinishReason]] = {
        **dict.fromkeys(("stop", "end_turn", "stop_sequence", "completed", "complete"), "stop"),
        **dict.fromkeys(("eos", "eos_token", "end", "finished"), "stop"),  # TGI and other servers
        "length": "length",
        "max_tokens": "length",
        "max_output_tokens": "length",
        "model_length": "length",  # Mistral: the context window is full
        "model_context_window_exceeded": "length",
        "content_filter": "content_filter",
        "content_filtered": "content_filter",  # Bedrock, also the next
        "guardrail_intervened": "content_filter",
        "sensitive": "content_filter",  # Zhipu
        "safety": "content_filter",  # Gemini, also the next five
        "recitation": "content_filter",
        "prohibited_content": "content_filter",
        "blocklist": "content_filter",
        "spii": "content_filter",
        "language": "content_filter",
        "refusal": "refusal",
    }
    finishes_wordless: ClassVar[Mapping[str, FinishReason]] = {
        "model_length": "context_exceeded",
        "model_context_window_exceeded": "context_exceeded",
        "other": "content_filter",  # Gemini has declined, also the next
        "escalation": "content_filter",
    }
    has_end_mark: ClassVar[bool] = True

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = self.unsure = self.settled = False
        self.reason: str | None = None
        self.counts: Any = {}
        self.model: Any = ""
        self.tier: Any = None
        self.gathers = False
        self.missing = self.native_reason = self._made = ""

    def take(self, event: Json | None) -> None:
        """Feed one event, and hold a reason for the end against what follows it.

        Raises:
            StreamFault, AnswerTooLong: as `feed`.
        """
        ended, begun = self.reason, self.transcript.begun
        self.reason, self.transcript.begun = None, False
        try:
            self.feed(event)
            reason = reason_name(self.reason)
            if reason is not None:
                self.native_reason = label(self.reason)
        except BaseException:
            # An event that raises ends nothing, whatever it had set before: its fault is the last word.
            self.done = False
            self._weigh(ended, None, begun=begun)
            raise
        self._weigh(ended, reason, begun=begun)

    def feed(self, event: Json | None) -> None:
        """Read one event; None stands for the line `[DONE]`. Before each, `reason` and `begun` are unset.

        Raises:
            StreamFault: the event is an error.
            AnswerTooLong: see Transcript.
        """
        raise NotImplementedError

    def _weigh(self, ended: str | None, reason: str | None, *, begun: bool) -> None:
        """The reason in force after an event with `reason`: content takes back what had `ended` before."""
        if self.transcript.begun:
            self.reason = reason
            self.unsure |= ended is not None
            self.settled = False
            return
        self.transcript.begun = begun
        self.reason = ended if reason is None else reason
        in_force = self.reason is not None and not self.unsure
        self.settled = in_force and bool(self.counts) and bool(self.transcript.characters)

    def usage(self) -> Usage:
        """Tokens as far as they were announced."""
        raise NotImplementedError

    def made_id(self, number: int) -> str:
        """An id for a call that its provider gave none, like no other's."""
        self._made = self._made or secrets.token_hex(4)
        return f"{MADE_ID}{self._made}_{number}"

    def gathered(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """The answer as its interface gives it to who does not stream, and the calls in it."""
        raise NotImplementedError

    def known_usage(self) -> Usage:
        """`usage`, or nothing where the counts have an unknown shape: an answer outlives them."""
        try:
            return known(self.usage(), self.counts, self.tier)
        except WRONG_SHAPE:
            return Usage()

    def answer(self) -> Completion | None:
        """The whole answer, not timed yet, or None while nothing says that it has ended.

        Some routers send text and an end mark, and never a reason: that is an end in order, which says so.
        """
        if not self.done and (self.reason is None or self.unsure):
            return None
        text = self.transcript.text()
        native, calls = self.gathered() if self.gathers else (None, ())
        if self.reason is None and not text and not calls:
            return None
        # Without a tool on offer, the reason that a tool was called says that the output is broken.
        stopped = not self.reason or (calls and self.reason in _CALLED)
        finish = "stop" if stopped else self.finishes.get(self.reason or "", "other")
        if not text and not calls:
            finish = self.finishes_wordless.get(self.reason or "", finish)
        return Completion(
            text=text,
            finish_reason=finish,
            usage=self.known_usage(),
            returned_model=label(self.model),
            native_finish_reason=self.native_reason,
            reasoning="" if text.strip() or calls else self.transcript.reasoning(),
            repairs=(NO_FINISH_REASON,) if self.reason is None else (),
            calls=calls,
            native=native,
        )


def decode_events(data: bytes) -> tuple[list[Json | None], tuple[str, ...]]:
    """The JSON objects of one event, and what had to be repaired; None stands for `[DONE]`.

    One object, or a list of them: Gemini sends errors so, and whole answers where no events were asked for.
    orjson refuses escapes of lone surrogates and text that is not UTF-8; the standard library then
    reads what is there, because a paid answer must not be lost to an encoder.

    Raises:
        Stray: neither an object nor anything that begins like one or like a list.
        Unreadable: not JSON, nested too deeply, or a list that holds more than objects.
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
            kind = Unreadable if data.lstrip()[:1] in {b"{", b"["} else Stray
            raise kind("not JSON", data) from error
    events = event if isinstance(event, list) else [event]
    objects = [each for each in events if isinstance(each, dict)]
    if not objects:
        raise Stray("not a JSON object", data)
    if len(objects) < len(events):
        raise Unreadable("not a list of JSON objects", data)
    return events, repairs


def repair(text: str) -> tuple[str, tuple[str, ...]]:
    """Join surrogate halves that arrived apart; what stays alone becomes U+FFFD and a named repair."""
    whole = without_surrogates(text)
    return whole, ("surrogate",) if whole is not text and whole.count("\ufffd") > text.count("\ufffd") else ()


def text_of(arguments: Any) -> str:
    """A call's arguments as JSON text, where they are not text already."""
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def reason_name(reason: str | None) -> str | None:
    """A reason for the end as tables hold it: small letters up to a colon; None where it says none."""
    if not reason:
        return reason
    name = reason.lower().partition(":")[0].strip()
    return None if name in _NO_REASON else name


def first_choice(choices: Any) -> Json | None:
    """The choice or candidate that was asked for: others have an `index` above 0."""
    for choice in choices or ():  # no generator: this runs for every event
        if not choice.get("index"):
            found: Json = choice
            return found
    return None


def label(value: object) -> str:
    """A short foreign name (a model's, a code) fit for a record: one line, keys masked."""
    return one_line(value, length=_LABEL_CHARACTERS) if isinstance(value, str) and value else ""

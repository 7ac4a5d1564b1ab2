"""Readers of streamed answers: the interface of all wire formats, and helpers that they share."""

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

# Exceptions of a reader if an event has an unexpected shape. Readers index events without checks.
WRONG_SHAPE = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
_LABEL_CHARACTERS, _EXCERPT_CHARACTERS = 200, 80
MAX_CHARACTERS = 32 * 1024 * 1024
MAX_REASONING = 64 * 1024

# Names of repairs in records.
INVALID_UTF8 = "invalid_utf8"  # invalid bytes were replaced by U+FFFD
NO_FINISH_REASON = "no_finish_reason"  # the stream was complete, but gave no finish reason
KEY_MASKED = "key_masked"  # the answer repeated an API key that was sent, and the key was masked
STRAY_DATA = "stray_data"  # data between events that is not an event, such as `ping`, was ignored

MADE_ID = "astra_"  # prefix of the ids given to tool calls that have no id

_CALLED = frozenset({"tool_calls", "tool_use", "function_call"})
# Values of the finish reason that mean "not finished yet".
_NO_REASON = frozenset({"null", "none", "undefined", "unspecified", "finish_reason_unspecified"})

Json = dict[str, Any]


class StreamFault(Exception):  # noqa: N818 - names what was seen
    """The stream contains an error, decoded in `body`. `usage` has the billed tokens if it reports any."""

    def __init__(self, body: Any, usage: Usage | None = None) -> None:
        super().__init__("the provider sent an error in the stream")
        self.body = body
        self.usage = usage


class AnswerTooLong(Exception):  # noqa: N818 - names what was seen
    """The answer is longer than any model's limit, because the server ignores max_tokens."""


class Unreadable(Exception):  # noqa: N818 - names what was seen
    """An event is not JSON, not an object, or has an unexpected shape. `excerpt` is its masked beginning."""

    def __init__(self, what: str, data: bytes = b"") -> None:
        super().__init__(f"an event of {len(data)} bytes is {what}" if data else what)
        self.excerpt = one_line(data, length=_EXCERPT_CHARACTERS)


class Stray(Unreadable):
    """Data that cannot be an event or the beginning of one: a word, a number, null."""


class Transcript:
    """Text received so far, and the beginning of the reasoning, which explains an answer without text.

    `characters` counts all output, also invisible output such as tool-call arguments. `begun` is True if the
    current event contained content.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_characters = 0
        self.characters = 0
        self.begun = False

    def add(self, text: str) -> None:
        """Append visible text.

        Raises:
            AnswerTooLong: the answer is longer than MAX_CHARACTERS.
            TypeError: `text` is not a string.
        """
        if text:
            if not isinstance(text, str):
                raise TypeError(f"expected text, got {type(text).__name__}")
            self.begun = True
            self.parts.append(text)
            self.characters += len(text)
            if self.characters > MAX_CHARACTERS:
                raise AnswerTooLong(f"the answer is longer than {MAX_CHARACTERS} characters")

    def add_hidden(self, text: str) -> None:
        """Count output that is billed but not visible, such as tool-call arguments. Raises like `add`."""
        self.add(text)
        if text:
            self.parts.pop()

    def add_reasoning(self, text: Any = "") -> None:
        """Record a piece of reasoning or of other invisible output. Its text may be unknown."""
        self.begun = True
        if isinstance(text, str) and text and self._reasoning_characters < MAX_REASONING:
            self._reasoning.append(text)
            self._reasoning_characters += len(text)

    def replace_text(self, text: str) -> None:
        """Replace the text by the complete text, which the server repeated. Raises like `add`."""
        begun = self.begun
        self.parts.clear()
        self.characters = 0
        self.add(text)
        self.begun = begun

    def text(self) -> str:
        """Return all visible text. May contain lone surrogates (see `repair`)."""
        return "".join(self.parts)

    def reasoning(self) -> str:
        """Return the first MAX_REASONING characters of reasoning. May contain lone surrogates."""
        return "".join(self._reasoning)[:MAX_REASONING]


class Reader:
    """Reader of the decoded events of one stream, without I/O. Detects the end of the answer.

    A finish reason ends the answer only if no content follows, because some routers send `stop` with every
    chunk or with the first one. Once content has followed a finish reason, later reasons are ignored and only
    the end mark ends the answer.

    Attributes:
        finish_reasons: FinishReason by finish reason of the provider. Keys are lower case without the part
            after a colon, because routers change the spelling. A reason that is not listed means "other".
        finish_reasons_without_text: the same for reasons that have another meaning if there is no text.
        has_end_mark: the stream contains an end mark; False if only the end of the body ends it.
        transcript: the text received so far.
        done: the end mark was received; later events are ignored.
        reason: finish reason as a key of `finish_reasons`; None until it arrives.
        native_reason: finish reason as the provider wrote it.
        needs_end_mark: content followed a finish reason, so only the end mark ends the answer.
        settled: the finish reason and the counts have arrived, and no content after them.
        counts: tokens under the provider's names.
        model: model that answered, as the provider reports it.
        tier: service tier that served the request, as the provider reports it.
        keep_complete: keep the complete answer for `complete_response`, because an agent asked.
        missing: name of what is missing if the stream ends now; empty if that is the end mark.
    """

    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
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
    finish_reasons_without_text: ClassVar[Mapping[str, FinishReason]] = {
        "model_length": "context_exceeded",
        "model_context_window_exceeded": "context_exceeded",
        "other": "content_filter",  # Gemini has declined, also the next
        "escalation": "content_filter",
    }
    has_end_mark: ClassVar[bool] = True

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = self.needs_end_mark = self.settled = False
        self.reason: str | None = None
        self.counts: Any = {}
        self.model: Any = ""
        self.tier: Any = None
        self.keep_complete = False
        self.missing = self.native_reason = self._made = ""

    def take(self, event: Json | None) -> None:
        """Process one event, and decide whether a finish reason still applies.

        Raises:
            StreamFault, AnswerTooLong: see `feed`.
        """
        ended, begun = self.reason, self.transcript.begun
        self.reason, self.transcript.begun = None, False
        try:
            self.feed(event)
            reason = reason_name(self.reason)
            if reason is not None:
                self.native_reason = label(self.reason)
        except BaseException:
            # An event that raises does not end the answer, even if the reader has set `done` before.
            self.done = False
            self._update_reason(ended, None, begun=begun)
            raise
        self._update_reason(ended, reason, begun=begun)

    def feed(self, event: Json | None) -> None:
        """Process one event, None for the line `[DONE]`. `take` resets `reason` and `begun` before each.

        Raises:
            StreamFault: the event is an error.
            AnswerTooLong: see Transcript.
        """
        raise NotImplementedError

    def _update_reason(self, ended: str | None, reason: str | None, *, begun: bool) -> None:
        """Set the finish reason after an event with `reason`. Content cancels the earlier reason `ended`."""
        if self.transcript.begun:
            self.reason = reason
            self.needs_end_mark |= ended is not None
            self.settled = False
            return
        self.transcript.begun = begun
        self.reason = ended if reason is None else reason
        in_force = self.reason is not None and not self.needs_end_mark
        self.settled = in_force and bool(self.counts) and bool(self.transcript.characters)

    def usage(self) -> Usage:
        """Return the tokens that the events have reported so far."""
        raise NotImplementedError

    def made_id(self, number: int) -> str:
        """Return a unique id for a tool call without id."""
        self._made = self._made or secrets.token_hex(4)
        return f"{MADE_ID}{self._made}_{number}"

    def complete_response(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """Return the answer in the form of a response without streaming, and its tool calls."""
        raise NotImplementedError

    def known_usage(self) -> Usage:
        """Return `usage`, or an empty Usage if the counts are malformed, so that the answer is not lost."""
        try:
            return known(self.usage(), self.counts, self.tier)
        except WRONG_SHAPE:
            return Usage()

    def answer(self) -> Completion | None:
        """Return the complete answer without times, or None if it has not ended.

        Some routers send text and an end mark, but never a finish reason. Such an answer is complete and has
        the repair NO_FINISH_REASON.
        """
        if not self.done and (self.reason is None or self.needs_end_mark):
            return None
        text = self.transcript.text()
        native, calls = self.complete_response() if self.keep_complete else (None, ())
        if self.reason is None and not text and not calls:
            return None
        # The reason `tool_calls` without any call means broken output, so it is not treated as "stop".
        stopped = not self.reason or (calls and self.reason in _CALLED)
        finish = "stop" if stopped else self.finish_reasons.get(self.reason or "", "other")
        if not text and not calls:
            finish = self.finish_reasons_without_text.get(self.reason or "", finish)
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
    """Return the JSON objects of one event (None for `[DONE]`) and the names of repairs.

    An event is one object or a list of objects; Gemini sends lists for errors and unstreamed answers. orjson
    rejects escaped lone surrogates and invalid UTF-8. The standard library parses these events, because a
    paid answer must not be lost to an encoding error.

    Raises:
        Stray: the data is not an object and does not begin like an object or a list.
        Unreadable: the data is not JSON, is nested too deeply, or is a list with other items than objects.
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
    """Join surrogate halves from different events. A lone half becomes U+FFFD and a named repair."""
    whole = without_surrogates(text)
    return whole, ("surrogate",) if whole is not text and whole.count("\ufffd") > text.count("\ufffd") else ()


def text_of(arguments: Any) -> str:
    """Return tool-call arguments as JSON text. Text is returned unchanged."""
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def reason_name(reason: str | None) -> str | None:
    """Return a finish reason as a key of tables: lower case up to a colon. None if not finished."""
    if not reason:
        return reason
    name = reason.lower().partition(":")[0].strip()
    return None if name in _NO_REASON else name


def first_choice(choices: Any) -> Json | None:
    """Return the first choice or candidate; all others have an `index` above 0."""
    for choice in choices or ():  # a loop is faster than a generator, and this runs for every event
        if not choice.get("index"):
            found: Json = choice
            return found
    return None


def label(value: object) -> str:
    """Return a short name from a response, such as a model or a code, for a record: one line, keys masked."""
    return one_line(value, length=_LABEL_CHARACTERS) if isinstance(value, str) and value else ""

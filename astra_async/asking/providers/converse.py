"""Reads what Bedrock's Converse interface says, as the AWS library decodes it (see bedrock)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.asking.providers.answer import Answer, Json, StreamFault, Transcript, count
from astra_async.types import Usage

if TYPE_CHECKING:
    from astra_async.types import FinishReason

_FINISH: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "refusal": "refusal",
}


class ConverseReader:
    """Events of ConverseStream, or the one response of Converse -> an Answer.

    `metadata` with the usage follows `messageStop`, so the stream is read to its end.
    """

    __slots__ = ("_stop", "_usage", "done", "transcript")

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.done = False
        self._stop: str | None = None
        self._usage: Json = {}

    def feed(self, event: Json | None) -> None:
        """Take one event, as the AWS library decodes it: one member, its name the key."""
        if not event:
            return
        if "contentBlockDelta" in event:
            self._block(event["contentBlockDelta"]["delta"])
        elif "messageStop" in event:
            self._stop = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            self._usage = event["metadata"].get("usage") or {}
        elif "output" in event:
            for block in event["output"]["message"]["content"]:
                self._block(block)
            self._stop = event["stopReason"]
            self._usage = event.get("usage") or {}
        else:
            self._exception(event)

    def usage(self) -> Usage:
        """Tokens of the metadata; `inputTokens` leaves out what the prompt cache read or wrote."""
        usage = self._usage
        fresh = count(usage.get("inputTokens"))
        read = count(usage.get("cacheReadInputTokens"))
        written = count(usage.get("cacheWriteInputTokens"))
        return Usage(
            input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
            cached_tokens=read,
            cache_write_tokens=written,
            output_tokens=count(usage.get("outputTokens")),
        )

    def answer(self) -> Answer | None:
        """The answer, once `messageStop` has arrived."""
        if self._stop is None:
            return None
        text = self.transcript.text()
        finish = _FINISH.get(self._stop, "stop")
        if self._stop == "model_context_window_exceeded" and not text:
            finish = "context_exceeded"
        return Answer(text=text, finish_reason=finish, usage=self.usage(), returned_model="")

    def _block(self, block: Json) -> None:
        if block.get("text"):
            self.transcript.add(block["text"])
        elif "reasoningContent" in block:
            self.transcript.begun = True

    def _exception(self, event: Json) -> None:
        for name, body in event.items():
            if name.endswith("Exception"):
                raise StreamFault({"error": {**(body or {}), "code": name[:1].upper() + name[1:]}})

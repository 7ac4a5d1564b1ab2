"""Reads what Bedrock's Converse interface says (see bedrock); `eventstream` cuts it into events."""

from __future__ import annotations

from typing import ClassVar

from astra_async.asking.providers.answer import Json, Reader, StreamFault, count
from astra_async.types import Usage


class ConverseReader(Reader):
    """Events of ConverseStream, or the one response of Converse -> an Answer.

    `metadata` with the usage follows `messageStop`, so the stream is read to its end.
    """

    has_end_mark: ClassVar[bool] = False

    def feed(self, event: Json | None) -> None:
        """Take one event: one member, its name the key."""
        if not event:
            return
        if "contentBlockDelta" in event:
            self._block(event["contentBlockDelta"]["delta"])
        elif "messageStop" in event:
            self.reason = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            self.counts = event["metadata"].get("usage") or {}
        elif "output" in event:
            for block in event["output"]["message"]["content"]:
                self._block(block)
            self.reason = event["stopReason"]
            self.counts = event.get("usage") or {}
        elif "error" in event:
            raise StreamFault(event)
        else:
            self._exception(event)

    def usage(self) -> Usage:
        """Tokens of the metadata; `inputTokens` leaves out what the prompt cache read or wrote."""
        usage = self.counts
        fresh = count(usage.get("inputTokens"))
        read = count(usage.get("cacheReadInputTokens"))
        written = count(usage.get("cacheWriteInputTokens"))
        return Usage(
            input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
            cached_tokens=read,
            cache_write_tokens=written,
            output_tokens=count(usage.get("outputTokens")),
        )

    def _block(self, block: Json) -> None:
        if block.get("text"):
            self.transcript.add(block["text"])
        elif "reasoningContent" in block:
            self.transcript.begun = True

    def _exception(self, event: Json) -> None:
        for name, body in event.items():
            if name.endswith("Exception"):
                raise StreamFault({"error": {**(body or {}), "code": name[:1].upper() + name[1:]}})

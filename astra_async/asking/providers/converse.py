"""Reads what Bedrock's Converse interface says (see bedrock); `eventstream` cuts it into events."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from astra_async.asking.providers.answer import Json, Reader, StreamFault, text_of
from astra_async.asking.providers.counts import merged, uncached
from astra_async.asking.providers.deltas import merge, read_input
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from astra_async.types import Usage


_GATHERED = ("text", "toolUse", "reasoningContent")


class ConverseReader(Reader):
    """Events of ConverseStream, or the one response of Converse -> an Answer.

    `metadata` with the usage follows `messageStop`, so the stream is read to its end.
    """

    has_end_mark: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Json] = {}  # by index; a call's input is text until it is whole

    def feed(self, event: Json | None) -> None:
        """Take one event: one member, its name the key."""
        if not event:
            return
        if "contentBlockDelta" in event:
            piece = event["contentBlockDelta"]
            self._block(piece["delta"])
            if self.gathers:
                self._gather(piece, piece["delta"])
        elif self.gathers and "contentBlockStart" in event:
            start = event["contentBlockStart"]
            self._gather(start, start.get("start") or {})
        elif "messageStop" in event:
            self.reason = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            self._served(event["metadata"])
        elif "output" in event:
            blocks = event["output"]["message"]["content"]
            self._blocks = dict(enumerate(blocks))
            for block in blocks:
                self._block(block)
            self.reason = event["stopReason"]
            self._served(event)
        elif "error" in event:
            raise StreamFault(event)
        else:
            self._exception(event)

    def usage(self) -> Usage:
        """Tokens of the metadata; `inputTokens` leaves out what the prompt cache read or wrote."""
        names = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")
        return uncached(map(self.counts.get, names))

    def gathered(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """The response of Converse; the input of a call that was cut off stays text."""
        blocks = [_closed(block) for _, block in sorted(self._blocks.items())]
        calls = tuple(
            ToolCall(id=use["toolUseId"], name=use["name"], arguments=text_of(use.get("input") or {}))
            for block in blocks
            if (use := block.get("toolUse"))
        )
        message = {"role": "assistant", "content": blocks}
        return {"output": {"message": message}, "stopReason": self.reason, "usage": self.counts}, calls

    def _gather(self, where: Json, piece: Json) -> None:
        """Lay a piece over its block: texts are added, and a call's input."""
        block = self._blocks.setdefault(where.get("contentBlockIndex", 0), {})
        if "toolUse" in piece:
            self.transcript.count(piece["toolUse"].get("input") or "")
            self.transcript.begun = True
        reasoning = piece.get("reasoningContent")
        # What streams as `text` and `signature` is `reasoningText` of a message.
        if reasoning and "redactedContent" not in reasoning:
            piece = {"reasoningContent": {"reasoningText": reasoning}}
        merge(block, {name: piece[name] for name in _GATHERED if name in piece})

    def _block(self, block: Json) -> None:
        if block.get("text"):
            self.transcript.add(block["text"])
        elif "reasoningContent" in block:
            reasoning = block["reasoningContent"]
            self.transcript.reason(
                reasoning.get("text") or (reasoning.get("reasoningText") or {}).get("text")
            )

    def _served(self, metadata: Json) -> None:
        """The counts, and the tier: latency-optimized inference has a price of its own, too."""
        self.counts = merged(self.counts, metadata.get("usage") or {})
        is_optimized = metadata.get("performanceConfig") == {"latency": "optimized"}
        self.tier = "optimized" if is_optimized else metadata.get("serviceTier")

    def _exception(self, event: Json) -> None:
        for name, body in event.items():
            if name.endswith("Exception"):
                raise StreamFault({"error": {**(body or {}), "code": name[:1].upper() + name[1:]}})


def _closed(block: Json) -> Json:
    """A block that nothing more is added to: a call's input read, where that can be done."""
    use = block.get("toolUse")
    return {"toolUse": {**use, "input": read_input(use.get("input", ""))}} if use else block

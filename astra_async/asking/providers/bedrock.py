"""Amazon Bedrock's Converse API (`POST {base}/model/{id}/converse-stream`), signed.

If a model refuses to stream, `.../converse` is used from then on. Bedrock announces no rate limits and does
not say how long to wait after a rejection.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from multidict import CIMultiDict

from astra_async.asking.providers.answer import Json, Reader, StreamFault, text_of
from astra_async.asking.providers.anthropic import claude_thinking
from astra_async.asking.providers.aws import EventStreamSplitter, Signer, endpoint_of, region_of
from astra_async.asking.providers.connection import address, join_url
from astra_async.asking.providers.counts import merged, usage_from_parts
from astra_async.asking.providers.deltas import merge, read_input
from astra_async.asking.providers.error_body import ErrorBody
from astra_async.asking.providers.request_fields import (
    USUAL_SETTINGS,
    WireFormat,
    arguments_of,
    drop_none,
    pieces,
    refuse,
    tools_of,
)
from astra_async.transport import is_local
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from astra_async.asking.providers.error_meaning import Failure
    from astra_async.types import ModelRequest, ModelSettings, Usage
    from astra_async.types.agents import Message, ToolResult


_GATHERED = ("text", "toolUse", "reasoningContent")


class ConverseReader(Reader):
    """Reader of the events of ConverseStream, or of the single response of Converse.

    `metadata` with the usage follows `messageStop`, so the stream is read to its end.
    """

    has_end_mark: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Json] = {}  # by index; the input of a tool call is text until it is complete

    def feed(self, event: Json | None) -> None:
        """Process one event: an object with the event's name as its single key."""
        if not event:
            return
        if "contentBlockDelta" in event:
            piece = event["contentBlockDelta"]
            self._block(piece["delta"])
            if self.keep_complete:
                self._gather(piece, piece["delta"])
        elif self.keep_complete and "contentBlockStart" in event:
            start = event["contentBlockStart"]
            self._gather(start, start.get("start") or {})
        elif "messageStop" in event:
            self.reason = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            self._record_metadata(event["metadata"])
        elif "output" in event:
            blocks = event["output"]["message"]["content"]
            self._blocks = dict(enumerate(blocks))
            for block in blocks:
                self._block(block)
            self.reason = event["stopReason"]
            self._record_metadata(event)
        elif "error" in event:
            raise StreamFault(event)
        else:
            self._exception(event)

    def usage(self) -> Usage:
        """Return the tokens of the metadata. `inputTokens` excludes tokens of the prompt cache."""
        names = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")
        return usage_from_parts(map(self.counts.get, names))

    def complete_response(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """Return the answer as a response of Converse. The input of an incomplete tool call stays text."""
        blocks = [_finished_block(block) for _, block in sorted(self._blocks.items())]
        calls = tuple(
            ToolCall(id=use["toolUseId"], name=use["name"], arguments=text_of(use.get("input") or {}))
            for block in blocks
            if (use := block.get("toolUse"))
        )
        message = {"role": "assistant", "content": blocks}
        return {"output": {"message": message}, "stopReason": self.reason, "usage": self.counts}, calls

    def _gather(self, where: Json, piece: Json) -> None:
        """Merge a delta into its block: text and tool-call input are appended."""
        block = self._blocks.setdefault(where.get("contentBlockIndex", 0), {})
        if "toolUse" in piece:
            self.transcript.add_hidden(piece["toolUse"].get("input") or "")
            self.transcript.begun = True
        reasoning = piece.get("reasoningContent")
        # A stream has `text` and `signature` directly; a message has both inside `reasoningText`.
        if reasoning and "redactedContent" not in reasoning:
            piece = {"reasoningContent": {"reasoningText": reasoning}}
        merge(block, {name: piece[name] for name in _GATHERED if name in piece})

    def _block(self, block: Json) -> None:
        if block.get("text"):
            self.transcript.add(block["text"])
        elif "reasoningContent" in block:
            reasoning = block["reasoningContent"]
            self.transcript.add_reasoning(
                reasoning.get("text") or (reasoning.get("reasoningText") or {}).get("text")
            )

    def _record_metadata(self, metadata: Json) -> None:
        """Record the counts and the service tier. Latency-optimized inference is priced as a tier."""
        self.counts = merged(self.counts, metadata.get("usage") or {})
        is_optimized = metadata.get("performanceConfig") == {"latency": "optimized"}
        self.tier = "optimized" if is_optimized else metadata.get("serviceTier")

    def _exception(self, event: Json) -> None:
        for name, body in event.items():
            if name.endswith("Exception"):
                raise StreamFault({"error": {**(body or {}), "code": name[:1].upper() + name[1:]}})


def _finished_block(block: Json) -> Json:
    """Return a finished block, with the tool-call input parsed if possible."""
    use = block.get("toolUse")
    return {"toolUse": {**use, "input": read_input(use.get("input", ""))}} if use else block


_SERVICE = "bedrock-runtime"
_SIGNED_AS = "bedrock"
_LOCAL_REGION = "us-east-1"  # for servers on this machine, which have no region
_CACHING = ("anthropic.claude", "amazon.nova")  # other models reject a cache point


class Bedrock(WireFormat):
    """Wire format of `bedrock/MODEL-ID`. `endpoint` or `base_url` replaces the region's address.

    Raises:
        ConfigError: see WireFormat; also if no region is configured or the model has no such setting.
    """

    charges_max_tokens = True
    cached_input_is_exempt = True
    reader = ConverseReader
    splitter = EventStreamSplitter
    protected_fields = frozenset({"modelId", "messages"})
    max_tokens_at = (("inferenceConfig", "maxTokens"),)
    supported_settings = USUAL_SETTINGS
    refusal_remedies: ClassVar[Mapping[str, str]] = {
        "api_version": "Converse has only one version: unset it",
        "max_tokens_field": "it is maxTokens: unset it",
        **dict.fromkeys(("organization", "project"), "AWS_PROFILE chooses the account: unset it"),
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:  # noqa: ARG002 - AWS uses credentials instead of a key
        own = settings.endpoint or settings.base_url
        local = bool(own) and is_local(address(own or "", where=f"endpoint of {settings.name}"))
        region = region_of(settings.name, environ, default=_LOCAL_REGION if local else None)
        super().__init__(
            settings, own or endpoint_of(_SERVICE, region, environ), environ=environ, named="endpoint"
        )
        self._model_fields = _model_fields(settings)
        self._signer = Signer(settings.name, _SIGNED_AS, region, self.base, environ)
        self.headers = {}
        self._set_url(to="converse-stream")

    def options(self, request: ModelRequest) -> Json:
        """Return limits, sampling, thinking and the service tier."""
        del request
        settings = self.settings
        limits = {
            "maxTokens": settings.max_tokens,
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "stopSequences": list(settings.stop) or None,
        }
        return {
            "inferenceConfig": drop_none(limits),
            "additionalModelRequestFields": self._model_fields or None,
            "serviceTier": {"type": settings.service_tier} if settings.service_tier else None,
        }

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """Return system, messages and tools, with cache points at the same places as for Anthropic."""
        sent: list[Json] = [{"role": each.role, "content": _blocks(each)} for each in messages]
        if request.cache and any(family in self.settings.model for family in _CACHING):
            # Mark the end of the prompt, and the end of the last message if a follow-up turn comes.
            for place in {0, len(sent) - 1} if request.goes_on else {0}:
                sent[place]["content"].append({"cachePoint": {"type": "default"}})
        tools = [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": tool.parameters},
                }
            }
            for tool in tools_of(request)
        ]
        return {
            "system": [{"text": system}] if system else None,
            "messages": sent,
            "toolConfig": {"tools": tools} if tools else None,
        }

    async def signed(
        self, url: URL, headers: CIMultiDict[str], body: bytes, *, method: str = "POST"
    ) -> CIMultiDict[str]:
        """Return the headers with a signature over the headers, the address and the body."""
        return CIMultiDict({**headers, **await self._signer.headers(url, headers, body, method=method)})

    def switch_form(self, failure: Failure) -> bool:
        """Switch to unstreamed requests for good if the model refuses to stream."""
        body = ErrorBody.read(self.failure(failure).body)
        words = body.message.lower()
        if body.code != "ValidationException" or "stream" not in words or "support" not in words:
            return False
        self._set_url(to="converse")
        return True

    def failure(self, failure: Failure) -> Failure:
        """Normalize an error: extract the exception's name from a header or `__type`."""
        body = failure.body if isinstance(failure.body, dict) else {"message": failure.body}
        if "error" in body:
            return failure
        code = failure.headers.get("x-amzn-errortype") or body.get("__type") or body.get("code") or ""
        code = str(code).partition(":")[0].rpartition("#")[2]
        message = body.get("message") or body.get("Message") or ""
        return replace(failure, body={"error": {"code": code, "message": message}})

    def _set_url(self, *, to: str) -> None:
        model = quote(self.settings.model, safe="")
        self.url = join_url(self.base, f"model/{model}/{to}")


def _blocks(message: Message) -> list[Json]:
    """Return the content blocks of a message."""
    if message.native is not None:
        return [_sendable_block(block) for block in message.native["output"]["message"]["content"]]

    def result(each: ToolResult) -> Json:
        content, status = [{"text": each.text or "(nothing)"}], "error" if each.failed else "success"
        return {"toolResult": {"toolUseId": each.call.id, "content": content, "status": status}}

    def call(each: ToolCall) -> Json:
        return {"toolUse": {"toolUseId": each.id, "name": each.name, "input": arguments_of(each)}}

    return pieces(message, result=result, text={"text": message.text}, call=call)


def _sendable_block(block: Json) -> Json:
    """Return a block that can be sent back: the input of an incomplete tool call becomes empty."""
    use = block.get("toolUse")
    return {"toolUse": {**use, "input": {}}} if use and isinstance(use.get("input"), str) else block


def _model_fields(settings: ModelSettings) -> Json:
    """Return the fields for thinking, effort and top_k, which are named differently by each vendor.

    Raises:
        ConfigError: a setting is used, but the vendor's field for it is unknown.
    """
    model = settings.model
    unknown = "write the vendor's field in extra_body.additionalModelRequestFields"
    if "anthropic." in model:
        top_k = {} if settings.top_k is None else {"top_k": settings.top_k}
        return {**claude_thinking(settings), **top_k}
    if "amazon.nova" in model:
        refuse(settings, thinking_budget="Nova uses reasoning_effort instead: unset it")
        return _nova_fields(settings)
    refuse(settings, thinking=unknown, thinking_budget=unknown, top_k=unknown)
    if "openai." in model:
        return {} if settings.reasoning_effort is None else {"reasoning_effort": settings.reasoning_effort}
    refuse(settings, reasoning_effort=unknown)
    return {}


def _nova_fields(settings: ModelSettings) -> Json:
    """Return Amazon Nova's fields: `reasoningConfig` (Nova 2 and later) and `inferenceConfig.topK`."""
    fields: Json = {} if settings.top_k is None else {"inferenceConfig": {"topK": settings.top_k}}
    if settings.thinking == "off":
        fields["reasoningConfig"] = {"type": "disabled"}
    elif settings.thinking or settings.reasoning_effort:
        effort = {"maxReasoningEffort": settings.reasoning_effort} if settings.reasoning_effort else {}
        fields["reasoningConfig"] = {"type": "enabled", **effort}
    return fields

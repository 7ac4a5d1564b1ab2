"""Gemini's generateContent, streamed (`POST {base}/{version}/models/{model}:streamGenerateContent?alt=sse`).

The stream has no end mark. An answer is complete once a chunk had a finishReason and no content followed. A
blocked prompt returns HTTP 200 without candidates and counts as a result. Output tokens are those of
candidates plus thoughts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from astra_async.asking.providers.answer import (
    MADE_ID,
    Json,
    Reader,
    StreamFault,
    first_choice,
    label,
    text_of,
)
from astra_async.asking.providers.connection import join_url, without_version
from astra_async.asking.providers.counts import count, merged, output_tokens
from astra_async.asking.providers.request_fields import (
    USUAL_SETTINGS,
    WireFormat,
    arguments_of,
    drop_none,
    pieces,
    tools_of,
)
from astra_async.errors import ConfigError
from astra_async.types import Usage
from astra_async.types.agents import ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import ModelRequest, ModelSettings, Role
    from astra_async.types.agents import Message, ToolResult

BASE_URL = "https://generativelanguage.googleapis.com"
DEFAULT_API_VERSION = "v1beta"  # includes preview models, unlike v1, the default of google-genai

_ROLES: dict[Role, str] = {"user": "user", "assistant": "model"}
_ONLY_TEXT = frozenset({"text", "thought"})
_LARGEST_SEED = 2**31 - 1  # the field is an int32


class GeminiReader(Reader):
    """Reader of the chunks of one candidate.

    `done` stays False, because usage may follow the finishReason. Only the end of the stream ends the answer.
    """

    has_end_mark: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._blocked = False
        self._whole: Json = {}
        self._candidate_head: Json = {}
        self._parts: list[Json] = []

    def feed(self, event: Json | None) -> None:
        """Process one chunk."""
        if event is None:
            return
        if "error" in event:
            raise StreamFault(event)
        if self.keep_complete:
            self._whole |= event
        candidates = event.get("candidates")
        if candidates:
            self._candidate(first_choice(candidates) or {})
        elif blocked := (event.get("promptFeedback") or {}).get("blockReason"):
            self._blocked, self.reason = True, f"content_filter: {label(blocked)}"
        self.counts = merged(self.counts, event.get("usageMetadata") or {})
        self.tier = self.counts.get("serviceTier") or self.counts.get("trafficType")
        self.model = self.model or event.get("modelVersion")

    def usage(self) -> Usage:
        """Return the tokens of all chunks. The counts are cumulative."""
        usage = self.counts
        inputs = count(usage.get("promptTokenCount"))
        visible, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
        output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
        return Usage(
            input_tokens=inputs,
            cached_tokens=count(usage.get("cachedContentTokenCount")),
            output_tokens=output_tokens(count(usage.get("totalTokenCount")), inputs, output),
            reasoning_tokens=thoughts,
        )

    def complete_response(self) -> tuple[Json, tuple[ToolCall, ...]]:
        """Return the response with the parts of all chunks, adjacent text joined, and its tool calls."""
        calls = [part["functionCall"] for part in self._parts if part.get("functionCall")]
        content = {"parts": self._parts, "role": "model"}
        candidate = {"index": 0, **self._candidate_head, "content": content}
        named = [
            ToolCall(
                id=each.get("id") or self.made_id(at),
                name=each["name"],
                arguments=text_of(each.get("args") or {}),
            )
            for at, each in enumerate(calls)
        ]
        return {**self._whole, "candidates": [candidate], "usageMetadata": self.counts}, tuple(named)

    def _gather(self, part: Json) -> None:
        if part == {"text": ""}:
            return  # Some streams end so. After a tool call Gemini CLI would take it for the complete answer.
        if call := part.get("functionCall"):
            self.transcript.add_hidden(text_of(call.get("args") or {}))
        last = self._parts[-1] if self._parts else {}
        if "text" in part and last.keys() == part.keys() and part.keys() <= _ONLY_TEXT:
            last["text"] += part["text"]
        elif part:
            self._parts.append(dict(part))

    def _candidate(self, candidate: Json) -> None:
        if self.keep_complete:
            self._candidate_head |= candidate
        for part in (candidate.get("content") or {}).get("parts") or []:
            if self.keep_complete:
                self._gather(part)
            text = part.get("text")
            if text and part.get("thought"):
                self.transcript.add_reasoning(text)
            elif text:
                self.transcript.add(text)
        if not self._blocked:
            self.reason = candidate.get("finishReason")


class Gemini(WireFormat):
    """Wire format of `gemini/...`. Prompts are cached without a marker, and rate limits are not announced.

    Raises:
        ConfigError: see WireFormat; also if the model's name is invalid.
    """

    reader = GeminiReader
    protected_fields = frozenset({"model", "contents"})
    max_tokens_at = (("generationConfig", "maxOutputTokens"),)
    supported_settings = USUAL_SETTINGS | {"api_version"}
    refusal_remedies: ClassVar[Mapping[str, str]] = {
        "max_tokens_field": "it is maxOutputTokens: unset it",
        **dict.fromkeys(("organization", "project"), "a Gemini key belongs to a project: unset it"),
    }

    def __init__(self, settings: ModelSettings, key: str | None, *, environ: Mapping[str, str]) -> None:
        super().__init__(settings, settings.base_url or BASE_URL, environ=environ)
        version = quote(settings.api_version or DEFAULT_API_VERSION, safe="")
        path = f"{version}/{_resource(settings)}:streamGenerateContent"
        self.url = join_url(without_version(self.base), path, alt="sse")
        self.headers = {"x-goog-api-key": key} if key else {}
        self._thinking = _thinking(settings)

    def options(self, request: ModelRequest) -> Json:
        """Return limits, sampling, seed, thinking and the service tier."""
        settings = self.settings
        config = {
            "maxOutputTokens": settings.max_tokens,
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "topK": settings.top_k,
            "stopSequences": list(settings.stop) or None,
            "seed": None if request.seed is None else request.seed & _LARGEST_SEED,
            "thinkingConfig": self._thinking,
        }
        return {"generationConfig": drop_none(config), "serviceTier": settings.service_tier}

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """Return system, messages and tools."""
        tools = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in tools_of(request)
        ]
        return {
            "systemInstruction": {"parts": [{"text": system}]} if system else None,
            "contents": [{"role": _ROLES[each.role], "parts": _parts(each)} for each in messages],
            "tools": [{"functionDeclarations": tools}] if tools else None,
        }


def _parts(message: Message) -> list[Json]:
    """Return the parts of a message. Parts that Gemini sent keep their thought signatures."""
    if message.native is not None:
        parts: list[Json] = message.native["candidates"][0]["content"]["parts"]
        return parts

    def result(each: ToolResult) -> Json:
        response = {"error" if each.failed else "output": each.text}
        return {"functionResponse": {**_own_id(each.call), "name": each.call.name, "response": response}}

    def call(each: ToolCall) -> Json:
        return {"functionCall": {**_own_id(each), "name": each.name, "args": arguments_of(each)}}

    return pieces(message, result=result, text={"text": message.text}, call=call)


def _own_id(call: ToolCall) -> Json:
    """Return the id that the provider gave a tool call, or nothing. Only Gemini 3 and later give ids."""
    return {} if call.id.startswith(MADE_ID) else {"id": call.id}


def _thinking(settings: ModelSettings) -> Json | None:
    """Return the thinking level (Gemini 3 and later) or token budget (2.5; 0 is off, -1 is automatic).

    Raises:
        ConfigError: more than one of the settings for thinking is set.
    """
    named = ("reasoning_effort", "thinking_budget", "thinking")
    given = [name for name in named if getattr(settings, name) is not None]
    if len(given) > 1:
        raise ConfigError(f"{settings.name}: {' and '.join(given)} exclude each other: unset one")
    effort = settings.reasoning_effort
    if effort is not None and not effort.lstrip("-").isdigit():
        return {"thinkingLevel": effort.upper()}
    if settings.thinking is not None:
        return {"thinkingBudget": 0 if settings.thinking == "off" else -1}
    budget = settings.thinking_budget if effort is None else int(effort)
    return None if budget is None else {"thinkingBudget": budget}


def _resource(settings: ModelSettings) -> str:
    """Return `models/NAME`, or `tunedModels/NAME` as typed. Raises ConfigError if the name is invalid."""
    model = settings.model
    if "/" not in model:
        model = f"models/{model}"
    if ".." in model or model.count("/") != 1:
        raise ConfigError(f"{settings.name}: {settings.model!r} is not a valid model name")
    return quote(model, safe="/")

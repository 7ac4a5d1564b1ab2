"""Parsing of requests, common to all wire formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.types.agents import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OWN_ROLES = frozenset({"assistant", "model"})
_ROLES = _OWN_ROLES | {"user", "system", "developer"}
_SEPARATOR = "\n\n"


class InvalidRequest(Exception):  # noqa: N818 - like HTTPBadRequest
    """An invalid request, answered with status 400; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """One request, independent of the wire format.

    `prompt` is the whole input. In a conversation, `answers` are the model's earlier answers, oldest first,
    and `begun` the input before each of them. `tools` are the offered tools; `rounds` is the number of
    answers that called tools. `cacheable` is True if the request asks for prompt caching, or if the format
    has no marker.
    """

    model: str
    prompt: str
    stream: bool
    max_tokens: int | None = None
    seed: int | None = None
    cacheable: bool = True
    with_usage: bool = True
    answers: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    rounds: int = 0


class WireRequest:
    """Base class for parsing a wire format; the class attributes name the fields of a request's body.

    `messages` and the `text` in each, `system`, `limits` (the object with `most_tokens` and `seeds`; None for
    the body itself), `tool` within an entry of the tools and its `schema`, and the cache marker. `call` is a
    field or the type of a message, or of one of its blocks.
    """

    messages, text, system = "messages", "content", "system"
    tool, schema, call = "", "parameters", ""
    limits: str | None = None
    most_tokens: tuple[str, ...] = ("max_tokens",)
    seeds: tuple[str, ...] = ()
    least_seed = 0
    cache_mark: str | None = None  # field that requests caching of a prompt; None: all prompts are cached
    needs_max_tokens = False

    def __init__(self, *, stream: bool | None = None) -> None:
        self.streams = stream  # None: determined by the body

    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> ParsedRequest:
        """Parse a request; `path` has the parameters of its URL. Raises InvalidRequest."""
        model = path.get("model") or body.get("model")
        if not isinstance(model, str) or not model:
            raise InvalidRequest("you must provide a model parameter")
        messages = self.messages_of(body)
        limits = body if self.limits is None else object_in(body, self.limits)
        max_tokens = _whole_number(limits, self.most_tokens, least=1)
        if max_tokens is None and self.needs_max_tokens:
            raise InvalidRequest("max_tokens: Field required")
        tools = tuple(self.tools_of(body))
        texts = self._worked(messages) if tools else self._texts(messages)
        prompt, answers, begun = _conversation(texts, self.system_of(body))
        return ParsedRequest(
            model=model,
            prompt=prompt,
            stream=bool(body.get("stream")) if self.streams is None else self.streams,
            max_tokens=max_tokens,
            seed=_whole_number(limits, self.seeds, least=self.least_seed),
            cacheable=self.cache_mark is None or self._is_marked(body, messages),
            answers=answers,
            begun=begun,
            tools=tools,
            rounds=self._rounds(messages) if tools else 0,
        )

    def messages_of(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the messages in a body. Raises InvalidRequest."""
        messages = body.get(self.messages)
        if not isinstance(messages, list) or not messages:
            raise InvalidRequest(f"{self.messages} must be an array with at least one message")
        if not all(isinstance(message, dict) for message in messages):
            raise InvalidRequest(f"{self.messages} must hold objects")
        return messages

    def tools_of(self, body: Mapping[str, Any]) -> Iterable[Tool]:
        """Yield the tools in a body; built-in tools may have no schema. Raises InvalidRequest."""
        for entry in entries_of(body):
            tool = object_in(entry, self.tool) if self.tool else entry
            yield offered(tool, object_in(tool, self.schema))

    def is_own(self, message: Mapping[str, Any]) -> bool:
        """Return True for a message of the model."""
        return message.get("role") in _OWN_ROLES

    def calls_in(self, message: Mapping[str, Any]) -> bool:
        """Return True if the message contains tool calls."""
        parts = message.get(self.text)
        blocks = [message, *(parts if isinstance(parts, list) else ())]
        return any(
            isinstance(block, dict) and (block.get(self.call) or block.get("type") == self.call)
            for block in blocks
        )

    def system_of(self, body: Mapping[str, Any]) -> str:
        """Return the system prompt in a body, or ''. Raises InvalidRequest."""
        system = body.get(self.system)
        return text_of(system, self.system) if system else ""

    def _worked(self, messages: list[Mapping[str, Any]]) -> list[tuple[bool, str]]:
        """Like `_texts`, for a conversation with tool calls; messages without text become JSON."""
        texts = []
        for message in messages:
            parts = message.get(self.text)
            plain = isinstance(parts, str) or (
                isinstance(parts, list) and any("text" in part for part in parts)
            )
            text = text_of(parts, self.text) if plain else self._unmarked(message)
            texts.append((self.is_own(message), text))
        return texts

    def _unmarked(self, message: Mapping[str, Any]) -> str:
        """Return a message as JSON without cache markers, which move during a conversation."""
        parts = message.get(self.text)
        if isinstance(parts, list):
            kept = [{name: part[name] for name in part if name != self.cache_mark} for part in parts]
            message = {**message, self.text: [part for part in kept if part]}
        return orjson.dumps(message).decode()

    def _rounds(self, messages: list[Mapping[str, Any]]) -> int:
        """Return the number of answers with tool calls; consecutive messages count as one answer."""
        rounds, called = 0, False
        for message in messages:
            own = self.is_own(message)
            rounds += own and not called and self.calls_in(message)
            called = own and (called or self.calls_in(message))
        return rounds

    def _texts(self, messages: list[Mapping[str, Any]]) -> list[tuple[bool, str]]:
        """Return (is the model's, text) of each message. Raises InvalidRequest."""
        read: list[tuple[bool, str]] = []
        for message in messages:
            role = message.get("role", "user")
            if role not in _ROLES:
                raise InvalidRequest(f"{self.messages}: no such role: {role!r}")
            read.append((role in _OWN_ROLES, text_of(message.get(self.text), f"{self.messages}.{self.text}")))
        if read[-1][0]:
            raise InvalidRequest(f"{self.messages}: the last of them must be the user's")
        return read

    def _is_marked(self, body: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> bool:
        contents = [body.get(self.system), *(message.get(self.text) for message in messages)]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        return any(isinstance(part, dict) and bool(part.get(self.cache_mark)) for part in (body, *blocks))


def text_of(content: object, where: str) -> str:
    """Return the text of a message: a string, or a list of parts that each have a `text`.

    Raises:
        InvalidRequest: the content has another type or a part without text.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidRequest(f"{where} must be a string or an array of parts")
    parts = [part.get("text", "") if isinstance(part, dict) else part for part in content]
    if not all(isinstance(part, str) for part in parts):
        raise InvalidRequest(f"{where} holds a part that is not text")
    return "".join(parts)


def entries_of(body: Mapping[str, Any], name: str = "tools") -> list[Mapping[str, Any]]:
    """Return a list of objects in a body; empty if missing. Raises InvalidRequest."""
    found = body.get(name) or []
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InvalidRequest(f"{name} must be an array of objects")
    return found


def offered(tool: Mapping[str, Any], schema: Mapping[str, Any]) -> Tool:
    """Return a tool of a request with its JSON schema."""
    return Tool(name=str(tool.get("name") or ""), description="", parameters=schema)


def object_in(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in a body; empty if missing. Raises InvalidRequest."""
    found = body.get(name) or {}
    if not isinstance(found, dict):
        raise InvalidRequest(f"{name} must be an object")
    return found


def _conversation(pairs: list[tuple[bool, str]], system: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return `prompt`, `answers` and `begun` of an ParsedRequest for these messages."""
    texts = [system] if system else []
    answers, begun = [], []
    for is_own, text in pairs:
        if is_own:
            answers.append(text)
            begun.append(_SEPARATOR.join(texts))
        texts.append(text)
    return _SEPARATOR.join(texts), tuple(answers), tuple(begun)


def _whole_number(body: Mapping[str, Any], names: tuple[str, ...], *, least: int) -> int | None:
    """Return the first of these fields that is set, a number of at least `least`. Raises InvalidRequest."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InvalidRequest(f"{name} must be a whole number of at least {least}")
        return value
    return None

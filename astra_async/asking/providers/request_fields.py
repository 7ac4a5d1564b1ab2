"""Base class of wire formats, and the parts of requests that all formats share.

`${VARIABLE}` in the value of a header or in a text of `extra_body` is replaced by the environment variable,
so that secrets need not be written to files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from astra_async.asking.providers.connection import address
from astra_async.asking.providers.sse import SseSplitter
from astra_async.errors import ConfigError
from astra_async.redaction import register_sent_secret
from astra_async.types import ModelSettings, declared
from astra_async.types.agents import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from multidict import CIMultiDict
    from yarl import URL

    from astra_async.asking.providers.answer import Json, Reader
    from astra_async.asking.providers.aws import Splitter
    from astra_async.asking.providers.error_meaning import Failure
    from astra_async.types import ModelRequest, RateLimits
    from astra_async.types.agents import Tool, ToolCall, ToolResult

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HEADER_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2
# Fields that the program sets itself in every format: streaming and the number of answers.
_OURS = frozenset({"stream", "n", "best_of", "candidateCount", "candidate_count"})
_IN_EVERY_FORMAT = frozenset({"spec", "max_tokens", "extra_headers", "extra_body"})
# Settings that Anthropic, Bedrock and Gemini all support.
USUAL_SETTINGS = frozenset(
    {
        *("system_prompt", "temperature", "top_p", "top_k", "stop", "service_tier"),
        *("reasoning_effort", "thinking", "thinking_budget"),
    }
)
_SENT_BY_THE_CLIENT = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class WireFormat:
    """HTTP interface of one provider, bound to one model.

    Attributes:
        charges_max_tokens: see `Provider`.
        cached_input_is_exempt: see `Provider`.
        reader: class that reads one answer.
        splitter: class that splits the response body into events.
        protected_fields: fields of the body for the model and the prompt, which `extra_body` cannot replace.
        max_tokens_at: paths of the fields for max_tokens in a body, outermost name first.
        supported_settings: supported settings; all other settings of requests are refused.
        refusal_remedies: remedies for refused settings, if the remedy is more than to unset the setting.
        settings: settings of the model.
        base: base URL.
        extra_headers: headers from the user's settings.
        extra_body: fields of the body from the user's settings.
        url: URL of requests.
        headers: headers that authenticate requests.

    Raises:
        ConfigError: the address is invalid, or a setting is not supported or cannot be sent.
    """

    charges_max_tokens = False
    cached_input_is_exempt = False
    reader: ClassVar[type[Reader]]
    splitter: ClassVar[type[Splitter]] = SseSplitter
    protected_fields: ClassVar[frozenset[str]]
    max_tokens_at: ClassVar[tuple[tuple[str, ...], ...]]
    supported_settings: ClassVar[frozenset[str]]
    refusal_remedies: ClassVar[Mapping[str, str]] = {}
    url: URL
    headers: dict[str, str]

    def __init__(
        self, settings: ModelSettings, base_url: str, *, environ: Mapping[str, str], named: str = "base_url"
    ) -> None:
        self.base = address(base_url, where=f"{named} of {settings.name}")
        asked = {each.name for each in declared(ModelSettings) if each.about.asked}
        dropped = sorted(asked - _IN_EVERY_FORMAT - self.supported_settings)
        refuse(settings, **{name: self.refusal_remedies.get(name, "unset it") for name in dropped})
        self.settings = settings
        self.extra_headers = extra_headers(settings, environ)
        self.extra_body = extra_body(settings, environ, self.protected_fields)

    def body(self, request: ModelRequest) -> Json:
        """Return the body of a streamed request.

        The body of an agent's request is kept, and the model's settings are merged into it. The agent's
        max_tokens takes precedence. The agent's body already contains system and messages.
        """
        options = drop_none(self.options(request))
        if request.native is None:
            return merge_fields(
                options, drop_none(self.input_fields(request, *system_and_messages(request, self.settings)))
            )
        body = dict(request.native.fields)
        if any(_at(body, path) is not None for path in self.max_tokens_at):
            options = _without(options, self.max_tokens_at)
        return merge_fields(body, options)

    def options(self, request: ModelRequest) -> Json:
        """Return the fields that control the answer. Fields with None are not sent."""
        raise NotImplementedError

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """Return the fields for system, messages and tools."""
        raise NotImplementedError

    def failure(self, failure: Failure) -> Failure:
        """Normalize an error of a response or stream to a body that `error_body` can parse."""
        return failure

    async def signed(
        self, url: URL, headers: CIMultiDict[str], body: bytes, *, method: str = "POST"
    ) -> CIMultiDict[str]:
        """Return the headers of one request with its signature. Most formats return them unchanged.

        Raises:
            ProviderError: no credentials were found.
        """
        del url, body, method
        return headers

    def switch_form(self, failure: Failure) -> bool:  # noqa: ARG002 - most formats have no alternative
        """Switch to an alternative form of requests after a refusal. Return True if the switch was made."""
        return False

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:  # noqa: ARG002 - some send none
        """Parse the rate limits in response headers; None if the provider announces no limits."""
        return None


def system_and_messages(request: ModelRequest, settings: ModelSettings) -> tuple[str, tuple[Message, ...]]:
    """Return the system prompt and all messages of a request."""
    system = settings.system_prompt or ""
    if request.dialogue is not None:
        parts = (system, request.dialogue.system)
        return "\n\n".join(filter(None, parts)), request.dialogue.messages
    return system, tuple(Message(role=role, text=text) for role, text in request.messages)


def tools_of(request: ModelRequest) -> tuple[Tool, ...]:
    """Return the tools that a request offers."""
    return () if request.dialogue is None else request.dialogue.tools


def pieces(
    message: Message, *, result: Callable[[ToolResult], Json], text: Json, call: Callable[[ToolCall], Json]
) -> list[Json]:
    """Format the results, text and calls of a message. Most providers refuse empty text, so skip it."""
    said = [text] if message.text or not (message.calls or message.results) else []
    return [*map(result, message.results), *said, *map(call, message.calls)]


def arguments_of(call: ToolCall) -> Json:
    """Return the arguments of a tool call as an object; empty if they are not a valid JSON object."""
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def extra_headers(settings: ModelSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the headers from the user's settings, with variables replaced.

    Raises:
        ConfigError: a name or a value is invalid in HTTP, or a variable is not set.
    """
    headers = {}
    for name, value in settings.extra_headers.items():
        where = f"{settings.name}: extra_headers: {name}"
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _SENT_BY_THE_CLIENT:
            raise ConfigError(f"{where}: this header is invalid or cannot be set")
        headers[name] = _replaced(value, environ, where)
        if not headers[name].isprintable():
            raise ConfigError(f"{where}: the value contains invalid characters, such as a line break")
    return headers


def extra_body(settings: ModelSettings, environ: Mapping[str, str], protected_fields: frozenset[str]) -> Json:
    """Return the fields from the user's settings, with variables replaced.

    Raises:
        ConfigError: a field is set by the program or in `protected_fields`, a variable is not set, or a value
            is a date.
    """
    where = f"{settings.name}: extra_body"
    taken = [name for name in settings.extra_body if name in _OURS | protected_fields]
    generation = settings.extra_body.get("generationConfig")
    taken += [name for name in generation if name in _OURS] if isinstance(generation, dict) else []
    if taken:
        raise ConfigError(f"{where}: {taken[0]} cannot be set, because the benchmark sets it: remove it")
    body: Json = _expanded(dict(settings.extra_body), environ, where)
    try:
        orjson.dumps(body, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}; write the value as text") from error
    return body


def merge_fields(body: Json, extra: Mapping[str, Any]) -> Json:
    """Merge `extra` into the body: objects are merged key by key, other values are replaced."""
    merged = dict(body)
    for name, value in extra.items():
        below = merged.get(name)
        merged[name] = (
            merge_fields(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return merged


def encode(fields: Json) -> bytes:
    """Encode a body as JSON without the fields that are None."""
    return orjson.dumps(drop_none(fields))


def drop_none(fields: Json) -> Json:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def _without(fields: Json, paths: tuple[tuple[str, ...], ...]) -> Json:
    """Return the fields without those at `paths`."""
    kept = dict(fields)
    for name, *below in paths:
        if not below:
            kept.pop(name, None)
        elif isinstance(kept.get(name), dict):
            kept[name] = _without(kept[name], (tuple(below),))
    return kept


def refuse(settings: ModelSettings, **remedies: str) -> None:
    """Refuse settings that a wire format does not support. `remedies` maps their names to remedies.

    Raises:
        ConfigError: one of the settings is set.
    """
    for name, remedy in remedies.items():
        if getattr(settings, name) not in (None, (), {}):
            raise ConfigError(f"{settings.name}: {name} is not supported for this model: {remedy}")


def _expanded(value: Any, environ: Mapping[str, str], where: str) -> Any:
    if isinstance(value, dict):
        return {name: _expanded(inner, environ, f"{where}: {name}") for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_expanded(inner, environ, where) for inner in value]
    return _replaced(value, environ, where) if isinstance(value, str) else value


def _replaced(text: str, environ: Mapping[str, str], where: str) -> str:
    def replacement(found: re.Match[str]) -> str:
        value = environ.get(found[1], "").strip()
        if not value:
            raise ConfigError(f"{where}: the variable {found[1]} is not set in the environment")
        register_sent_secret(value)
        return value

    return _VARIABLE.sub(replacement, text)

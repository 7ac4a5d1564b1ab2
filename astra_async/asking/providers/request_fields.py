"""What a wire format is, and what goes into a request whichever it is: what is open, and what is refused.

`${VARIABLE}` in a header's value or in a text of `extra_body` stands for a variable of the environment, so
that a secret need not stand in a file.
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
# What the program itself decides in every format: several answers, or none in a stream.
_OURS = frozenset({"stream", "n", "best_of", "candidateCount", "candidate_count"})
_IN_EVERY_FORMAT = frozenset({"spec", "max_tokens", "extra_headers", "extra_body"})
# Settings that Anthropic's, Bedrock's and Gemini's interfaces all have a field for.
USUAL_SETTINGS = frozenset(
    {
        *("system_prompt", "temperature", "top_p", "top_k", "stop", "service_tier"),
        *("reasoning_effort", "thinking", "thinking_budget"),
    }
)
_SENT_BY_THE_CLIENT = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class WireFormat:
    """What tells one provider's HTTP interface from another's, bound to one model.

    Attributes:
        charges_max_tokens: as `Provider`, also `cached_input_is_exempt`.
        reader: reads one answer.
        splitter: cuts its bytes into the events that the reader takes.
        measured: the body's fields for the model and what it is asked; `extra_body` cannot replace them.
        max_tokens_at: where a body may say max_tokens, outermost name first.
        takes: settings that it has a field for; all others that a model can be asked with are refused.
        meaningless: what to do instead of a setting that is refused, where that is more than to unset it.
        settings: of the model.
        base: the address below which requests go.
        extra_headers: of the user's own; also `extra_body`.
        url: where they go.
        headers: what tells who asks.

    Raises:
        ConfigError: the address cannot be used, or a setting has no meaning here or cannot be sent.
    """

    charges_max_tokens = False
    cached_input_is_exempt = False
    reader: ClassVar[type[Reader]]
    splitter: ClassVar[type[Splitter]] = SseSplitter
    measured: ClassVar[frozenset[str]]
    max_tokens_at: ClassVar[tuple[tuple[str, ...], ...]]
    takes: ClassVar[frozenset[str]]
    meaningless: ClassVar[Mapping[str, str]] = {}
    url: URL
    headers: dict[str, str]

    def __init__(
        self, settings: ModelSettings, base_url: str, *, environ: Mapping[str, str], named: str = "base_url"
    ) -> None:
        self.base = address(base_url, where=f"{named} of {settings.name}")
        asked = {each.name for each in declared(ModelSettings) if each.about.asked}
        dropped = sorted(asked - _IN_EVERY_FORMAT - self.takes)
        refuse(settings, **{name: self.meaningless.get(name, "unset it") for name in dropped})
        self.settings = settings
        self.extra_headers = extra_headers(settings, environ)
        self.extra_body = extra_body(settings, environ, self.measured)

    def body(self, request: ModelRequest) -> Json:
        """The request for one answer, streamed.

        An agent's own body goes on as it is, with what the user has set for the model laid over it;
        max_tokens is the agent's where it names some. What we would write of system and messages is left out.
        """
        options = set_fields(self.options(request))
        if request.native is None:
            return laid_over(options, set_fields(self.input_fields(request, *spoken(request, self.settings))))
        body = dict(request.native.fields)
        if any(_at(body, path) is not None for path in self.max_tokens_at):
            options = _without(options, self.max_tokens_at)
        return laid_over(body, options)

    def options(self, request: ModelRequest) -> Json:
        """The fields that say how to answer, None where the user has set nothing."""
        raise NotImplementedError

    def input_fields(self, request: ModelRequest, system: str, messages: tuple[Message, ...]) -> Json:
        """The fields that say what to answer: system, messages and tools."""
        raise NotImplementedError

    def failure(self, failure: Failure) -> Failure:
        """An error of a response or in mid-stream, its body in the words that `error_body` knows."""
        return failure

    async def signed(
        self, url: URL, headers: CIMultiDict[str], body: bytes, *, method: str = "POST"
    ) -> CIMultiDict[str]:
        """The headers of one request with what has to be computed for each; most sign nothing.

        Raises:
            ProviderError: there is nothing to sign it with.
        """
        del url, body, method
        return headers

    def asks_otherwise(self, failure: Failure) -> bool:  # noqa: ARG002 - most know one form
        """Whether the same request, asked again at once, now takes a form that this refusal does not meet."""
        return False

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:  # noqa: ARG002 - some send none
        """What the response's headers announce."""
        return None


def spoken(request: ModelRequest, settings: ModelSettings) -> tuple[str, tuple[Message, ...]]:
    """What the system says, and all messages, of a dialogue or of a prompt and what followed it."""
    system = settings.system_prompt or ""
    if request.dialogue is not None:
        parts = (system, request.dialogue.system)
        return "\n\n".join(filter(None, parts)), request.dialogue.messages
    return system, tuple(Message(role=role, text=text) for role, text in request.messages)


def tools_of(request: ModelRequest) -> tuple[Tool, ...]:
    """The tools that a request offers."""
    return () if request.dialogue is None else request.dialogue.tools


def pieces(
    message: Message, *, result: Callable[[ToolResult], Json], text: Json, call: Callable[[ToolCall], Json]
) -> list[Json]:
    """A message's results, text and calls, as a format writes each; most interfaces refuse empty text."""
    said = [text] if message.text or not (message.calls or message.results) else []
    return [*map(result, message.results), *said, *map(call, message.calls)]


def arguments_of(call: ToolCall) -> Json:
    """A call's arguments as an object; an empty one where the model wrote none that can be read."""
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def extra_headers(settings: ModelSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of the user's own, variables replaced.

    Raises:
        ConfigError: a name or a value that HTTP cannot carry, a variable that is not set.
    """
    headers = {}
    for name, value in settings.extra_headers.items():
        where = f"{settings.name}: extra_headers: {name}"
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _SENT_BY_THE_CLIENT:
            raise ConfigError(f"{where}: no header that can be set")
        headers[name] = _replaced(value, environ, where)
        if not headers[name].isprintable():
            raise ConfigError(f"{where}: its value holds what no header can carry, such as a line break")
    return headers


def extra_body(settings: ModelSettings, environ: Mapping[str, str], measured: frozenset[str]) -> Json:
    """The fields of the user's own, variables replaced; `measured` are not theirs.

    Raises:
        ConfigError: a field that the program sets itself, a variable that is not set, a date.
    """
    where = f"{settings.name}: extra_body"
    taken = [name for name in settings.extra_body if name in _OURS | measured]
    generation = settings.extra_body.get("generationConfig")
    taken += [name for name in generation if name in _OURS] if isinstance(generation, dict) else []
    if taken:
        raise ConfigError(f"{where}: {taken[0]} cannot be set: it is part of what is measured")
    body: Json = _expanded(dict(settings.extra_body), environ, where)
    try:
        orjson.dumps(body, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}; write it as text") from error
    return body


def laid_over(body: Json, extra: Mapping[str, Any]) -> Json:
    """The body with `extra` over it: tables are merged key by key, all else is replaced."""
    merged = dict(body)
    for name, value in extra.items():
        below = merged.get(name)
        merged[name] = (
            laid_over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return merged


def encode(fields: Json) -> bytes:
    """A JSON body without the fields that are None."""
    return orjson.dumps(set_fields(fields))


def set_fields(fields: Json) -> Json:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def _without(fields: Json, paths: tuple[tuple[str, ...], ...]) -> Json:
    """The fields without those at these paths."""
    kept = dict(fields)
    for name, *below in paths:
        if not below:
            kept.pop(name, None)
        elif isinstance(kept.get(name), dict):
            kept[name] = _without(kept[name], (tuple(below),))
    return kept


def refuse(settings: ModelSettings, **remedies: str) -> None:
    """Refuse settings that have no meaning in a wire format: each by its name, with what to do instead.

    Raises:
        ConfigError: one of them is set.
    """
    for name, remedy in remedies.items():
        if getattr(settings, name) not in (None, (), {}):
            raise ConfigError(f"{settings.name}: {name} has no meaning for this model: {remedy}")


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

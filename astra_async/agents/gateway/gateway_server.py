"""A server on a Unix socket for all agents. A request's key identifies its sample, whose AgentCalls answer.

An answer is complete before any of it is served, so no agent sees a broken stream. Until then each client
gets the keep-alive that it accepts (see Interface). Agents never see rate limits, overload or lost
connections; the pool waits and retries. At a limit of the sample, or after an error, an agent gets status
400 with one sentence, and its runner ends it. A body that the provider refuses is answered with the
provider's message, and the agent continues.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from astra_async.agents.gateway.dialects import Chat, GeminiDialect, MessagesDialect, ResponsesDialect
from astra_async.agents.gateway.interface import Interface, NotUnderstood
from astra_async.agents.model_calls import BodyRefused, ContextFull, SampleEnds
from astra_async.asking.providers import PROVIDERS
from astra_async.errors import AstraError
from astra_async.tasks import cancel, mark_retrieved
from astra_async.types import Dialogue, NativeBody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.agents.model_calls import AgentCalls, Step
    from astra_async.response_formats import Json
    from astra_async.types import AgentWire

MOST_BYTES = 64 * 1024**2
_WHOLE_AFTER_S, _BLANK_EVERY_S = 20.0, 10.0  # keep-alive of a client without a stream: blanks before the JSON
_FOLDER, _SOCKET = "astra-gateway-", "model.sock"
_LONGEST_FOLDER = 70  # the path of a Unix socket has at most 107 bytes
_BYTES_PER_TOKEN = 3.2
_EVENTS = "text/event-stream"
_OVER = "The model is no longer available: this task is over."
_ALL: tuple[Interface, ...] = (Chat(), ResponsesDialect(), MessagesDialect(), GeminiDialect())
INTERFACES: dict[AgentWire, Interface] = {each.speaks: each for each in _ALL}
_PATHS: dict[str, AgentWire] = {"chat/completions": "chat", "responses": "responses", "messages": "messages"}


@dataclass(frozen=True, slots=True)
class _Request:
    """One parsed request for an answer."""

    interface: Interface
    calls: AgentCalls
    asked: Dialogue | NativeBody
    body: Json
    removed: list[str]
    streams: bool
    translated: bool

    def answer(self, step: Step) -> bytes:
        """Encode the answer in the agent's interface."""
        whole = step.completion.native
        if self.translated or not isinstance(whole, dict):
            name = f"{step.number}_{secrets.token_hex(6)}"
            whole = self.interface.whole(step.completion, self.calls.settings.model, name, int(time.time()))
            whole = self.interface.translated(whole, self.body)
        return self.interface.stream(whole, self.body) if self.streams else orjson.dumps(whole)


def _remove_dead(parent: Path) -> None:
    """Remove the folders of this user's killed gateways, whose sockets refuse connections."""
    for folder in parent.glob(f"{_FOLDER}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            if folder.stat().st_uid != os.getuid():
                continue
            try:
                client.connect(str(folder / _SOCKET))
            except ConnectionRefusedError:
                shutil.rmtree(folder, ignore_errors=True)


class Gateway:
    """The gateway's server. Call `start` first and `close` at the end.

    Attributes:
        socket: path of the Unix socket, which only this user can open.
    """

    def __init__(self) -> None:
        self._calls: dict[str, AgentCalls] = {}  # by the key of their sample's agent
        short = len(tempfile.gettempdir()) < _LONGEST_FOLDER
        parent = tempfile.gettempdir() if short else "/tmp"  # noqa: S108 - the folder has mode 0700
        _remove_dead(Path(parent))
        self.socket = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent), _SOCKET)
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1)
        self._asking: set[asyncio.Task[Step]] = set()

    async def start(self) -> None:
        """Start to listen."""
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket)).start()

    async def close(self) -> None:
        """Close all connections. The samples themselves end their calls in flight."""
        await self._runner.cleanup()
        await cancel(*self._asking)
        shutil.rmtree(self.socket.parent, ignore_errors=True)

    @contextmanager
    def admit(self, calls: AgentCalls) -> Iterator[None]:
        """Accept requests with the key `calls.token` for this sample while the context is open."""
        self._calls[calls.token] = calls
        try:
            yield
        finally:
            del self._calls[calls.token]

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=MOST_BYTES)
        router = application.router
        for prefix in ("", "/v1"):
            for path, speaks in _PATHS.items():
                router.add_post(f"{prefix}/{path}", partial(self._answer, INTERFACES[speaks]))
            router.add_post(f"{prefix}/messages/count_tokens", self._count)
        for version in ("v1", "v1beta"):
            router.add_post(f"/{version}/models/{{model}}:{{action}}", self._gemini)
        router.add_route("*", "/{path:.*}", _nothing_here)
        return application

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        match request.match_info["action"]:
            case "generateContent" | "streamGenerateContent" as action:
                return await self._answer(INTERFACES["gemini"], request, streams=action.startswith("stream"))
            case "countTokens":
                return await self._count(request)
        return await _nothing_here(request)

    # --- one request --------------------------------------------------------------------------------------

    async def _count(self, request: web.Request) -> web.Response:
        interface = INTERFACES["gemini" if "action" in request.match_info else "messages"]
        if self._asking_for(request) is None:
            return _refused(interface, "This key belongs to no sample.", status=401)
        return _json(interface.counted(round(len(await request.read()) / _BYTES_PER_TOKEN)))

    async def _answer(
        self, interface: Interface, request: web.Request, *, streams: bool | None = None
    ) -> web.StreamResponse:
        calls = self._asking_for(request)
        if calls is None:
            return _refused(interface, "This key belongs to no sample.", status=401)
        try:
            body = await _body(request)
            streams = bool(body.get("stream")) if streams is None else streams
            if (local := interface.local(body)) is not None:
                events = interface.stream(local, body) if streams else b""
                return web.Response(body=events, content_type=_EVENTS) if streams else _json(local)
            asked = _understood(interface, calls, body, request, streams=streams)
        except NotUnderstood as error:
            return _refused(interface, str(error))
        step = calls.step(asked.asked, translated=asked.translated, removed=asked.removed)
        task = asyncio.create_task(step)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        task.add_done_callback(mark_retrieved)
        return await _served(asked, task, request)

    def _asking_for(self, request: web.Request) -> AgentCalls | None:
        headers = request.headers
        keys = (
            headers.get("x-api-key"),
            headers.get("x-goog-api-key"),
            headers.get("api-key"),
            headers.get("authorization", "").removeprefix("Bearer "),
            request.query.get("key"),
        )
        return next((self._calls[key] for key in keys if key in self._calls), None)


async def _served(asked: _Request, task: asyncio.Task[Step], request: web.Request) -> web.StreamResponse:
    """Send the complete answer, with keep-alives until it is ready.

    Invariant: a step whose answer was not sent completely is given back, whether or not it is ready.
    """
    calls, interface = asked.calls, asked.interface
    received = False
    try:
        await asyncio.wait({task}, timeout=interface.headers_after_s if asked.streams else _WHOLE_AFTER_S)
        if task.done() and (error := task.exception()) is not None:
            in_stream = interface.context_full_event() if isinstance(error, ContextFull) else None
            if not (asked.streams and in_stream):
                return _ended(asked, error)
        kind = f"{_EVENTS}; charset=utf-8" if asked.streams else "application/json"
        response = web.StreamResponse(headers={"Content-Type": kind, "Cache-Control": "no-cache"})
        with suppress(ConnectionResetError):
            await response.prepare(request)
            await _kept(asked, task, response)
            if (error := task.exception()) is not None:
                _ended(asked, error)
                await response.write(_error_event(interface, error))
            else:
                await response.write(asked.answer(task.result()))
                received = not (request.transport is None or request.transport.is_closing())
            await response.write_eof()
        return response
    finally:
        task.add_done_callback(lambda done: _accounted(calls, done, received=received))


async def _kept(asked: _Request, task: asyncio.Task[Step], response: web.StreamResponse) -> None:
    word, every_s = b" ", _BLANK_EVERY_S
    if asked.streams and not task.done():
        word, every_s = asked.interface.ping, asked.interface.ping_after_s
        await response.write(word)
    while not task.done():
        await asyncio.wait({task}, timeout=every_s)
        if not task.done():
            await response.write(word)


def _accounted(calls: AgentCalls, task: asyncio.Task[Step], *, received: bool) -> None:
    if not task.cancelled() and task.exception() is None:
        (calls.received if received else calls.give_back)(task.result())


def _ended(asked: _Request, error: BaseException) -> web.Response:
    """Return the response for an ended sample or a refused body. Unexpected errors are raised."""
    if not isinstance(error, SampleEnds | BodyRefused | AstraError):
        raise error
    if isinstance(error, ContextFull):
        return _json(asked.interface.context_full(), 400)
    return _refused(asked.interface, _words(error))


def _error_event(interface: Interface, error: BaseException) -> bytes:
    """Encode the error as an event of a stream that has begun."""
    if isinstance(error, ContextFull):
        return interface.context_full_event() or interface.encoded(interface.context_full())
    return interface.error_event(_words(error))


def _words(error: BaseException) -> str:
    if isinstance(error, BodyRefused):
        return str(error)
    return f"This task is over: {error}." if isinstance(error, SampleEnds) else _OVER


def _understood(
    interface: Interface, calls: AgentCalls, body: Json, request: web.Request, *, streams: bool
) -> _Request:
    try:
        removed = interface.tidied(body)
        translated = PROVIDERS[calls.settings.provider].speaks != interface.speaks
        if translated:
            removed += interface.untranslated(body)
            asked: Dialogue | NativeBody = (dialogue := interface.read(body))
            if not dialogue.messages:
                raise NotUnderstood(f"{interface.messages_at}: at least one message is required")
        else:
            named = {name: request.headers[name] for name in interface.passed_on if name in request.headers}
            asked = NativeBody(fields=body, headers=named)
    except (AttributeError, KeyError, TypeError) as error:
        raise NotUnderstood(f"The gateway does not know requests of this shape ({error}).") from error
    return _Request(interface, calls, asked, body, removed, streams, translated)


async def _body(request: web.Request) -> Json:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise NotUnderstood("The body is not JSON.") from error
    if not isinstance(body, dict):
        raise NotUnderstood("The body is not a JSON object.")
    return body


def _json(data: Json, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(data), status=status, content_type="application/json")


def _refused(interface: Interface, message: str, status: int = 400) -> web.Response:
    return _json(interface.error(message), status)


async def _nothing_here(request: web.Request) -> web.Response:
    del request
    return _json({"error": {"message": "This server only answers model requests.", "type": "not_found"}}, 404)

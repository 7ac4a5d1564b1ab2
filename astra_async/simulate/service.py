"""Handle one model request: parse, admit, draw an answer, and stream it, with injected faults."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from aiohttp import web

from astra_async.asking.judge_prompt import is_judge_prompt
from astra_async.simulate.delivery import broken_at, due_times, fault_of, grouped
from astra_async.simulate.draws import SAMPLE_HEADER, SampleName, SampleNumbers, digest
from astra_async.simulate.limits import SMALLEST_TOKENS, RateLimiter, SimulatedCache
from astra_async.simulate.model_answers import draw_answer, draw_judgement, limited, tokens_in
from astra_async.simulate.profiles import PROFILES, Profile
from astra_async.simulate.tool_work import draw_aside, draw_work
from astra_async.simulate.wires.request_parsing import InvalidRequest, ParsedRequest
from astra_async.simulate.wires.wire import Detail, Reply, Wire
from astra_async.types import Completion, Usage
from astra_async.types.samples import is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.bundled import BundledAnswers
    from astra_async.simulate.draws import Taken
    from astra_async.simulate.limits import Clocks
    from astra_async.simulate.model_answers import SimulatedAnswer
    from astra_async.types.simulation import FaultKind, SimulationSettings

_R = TypeVar("_R", bound=web.StreamResponse)
_INJECTED_WAIT_S = 1.0
_LEAST_WAIT_S = 0.05


@dataclass(slots=True)
class Counters:
    """Counts of a server's requests.

    Attributes:
        requests: model requests received, regardless of the outcome.
        answered: answers delivered completely.
        rejected: requests rejected with 429 because of a limit.
        violations: rejected requests sent during a pause that the server had announced.
        disconnected: answers not delivered because the client disconnected or the server stopped.
        faults: injected faults by kind.
    """

    requests: int = 0
    answered: int = 0
    rejected: int = 0
    violations: int = 0
    disconnected: int = 0
    faults: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One admitted request."""

    wire: Wire
    ask: ParsedRequest
    profile: Profile
    taken: Taken
    reply: Reply
    fault: FaultKind | None


class Service:
    """Answers model requests in any wire format; `answers` returns a problem's solutions, or None."""

    def __init__(
        self,
        settings: SimulationSettings,
        *,
        answers: Callable[[str], BundledAnswers | None],
        find_problem: Callable[[str], str | None],
        clocks: Clocks,
    ) -> None:
        self.counters = Counters()
        self.settings = settings
        self.clocks = clocks
        self._answers = answers
        self._limiter = RateLimiter(settings, clocks)
        self._cache = SimulatedCache(settings.cache_ttl_s, clocks.monotonic)
        self._samples = SampleNumbers(settings.seed, find_problem)

    def processed(
        self, wire: Wire, body: Mapping[str, Any], header: str | None = None, model: str | None = None
    ) -> tuple[int, bytes]:
        """Return status and body for a request in a batch; limits and faults do not apply."""
        try:
            ask = wire.read(body, {"model": model} if model else {})
            name = _sample_name(header, ask) if header is not None else None
        except InvalidRequest as error:
            return 400, orjson.dumps(wire.error("bad_request", Detail(message=str(error))))
        refused = self._unfit(wire, ask)
        if refused:
            return refused.status, refused.body if isinstance(refused.body, bytes) else b"{}"
        taken = self._samples.take(ask, name)
        call = self._call(wire, ask, taken)
        self._samples.leave(taken, ask.model, answered=True)
        return 200, orjson.dumps(wire.body(call.reply))

    async def handle(self, wire: Wire, request: web.Request) -> web.StreamResponse:
        """Handle one request, from its body to the last byte of the response."""
        self.counters.requests += 1
        try:
            ask = wire.read(await _body(request), request.match_info)
            header = request.headers.get(SAMPLE_HEADER)
            name = _sample_name(header, ask) if header is not None else None
        except InvalidRequest as error:
            return wire.failure("bad_request", Detail(message=str(error)))
        failure = self._unfit(wire, ask) or self._rejection(wire, ask)
        if failure:
            return self._announced(failure, wire, ask.model)
        taken = self._samples.take(ask, name)
        answered = False
        try:
            call = self._call(wire, ask, taken)
            response = await self._respond(call, request)
            answered = not call.fault
        except asyncio.CancelledError:
            self.counters.disconnected += 1
            raise
        except ConnectionResetError:
            self.counters.disconnected += 1
            return web.Response()  # the client is gone, and aiohttp drops the response
        finally:
            self._samples.leave(taken, ask.model, answered=answered)
        return response

    # --- before the answer ------------------------------------------------------------------------

    def _unfit(self, wire: Wire, ask: ParsedRequest) -> web.Response | None:
        """Return a permanent error (key, quota, model or context length), or None if the request is valid."""
        denial = self.settings.denied.get(ask.model)
        if denial:
            return wire.failure(denial, Detail(model=ask.model))
        profile = PROFILES.get(ask.model)
        if profile is None:
            return wire.failure("unknown_model", Detail(model=ascii(ask.model)[1:81].rstrip("'")))
        tokens = tokens_in(ask.prompt)
        if tokens > profile.context_tokens:
            detail = Detail(model=ask.model, tokens=tokens, most_tokens=profile.context_tokens)
            return wire.failure("context", detail)
        return None

    def _rejection(self, wire: Wire, ask: ParsedRequest) -> web.Response | None:
        """Return the rejection of a request over the limit; None if it is admitted."""
        tokens = tokens_in(ask.prompt) + (ask.max_tokens or 0 if wire.charges_max_tokens else 0)
        tokens -= self._cached(ask) if wire.cached_is_exempt and ask.cacheable else 0
        rejected = self._limiter.admit(ask.model, tokens)
        if rejected is None:
            return None
        self.counters.rejected += 1
        self.counters.violations += rejected.announced
        detail = Detail(model=ask.model, rejected=rejected, wait_s=rejected.wait_s)
        return wire.failure("too_large" if rejected.never else "rate_limit", detail)

    def _call(self, wire: Wire, ask: ParsedRequest, taken: Taken) -> _Call:
        profile = PROFILES[ask.model]
        solutions = self._answers(taken.name.problem_id)
        if is_judge_prompt(ask.prompt):
            answer = draw_judgement(profile, ask.prompt, solutions)
        elif ask.tools:
            answer = draw_work(
                profile, taken.name, solutions, ask.tools, rounds=ask.rounds, prompt=ask.prompt
            )
        elif is_agent(taken.name.format):
            answer = draw_aside(profile, taken.name, solutions, ask.prompt)
        else:
            answer = draw_answer(profile, taken.name, solutions, ask.answers)
        answer = limited(answer, ask.max_tokens)
        reply = Reply(
            id=digest(f"{taken.key}/{taken.attempt}"),
            created=int(self.clocks.unix()),
            completion=Completion(
                text=answer.text,
                finish_reason=answer.finish,
                usage=self._usage(wire, ask, answer),
                returned_model=ask.model,
                calls=answer.calls,
            ),
            size=self.settings.chunk_characters,
            with_usage=ask.with_usage,
        )
        fault = fault_of(self.settings, taken.key, taken.attempt)
        return _Call(wire=wire, ask=ask, profile=profile, taken=taken, reply=reply, fault=fault)

    def _cached(self, ask: ParsedRequest) -> int:
        """Return the cached tokens of the whole input, else of its longest cached prefix."""
        inputs = (ask.prompt, *reversed(ask.begun))
        read = (self._cache.cached_tokens(ask.model, digest(text), tokens_in(text)) for text in inputs)
        return next(filter(None, read), 0)

    def _usage(self, wire: Wire, ask: ParsedRequest, answer: SimulatedAnswer) -> Usage:
        prompt = tokens_in(ask.prompt)
        cached = self._cached(ask) if ask.cacheable else 0
        writes = wire.cache_mark and ask.cacheable and prompt >= SMALLEST_TOKENS
        return Usage(
            input_tokens=prompt,
            cached_tokens=cached,
            cache_write_tokens=max(0, prompt // 128 * 128 - cached) if writes else 0,
            output_tokens=answer.text_tokens + answer.reasoning_tokens,
            reasoning_tokens=answer.reasoning_tokens,
        )

    # --- the answer -------------------------------------------------------------------------------

    async def _respond(self, call: _Call, request: web.Request) -> web.StreamResponse:
        """Send the complete response, unless a fault is injected."""
        if call.fault:
            self.counters.faults[call.fault] += 1
        match call.fault:
            case "rate_limit" | "server_error" | "unavailable" | "overloaded" as trouble:
                wait_s = max(_LEAST_WAIT_S, _INJECTED_WAIT_S * self.settings.speed)
                failure = call.wire.failure(trouble, Detail(model=call.ask.model, wait_s=wait_s))
                return self._announced(failure, call.wire, call.ask.model)
        return await (self._stream if call.ask.stream else self._respond_whole)(call, request)

    async def _respond_whole(self, call: _Call, request: web.Request) -> web.StreamResponse:
        await _sleep(_times(call)[-1] * self.settings.speed)
        if call.fault:
            reset(request)
            return web.Response()
        self._warm(call)
        self._settle(call)
        body = orjson.dumps(call.wire.body(call.reply))
        response = web.Response(body=body, content_type="application/json")
        return self._announced(response, call.wire, call.ask.model)

    async def _stream(self, call: _Call, request: web.Request) -> web.StreamResponse:
        events = _events(call)
        if call.fault == "reset" and not events:
            reset(request)
            return web.Response()
        response = web.StreamResponse(headers={"cache-control": "no-cache"})
        response.headers["content-type"] = call.wire.stream_type
        await self._announced(response, call.wire, call.ask.model).prepare(request)
        await self._write(call, events, response)
        await self._break_off(call, request, response)
        if not call.fault:
            self._settle(call)
        return response

    async def _write(self, call: _Call, events: list[bytes], response: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        writes = grouped(events, _times(call)[: len(events)], self.settings.speed)
        for number, (due_s, data) in enumerate(writes):
            await _sleep(start + due_s - loop.time())
            if number == 0:
                self._warm(call)
            await response.write(data)

    async def _break_off(self, call: _Call, request: web.Request, response: web.StreamResponse) -> None:
        # `cut` ends the stream here; without a fault, the terminal marker is already written.
        if call.fault == "stream_error":
            await response.write(call.wire.stream_error(Detail(model=call.ask.model)))
        elif call.fault == "stall":
            await _sleep(self.settings.stall_s)
        if call.fault in {"stall", "reset"}:
            reset(request)

    def _warm(self, call: _Call) -> None:
        if call.ask.cacheable:
            self._cache.warm(call.ask.model, call.taken.prompt)

    def _settle(self, call: _Call) -> None:
        self.counters.answered += 1
        if not call.wire.charges_max_tokens:
            self._limiter.charge(call.ask.model, call.reply.completion.usage.output_tokens or 0)

    def _announced(self, response: _R, wire: Wire, model: str) -> _R:
        if model in PROFILES:
            response.headers.update(wire.limit_headers(self._limiter.windows(model)))
        return response


def _events(call: _Call) -> list[bytes]:
    """Return the events, one per piece (at least one); with a stream fault, only the first of them."""
    events = call.wire.stream(call.reply)
    return events[: broken_at(call.taken.key, call.taken.attempt, len(events))] if call.fault else events


def _times(call: _Call) -> list[float]:
    reasoning = call.reply.completion.usage.reasoning_tokens or 0
    return due_times(call.profile, call.taken.key, call.reply.pieces or [""], reasoning)


async def _body(request: web.Request) -> Mapping[str, object]:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise InvalidRequest("We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise InvalidRequest("The body of your request must be a JSON object.")
    return body


def _sample_name(header: str, ask: ParsedRequest) -> SampleName:
    try:
        name = SampleName.parse(header)
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    if not is_agent(name.format) and name.turn != len(ask.answers):
        raise InvalidRequest(
            f"{SAMPLE_HEADER} names turn {name.turn}, and the input holds {len(ask.answers)} answers"
        )
    return name


def reset(request: web.Request) -> None:
    """Close the connection with RST, like a crashed server or a middlebox."""
    if request.transport is None:
        return
    connection = request.transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


async def _sleep(seconds: float) -> None:
    if seconds > 0 and math.isfinite(seconds):
        await asyncio.sleep(seconds)

"""The model calls of one agent sample: replayed from the record, or sent and recorded.

Invariants:
- An answer is on disk before the agent gets it. After a kill it is found again by the hash of its request:
  the earliest answer that was not used yet.
- A call that has begun is always finished, even if its client has gone. A client that repeats the request
  waits for the same call.
- Once the sample has ended (`end` or `trouble` is set), no request is sent.
- A body that the provider refused is not sent again. The refusal is recorded and repeated to the agent.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol

from astra_async.agents.call_log import Asked, difference, fields_of_answer, max_tokens
from astra_async.asking.providers import PROVIDERS
from astra_async.errors import ProviderError, RequestRejected
from astra_async.tasks import cancel, mark_retrieved
from astra_async.types import Dialogue, ModelRequest, NativeBody, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.agents.call_log import CallLog, Json, RecordedCall
    from astra_async.types import AgentEnd, AgentLimits, AnswerKey, Completion, Message, ModelSettings

_REQUESTS_KEPT = 2  # to compute differences: the agent's own conversation and one subagent's
_STATUS_OF_A_BODY = frozenset({400, 404, 413, 422})
_WORDS: dict[AgentEnd, str] = {
    "steps": "the limit of model calls for this task is reached",
    "cost": "the limit of cost for this task is reached",
    "context": "the conversation is longer than the model's context window",
    "time": "the time for this task is over",
}


class CallPool(Protocol):
    """Answers requests within a provider's limits; raises ProviderError."""

    async def call(self, request: ModelRequest) -> Completion:
        """Return one finished answer after all necessary attempts."""
        ...


class SampleEnds(Exception):  # noqa: N818 - names what happened
    """The sample has reached a limit; no further request is sent."""

    def __init__(self, end: AgentEnd) -> None:
        super().__init__(_WORDS.get(end, "the task is over"))
        self.end = end


class BodyRefused(Exception):  # noqa: N818 - names what happened
    """The provider refused this body, but has answered others of the sample. The text is its message."""


class ContextFull(BodyRefused):
    """The conversation is longer than the model's context. The agent may shorten it and continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answered call, numbered from 0 in each sample. `replayed` is True if it came from the record."""

    number: int
    completion: Completion
    replayed: bool = False


@dataclass(eq=False)
class AgentCalls:
    """The model calls of one sample.

    Attributes:
        log: the recorded calls; new ones are appended.
        sample_header: names the sample to a simulated server.
        token: the agent's "API key", which identifies the sample of a request.
        ended: set once a limit (`end`) or an error (`trouble`) has ended the sample.
        steps: number of answered calls; `replayed` of them came from the record and took `replayed_s`
            seconds.
        usage: sum over all answered calls.
        cost_usd: cost of all calls in US dollars, calls without an answer included.
        translated: True if agent and model use different interfaces.
        removed: names of everything that was removed from requests.
        too_long: bytes of the last request, if it exceeded the model's context.
    """

    key: AnswerKey
    _: KW_ONLY
    pool: CallPool
    settings: ModelSettings
    log: CallLog
    limits: AgentLimits
    seed: int | None = None
    sample_header: str | None = None

    def __post_init__(self) -> None:
        self.token = f"astra-{secrets.token_hex(24)}"
        self.ended = asyncio.Event()
        self.end: AgentEnd | None = None
        self.trouble: Exception | None = None
        self.steps = self.replayed = 0
        self.usage = Usage()
        self.cost_estimated = False
        self.translated = False
        self.removed: dict[str, None] = {}
        self._recorded: list[RecordedCall] = self.log.of(self.key)
        self._refused_before = self.log.refused(self.key)  # by earlier processes, until they are repeated
        self._refused: dict[str, str] = {}  # in this process
        self._next = 1 + max((call.step for call in self._recorded), default=-1)
        self._spent: list[float | None] = []
        self._under_way: dict[str, asyncio.Task[Step]] = {}
        self._before: list[tuple[int, Asked]] = []
        self._natives: dict[tuple[str, ...], object] = {}
        self._received: set[int] = set()
        self._first = self._next
        self.too_long: int | None = None
        self._asking = 0
        self._since_s = self._asked_s = 0.0
        self.replayed_s = 0.0
        self._caches = PROVIDERS[self.settings.provider].caches_prompts

    # --- asking -------------------------------------------------------------------------------------------

    async def answer(self, asked: Dialogue | NativeBody) -> Completion:
        """Return the model's answer.

        Raises SampleEnds if a limit is reached, BodyRefused if the provider refuses the body (the agent may
        continue), and AstraError if an error of the provider or of the disk has ended the sample.
        """
        return (await self.step(asked)).completion

    async def step(
        self, asked: Dialogue | NativeBody, *, translated: bool = False, removed: Sequence[str] = ()
    ) -> Step:
        """Return the model's answer as a step, for `give_back` and `received`. Raises like `answer`."""
        if self.trouble is not None:
            raise self.trouble
        if self.end is not None:
            raise SampleEnds(self.end)
        if isinstance(asked, Dialogue):
            asked = replace(asked, messages=tuple(map(self._with_native, asked.messages)))
        request = Asked.of(asked)
        self.translated |= translated
        self.removed |= dict.fromkeys(removed)
        self._refuse_again(request)
        found = next((call for call in self._recorded if call.sha256 == request.sha256), None)
        if found is not None:
            return self._replay(found, request)
        task = self._under_way.get(request.exact)
        if task is None:
            self._hold_limits()
            task = asyncio.create_task(self._live(asked, request, translated=translated, removed=removed))
            self._under_way[request.exact] = task
            task.add_done_callback(lambda _: self._under_way.pop(request.exact, None))
            task.add_done_callback(mark_retrieved)
        return await asyncio.shield(task)

    def give_back(self, step: Step) -> None:
        """Keep an answer that its client did not receive for the next client with the same request."""
        if step.number not in self._received and all(call.step != step.number for call in self._recorded):
            lost = [call for call in self.log.of(self.key) if call.step == step.number]
            self._recorded = lost + self._recorded
            self._count(step.completion, by=-1)
            self.replayed -= step.replayed

    def received(self, step: Step) -> None:
        """Mark an answer as received, even if another client with the same request had gone."""
        self._received.add(step.number)
        given_back = [call for call in self._recorded if call.step == step.number]
        if given_back:
            self._recorded.remove(given_back[0])
            self._count(step.completion)

    async def close(self) -> None:
        """Cancel the calls in flight. The pool accounts for their cost."""
        await cancel(*self._under_way.values())

    # --- sums ---------------------------------------------------------------------------------------------

    @property
    def model_s(self) -> float:
        """Seconds of this process with at least one call in flight, so far."""
        return self._asked_s + (time.monotonic() - self._since_s if self._asking else 0.0)

    @property
    def repeated_usd(self) -> float:
        """US dollars for recorded calls of killed processes that the replay did not use."""
        return sum(call.completion.cost_usd or 0.0 for call in self._recorded)

    @property
    def cost_usd(self) -> float | None:
        """US dollars for all calls, calls without an answer included; None if a price is unknown."""
        spent = [usd for usd in self._spent if usd is not None]
        return None if len(spent) < len(self._spent) else sum(spent) + self.repeated_usd

    # --- one call -----------------------------------------------------------------------------------------

    def _replay(self, call: RecordedCall, request: Asked) -> Step:
        self._recorded.remove(call)
        earlier = call.step < self._first  # otherwise `give_back` has added it in this process
        self.replayed += earlier
        self.replayed_s += call.seconds if earlier else 0.0
        return self._given(Step(number=call.step, completion=call.completion, replayed=earlier), request)

    async def _live(
        self, asked: Dialogue | NativeBody, request: Asked, *, translated: bool, removed: Sequence[str]
    ) -> Step:
        number, self._next = self._next, self._next + 1
        since, made = self._made_of(request)
        began_s = self._begin()
        try:
            completion = await self._called(self._request(asked, request, made), request)
            line = {"step": number, "sha256": request.sha256, "since": since, "request": made}
            line |= {"seconds": round(time.monotonic() - began_s, 3), **fields_of_answer(completion)}
            line |= {"translated": translated} if translated else {}
            line |= {"removed": list(removed)} if removed else {}
            await self.log.append(self.key, line)
        except BodyRefused:
            raise
        except Exception as error:
            await self._fail(error)
            raise
        finally:
            self._finish()
        self._before = [*self._before[1 - _REQUESTS_KEPT :], (number, request)]
        return self._given(Step(number=number, completion=completion), request)

    async def _called(self, sent: ModelRequest, request: Asked) -> Completion:
        """Return the pool's answer. A refusal of the first body is an error of the configuration."""
        try:
            return await self.pool.call(sent)
        except RequestRejected as error:
            if not self.steps or error.meets_all or error.status not in _STATUS_OF_A_BODY:
                raise
            self._refused[request.exact] = error.reply
            line = {"failed": str(error), "sha256": request.sha256, "refused": error.reply}
            await self.log.append(self.key, line | ({"cost_usd": error.cost_usd} if error.cost_usd else {}))
            self._spent += [error.cost_usd] if error.cost_usd else []
            raise BodyRefused(error.reply) from error

    def _refuse_again(self, request: Asked) -> None:
        """Raise a recorded refusal. Each refusal of an earlier process is used once, like its answers."""
        reply = self._refused.get(request.exact)
        for before in self._refused_before:
            if reply is None and before[0] == request.sha256:
                self._refused_before.remove(before)
                reply = self._refused[request.exact] = before[1]
                break
        if reply is not None:
            raise BodyRefused(reply)

    def _made_of(self, request: Asked) -> tuple[int | None, Json]:
        """Return the step of an earlier request with a common beginning, and the difference to it."""
        for number, earlier in reversed(self._before):
            made = difference(earlier.body, request.body)
            if any(kept for kept, _ in (made.get("grown") or {"": (1, 0)}).values()):
                return number, made
        return None, difference({}, request.body)

    def _request(self, asked: Dialogue | NativeBody, request: Asked, made: Json) -> ModelRequest:
        native, dialogue = (asked, None) if isinstance(asked, NativeBody) else (None, asked)
        rest = sum(len(str(rest)) for _, rest in (made.get("grown") or {}).values())
        return ModelRequest(
            key=self.key,
            prompt="",
            prompt_sha256=request.exact,
            before_sha256=self._before[-1][1].exact if self._before else "",
            input_bytes=request.size_bytes,
            fresh_bytes=min(rest, request.size_bytes) if self._before else request.size_bytes,
            max_tokens=max_tokens(request.body),
            dialogue=dialogue,
            native=native,
            seed=self.seed if native is None else None,
            sample_header=self.sample_header,
            cache=self._caches,
            goes_on=True,
        )

    def _given(self, step: Step, request: Asked) -> Step:
        """Count an answer, and keep the provider's native message for the following request."""
        completion = step.completion
        self._count(completion)
        if completion.calls and completion.native is not None:
            self._natives[tuple(call.id for call in completion.calls)] = completion.native
        if completion.finish_reason == "context_exceeded":
            if self.too_long is not None and request.size_bytes >= self.too_long:
                raise self._over("context")
            self.too_long = request.size_bytes
            raise ContextFull("the conversation is longer than the model's context")
        self.too_long = None
        return step

    def _with_native(self, message: Message) -> Message:
        """Add the provider's own form of a message, if the agent's interface has no field for it."""
        if message.native is not None or not message.calls:
            return message
        return replace(message, native=self._natives.get(tuple(call.id for call in message.calls)))

    # --- ends ---------------------------------------------------------------------------------------------

    def _hold_limits(self) -> None:
        limits = self.limits
        if limits.steps is not None and self.steps + len(self._under_way) >= limits.steps:
            raise self._over("steps")
        if limits.usd is not None and sum(usd or 0.0 for usd in self._spent) >= limits.usd:
            raise self._over("cost")

    def _over(self, end: AgentEnd) -> SampleEnds:
        self.end = self.end or end
        self.ended.set()
        return SampleEnds(self.end)

    async def _fail(self, error: Exception) -> None:
        """End the sample, also after an unexpected exception, and record the cost of the failed call."""
        self.trouble = self.trouble or error
        self.ended.set()
        if isinstance(error, ProviderError) and error.cost_usd:
            self._spent.append(error.cost_usd)
            self.cost_estimated |= error.cost_estimated
            await self.log.append(self.key, {"failed": str(error), "cost_usd": error.cost_usd})

    def _count(self, completion: Completion, *, by: int = 1) -> None:
        self.steps += by
        if by > 0:
            self._spent.append(completion.cost_usd)
        else:
            self._spent.remove(completion.cost_usd)
        self.cost_estimated |= completion.cost_estimated
        names = [each.name for each in fields(Usage) if each.name != "service_tier"]
        more = {name: value for name in names if (value := getattr(completion.usage, name)) is not None}
        sums = {name: (getattr(self.usage, name) or 0) + by * value for name, value in more.items()}
        self.usage = replace(self.usage, **sums, service_tier=completion.usage.service_tier)

    def _begin(self) -> float:
        # `_since_s` is valid while `_asking` is positive: the time at which it became positive.
        now = time.monotonic()
        self._since_s = self._since_s if self._asking else now
        self._asking += 1
        return now

    def _finish(self) -> None:
        self._asking -= 1
        if not self._asking:
            self._asked_s += time.monotonic() - self._since_s

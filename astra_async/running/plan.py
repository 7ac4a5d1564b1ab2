"""Plan of an invocation: its samples and their order, cost and time estimates, and progress counts."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.asking.feedback import MAX_CHARACTERS
from astra_async.asking.providers import PROVIDERS
from astra_async.asking.providers.models import bytes_per_token, cost_usd
from astra_async.asking.throttle.estimate import CACHE_LIFETIME_S
from astra_async.problems import passes
from astra_async.types import SampleKey, Usage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.images.resolve import ProblemImages
    from astra_async.prepare import Prepared
    from astra_async.running.trouble import Reason
    from astra_async.types import AnswerKey, Format, ModelSettings, Problem, Prompt, Trouble

    _Calls = tuple[Usage, int, tuple[tuple[Usage, int], ...]]


ANSWER_CHARACTERS = 2744  # average output length in the paper's Table 1, used without a reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Estimate of one model's requests, tokens, cost and time in a run.

    Attributes:
        calls: number of requests.
        cost_usd: cost in US dollars without a prompt cache; None if no price is known.
        cost_cached_usd: cost in US dollars if every repeated prompt is read from the provider's cache. None
            if no price is known or for batches.
        about_s: seconds for the requests alone, at TYPICAL_LATENCY_S each and within the configured limits;
            None for batches.
    """

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cost_cached_usd: float | None
    about_s: float | None


def estimate(
    settings: ModelSettings, prepared: Mapping[str, Prepared], formats: tuple[Format, ...], samples: int
) -> Forecast:
    """Estimate one model's part of the plan from the sizes of prompts and reference solutions."""
    per_token = bytes_per_token(settings)
    system = round(len((settings.system_prompt or "").encode()) / per_token)
    calls: list[_Calls] = []
    for prompt, answer in _sizes(prepared, formats, per_token):
        tokens = prompt + system
        alone = Usage(input_tokens=tokens, cached_tokens=0, output_tokens=answer)
        first, again = replace(alone, cache_write_tokens=tokens), replace(alone, cached_tokens=tokens)
        calls.append((alone, samples, ((first, 1), (again, samples - 1))))
    return _forecast(settings, calls)


def estimate_turns(
    settings: ModelSettings,
    prepared: Mapping[str, Prepared],
    formats: tuple[Format, ...],
    samples: int,
    turns: int,
) -> Forecast:
    """Return an upper bound for follow-up turns: no answer passes and each feedback has maximum length."""
    per_token = bytes_per_token(settings)
    calls: list[_Calls] = []
    for before, answer in _sizes(prepared, formats, per_token):
        for _ in range(turns):
            tokens = before + answer + round(MAX_CHARACTERS / per_token)
            alone = Usage(input_tokens=tokens, cached_tokens=0, output_tokens=answer)
            read = replace(alone, cached_tokens=before, cache_write_tokens=tokens - before)
            calls.append((alone, samples, ((read, samples),)))
            before = tokens  # noqa: PLW2901 - tokens of the conversation so far
    return _forecast(settings, calls)


def _forecast(settings: ModelSettings, calls: Sequence[_Calls]) -> Forecast:
    count = sum(times for _, times, _ in calls)
    inputs = sum(times * (alone.input_tokens or 0) for alone, times, _ in calls)
    outputs = sum(times * (alone.output_tokens or 0) for alone, times, _ in calls)
    return Forecast(
        model=settings.name,
        calls=count,
        input_tokens=inputs,
        output_tokens=outputs,
        cost_usd=_sum_usd(settings, [(alone, times) for alone, times, _ in calls]),
        cost_cached_usd=None
        if settings.batch
        else _sum_usd(settings, [part for _, _, cached in calls for part in cached]),
        about_s=None if settings.batch else _about_s(settings, count, inputs, outputs),
    )


def _sum_usd(settings: ModelSettings, parts: Sequence[tuple[Usage, int]]) -> float | None:
    """Return the sum in US dollars, or None if the price of a part is unknown."""
    costs = [(cost_usd(settings, usage), times) for usage, times in parts]
    known = [cost * times for cost, times in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _sizes(
    prepared: Mapping[str, Prepared], formats: tuple[Format, ...], per_token: float
) -> Iterator[tuple[int, int]]:
    """Yield the estimated tokens of each prompt and of its answer."""
    for item in prepared.values():
        files = item.reference.files if item.reference else {}
        size = sum(len(path) + len(text.encode()) for path, text in files.items())
        for fmt in formats:
            prompt = prompt_tokens(item.prompts[fmt], per_token)
            yield prompt, round((size or ANSWER_CHARACTERS) / per_token)


def _about_s(settings: ModelSettings, calls: int, inputs: int, outputs: int) -> float:
    bounds = [math.ceil(calls / settings.max_in_flight) * TYPICAL_LATENCY_S] + [
        60 * amount / limit
        for amount, limit in (
            (calls, settings.requests_per_minute),
            (inputs, settings.input_tokens_per_minute),
            (outputs, settings.output_tokens_per_minute),
        )
        if limit
    ]
    return max(bounds)


def prompt_tokens(prompt: Prompt, per_token: float) -> int:
    """Estimate the number of tokens of a prompt; `per_token` is the bytes per token (`bytes_per_token`)."""
    return round(len(prompt.text.encode()) / per_token)


TYPICAL_LATENCY_S = 20.0
_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Samples that this invocation plans.

    Attributes:
        unprepared: problems that cannot run, with the reason; their samples are missing.
        blocks: by model, the number of consecutive samples of a problem that are requested together.
        max_in_flight: by model, the maximum number of samples that wait for an answer. Models without an
            entry have no limit, because batches schedule their requests themselves.
        caching: models whose requests are marked for the prompt cache, because a reuse is expected soon.
    """

    models: tuple[str, ...]
    formats: tuple[Format, ...]
    problem_ids: tuple[str, ...]
    samples: int
    prepared: Mapping[str, Prepared]
    unprepared: Mapping[str, AstraError] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    max_in_flight: Mapping[str, int] = field(default_factory=dict)
    caching: frozenset[str] = frozenset()

    def keys(self, model: str) -> Iterator[SampleKey]:
        """Yield the model's samples in request order (see "blocks" in docs/development/decisions.md)."""
        for problem_id, sample in passes(self.problem_ids, self.samples, self.blocks.get(model, 1)):
            for fmt in self.formats:
                yield SampleKey(model, fmt, problem_id, sample)

    @property
    def size(self) -> int:
        """Number of samples planned."""
        return len(self.models) * len(self.formats) * len(self.problem_ids) * self.samples


@dataclass(slots=True, kw_only=True)
class Counts:
    """Number of samples or follow-up turns in each state.

    Attributes:
        answered: recorded answers, graded or not.
        final: recorded final lines.
        asking: samples that wait for an answer.
        grading: samples with an answer that wait for a verdict.
        missing: samples without a final line, by kind of error.
        reasons: samples without a final line, by reason.
    """

    answered: int = 0
    final: int = 0
    asking: int = 0
    grading: int = 0
    missing: Counter[Trouble] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)


@dataclass(slots=True, kw_only=True)
class Tally(Counts):
    """Counts of the planned samples, with separate counts for their follow-up turns."""

    planned: int
    turns: Counts = field(default_factory=Counts)

    def of(self, key: AnswerKey) -> Counts:
        """Return the counts that include this key: those of samples or those of follow-up turns."""
        return self.turns if key.turn else self


class Speed:
    """Rate of answers and verdicts in this invocation, and an estimate of the remaining time."""

    def __init__(self, answered: int, final: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at = clock()
        self._began_with = (answered, final)
        self._seen: deque[tuple[float, int, int]] = deque([(self._began_at, answered, final)])

    @property
    def elapsed_s(self) -> float:
        """Seconds since this object was created."""
        return self._clock() - self._began_at

    def per_minute(self, answered: int, final: int) -> tuple[float | None, float | None]:
        """Return answers and verdicts per minute, averaged over the last minute.

        Both are None within the first second.
        """
        now = self._clock()
        self._seen.append((now, answered, final))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_S:  # noqa: PLR2004 - a rate needs two entries
            self._seen.popleft()
        then, answered_then, final_then = self._seen[0]
        minutes = (now - then) / 60
        if now - then < 1:
            return None, None
        return (answered - answered_then) / minutes, (final - final_then) / minutes

    def has_begun(self, final: int) -> bool:
        """Return True if there is a new verdict in this invocation."""
        return final > self._began_with[1]

    def left_s(self, done: int, planned: int, *, graded: bool = True) -> float | None:
        """Estimate the seconds until `planned` samples are done; None before the first one is done."""
        fresh = done - self._began_with[1 if graded else 0]
        return self.elapsed_s / fresh * (planned - done) if fresh > 0 else None


def plan_of(
    config: RunConfig,
    problems: Sequence[Problem],
    prepared: Mapping[str, Prepared],
    unprepared: Mapping[str, AstraError],
) -> Plan:
    """Return the plan of a configuration for prepared problems and those that could not be prepared."""
    blocks = {model.name: _block(model, config, len(problems)) for model in config.models}
    # The order within a batch is unknown, so a prompt might be written to the cache and never read.
    at_once = (model for model in config.models if not model.batch)
    cached = (model.name for model in at_once if PROVIDERS[model.provider].caches_prompts)
    return Plan(
        models=tuple(model.name for model in config.models),
        formats=config.formats,
        problem_ids=tuple(problem.id for problem in problems),
        samples=config.samples,
        prepared=prepared,
        unprepared=unprepared,
        blocks=blocks,
        max_in_flight={model.name: model.max_in_flight for model in config.models if not model.batch},
        caching=frozenset(name for name in cached if config.turns or blocks[name] > 1),
    )


async def in_order(
    keys: Iterable[SampleKey], making: ProblemImages | None, stopping: asyncio.Event
) -> AsyncIterator[SampleKey]:
    """Yield a model's samples, but defer those whose image is still being built."""
    deferred: defaultdict[str, list[SampleKey]] = defaultdict(list)

    def ready() -> Iterator[SampleKey]:
        pending = making.pending if making else ()
        for name in [name for name in deferred if name not in pending]:
            yield from deferred.pop(name)

    for key in keys:
        deferred[key.problem_id].append(key)
        for each in ready():
            yield each
    while making and deferred and not stopping.is_set():
        for each in ready():
            yield each
        if deferred:
            await making.changed()


def _block(model: ModelSettings, config: RunConfig, problems: int) -> int:
    """Return the block size: consecutive samples of a problem in a pass (docs/development/decisions.md).

    The size is 1 without a prompt cache. Otherwise a pass over all problems must fit into the cache's
    lifetime at the expected request rate. The minimum is then 2, because a cache write without a read costs
    more than no caching.
    """
    if model.batch:
        return config.samples  # identical prompts are adjacent in the file, in case the provider caches
    if not PROVIDERS[model.provider].caches_prompts or config.samples == 1:
        return 1
    per_second = (model.requests_per_minute or math.inf) / 60
    per_second = min(per_second, model.max_in_flight / TYPICAL_LATENCY_S)
    fits = int(CACHE_LIFETIME_S * per_second / max(1, problems * len(config.formats)))
    return min(config.samples, max(2, fits))

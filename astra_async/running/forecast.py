"""What a run would take, from the sizes of its prompts and reference solutions, before anything is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.asking.feedback import MAX_CHARACTERS
from astra_async.asking.providers.models import bytes_per_token, cost_usd
from astra_async.running.plan import TYPICAL_LATENCY_S
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.prepare import Prepared
    from astra_async.types import Format, ModelSettings, Prompt

    # What one is alone, how many there are, and how many of them are what with a cache.
    _Calls = tuple[Usage, int, tuple[tuple[Usage, int], ...]]

ANSWER_CHARACTERS = 2744  # the paper's Table 1: average output length, where no reference tells better


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What one model's share of a run would take.

    `cost_usd` None: no price is known. `cost_cached_usd`: with every repetition of a prompt read from the
    provider's cache. `about_s`: the calls alone, at TYPICAL_LATENCY_S each, within the limits that are set.
    In batches neither the time nor what a cache saves is known: both are None.
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
    """One model's share of the plan, from prompt and reference sizes."""
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
    """What further turns would take at most: if no answer passed, and every feedback had its full length."""
    per_token = bytes_per_token(settings)
    calls: list[_Calls] = []
    for before, answer in _sizes(prepared, formats, per_token):
        for _ in range(turns):
            tokens = before + answer + round(MAX_CHARACTERS / per_token)
            alone = Usage(input_tokens=tokens, cached_tokens=0, output_tokens=answer)
            read = replace(alone, cached_tokens=before, cache_write_tokens=tokens - before)
            calls.append((alone, samples, ((read, samples),)))
            before = tokens  # noqa: PLW2901 - what is said until the next turn
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
    """A sum that is unknown as soon as one part is."""
    costs = [(cost_usd(settings, usage), times) for usage, times in parts]
    known = [cost * times for cost, times in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _sizes(
    prepared: Mapping[str, Prepared], formats: tuple[Format, ...], per_token: float
) -> Iterator[tuple[int, int]]:
    """Tokens of each prompt, and about those of an answer to it."""
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
    """About as many as a tokenizer would count, at so many bytes for each (`bytes_per_token`)."""
    return round(len(prompt.text.encode()) / per_token)

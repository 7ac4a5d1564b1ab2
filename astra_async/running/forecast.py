"""What a run would take, from the sizes of its prompts and reference solutions, before anything is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.running.plan import TYPICAL_LATENCY_S
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.problems.prepare import Prepared
    from astra_async.types import Format, ModelSettings, Prompt

ANSWER_CHARACTERS = 2744  # the paper's Table 1: average output length, where no reference tells better


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What one model's share of a run would take.

    `cost_usd` None: no price is known. `cost_cached_usd`: with every repetition of a prompt read from the
    provider's cache. `about_s`: the calls alone, at TYPICAL_LATENCY_S each, within the limits that are set.
    """

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cost_cached_usd: float | None
    about_s: float


def estimate(
    settings: ModelSettings, prepared: Mapping[str, Prepared], formats: tuple[Format, ...], samples: int
) -> Forecast:
    """One model's share of the plan, from prompt and reference sizes."""
    from astra_async.asking.providers.models import bytes_per_token, cost_usd

    per_token = bytes_per_token(settings)
    system = round(len((settings.system_prompt or "").encode()) / per_token)
    calls, inputs, outputs = 0, 0, 0
    plain, cached = _Sum(), _Sum()
    for item in prepared.values():
        out = round(_answer_bytes(item) / per_token)
        for fmt in formats:
            tokens = prompt_tokens(item.prompts[fmt], per_token) + system
            first = Usage(input_tokens=tokens, cached_tokens=0, cache_write_tokens=tokens, output_tokens=out)
            again = Usage(input_tokens=tokens, cached_tokens=tokens, output_tokens=out)
            alone = Usage(input_tokens=tokens, cached_tokens=0, output_tokens=out)
            plain.add(cost_usd(settings, alone), samples)
            cached.add(cost_usd(settings, first), 1)
            cached.add(cost_usd(settings, again), samples - 1)
            calls, inputs, outputs = calls + samples, inputs + samples * tokens, outputs + samples * out
    return Forecast(
        model=settings.name,
        calls=calls,
        input_tokens=inputs,
        output_tokens=outputs,
        cost_usd=plain.value,
        cost_cached_usd=cached.value,
        about_s=_about_s(settings, calls, inputs, outputs),
    )


def estimate_turns(
    settings: ModelSettings,
    prepared: Mapping[str, Prepared],
    formats: tuple[Format, ...],
    samples: int,
    turns: int,
) -> Forecast:
    """What further turns would take at most: if no answer passed, and every feedback had its full length."""
    from astra_async.asking.feedback import MAX_CHARACTERS
    from astra_async.asking.providers.models import bytes_per_token, cost_usd

    per_token = bytes_per_token(settings)
    told = round(MAX_CHARACTERS / per_token)
    calls, inputs, outputs = 0, 0, 0
    plain, cached = _Sum(), _Sum()
    for item in prepared.values():
        out = round(_answer_bytes(item) / per_token)
        for fmt in formats:
            before = prompt_tokens(item.prompts[fmt], per_token)
            for _ in range(turns):
                tokens = before + out + told
                alone = Usage(input_tokens=tokens, cached_tokens=0, output_tokens=out)
                plain.add(cost_usd(settings, alone), samples)
                read = replace(alone, cached_tokens=before, cache_write_tokens=tokens - before)
                cached.add(cost_usd(settings, read), samples)
                calls, inputs, outputs = calls + samples, inputs + samples * tokens, outputs + samples * out
                before = tokens
    return Forecast(
        model=settings.name,
        calls=calls,
        input_tokens=inputs,
        output_tokens=outputs,
        cost_usd=plain.value,
        cost_cached_usd=cached.value,
        about_s=_about_s(settings, calls, inputs, outputs),
    )


class _Sum:
    """A sum that is unknown as soon as one part is."""

    def __init__(self) -> None:
        self.value: float | None = 0.0

    def add(self, part: float | None, times: int) -> None:
        self.value = None if self.value is None or part is None else self.value + part * times


def _answer_bytes(item: Prepared) -> int:
    files = item.reference.files if item.reference else {}
    return sum(len(path) + len(text.encode()) for path, text in files.items()) or ANSWER_CHARACTERS


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

"""`astra run --dry-run`: the checks of a run, and what it would take; no call, no container, no directory."""

from __future__ import annotations

import asyncio
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.asking.providers.models import KEY_VARIABLES
from astra_async.cli.console import open_console, say, tell
from astra_async.cli.display import duration
from astra_async.errors import ConfigError
from astra_async.running.plan import TYPICAL_LATENCY_S
from astra_async.running.progress import answered_keys
from astra_async.running.wiring import check_models, chosen_problems, ready_problems, resolved_models
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.problems.prepare import Prepared
    from astra_async.types import Format, ModelSettings, Prompt

_BYTES_PER_TOKEN = 3.2  # docs/design.md, throttle rule 3
_ANSWER_CHARACTERS = 2744  # the paper's Table 1: average output length, where no reference tells better


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one model's share of a run would take.

    `cost_usd` None: no price is known. `cost_cached_usd`: with every repetition of a prompt read from the
    provider's cache.
    """

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cost_cached_usd: float | None
    about_s: float


def dry_run(config: RunConfig) -> int:
    """Print the plan; returns the exit code."""
    from rich.table import Table

    _check_as_a_run_does(config)
    problems = chosen_problems(config, tell)
    prepared, failed = asyncio.run(ready_problems(config, problems, tell))
    config = resolved_models(config)
    console = open_console()
    table = Table("model", "calls", "input tokens", "output tokens", "cost", "cost, cached", "time, about")
    found = [estimate(settings, prepared, config.formats, config.samples) for settings in config.models]
    for each in found:
        table.add_row(*_cells(each))
    console.print(table)
    console.print(
        f"{len(prepared)} problems x {config.samples} samples x {len(config.formats)} formats."
        f" Tokens are estimates: {_BYTES_PER_TOKEN} bytes each; answers as long as the reference, else"
        f" {_ANSWER_CHARACTERS} characters; reasoning not included. Time of the calls alone, at"
        f" {TYPICAL_LATENCY_S:.0f} s each, as many at once as allowed and within the limits that are set.",
    )
    for sentence in (*_sizes(config, prepared), *_recorded(config, prepared)):
        say(sentence)
    _say_budget(config, found)
    for error in failed.values():
        console.print(str(error), style="red")
    return 1 if failed else 0


def _sizes(config: RunConfig, prepared: Mapping[str, Prepared]) -> Iterator[str]:
    """The largest prompt, and for each model how many prompts and longest answers its context cannot hold."""
    tokens = {name: max(map(_tokens, item.prompts.values())) for name, item in prepared.items()}
    if not tokens:
        return
    largest = max(tokens, key=lambda name: tokens[name])
    yield f"Prompts take {min(tokens.values()):,} to {tokens[largest]:,} tokens ({largest})."
    for model in config.models:
        room = (model.context_length or math.inf) - (model.max_tokens or 0)
        wide = [name for name, size in tokens.items() if size > room]
        if wide:
            answer, context = model.max_tokens or 0, model.context_length or 0
            yield (
                f"warning: {model.name}: {len(wide)} of {len(tokens)} prompts and an answer of {answer:,}"
                f" tokens may not fit into its context of {context:,} ({wide[0]} ...)"
            )


def _recorded(config: RunConfig, prepared: Mapping[str, Prepared]) -> Iterator[str]:
    """How much of the plan the run directory holds already."""
    names = {model.name for model in config.models}
    held = sum(
        key.model in names
        and key.format in config.formats
        and key.problem_id in prepared
        and key.sample < config.samples
        for key in answered_keys(config.out)
    )
    if held:
        yield f"{held:,} of these answers are in {config.out} already and not asked for again."


def _tokens(prompt: Prompt) -> int:
    return round(len(prompt.text.encode()) / _BYTES_PER_TOKEN)


def _check_as_a_run_does(config: RunConfig) -> None:
    """Refuse what a run would refuse; only a key may still be missing, which is told."""
    try:
        check_models(config)
    except ConfigError as error:
        names = {name for names in KEY_VARIABLES.values() for name in names}
        names |= {model.api_key_env for model in config.models if model.api_key_env}
        keys = dict.fromkeys(names, "unset")
        check_models(config, environ=keys | dict(os.environ))
        tell(f"note: {error}; without it the run is refused")


def _say_budget(config: RunConfig, found: Sequence[Estimate]) -> None:
    if config.budget_usd is None:
        return
    total = sum(each.cost_usd or 0.0 for each in found)
    verdict = "holds it" if total <= config.budget_usd else "would stop it on the way"
    say(f"{_usd(total)} in all without a cache; the budget of {_usd(config.budget_usd)} {verdict}.")


def estimate(
    settings: ModelSettings, prepared: Mapping[str, Prepared], formats: tuple[Format, ...], samples: int
) -> Estimate:
    """One model's share of the plan, from prompt and reference sizes."""
    from astra_async.asking.providers.models import cost_usd

    calls, inputs, outputs = 0, 0, 0
    plain, cached = _Sum(), _Sum()
    for item in prepared.values():
        out = _answer_tokens(item)
        for fmt in formats:
            tokens = _tokens(item.prompts[fmt])
            first = Usage(input_tokens=tokens, cached_tokens=0, cache_write_tokens=tokens, output_tokens=out)
            again = Usage(input_tokens=tokens, cached_tokens=tokens, output_tokens=out)
            alone = Usage(input_tokens=tokens, cached_tokens=0, output_tokens=out)
            plain.add(cost_usd(settings, alone), samples)
            cached.add(cost_usd(settings, first), 1)
            cached.add(cost_usd(settings, again), samples - 1)
            calls, inputs, outputs = calls + samples, inputs + samples * tokens, outputs + samples * out
    return Estimate(
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


def _answer_tokens(item: Prepared) -> int:
    files = item.reference.files if item.reference else {}
    size = sum(len(path) + len(text.encode()) for path, text in files.items()) or _ANSWER_CHARACTERS
    return round(size / _BYTES_PER_TOKEN)


def _about_s(settings: ModelSettings, calls: int, inputs: int, outputs: int) -> float:
    bounds = [calls * TYPICAL_LATENCY_S / settings.max_in_flight] + [
        60 * amount / limit
        for amount, limit in (
            (calls, settings.requests_per_minute),
            (inputs, settings.input_tokens_per_minute),
            (outputs, settings.output_tokens_per_minute),
        )
        if limit
    ]
    return max(bounds)


def _cells(found: Estimate) -> tuple[str, ...]:
    return (
        found.model,
        f"{found.calls:,}",
        f"{found.input_tokens:,}",
        f"{found.output_tokens:,}",
        _usd(found.cost_usd),
        _usd(found.cost_cached_usd),
        duration(found.about_s),
    )


def _usd(value: float | None) -> str:
    return "no price known" if value is None else f"${value:,.2f}"

"""`astra run --dry-run`: check a run and estimate its requests and cost; sends and builds nothing."""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from astra_async.asking.providers import PROVIDERS
from astra_async.asking.providers.models import batch_share, bytes_per_token
from astra_async.cli.console import open_console, say, tell
from astra_async.cli.display import duration
from astra_async.errors import ConfigError, EngineUnavailable
from astra_async.listing import grouped_by_text
from astra_async.running.model_pools import (
    check_agents,
    check_models,
    check_tasks,
    check_until,
    resolved_models,
)
from astra_async.running.plan import (
    ANSWER_CHARACTERS,
    TYPICAL_LATENCY_S,
    Forecast,
    estimate,
    estimate_turns,
    prompt_tokens,
)
from astra_async.running.problem_set import cache_root, chosen_problems, ready_problems, warnings_of
from astra_async.running.progress import answered_keys
from astra_async.types import is_agent
from astra_async.types.run_record import read_run
from astra_async.types.task_work import WITHOUT_MODEL

# Assumed SDs: of two models' differences between problems, and of one model within a problem.
_TYPICAL_SDS = ((0.05, 0.15), (0.15, 0.2), (0.25, 0.3))

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.prepare import Prepared


def dry_run(config: RunConfig, *, generate_only: bool = False) -> int:
    """Print the plan and return the exit code. Images are needed only for tests."""
    from rich.table import Table

    _check_as_a_run_does(config, generate_only=generate_only)
    prepared, failed = asyncio.run(_ready(config))
    for warning in warnings_of(prepared):
        tell(warning)
    config = resolved_models(config)
    console = open_console()
    table = Table("model", "calls", "input tokens", "output tokens", "cost", "cost, cached", "time, about")
    answers = tuple(fmt for fmt in config.formats if not is_agent(fmt))
    found = [estimate(settings, prepared, answers, config.samples) for settings in config.models]
    for each in found:
        table.add_row(*_cells(each))
    further = [
        estimate_turns(settings, prepared, config.formats, config.samples, config.turns)
        for settings in config.models
        if config.turns
    ]
    for each in further:
        table.add_row(f"{each.model}, turns at most", *_cells(each)[1:])
    console.print(table)
    rates = sorted(set(map(bytes_per_token, config.models)), reverse=True)
    console.print(
        f"{len(prepared)} problems x {config.samples} samples x {len(answers)} formats."
        f" Tokens are estimates: {' or '.join(map(str, rates))} bytes each; answers as long as the reference,"
        f" else {ANSWER_CHARACTERS} characters; without reasoning. The time is for requests only, at"
        f" {TYPICAL_LATENCY_S:.0f} s each, within the configured limits.",
    )
    if config.turns:
        say(
            f"Up to {config.turns} follow-up turns of each sample. The figures assume that no answer passes"
            " all tests, with the whole conversation and the longest feedback."
        )
    for sentence in (
        *_sizes(config, prepared),
        *_recorded(config, prepared),
        *_looks(config, prepared, found),
        *_batches(config),
        *_agents(config, prepared),
    ):
        say(sentence)
    _say_budget(config, [*found, *further])
    for error in failed.values():
        console.print(str(error), style="red")
    whole = generate_only or asyncio.run(_say_images(config, prepared))
    return 0 if whole and not failed else 1


async def _ready(config: RunConfig) -> tuple[dict[str, Prepared], dict[str, AstraError]]:
    problems = await chosen_problems(config, tell)
    check_tasks(config, problems)
    return await ready_problems(config, problems, tell)


async def _say_images(config: RunConfig, prepared: Mapping[str, Prepared]) -> bool:
    """Print existing and missing images; return False if an image cannot be built."""
    from astra_async.images.failed_images import FailedImages
    from astra_async.images.resolve import recipes
    from astra_async.testing.sandbox.engine import Engine

    wanted, impossible = await asyncio.to_thread(recipes, prepared, config.image)
    failures = FailedImages(cache_root(), retry=config.retry_images)
    absent = wanted
    try:
        async with await Engine.open() as engine:
            absent = [recipe for recipe in wanted if not await engine.image(recipe.name)]
        say(f"Images: {len(wanted) - len(absent)} of {len(wanted)} exist.")
    except EngineUnavailable as error:
        say(f"Images: cannot be listed: {error}")
    for recipe in absent:
        if known := recipe.recorded_failure(failures):
            tell(known)
            impossible = {**impossible, recipe.name: known}
        else:
            say(f"{recipe.name} for {recipe}: will be {'built' if recipe.tags else 'pulled'}")
    for line in grouped_by_text(
        (name, str(reason)) for name, reason in impossible.items() if name in prepared
    ):
        tell(line)
    return not impossible


def _sizes(config: RunConfig, prepared: Mapping[str, Prepared]) -> Iterator[str]:
    """Yield the sizes of prompts, and for each model the prompts that may exceed its context."""
    finest = min(map(bytes_per_token, config.models))
    tokens = {
        name: max(prompt_tokens(prompt, finest) for prompt in item.prompts.values())
        for name, item in prepared.items()
    }
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
    """Yield the number of planned answers that the run directory already has."""
    names = {model.name for model in config.models}
    held = sum(
        key.model in names
        and key.format in config.formats
        and key.problem_id in prepared
        and key.sample < config.samples
        for key in answered_keys(config.out)
    )
    if held:
        yield f"{config.out} already has {held:,} of these answers; they are not requested again."


def _looks(config: RunConfig, prepared: Mapping[str, Prepared], found: Sequence[Forecast]) -> Iterator[str]:
    """Yield the schedule of --until, and the cost if all models stop after each look."""
    if config.until is None:
        return
    from astra_async.report.deciding import too_few_problems
    from astra_async.stats.sequential import schedule_of

    schedule = schedule_of(config.samples, margin=config.margin / 100)
    whole = sum(each.cost_usd or 0.0 for each in found)
    for k, spent in zip(schedule.rounds, schedule.spent, strict=True):
        narrow = [
            f"{100 * math.sqrt((between**2 + 2 * within**2 / k) / max(1, len(prepared))):.1f}"
            for between, within in _TYPICAL_SDS
        ]
        money = f", {_usd(whole * k / config.samples)} if all stop there" if whole else ""
        yield (
            f"Look after {k} samples: {100 * spent:.2f} % of error spent, standard error of a difference"
            f" {' / '.join(narrow)} points at little, typical and large spreads{money}."
        )
    yield (
        "A look is made when all samples of its round have verdicts. For the paper's figures at"
        f" k = {config.samples} remove --until: models that stop early have another k and another"
        " median SD."
    )
    families = {name: {"family": each.problem.family} for name, each in prepared.items()}
    if warning := too_few_problems(schedule, families, math.comb(len(config.models), 2)):
        yield warning


def _agents(config: RunConfig, prepared: Mapping[str, Prepared]) -> Iterator[str]:
    """Yield the limits of agents that call models; their real requests cannot be estimated."""
    if agents := [agent.name for agent in config.agents if agent.name not in WITHOUT_MODEL]:
        limits, own = config.agent_limits, config.tasks.minutes is None
        samples = len(prepared) * config.samples * len(config.models) * len(agents)
        dollars = f" and {_usd(limits.usd)} each, {_usd(samples * limits.usd)} in all" if limits.usd else ""
        has_tasks = any(item.task for item in prepared.values())
        minutes = "the time limits of the tasks" if has_tasks and own else f"{limits.minutes:g} own minutes"
        measure = (
            "Run --samples 1 with another --out to measure one."  # the rounds of --until depend on --samples
            if config.until
            else "Run --samples 1 to measure one; a larger --samples continues that run from there."
        )
        yield (
            f"{', '.join(agents)}: {samples:,} samples, not in the table. The requests of an agent are not"
            f" known yet; at most {limits.steps} calls, {minutes}{dollars}. {measure}"
        )


def _check_as_a_run_does(config: RunConfig, *, generate_only: bool) -> None:
    """Make the checks of a run; a missing API key gives only a note."""
    check_agents(config, generate_only=generate_only)
    check_until(config, _recorded_run(config.out), generate_only=generate_only)
    try:
        check_models(config)
    except ConfigError as error:
        names = {known.key_variable for known in PROVIDERS.values() if known.key_variable}
        names |= {model.api_key_env for model in config.models if model.api_key_env}
        missing = {name: "unset" for name in names if not os.environ.get(name, "").strip()}
        check_models(config, environ={**os.environ, **missing})
        tell(f"note: {error}; a run needs it")


def _recorded_run(directory: Path) -> Mapping[str, Any]:
    """Return run.json, empty for a new run. Raises ConflictError if the file is invalid."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return read_run(directory / "run.json")
    return {}


def _say_budget(config: RunConfig, found: Sequence[Forecast]) -> None:
    if config.budget_usd is None:
        return
    total = sum(each.cost_usd or 0.0 for each in found)
    verdict = "covers it" if total <= config.budget_usd else "would stop the run early"
    say(f"{_usd(total)} in all without a cache; the budget of {_usd(config.budget_usd)} {verdict}.")


def _batches(config: RunConfig) -> Iterator[str]:
    """Yield each model that uses batches, with its prices."""
    for share, text in (
        (0.5, "half the price"),
        (1.0, "full price, because no lower price is confirmed"),
    ):
        names = [each.name for each in config.models if each.batch and batch_share(each) == share]
        if names:
            yield f"In batches, each within a day: {', '.join(names)}; {text}."


def _cells(found: Forecast) -> tuple[str, ...]:
    return (
        found.model,
        f"{found.calls:,}",
        f"{found.input_tokens:,}",
        f"{found.output_tokens:,}",
        _usd(found.cost_usd),
        *(("", "a day") if found.about_s is None else (_usd(found.cost_cached_usd), duration(found.about_s))),
    )


def _usd(value: float | None) -> str:
    return "no price known" if value is None else f"${value:,.2f}"

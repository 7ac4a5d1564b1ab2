"""Opens everything a run needs, in order: problems, engine and images, run.json, pools, runner."""

from __future__ import annotations

import math
import os
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from astra_async.answers.lenient import LenientParser
from astra_async.errors import PoolUnusable
from astra_async.integrity.docket import Docket, run_key
from astra_async.integrity.trials import Trials
from astra_async.running import wiring
from astra_async.running.reuse import EarlierVerdicts, recorded_lines
from astra_async.running.runner import Plan, Runner
from astra_async.running.sample import Asking, Workshop
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.timeouts import TIMEOUT_REPEATED, Timeouts, Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.asking.throttle import Pool, PoolEvent
    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.problems.prepare import Prepared
    from astra_async.running.directory import RunDirectory
    from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
    from astra_async.types import ModelSettings, Problem

_CACHING = ("anthropic", "azure", "bedrock", "gemini", "openai", "openai-responses")
_CACHE_LIFETIME_S = 300.0  # Anthropic's, the shortest documented
_TYPICAL_LATENCY_S = 20.0
_GRADINGS_PER_SANDBOX = 2  # one in its container, one being read and integrated


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run whose rooms are open: what the display looks at and what drives it."""

    config: RunConfig
    runner: Runner
    pools: Mapping[str, Pool]
    sandbox: DockerSandbox | None


@asynccontextmanager
async def open_run(
    config: RunConfig,
    directory: RunDirectory,
    recorded: Sequence[Mapping[str, Any]],
    *,
    problems: Sequence[Problem],
    generate_only: bool,
    say: Callable[[str], None],
) -> AsyncIterator[OpenRun]:
    """Open the rooms of a run; `recorded` are its final lines so far, `say` gets a line of progress.

    Raises EngineUnavailable, ConflictError (changed settings) or ConfigError (keys, addresses).
    """
    async with AsyncExitStack() as stack:
        prepared, unprepared = await wiring.ready_problems(config, problems)
        for item in prepared.values():
            for warning in item.warnings:
                say(f"{item.problem.id}: {warning}")
        sandbox, images = None, dict[str, str]()
        if not generate_only:
            sandbox = await _sandbox(config, directory, stack)
            images, failed = await wiring.resolve_images(sandbox.engine, prepared, config.image, say)
            unprepared |= failed
        if not config.answers_only_from_record:
            config = await stack.enter_async_context(wiring.simulated_models(config))
        config = wiring.resolved_models(config)
        ids = {image: await sandbox.image_id(image) for image in set(images.values())} if sandbox else {}
        grading = wiring.grading_parts(config, prepared, images, ids)
        directory.extend(
            wiring.run_parts(config, prepared, grading),
            wiring.run_description(config, prepared),
            config.samples,
        )
        for item in prepared.values():
            for prompt in item.prompts.values():
                directory.store_prompt(prompt)
        if sandbox:
            _say_who_has_no_twin(config, prepared, say)
        pools = {} if config.answers_only_from_record else await _pools(config, directory, stack)
        plan = _plan(config, problems, prepared, unprepared)
        lenient = await stack.enter_async_context(LenientParser())
        workshop = (
            _workshop(config, directory, Turns(sandbox), images, lenient, recorded=recorded)
            if sandbox
            else None
        )
        runner = Runner(
            plan,
            directory,
            _metrics(directory, recorded),
            asking=Asking(
                pools=pools,
                seed=config.seed,
                caching=_caching(plan),
                simulated=wiring.simulated_names(config),
            ),
            workshop=workshop,
        )
        runner.dead.update(_without_pools(config))
        yield OpenRun(config=config, runner=runner, pools=pools, sandbox=sandbox)


def _say_who_has_no_twin(
    config: RunConfig, prepared: Mapping[str, Prepared], say: Callable[[str], None]
) -> None:
    from astra_async.integrity.twin import survey

    if config.canary == "off":
        return
    without = [name for name, item in prepared.items() if not survey(item.policy).texts]
    if without:
        say(
            f"no trial by twin for {', '.join(without)}: no test file of theirs is in a language that can be"
            " rewritten; their solutions are tried without any tests"
        )


async def _sandbox(config: RunConfig, directory: RunDirectory, stack: AsyncExitStack) -> DockerSandbox:
    from astra_async.testing.sandbox.docker_sandbox import DockerSandbox

    sandbox = await DockerSandbox.open(run_id=directory.run_id, slots=config.sandboxes)
    stack.push_async_callback(sandbox.close)
    return sandbox


async def _pools(config: RunConfig, directory: RunDirectory, stack: AsyncExitStack) -> dict[str, Pool]:
    """One pool for each model; a model whose key is missing stops the program before any call."""
    from astra_async.asking.providers import open_provider
    from astra_async.asking.providers.connection import open_session
    from astra_async.asking.providers.models import cost_usd
    from astra_async.asking.throttle import Budget, Pool

    session = await stack.enter_async_context(open_session(os.environ))
    budget = None
    if config.budget_usd is not None:
        earlier_usd = sum(each.cost_usd for each in directory.earlier.values())
        budget = Budget(config.budget_usd, spent_usd=earlier_usd)
    pools = {}
    for settings in config.models:
        provider = open_provider(settings, session=session)
        stack.push_async_callback(provider.close)
        pools[settings.name] = Pool(
            settings,
            provider,
            price=partial(cost_usd, settings),
            budget=budget,
            on_event=_event_recorder(directory),
        )
        stack.push_async_callback(pools[settings.name].close)
    return pools


def _without_pools(config: RunConfig) -> dict[str, PoolUnusable]:
    if not config.answers_only_from_record:
        return {}
    return {model.name: PoolUnusable("has no answer in the parent run") for model in config.models}


def _event_recorder(directory: RunDirectory) -> Callable[[PoolEvent], None]:
    def record(event: PoolEvent) -> None:
        details = {"detail": event.detail, "seconds": event.seconds}
        directory.record_event(event.kind, event.key, pool=event.model, **details)

    return record


def _plan(
    config: RunConfig,
    problems: Sequence[Problem],
    prepared: Mapping[str, Prepared],
    unprepared: Mapping[str, AstraError],
) -> Plan:
    return Plan(
        models=tuple(model.name for model in config.models),
        formats=config.formats,
        problem_ids=tuple(problem.id for problem in problems),
        samples=config.samples,
        prepared=prepared,
        unprepared=unprepared,
        blocks={model.name: _block(model, config, len(problems)) for model in config.models},
        max_in_flight={model.name: model.max_in_flight for model in config.models},
    )


def _block(model: ModelSettings, config: RunConfig, problems: int) -> int:
    """How many consecutive samples of a problem are asked together (docs/design.md, rounds of blocks).

    One where there is no prompt cache; else as many as let a pass over all problems fit into the cache's
    lifetime at the rate we may expect, two at least: a write without a read costs more than none.
    """
    if model.provider not in _CACHING or config.samples == 1:
        return 1
    per_second = (model.requests_per_minute or math.inf) / 60
    per_second = min(per_second, model.max_in_flight / _TYPICAL_LATENCY_S)
    fits = int(_CACHE_LIFETIME_S * per_second / max(1, problems * len(config.formats)))
    return min(config.samples, max(2, fits))


def _caching(plan: Plan) -> frozenset[str]:
    return frozenset(model for model, block in plan.blocks.items() if block > 1)


def _workshop(
    config: RunConfig,
    directory: RunDirectory,
    sandbox: Turns,
    images: Mapping[str, str],
    lenient: LenientParser,
    *,
    recorded: Sequence[Mapping[str, Any]],
) -> Workshop:
    cache = wiring.cache_root() / "expected"
    installed = InstalledModules(cache, sandbox, config.limits)
    learned = Expectations(
        directory.path / "expected.json", cache, sandbox, config.limits, installed=installed
    )
    trials = None
    if config.canary != "off":
        docket = Docket(run_key(directory.path), everybody=config.canary == "all")
        docket.recall(recorded)
        trials = Trials(sandbox, learned, config.limits, docket)
    return Workshop(
        sandbox=sandbox,
        images=images,
        expectations=learned,
        lenient=lenient,
        limits=config.limits,
        at_once=_GRADINGS_PER_SANDBOX * config.sandboxes,
        trials=trials,
        timeouts=Timeouts(sandbox, samples=_samples(directory), earlier=partial(_repeated, directory)),
        earlier=EarlierVerdicts(directory) if config.reuse_identical else None,
    )


def _samples(directory: RunDirectory) -> int:
    """Samples of the whole run, whatever part of it this call is about."""
    run = directory.run
    return len(run["models"]) * len(run["formats"]) * len(run["problems"]) * int(run["samples"])


def _repeated(directory: RunDirectory) -> list[tuple[str, str]]:
    return [
        (key.problem_id, line["solution_sha256"])
        for key, line in recorded_lines(directory)
        if TIMEOUT_REPEATED in line["repairs"]
    ]


def _metrics(directory: RunDirectory, recorded: Sequence[Mapping[str, Any]]) -> Any:
    metrics = wiring.planned_metrics(directory.run)
    for line in recorded:
        metrics.add(
            line["model"],
            line["format"],
            line["problem_id"],
            line["passed"],
            line["total"],
            status=line["status"],
            failure=line["failure"],
        )
    return metrics

"""A run from its configuration to its end, without a word to anybody: open, drive, close.

    async with open_run(config) as run:
        outcome = await drive(run)

Everything that a run needs is opened in order (problems, run directory, engine and images, pools, runner) and
closed in reverse, whatever happens in between. Nothing here prints: `say` gets a line for a person to read.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from astra_async.answers.lenient import LenientParser
from astra_async.asking.batches.batch_pool import BatchPool
from astra_async.cluster import check_installed
from astra_async.errors import AstraError, BudgetExhausted, PoolUnusable, StorageError, UsageError
from astra_async.images.base_image import ensure_base
from astra_async.images.resolve import ProblemImages
from astra_async.integrity.draw import Draw, run_key
from astra_async.integrity.trials import Trials
from astra_async.running import wiring
from astra_async.running.directory import RunDirectory
from astra_async.running.live import kept_live
from astra_async.running.model_pools import close_later, open_pools, unrecorded_usd
from astra_async.running.plan import plan_of
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.running.runner import Runner
from astra_async.running.sample import Asking, Grading, Setup
from astra_async.running.trouble import described
from astra_async.running.turns import TurnPlan
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.timeouts import Exclusive, Timeouts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.asking.throttle import PoolEvent
    from astra_async.cluster.head import ClusterSandbox
    from astra_async.config import RunConfig
    from astra_async.problems.prepare import Prepared
    from astra_async.running.agent_asking import AgentAsking
    from astra_async.running.model_pools import AnyPool
    from astra_async.running.plan import Plan
    from astra_async.types import Problem, Result, RunSandbox

    Say = Callable[[str], None]

# `complete`: nothing is missing; `stopped`: `OpenRun.stop` was called before; `no_answers`: every model's
# pool has failed; `incomplete`: anything else that left samples missing, the budget too.
RunEnd = Literal["complete", "incomplete", "stopped", "no_answers"]
_GRADINGS_PER_SANDBOX = 2  # one in its container, one being packed or judged


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that is open: what a display looks at and what `drive` drives."""

    config: RunConfig
    directory: RunDirectory
    runner: Runner
    pools: Mapping[str, AnyPool]
    sandbox: RunSandbox | None

    def stop(self) -> None:
        """Begin nothing more; calls and tests under way come to their end and are recorded."""
        self.runner.stop()
        if self.sandbox:
            self.sandbox.stop_waiting()


@asynccontextmanager
async def open_run(
    config: RunConfig,
    *,
    generate_only: bool = False,
    say: Say = lambda _: None,
    on_directory: Callable[[RunDirectory], None] = lambda _: None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> AsyncIterator[OpenRun]:
    """Open the run directory `config.out` and all that its run needs; `on_directory` gets it once it is ours.

    `on_result` gets every final line as it is recorded.

    A call that is refused, or stopped, before anything was asked leaves nothing behind.

    Raises UsageError (problems, settings, keys, another process's directory), EngineUnavailable or
    StorageError, on closing too.
    """
    if config.turns and generate_only:
        raise UsageError(
            "--turns needs verdicts, which --generate-only does not make: record the answers without --turns,"
            " and give --turns to the call that tests them"
        )
    wiring.check_agents(config, generate_only=generate_only)
    if not config.answers_only_from_record:
        wiring.check_models(config)
    if config.cluster:
        check_installed()
    problems = await wiring.chosen_problems(config, say)
    recorded = Recorded(
        reuse_identical=config.reuse_identical, trials=config.trials != "off", turns=config.turns > 0
    )
    directory = await _open_directory(config, recorded)
    try:
        on_directory(directory)
        for warning in directory.warnings:
            say(f"warning: {warning}")
        async with _opened(
            config, directory, recorded, problems=problems, docker=not generate_only, say=say
        ) as run:
            run.runner.on_result = on_result
            yield run
    except (AstraError, asyncio.CancelledError):
        directory.discard_if_unused()
        raise
    finally:
        directory.close()


async def drive(run: OpenRun) -> RunEnd:
    """Bring about the plan, or as much of it as can be.

    Raises StorageError, EngineUnavailable or InvariantError: what was recorded until then is resumed.
    """
    runner = run.runner
    try:
        async with kept_live(run):
            await runner.run()
    finally:
        _record_what_else_was_spent(run)
    tally = runner.tally
    if runner.stopping.is_set():
        return "stopped"
    done = tally.final if run.sandbox else tally.answered
    if done == tally.planned and not tally.turns.missing and not runner.retrials.left:
        return "complete"
    failed = [error for error in runner.dead.values() if not isinstance(error, BudgetExhausted)]
    asks = not run.config.answers_only_from_record
    return "no_answers" if asks and len(failed) == len(runner.plan.models) else "incomplete"


async def _open_directory(config: RunConfig, recorded: Recorded) -> RunDirectory:
    """Open and index in a thread; what was opened for a call that is cancelled is closed again."""
    spare = wiring.cache_root() / "held"
    open_it = partial(RunDirectory.open, config.out, recorded.add, spare=spare)
    turns = config.turns > 0
    opening = asyncio.create_task(
        asyncio.to_thread(open_it, turns=turns, agents=bool(config.agents), on_turn=recorded.add_turn)
    )
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        directory = await opening
        directory.discard_if_unused()
        directory.close()
        raise


async def _to_its_end(work: Callable[[], None]) -> None:
    """In a thread, of which a call that is cancelled awaits the end.

    What it wrote after the directory was closed would be in another process's way.
    """
    working = asyncio.create_task(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.gather(working, return_exceptions=True)
        raise


@asynccontextmanager
async def _opened(
    config: RunConfig,
    directory: RunDirectory,
    recorded: Recorded,
    *,
    problems: Sequence[Problem],
    docker: bool,
    say: Say,
) -> AsyncIterator[OpenRun]:
    async with AsyncExitStack() as stack:
        prepared, unprepared = await wiring.ready_problems(config, problems, say)
        for item in prepared.values():
            for warning in item.warnings:
                say(f"{item.problem.id}: {warning}")
        tests = (
            await _open_tests(config, directory.run_id, prepared, stack=stack, say=say) if docker else None
        )
        sandbox, names = (tests.sandbox, tests.names) if tests else (None, {})
        unprepared |= tests.failed if tests else {}
        if not config.answers_only_from_record:
            config = await stack.enter_async_context(wiring.simulated_models(config))
        config = await _with_agents(wiring.resolved_models(config), tests)
        ids = (
            {image: await tests.sandbox.image_id(image) for image in set(tests.images.values())}
            if tests
            else {}
        )
        parts = wiring.grading_parts(config, prepared, names, ids)
        await _to_its_end(partial(_describe, config, directory, prepared, parts))
        if sandbox:
            _say_who_is_not_tried(config, prepared, say)
        pools = await _pools(config, directory, stack, say)
        agents = await _agents(config, directory, stack, say, tests=tests)
        plan = plan_of(config, problems, prepared, unprepared)
        plan = replace(plan, agents_at_once=2 * agents.runs.slots if agents else 0)
        deciding = None
        if config.until or directory.run.get("deciding"):
            from astra_async.running.until import open_deciding  # numpy, which no other run needs

            deciding = open_deciding(config, directory, plan.problem_ids, docker=docker)
            if deciding and deciding.warning:
                say(deciding.warning)
        lenient = await stack.enter_async_context(LenientParser())
        grading = None
        if tests:
            grading = _grading(config, directory, recorded, tests=tests, lenient=lenient)
        setup = Setup(
            directory=directory,
            asking=Asking(
                pools=pools,
                seed=config.seed,
                caching=plan.caching,
                simulated=wiring.simulated_names(config),
                agents=agents,
            ),
            grading=grading,
            turns=TurnPlan(
                most=config.turns,
                feedback=wiring.feedback_modes(config, prepared),
                ended=recorded.ended,
                recorded_only=config.answers_only_from_record,
            ),
        )
        runner = _runner(plan, setup, recorded, sandbox)
        runner.deciding = deciding
        for name, pool in pools.items():
            if config.turns and isinstance(pool, BatchPool):
                pool.expect(partial(runner.is_grading, name))
        yield OpenRun(config=config, directory=directory, runner=runner, pools=pools, sandbox=sandbox)


def _runner(plan: Plan, setup: Setup, recorded: Recorded, sandbox: RunSandbox | None) -> Runner:
    metrics = wiring.planned_metrics(setup.directory.run)
    recorded.count_into(metrics)
    runner = Runner(plan, setup, metrics)
    if sandbox:
        # One at least: whoever waits for a turn is told through it when no node comes back.
        sandbox.on_slots = lambda slots: runner.permits.resize(_GRADINGS_PER_SANDBOX * max(1, slots))
    runner.dead |= {
        name: PoolUnusable(f"{name}: has no answer in the parent run")
        for name in plan.models
        if name not in setup.asking.pools
    }
    return runner


def _describe(
    config: RunConfig,
    directory: RunDirectory,
    prepared: Mapping[str, Prepared],
    grading: Mapping[str, Mapping[str, object]],
) -> None:
    """Write run.json and the prompts; raises ConflictError when a part that has results differs."""
    parts = wiring.run_parts(config, prepared, grading)
    directory.extend(parts, wiring.run_description(config, prepared), config.samples, turns=config.turns)
    directory.store_prompts([prompt for item in prepared.values() for prompt in item.prompts.values()])


def _record_what_else_was_spent(run: OpenRun) -> None:
    """What pools have paid and no record holds: calls that were cancelled, or ended with a defect.

    So the budget is right after a resume, however the calls of this one ended.
    """
    agents = run.runner.setup.asking.agents
    for model, pool in run.pools.items():
        recorded_usd = run.directory.recorded_usd[model] + (agents.recorded_usd(model) if agents else 0.0)
        if more_usd := unrecorded_usd(pool, recorded_usd):
            run.runner.note(
                "spent", model=model, cost_usd=more_usd, detail="calls that ended without a record"
            )


def _say_who_is_not_tried(
    config: RunConfig, prepared: Mapping[str, Prepared], say: Callable[[str], None]
) -> None:
    from astra_async.integrity.altered import survey

    if config.trials == "off":
        return
    without = [name for name, item in prepared.items() if not survey(item.policy).alterable]
    if without:
        say(
            f"no trials for {', '.join(without)}: none of their tests can be altered, and who bends them is"
            " not found out (docs/integrity.md says which tests can)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tests:
    """Where tests run, and in which images.

    `names` are the images of all problems that may have one, `images` those that are there; it grows where
    some are still being made. `failed` are problems without one, as far as known.
    """

    sandbox: RunSandbox
    names: Mapping[str, str]
    images: Mapping[str, str]
    failed: Mapping[str, AstraError]
    making: ProblemImages | None = None
    engine: Engine | None = None  # None on a cluster
    cluster: ClusterSandbox | None = None


async def _open_tests(
    config: RunConfig, run_id: str, prepared: Mapping[str, Prepared], *, stack: AsyncExitStack, say: Say
) -> _Tests:
    """Open where tests run, and begin to bring there what they run in; a cluster's nodes have it all then."""
    cache, retry = wiring.cache_root(), config.retry_images
    if config.cluster:
        from astra_async.cluster.head import ClusterSandbox

        cluster = await ClusterSandbox.open(
            config.cluster, run_id=run_id, limits=config.limits, sandboxes=config.sandboxes, say=say
        )
        close_later(stack, say, "the cluster", cluster.close)
        also = await _images_of_agents(config)
        there, failed = await cluster.provide(prepared, config.image, cache=cache, retry=retry, also=also)
        return _Tests(sandbox=cluster, names=there, images=there, failed=failed, cluster=cluster)
    from astra_async.testing.sandbox.docker_sandbox import DockerSandbox

    sandbox = await DockerSandbox.open(run_id=run_id, slots=config.sandboxes)
    close_later(stack, say, "the sandbox", sandbox.close)
    images = await ProblemImages.open(sandbox.engine, prepared, config.image, say, cache=cache, retry=retry)
    close_later(stack, say, "the making of images", images.close)
    return _Tests(
        sandbox=sandbox,
        names={name: image for name, image in images.names.items() if name not in images.failed},
        images=images.ready,
        failed=dict(images.failed),
        making=images,
        engine=sandbox.engine,
    )


async def _pools(
    config: RunConfig, directory: RunDirectory, stack: AsyncExitStack, say: Say
) -> dict[str, AnyPool]:
    if config.answers_only_from_record:
        return {}
    spent_usd = sum(each.cost_usd for each in directory.earlier.values())
    return await open_pools(
        config, stack, say, spent_usd=spent_usd, on_event=_event_recorder(directory), directory=directory
    )


async def _with_agents(config: RunConfig, tests: _Tests | None) -> RunConfig:
    """The configuration with all that is known of its agents, as this machine's engine has them."""
    if config.answers_only_from_record or not (config.agents and tests):
        return config
    from astra_async.running.agent_asking import with_agents

    if tests.engine:
        return await with_agents(config, tests.engine)
    async with await Engine.open() as engine:
        return await with_agents(config, engine)


async def _images_of_agents(config: RunConfig) -> tuple[str, ...]:
    """What agents need on a node beside the problem's image."""
    if config.answers_only_from_record or not config.agents:
        return ()
    async with await Engine.open() as engine:
        return (await ensure_base(engine, progress=lambda _: None),)


async def _agents(
    config: RunConfig, directory: RunDirectory, stack: AsyncExitStack, say: Say, *, tests: _Tests | None
) -> AgentAsking | None:
    if not config.agents or config.answers_only_from_record:
        return None
    from astra_async.running.agent_asking import open_agents  # a server, which no other run needs

    return await open_agents(config, directory, stack, say, cluster=tests.cluster if tests else None)


def _event_recorder(directory: RunDirectory) -> Callable[[PoolEvent], None]:
    def record(event: PoolEvent) -> None:
        details = {"detail": event.detail, "seconds": event.seconds}
        try:
            directory.record_event(event.kind, event.key, pool=event.model, **details)
        except Exception as error:  # noqa: BLE001 - a pool's state must not break over a record
            directory.exhausted = directory.exhausted or StorageError(f"{directory.path}: {described(error)}")

    return record


def _grading(
    config: RunConfig,
    directory: RunDirectory,
    recorded: Recorded,
    *,
    tests: _Tests,
    lenient: LenientParser,
) -> Grading:
    sandbox = tests.sandbox
    exclusive = Exclusive(sandbox, alone=sandbox.alone)
    cache, limits = wiring.cache_root() / "expected", config.limits
    installed = InstalledModules(cache, exclusive, limits)
    learned = Expectations(directory.path / "expected.json", cache, exclusive, limits, installed=installed)
    trials = None
    if config.trials != "off":
        draw = Draw(run_key(directory.path), everybody=config.trials == "all")
        draw.recall(recorded.tried())
        trials = Trials(exclusive, learned, limits, draw)
    return Grading(
        sandbox=exclusive,
        images=tests.images,
        making=tests.making,
        expectations=learned,
        lenient=lenient,
        limits=limits,
        at_once=_GRADINGS_PER_SANDBOX * sandbox.slots,
        keep_output=config.keep_output,
        trials=trials,
        timeouts=Timeouts(exclusive, samples=_samples(directory), earlier=recorded.repeated),
        turn_timeouts=Timeouts(
            exclusive, samples=config.turns * _samples(directory), earlier=recorded.turns_repeated
        ),
        earlier=EarlierVerdicts(directory, recorded.first, trials.draw if trials else None)
        if config.reuse_identical
        else None,
    )


def _samples(directory: RunDirectory) -> int:
    """Samples of the whole run, whatever part of it this call is about."""
    run = directory.run
    return len(run["models"]) * len(run["formats"]) * len(run["problems"]) * int(run["samples"])

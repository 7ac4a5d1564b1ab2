"""Open a run from its configuration, run it, and close it.

    async with open_run(config) as run:
        outcome = await drive(run)

The parts of a run are opened in order (problems, run directory, engine and images, pools, runner) and always
closed in reverse order. This module does not print; messages for users are passed to `say`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from astra_async.answers.lenient import LenientParser
from astra_async.errors import AstraError, BudgetExhausted, PoolUnusable, StorageError, UsageError
from astra_async.listing import grouped_by_text
from astra_async.log import fields_of
from astra_async.report.answer_warnings import AnswerWarnings, answered, asked_models
from astra_async.running.description import (
    feedback_modes,
    grading_parts,
    planned_metrics,
    run_description,
    run_parts,
)
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import (
    GRADINGS_PER_PLACE,
    RunOpening,
    Tests,
    image_ids,
    open_grading,
    open_tests,
    this_engine,
)
from astra_async.running.live import kept_live
from astra_async.running.model_pools import (
    check_agents,
    check_models,
    check_tasks,
    check_until,
    open_pools,
    resolved_models,
    simulated_models,
    simulated_names,
    unrecorded_usd,
)
from astra_async.running.plan import plan_of
from astra_async.running.problem_set import cache_root, chosen_problems, ready_problems, warnings_of
from astra_async.running.progress import OpenRun
from astra_async.running.recorded import store_prompts
from astra_async.running.reuse import Recorded
from astra_async.running.runner import Runner
from astra_async.running.sample import Asking, Setup
from astra_async.running.trouble import described, reason_of
from astra_async.running.turns import TurnPlan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.asking.throttle import PoolEvent
    from astra_async.config import RunConfig
    from astra_async.prepare import Prepared
    from astra_async.running.agent_asking import AgentAsking
    from astra_async.running.model_pools import AnyPool
    from astra_async.running.plan import Plan
    from astra_async.types import AnswerKey, Completion, Problem, Result, RunSandbox

    Say = Callable[[str], None]

T = TypeVar("T")
# `complete`: no sample is missing. `stopped`: `OpenRun.stop` was called. `no_answers`: the pools of all
# models failed. `incomplete`: samples are missing for another reason, such as the budget.
RunEnd = Literal["complete", "incomplete", "stopped", "no_answers"]


@asynccontextmanager
async def open_run(
    config: RunConfig,
    *,
    generate_only: bool = False,
    say: Say = lambda _: None,
    on_directory: Callable[[RunDirectory], None] = lambda _: None,
    on_result: Callable[[Result], None] = lambda _: None,
) -> AsyncIterator[OpenRun]:
    """Open the run directory `config.out` and all parts of its run.

    `on_directory` is called with the run directory after it was locked. `on_result` is called with every
    recorded final line. If opening fails or is cancelled before any answer was recorded, all created files
    are removed.

    Raises UsageError (invalid problems or settings, missing API keys, a directory in use by another process),
    EngineUnavailable or StorageError. Closing may raise StorageError.
    """
    if config.turns and generate_only:
        raise UsageError(
            "--turns needs verdicts, which --generate-only does not produce: record the answers without"
            " --turns, then grade them with --turns and without --generate-only"
        )
    check_agents(config, generate_only=generate_only)
    if not config.answers_only_from_record:
        check_models(config)
    if config.cluster:
        from astra_async.cluster import check_installed

        check_installed()
    problems = await chosen_problems(config, say)
    check_tasks(config, problems)
    _refuse_inside_a_project(config.out, problems)
    recorded = Recorded(reuse_identical=config.reuse_identical, turns=config.turns > 0)
    on_turn = partial(recorded.add, is_turn=True)
    open_it = partial(RunDirectory.open, config.out, recorded.add, on_turn=on_turn)
    needs = {"turns": config.turns > 0, "agents": bool(config.agents)}
    directory = await _to_its_end(partial(open_it, spare=cache_root() / "held", **needs), _let_go)
    try:
        check_until(config, directory.run, generate_only=generate_only)
        on_directory(directory)
        for warning in directory.warnings:
            say(f"warning: {warning}")
        async with AsyncExitStack() as stack:
            opening = RunOpening(config=config, directory=directory, recorded=recorded, stack=stack, say=say)
            run = await _opened(opening, problems, docker=not generate_only)
            run.runner.on_result = on_result
            yield run
    except (AstraError, asyncio.CancelledError):
        directory.discard_if_unused()
        raise
    finally:
        directory.close()


def _refuse_inside_a_project(out: Path, problems: Sequence[Problem]) -> None:
    """Raise UsageError if the run directory is inside a project and would become part of that project."""
    for problem in problems:
        project = Path(problem.project)
        if project.is_dir() and out.resolve().is_relative_to(project.resolve()):
            raise UsageError(
                f"--out {out} is inside the project of {problem.id}: choose a folder outside of it, such as"
                f" --out {project.resolve().parent / out.name}"
            )


async def drive(run: OpenRun) -> RunEnd:
    """Run all samples of the plan that can be run, and return how the run ended.

    Raises StorageError, EngineUnavailable or InvariantError. The next invocation resumes from the recorded
    lines.
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
    if done == tally.planned and not tally.turns.missing:
        return "complete"
    failed = [error for error in runner.dead.values() if not isinstance(error, BudgetExhausted)]
    asks = not run.config.answers_only_from_record
    return "no_answers" if asks and len(failed) == len(runner.plan.models) else "incomplete"


async def _to_its_end(work: Callable[[], T], undo: Callable[[T], object] = lambda _: None) -> T:
    """Run `work` in a thread. If the caller is cancelled, wait for the thread and call `undo` on its result.

    Without the wait, the thread could write to the directory after its lock was released.
    """
    working = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        if not working.exception():
            undo(working.result())
        raise


def _let_go(directory: RunDirectory) -> None:
    directory.discard_if_unused()
    directory.close()


async def _opened(opening: RunOpening, problems: Sequence[Problem], *, docker: bool) -> OpenRun:
    directory, say = opening.directory, opening.say
    prepared, unprepared = await ready_problems(opening.config, problems, say)
    for warning in warnings_of(prepared):
        say(warning)
    for line in grouped_by_text((name, reason_of(error).cause) for name, error in unprepared.items()):
        say(f"warning: no samples of {line}")
    tests = await open_tests(opening, prepared) if docker else None
    opening = await _with_models(opening, tests)
    config = opening.config
    await _record_plan(opening, prepared, tests)
    plan = plan_of(config, problems, prepared, {**unprepared, **(tests.failed if tests else {})})
    pools: dict[str, AnyPool] = {}
    if not config.answers_only_from_record:
        spent_usd = sum(each.cost_usd for each in directory.earlier.values())
        hear = _event_recorder(directory)
        pools = await open_pools(
            config, opening.stack, say, spent_usd=spent_usd, on_event=hear, directory=directory
        )
    setup = await _setup(opening, plan, pools, tests)
    deciding = None
    if config.until or directory.run.get("deciding"):
        from astra_async.running.until import open_deciding  # imports numpy; not needed otherwise

        deciding = open_deciding(config, directory, plan.problem_ids, docker=docker)
        if deciding and deciding.warning:
            say(deciding.warning)
    sandbox = tests.sandbox if tests else None
    runner = _runner(plan, setup, opening.recorded, sandbox)
    if agents := setup.asking.agents:
        runner.resize_agents(agents.runs.slots)
        agents.runs.on_slots = runner.resize_agents
    runner.deciding = deciding
    if config.turns and any(model.batch for model in config.models):
        from astra_async.asking.batches.batch_pool import BatchPool

        for name, pool in pools.items():
            if isinstance(pool, BatchPool):
                pool.expect(partial(runner.is_grading, name))
    return OpenRun(config=config, runner=runner, pools=pools, sandbox=sandbox)


async def _setup(opening: RunOpening, plan: Plan, pools: Mapping[str, AnyPool], tests: Tests | None) -> Setup:
    """Open the parts that request and grade answers."""
    config = opening.config
    agents: AgentAsking | None = None
    if config.agents and not config.answers_only_from_record:
        from astra_async.running.agent_asking import open_agents  # imports a server; not needed otherwise

        cluster = tests.cluster if tests else None
        tasks = [item.task for item in plan.prepared.values() if item.task]
        agents = await open_agents(
            config, opening.directory, opening.stack, opening.say, cluster=cluster, tasks=tasks
        )
    lenient = await opening.stack.enter_async_context(LenientParser())
    return Setup(
        directory=opening.directory,
        asking=Asking(
            pools=pools,
            seed=config.seed,
            caching=plan.caching,
            simulated=simulated_names(config),
            agents=agents,
        ),
        grading=open_grading(opening, tests, lenient) if tests else None,
        turns=TurnPlan(
            most=config.turns,
            feedback=feedback_modes(config, plan.prepared),
            ended=opening.recorded.ended,
            recorded_only=config.answers_only_from_record,
        ),
        on_answer=partial(_warn, _answer_warnings(plan, config), opening.say),
    )


def _answer_warnings(plan: Plan, config: RunConfig) -> AnswerWarnings:
    prompts = [prompt for item in plan.prepared.values() for prompt in item.prompts.values()]
    sizes = {prompt.sha256: len(prompt.text.encode("utf-8", "replace")) for prompt in prompts}
    return AnswerWarnings(asked_models(map(fields_of, config.models)), sizes)


def _warn(
    found: AnswerWarnings, say: Say, key: AnswerKey, completion: Completion, prompt_sha256: str
) -> None:
    """Warn about unusual behavior of a model's server; each kind of warning is reported once."""
    found.add(answered(key.model, completion, prompt_sha256))
    for line in found.new(key.model):
        say(f"warning: {line}")


def _runner(plan: Plan, setup: Setup, recorded: Recorded, sandbox: RunSandbox | None) -> Runner:
    metrics = planned_metrics(setup.directory.run)
    recorded.count_into(metrics)
    runner = Runner(plan, setup, metrics)
    if sandbox:
        # Keep at least one slot: its test run reports the error if no node comes back.
        sandbox.on_slots = lambda slots: runner.permits.resize(GRADINGS_PER_PLACE * max(1, slots))
    runner.dead |= {
        name: PoolUnusable(f"{name}: the parent run has no answer of this model")
        for name in plan.models
        if name not in setup.asking.pools
    }
    return runner


async def _record_plan(opening: RunOpening, prepared: Mapping[str, Prepared], tests: Tests | None) -> None:
    """Write run.json and the prompts. Raises ConflictError if a setting with recorded results has changed."""
    config, directory = opening.config, opening.directory
    names, ids = (tests.names, await image_ids(tests)) if tests else ({}, {})

    def write() -> None:
        parts = run_parts(config, prepared, grading_parts(config, prepared, names, ids))
        directory.extend(parts, run_description(config, prepared), config.samples, turns=config.turns)
        prompts = (prompt for item in prepared.values() for prompt in item.prompts.values())
        store_prompts(directory.path, prompts)

    await _to_its_end(write)


def _record_what_else_was_spent(run: OpenRun) -> None:
    """Record the cost of requests without another record, such as cancelled requests.

    The budget is therefore correct after a resume.
    """
    runner, agents = run.runner, run.runner.setup.asking.agents
    for model, pool in run.pools.items():
        recorded_usd = runner.directory.recorded_usd[model] + (agents.log.paid_usd[model] if agents else 0.0)
        if cost_usd := unrecorded_usd(pool, recorded_usd):
            runner.note("spent", model=model, cost_usd=cost_usd, detail="requests without another record")


async def _with_models(opening: RunOpening, tests: Tests | None) -> RunOpening:
    """Return `opening` with the complete settings of its models and agents.

    Raises UsageError if an agent is not installed.
    """
    config = opening.config
    if config.answers_only_from_record:
        return replace(opening, config=resolved_models(config))
    config = resolved_models(await opening.stack.enter_async_context(simulated_models(config)))
    if config.agents and tests:
        from astra_async.agents.installing import settings_of

        async with this_engine(tests) as engine:
            known = await settings_of(engine, config.agents)
        config = replace(config, agents=tuple(known[agent.name] for agent in config.agents))
    return replace(opening, config=config)


def _event_recorder(directory: RunDirectory) -> Callable[[PoolEvent], None]:
    def record(event: PoolEvent) -> None:
        details = {"pool": event.model, "detail": event.detail, "seconds": event.seconds}
        try:
            directory.record_event(event.kind, event.key, **details)
        except Exception as error:  # noqa: BLE001 - must not disturb the pool that reports the event
            directory.spool.give_up(StorageError(f"{directory.path}: {described(error)}"))

    return record

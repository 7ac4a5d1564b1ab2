"""A whole run without Docker: real runner, parsers, integration, logs and metrics with a fake sandbox."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from astra_async.answers.lenient import LenientParser
from astra_async.metrics import Metrics
from astra_async.prepare import prepare_all
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import Grading
from astra_async.running.plan import Plan
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.running.runner import Runner
from astra_async.running.sample import Asking, Setup
from astra_async.running.turns import TurnPlan
from astra_async.testing.expected import Expectations
from astra_async.types import Limits
from fakes import MemorySource, a_problem, a_project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from astra_async.images.resolve import ProblemImages
    from astra_async.options import FeedbackMode, KeepOutput
    from astra_async.running.model_pools import ModelPool
    from astra_async.types import Format, Project, Sandbox


async def run_in_memory(
    path: Path,
    pools: Mapping[str, ModelPool],
    sandbox: Sandbox,
    *,
    problem_ids: Sequence[str],
    samples: int,
    formats: tuple[Format, ...] = ("xml",),
    max_in_flight: int = 256,
    at_once: int = 4,
    thorough: bool = False,
    keep_output: KeepOutput = "failed",
    retry_delays_s: tuple[float, ...] = (0.01,) * 6,
    turns: int = 0,
    feedback: FeedbackMode = "full",
    project: Project | None = None,
    around: Callable[[str, Any], Any] = lambda _, part: part,
    on_open: Callable[[Runner], None] | None = None,
    making: ProblemImages | None = None,
) -> Runner:
    """Run all samples of all models; resume a run in `path`.

    `project` is every problem's; what its `hidden` folder holds is hidden.
    `thorough` tries solutions by altered tests and grades identical ones once. `around` may put something
    around each part, by its name; `on_open` gets the runner before it begins. Images are there, or come from
    `making`.
    """
    source = MemorySource({name: project or a_project() for name in problem_ids})
    hidden = ("hidden/",) if project else ()
    problems = [a_problem(name, hidden_paths=hidden) for name in problem_ids]
    prepared, _ = await prepare_all(problems, source, formats)
    plan = Plan(
        models=tuple(pools),
        formats=formats,
        problem_ids=tuple(problem_ids),
        samples=samples,
        prepared=prepared,
        max_in_flight=dict.fromkeys(pools, max_in_flight),
    )
    planned = dict.fromkeys(problem_ids, samples)
    metrics = Metrics({(model, fmt): dict(planned) for model in pools for fmt in formats})

    recorded = Recorded(reuse_identical=False, turns=turns > 0)
    async with LenientParser() as lenient:
        opened = RunDirectory.open(
            path, recorded.add, turns=turns > 0, on_turn=partial(recorded.add, is_turn=True)
        )
        with closing(opened) as directory:
            recorded.count_into(metrics)
            kept, sandbox = around("directory", directory), around("sandbox", sandbox)
            expectations = Expectations(path / "expected.json", path / "cache", sandbox, Limits())
            grading = Grading(
                sandbox=sandbox,
                images=making.ready if making else dict.fromkeys(problem_ids, "any"),
                making=making,
                expectations=around("expectations", expectations),
                lenient=around("lenient", lenient),
                limits=Limits(),
                at_once=at_once,
                keep_output=keep_output,
                retry_delays_s=retry_delays_s,
                earlier=around("earlier", EarlierVerdicts(kept, {})) if thorough else None,
            )
            further = TurnPlan(
                most=turns, feedback=dict.fromkeys(problem_ids, feedback), ended=recorded.ended
            )
            asking = Asking(pools=pools)
            setup = Setup(directory=kept, asking=asking, grading=grading, turns=further)
            runner = Runner(plan, setup, metrics)
            if on_open:
                on_open(runner)
            await runner.run()
    return runner

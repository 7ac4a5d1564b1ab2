"""A whole run without Docker: the real runner, parsers, integration, logs and metrics over a fake sandbox."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from astra_async.answers.lenient import LenientParser
from astra_async.metrics import Metrics
from astra_async.problems.prepare import prepare_all
from astra_async.running.directory import RunDirectory
from astra_async.running.runner import Plan, Runner
from astra_async.running.sample import Asking, Workshop
from astra_async.testing.expected import Expectations
from astra_async.types import Limits
from fakes import MemorySource, a_problem, a_project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from astra_async.running.sample import ModelPool
    from astra_async.types import Format, Sandbox


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
    retry_delays_s: tuple[float, ...] = (0.01,) * 6,
    on_open: Callable[[Runner], None] | None = None,
) -> Runner:
    """Bring about all samples of all models, or what is left of them; resumes what is in `path`.

    `on_open` gets the runner before it begins.
    """
    source = MemorySource({name: a_project() for name in problem_ids})
    prepared, _ = await prepare_all([a_problem(name) for name in problem_ids], source, formats)
    plan = Plan(
        models=tuple(pools),
        formats=formats,
        problem_ids=tuple(problem_ids),
        samples=samples,
        prepared=prepared,
        max_in_flight=dict.fromkeys(pools, max_in_flight),
    )
    lenient = LenientParser()
    workshop = Workshop(
        sandbox=sandbox,
        images=dict.fromkeys(problem_ids, "any"),
        expectations=Expectations(path / "expected.json", path / "cache", sandbox, Limits()),
        lenient=lenient,
        limits=Limits(),
        at_once=at_once,
        retry_delays_s=retry_delays_s,
    )
    planned = dict.fromkeys(problem_ids, samples)
    metrics = Metrics({(model, fmt): dict(planned) for model in pools for fmt in formats})

    def count(line: Mapping[str, Any]) -> None:
        counted = (line[name] for name in ("model", "format", "problem_id", "passed", "total"))
        metrics.add(*counted, status=line["status"], failure=line["failure"])

    with closing(RunDirectory.open(path, count)) as directory:
        runner = Runner(plan, directory, metrics, asking=Asking(pools=pools), workshop=workshop)
        if on_open:
            on_open(runner)
        async with lenient:
            await runner.run()
    return runner

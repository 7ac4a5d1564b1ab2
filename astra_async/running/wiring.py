"""What a configuration means: its problems, images and models, and what run.json tells of them."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.asking.feedback import feedback_fingerprint, mode_for
from astra_async.asking.prompt import PROMPT_LEAVES_OUT, prompt_fingerprint
from astra_async.config import BUNDLED, load_config, model_part
from astra_async.errors import ConfigError, UsageError
from astra_async.images.resolve import SET_PREFIX
from astra_async.metrics import Metrics, planned_samples
from astra_async.problems import ProblemSet, load_problems, select
from astra_async.problems.prepare import prepare_all, problem_description, problem_part, reference_sha256
from astra_async.problems.sources import NAMED
from astra_async.redaction import public_settings, public_url
from astra_async.running.fingerprint import Parts
from astra_async.running.kept import hold
from astra_async.running.ownership import make_private
from astra_async.running.typed_commands import recorded_command
from astra_async.testing.verdict import limits_for
from astra_async.types import S3Settings, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from astra_async.config import FeedbackMode, RunConfig
    from astra_async.errors import AstraError
    from astra_async.problems.collect import Wanted
    from astra_async.problems.fetch import Store
    from astra_async.problems.prepare import Prepared
    from astra_async.types import AgentSettings, ModelSettings, Problem

_DEMO_SPEED = 0.02  # simulated models answer in a second or so, not in the better part of a minute
_SIMULATED_SOON = "http://127.0.0.1"  # its server is not started yet
_TELL_EVERY_S = 5.0
_NO_MODEL = "simulated/steady"  # never called
_VERSIONS = ("astra_async", "aiohttp", "aiodocker", "lxml", "json-repair")


def cache_root() -> Path:
    """Where projects and expectations are kept between runs: ASTRA_CACHE, else the user's cache folder."""
    if named := os.environ.get("ASTRA_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "astra_async"


async def load_problem_set(config: RunConfig) -> ProblemSet:
    """The problems that `--problems` names; what can only be meant for a CSV is refused without one."""
    from astra_async.problems.collect import load_set

    if config.problems == BUNDLED:
        from astra_async.bundled import bundled_problems_csv

        meant = {"--projects": config.projects, "--column": config.columns, "--skills": config.skills}
        for flag, value in meant.items():
            if value:
                raise ConfigError(
                    f"{flag} is for a CSV of your own: name it with --problems, or leave it out"
                )
        return load_problems(bundled_problems_csv())
    async with open_store(config) as store:
        return await load_set(config.problems, store, wanted(config))


def wanted(config: RunConfig) -> Wanted:
    """How the problems' CSV is read."""
    from astra_async.problems.collect import Wanted

    return Wanted(projects=config.projects, columns=config.columns, skills=config.skills)


def data_config(
    given: Mapping[str, Any], config_file: Path | None, *, recorded: Mapping[str, Any] | None = None
) -> RunConfig:
    """The configuration of a command that looks at problems and calls no model; see `load_config`."""
    fixed = {**given, "model": (_NO_MODEL,), "out": "."}
    return load_config(fixed, config_file, recorded=recorded, environ=os.environ)


async def chosen_problems(config: RunConfig, say: Callable[[str], None]) -> tuple[Problem, ...]:
    """The problems that this call runs; `say` gets what is odd about the whole set."""
    found = await load_problem_set(config)
    for warning in found.warnings:
        say(f"warning: {warning}")
    return select(found.problems, only=config.only, skill=config.skill, limit=config.limit)


@asynccontextmanager
async def open_store(config: RunConfig) -> AsyncIterator[Store]:
    """Where project files come from."""
    from astra_async.problems.fetch import Store
    from astra_async.problems.fetch.hub import hub_of

    with contextlib.suppress(OSError):  # a cache that cannot be made is told by whoever needs it
        make_private(cache_root())
    hold(cache_root())
    store = Store(cache_root() / "projects", s3=S3Settings(**config.s3), hub=hub_of(os.environ))
    try:
        yield store
    finally:
        await store.close()


async def ready_problems(
    config: RunConfig, problems: Sequence[Problem], say: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Prepared], dict[str, AstraError]]:
    """All problems made ready, and those that cannot be, with the reason; `say` hears how far it is."""
    async with open_store(config) as store:
        ready, failed = await prepare_all(
            problems,
            store,
            config.formats,
            leave_out=config.leave_out,
            agent_minutes=config.agent_limits.minutes,
            on_ready=_patience(say, len(problems)),
        )
    return ready, dict(failed)


def _patience(say: Callable[[str], None], total: int) -> Callable[[int], None]:
    """Tells every few seconds how far it is."""
    reported_at = time.monotonic()

    def tell(done: int) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= _TELL_EVERY_S and done < total:
            reported_at = time.monotonic()
            say(f"{done:,} of {total:,} problems are ready")

    return tell


def grading_parts(
    config: RunConfig, prepared: Mapping[str, Prepared], images: Mapping[str, str], ids: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """What of the grading changes verdicts, by problem: limits, the image, the reference, which decides T.

    A named image is pinned by its id; one that was built here by its name, which is a hash of what it was
    built from: a rebuild of the same inputs is the same image.
    """
    return {
        problem_id: {
            "limits": asdict(limits_for(prepared[problem_id], config.limits)),
            "image": image if _built_here(prepared[problem_id], config) else ids[image],
            "trials": config.trials,
            "reuse_identical": config.reuse_identical,
            "reference_sha256": reference_sha256(prepared[problem_id]),
        }
        for problem_id, image in images.items()
    }


def run_parts(config: RunConfig, prepared: Mapping[str, Prepared], grading: Mapping[str, Any]) -> Parts:
    """Everything of a run that changes results."""
    leave_out = PROMPT_LEAVES_OUT if config.leave_out is None else config.leave_out
    return Parts(
        models={
            model.name: model_part(_without_address(model, config), config.seed) for model in config.models
        },
        formats={fmt: {"prompt": prompt_fingerprint(fmt, leave_out)} for fmt in config.formats}
        | {agent.name: agent_part(agent, config, leave_out) for agent in config.agents},
        problems={problem_id: problem_part(item) for problem_id, item in prepared.items()},
        grading=grading,
        feedback={
            problem_id: {"mode": mode, "version": feedback_fingerprint()}
            for problem_id, mode in feedback_modes(config, prepared).items()
            if not config.answers_only_from_record
        },
    )


def agent_part(agent: AgentSettings, config: RunConfig, leave_out: Sequence[str]) -> dict[str, Any]:
    """What of an agent changes what it leaves: itself, its prompt, its limits."""
    return {
        "prompt": prompt_fingerprint(agent.name, leave_out),
        "agent": asdict(agent),
        "limits": asdict(config.agent_limits),
    }


def feedback_modes(config: RunConfig, prepared: Mapping[str, Prepared]) -> dict[str, FeedbackMode]:
    """What further turns are told of the tests, by problem; nothing where there are no turns."""
    if not config.turns:
        return {}
    return {
        problem_id: mode_for(item.problem.hidden_paths, config.feedback)
        for problem_id, item in prepared.items()
    }


def run_description(config: RunConfig, prepared: Mapping[str, Prepared]) -> dict[str, Any]:
    """What run.json tells a reader beside the fingerprints."""
    modes = feedback_modes(config, prepared)
    return {
        "models": [public_settings(asdict(_without_address(model, config))) for model in config.models],
        "problems": {problem_id: problem_description(item) for problem_id, item in prepared.items()},
        "simulated": any(_is_simulated(model, config) for model in config.models),
        "seed": config.seed,
        **({"feedback": modes} if modes else {}),
        "commands": recorded_command(config, list(prepared)),
        "call": recorded_call(config),
        "versions": {name: version(name) for name in _VERSIONS} | {"python": platform.python_version()},
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
    }


def recorded_call(config: RunConfig) -> dict[str, Any]:
    """What a regrade takes over, in the shape of a TOML file."""
    problems, projects = config.problems, config.projects
    return {
        "problems": problems if problems == BUNDLED or _is_name(problems) else _recorded_place(problems),
        "skills": str(Path(config.skills).resolve()) if config.skills else None,
        "projects": _recorded_place(projects) if projects else projects,
        "column": [f"{name}={header}" for name, header in config.columns.items()],
        "image": config.image,
        "trials": config.trials,
        "reuse_identical": config.reuse_identical,
        "keep_output": config.keep_output,
        "sandbox": asdict(config.limits),
        "s3": public_settings(config.s3),
        **({"feedback": config.feedback} if config.feedback else {}),
        "prompt": {} if config.leave_out is None else {"leave_out": list(config.leave_out)},
    }


def _is_name(problems: str) -> bool:
    """Whether `--problems` names a set on the hub."""
    return not Path(problems).exists() and (problems in NAMED or problems.startswith("hf:"))


def _recorded_place(place: str) -> str:
    """A path as it is from anywhere; a web address without what may be secret in it."""
    return public_url(place) if "://" in place else str(Path(place).resolve())


def planned_metrics(run: Mapping[str, Any]) -> Metrics:
    """Metrics for everything that run.json plans: all models, formats, problems, the largest K.

    Of a model that `--until` has stopped, or not yet let on, those that it has been asked.
    """
    deciding, most = run.get("deciding", {}), run["samples"]
    return Metrics(
        {
            (model["name"], fmt): dict.fromkeys(
                run["problems"], planned_samples(deciding, model["name"], most)
            )
            for model in run["models"]
            for fmt in run["formats"]
        }
    )


@asynccontextmanager
async def simulated_models(config: RunConfig) -> AsyncIterator[RunConfig]:
    """The configuration with the address of a simulated server that runs for as long as this is open."""
    needs = [model for model in config.models if _is_simulated(model, config) and not model.base_url]
    if not needs:
        yield config
        return
    from astra_async.simulate.server import SimulatedServer
    from astra_async.types.simulation import SimulationSettings

    settings = SimulationSettings(**{"speed": _DEMO_SPEED, **config.simulation})
    server = await SimulatedServer.start(settings=settings)
    try:
        models = tuple(
            replace(model, base_url=server.base_url) if model in needs else model for model in config.models
        )
        yield replace(config, models=models)
    finally:
        await server.stop()


def simulated_names(config: RunConfig) -> frozenset[str]:
    """The models that are played by a simulated server."""
    return frozenset(model.name for model in config.models if _is_simulated(model, config))


def check_models(config: RunConfig, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse models that cannot be called (no key, no address, a setting without meaning) before all else.

    So are models without a price, where there is a budget to keep.
    """
    from astra_async.asking.batches.interfaces import check_batch
    from astra_async.asking.providers import check_settings
    from astra_async.asking.providers.models import cost_usd

    for model in config.models:
        _refuse_unknown_simulation(model)
        will_be_simulated = _is_simulated(model, config) and not model.base_url
        check_settings(replace(model, base_url=_SIMULATED_SOON) if will_be_simulated else model, environ)
        if model.batch:
            check_batch(model)
        thousand = Usage(input_tokens=1000, output_tokens=1000)
        if config.budget_usd is not None and cost_usd(model, thousand) is None:
            raise ConfigError(
                f"--budget-usd: no price is known for {model.name};"
                " set price_input and price_output (USD per million tokens) for it under [[models]]"
            )


def check_agents(config: RunConfig, *, generate_only: bool) -> None:
    """Refuse what agents cannot be asked with, before anything is opened."""
    if not config.agents:
        return
    for flag, is_given, why in (
        ("--generate-only", generate_only, "agents work in the containers that it leaves out"),
        ("--turns", config.turns > 0, "agents run the tests by themselves"),
        ("--batch", any(model.batch for model in config.models), "an agent waits for each answer"),
    ):
        if is_given:
            raise UsageError(f"--agent and {flag}: {why}; leave one of them out")


def _refuse_unknown_simulation(model: ModelSettings) -> None:
    from astra_async.simulate.profiles import PROFILES

    if model.provider == "simulated" and not model.base_url and model.model not in PROFILES:
        raise ConfigError(f"{model.name}: no such simulated model; there are {', '.join(PROFILES)}")


def resolved_models(config: RunConfig) -> RunConfig:
    """The configuration with what the model table knows filled in (max_tokens, context length)."""
    from astra_async.asking.providers.models import resolve

    return replace(config, models=tuple(map(resolve, config.models)))


def _is_simulated(model: ModelSettings, config: RunConfig) -> bool:
    return config.simulate_all or model.provider == "simulated"


def _without_address(model: ModelSettings, config: RunConfig) -> ModelSettings:
    """A simulated server has a new port in every run: its address is no part of any record."""
    return replace(model, base_url=None) if _is_simulated(model, config) else model


def _built_here(prepared: Prepared, config: RunConfig) -> bool:
    named = prepared.problem.image or config.image
    return not named or named.startswith(SET_PREFIX)

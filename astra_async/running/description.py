"""Content of run.json: the settings that affect results, and the shell commands that were used."""

from __future__ import annotations

import operator
import os
import platform
import shlex
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.asking.feedback import feedback_fingerprint, mode_for
from astra_async.asking.prompt import PROMPT_LEAVES_OUT, prompt_fingerprint
from astra_async.config import model_part
from astra_async.fingerprint import Parts
from astra_async.images.resolve import SET_PREFIX
from astra_async.log import now_utc
from astra_async.metrics import Metrics, planned_samples
from astra_async.options import BUNDLED
from astra_async.prepare import problem_description, problem_part, reference_sha256
from astra_async.problems.sources import NAMED
from astra_async.redaction import mask, public_settings, public_url
from astra_async.running.model_pools import is_simulated, without_address
from astra_async.testing.verdict import limits_for

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.options import FeedbackMode
    from astra_async.prepare import Prepared
    from astra_async.types import AgentSettings


Cell = tuple[str, str, str]  # model, format, problem
RECORD_ONLY = "--generate-only"
BUDGET = "--budget-usd"


def recorded_command(config: RunConfig, problem_ids: Sequence[str]) -> dict[str, Any]:
    """Return `commands` of run.json for this invocation; empty if the run was started from Python."""
    if not config.command:
        return {}
    plan = {
        "at": now_utc(),
        "folder": os.getcwd(),  # noqa: PTH109 - a string, for JSON
        "models": [model.name for model in config.models],
        "formats": list(config.formats),
        "problems": list(problem_ids),
        "samples": config.samples,
    }
    return {shell_command(config.command): plan}


def shell_command(words: Sequence[str]) -> str:
    """Join the words into a shell command with quoting; secrets are masked."""
    return shlex.join(public_url(word) if "://" in word else mask(word) for word in words)


def without_flag(command: str, flag: str) -> str:
    """Remove a flag without a value from a shell command."""
    return shlex.join(word for word in shlex.split(command) if word != flag)


def with_budget(command: str, usd: float) -> str:
    """Replace the budget in a shell command, or add one."""
    words = shlex.split(command)
    kept = [
        word
        for before, word in zip(("", *words), words, strict=False)
        if BUDGET not in (before, word.partition("=")[0])
    ]
    return shlex.join([*kept, BUDGET, f"{usd:.2f}"])


def missing_cells(metrics: Metrics, run: Mapping[str, Any]) -> set[Cell]:
    """Return each (model, format, problem) with planned samples that have no verdict."""
    return {
        (row.model, row.format, row.problem_id)
        for model in run["models"]
        for fmt in run["formats"]
        for row in metrics.problem_rows(model["name"], fmt)
        if row.valid < row.planned
    }


def commands_to_finish(
    run: Mapping[str, Any], missing: Collection[Cell], *, answered: bool, budget_usd: float | None = None
) -> list[str]:
    """Return the recorded commands that together produce the missing samples, the latest first.

    If all answers are recorded (`answered`), `--generate-only` is removed from the commands. `budget_usd`
    replaces a budget that is spent.
    """
    found = []
    missing = set(missing)
    calls: Mapping[str, Mapping[str, Any]] = run.get("commands", {})
    for command, plan in sorted(calls.items(), key=lambda call: call[1]["at"], reverse=True):
        planned = (plan["models"], plan["formats"], plan["problems"])
        covered = {cell for cell in missing if all(map(operator.contains, planned, cell))}
        if covered and plan["samples"] >= run["samples"]:
            missing = missing - covered
            shown = without_flag(command, RECORD_ONLY) if answered else command
            shown = shown if budget_usd is None else with_budget(shown, budget_usd)
            here = plan["folder"] == os.getcwd()  # noqa: PTH109 - the recorded value is a string
            found.append(shown if here else f"cd {shlex.quote(plan['folder'])} && {shown}")
    return found


_VERSIONS = ("astra_async", "aiohttp", "aiodocker", "lxml", "json-repair")


def run_parts(config: RunConfig, prepared: Mapping[str, Prepared], grading: Mapping[str, Any]) -> Parts:
    """Return all settings and inputs of a run that affect its results."""
    leave_out = PROMPT_LEAVES_OUT if config.leave_out is None else config.leave_out
    return Parts(
        models={
            model.name: model_part(without_address(model, config), config.seed) for model in config.models
        },
        formats={fmt: {"prompt": prompt_fingerprint(fmt, leave_out)} for fmt in config.formats}
        | {
            agent.name: {
                "prompt": prompt_fingerprint(agent.name, leave_out),
                "agent": _agent_part(agent),
                "limits": asdict(config.agent_limits),
            }
            for agent in config.agents
        },
        problems={problem_id: problem_part(item) for problem_id, item in prepared.items()},
        grading=grading,
        feedback={
            problem_id: {"mode": mode, "version": feedback_fingerprint()}
            for problem_id, mode in feedback_modes(config, prepared).items()
            if not config.answers_only_from_record
        },
    )


def _agent_part(agent: AgentSettings) -> dict[str, Any]:
    """Return an agent's settings that affect results. Runs from before `acp` existed do not have the key."""
    left_out = {"logs"} if agent.acp else {"logs", "acp"}
    return {name: value for name, value in asdict(agent).items() if name not in left_out}


def run_description(config: RunConfig, prepared: Mapping[str, Prepared]) -> dict[str, Any]:
    """Return the descriptive fields of run.json: everything except the fingerprints."""
    modes = feedback_modes(config, prepared)
    return {
        "models": [public_settings(asdict(without_address(model, config))) for model in config.models],
        "problems": {problem_id: problem_description(item) for problem_id, item in prepared.items()},
        "simulated": any(is_simulated(model, config) for model in config.models),
        "seed": config.seed,
        **({"feedback": modes} if modes else {}),
        "commands": recorded_command(config, list(prepared)),
        "call": recorded_call(config),
        "versions": {name: version(name) for name in _VERSIONS} | {"python": platform.python_version()},
        "machine": {"cores": os.cpu_count(), "system": platform.platform()},
    }


def recorded_call(config: RunConfig) -> dict[str, Any]:
    """Return the settings that a regrade reuses, structured like the TOML configuration file."""
    problems, projects = config.problems, config.projects
    of_the_hub = not Path(problems).exists() and (problems in NAMED or problems.startswith("hf:"))
    return {
        "problems": problems if problems == BUNDLED or of_the_hub else _recorded_location(problems),
        "skills": str(Path(config.skills).resolve()) if config.skills else None,
        "projects": _recorded_location(projects) if projects else projects,
        "column": [f"{name}={header}" for name, header in config.columns.items()],
        "image": config.image,
        "reuse_identical": config.reuse_identical,
        "strict_tests": config.strict_tests,
        "keep_output": config.keep_output,
        "sandbox": asdict(config.limits),
        "s3": public_settings(config.s3),
        **({"feedback": config.feedback} if config.feedback else {}),
        "prompt": {} if config.leave_out is None else {"leave_out": list(config.leave_out)},
    }


def grading_parts(
    config: RunConfig, prepared: Mapping[str, Prepared], images: Mapping[str, str], ids: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return the grading inputs that affect verdicts, by problem.

    These are the limits, the image and the reference solution, which determines the expected tests (T).
    A named image is identified by its content ID. An image built on this machine is identified by its name,
    which contains a hash of the build inputs, so a rebuild from the same inputs counts as the same image.
    """
    named = {problem_id: prepared[problem_id].problem.image or config.image for problem_id in images}
    built_here = {problem_id for problem_id, name in named.items() if not name or name.startswith(SET_PREFIX)}
    return {
        problem_id: {
            "limits": asdict(limits_for(prepared[problem_id], config.limits)),
            "image": image if problem_id in built_here else ids[image],
            "reuse_identical": config.reuse_identical,
            "reference_sha256": reference_sha256(prepared[problem_id]),
        }
        for problem_id, image in images.items()
    }


def feedback_modes(config: RunConfig, prepared: Mapping[str, Prepared]) -> dict[str, FeedbackMode]:
    """Return the feedback mode of follow-up turns by problem; empty without `--turns`."""
    if not config.turns:
        return {}
    return {
        problem_id: mode_for(item.problem.hidden_paths, config.feedback)
        for problem_id, item in prepared.items()
    }


def planned_metrics(run: Mapping[str, Any]) -> Metrics:
    """Return empty metrics for all models, formats, problems and samples that run.json plans.

    With `--until`, a model's planned samples are those of the rounds begun so far.
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


def _recorded_location(place: str) -> str:
    """Return an absolute path, or a URL without credentials."""
    return public_url(place) if "://" in place else str(Path(place).resolve())

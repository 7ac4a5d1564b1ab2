"""A task made ready: its folder and the options of the run become what its samples need."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from astra_async.errors import ImageError, ProjectError, UsageError
from astra_async.harbor.environment import agent_image, verifier_image
from astra_async.harbor.task import TASK_FILE, read_task
from astra_async.harbor.task_files import files_of
from astra_async.overlay import path_policy
from astra_async.prepare import Prepared
from astra_async.types import Project, Prompt
from astra_async.types.task_work import (
    DISK_BYTES,
    MEMORY_BYTES,
    Artifact,
    Collecting,
    Health,
    TaskProfile,
    TaskWork,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.errors import AstraError
    from astra_async.harbor.task import EnvironmentTable, HarborTask, Healthcheck
    from astra_async.types import Format, Problem
    from astra_async.types.task_work import File, TaskSettings

_MEBIBYTE = 1024**2
_UPLOADED_BYTES = 256 * 1024**2  # maximum for tests and for a solution
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


def prepare_tasks(
    problems: Sequence[Problem], settings: TaskSettings, formats: Sequence[Format]
) -> tuple[dict[str, Prepared], dict[str, AstraError]]:
    """Prepare all tasks. Return the prepared ones, and the errors of the others."""
    ready: dict[str, Prepared] = {}
    failed: dict[str, AstraError] = {}
    for problem in problems:
        try:
            ready[problem.id] = prepare_task(problem, settings, formats)
        except ProjectError as error:
            failed[problem.id] = error
        except (UsageError, ImageError, OSError) as error:
            failed[problem.id] = ProjectError(str(error), problem_id=problem.id)
    return ready, failed


def prepare_task(problem: Problem, settings: TaskSettings, formats: Sequence[Format]) -> Prepared:
    """Make a task ready; its prompt is the instruction.

    Raises ProjectError: it asks for what is not supported, for what the options do not allow, or for a
    variable that is not set; UsageError or OSError: its folder cannot be read.
    """
    task = read_task(Path(problem.task))
    work = _work_of(task, settings)
    text = problem.statement
    prompt = Prompt(text=text, sha256=hashlib.sha256(text.encode(errors="replace")).hexdigest(), files=())
    empty = Project(files=(), sha256=work.sha256)
    return Prepared(
        problem=problem,
        project=empty,
        policy=path_policy(problem, empty),
        prompts=dict.fromkeys(formats, prompt),
        command="",
        task=work,
        warnings=task.warnings,
    )


def _work_of(task: HarborTask, settings: TaskSettings) -> TaskWork:
    config = task.config
    environment, verifier = config.environment, config.verifier
    has_network, verifier_has_network = task.agent_network == "public", task.verifier_network == "public"
    if (has_network or verifier_has_network) and not settings.allow_network:
        raise ProjectError(
            "the task asks for the network: allow that with --allow-network", problem_id=task.id
        )
    container = replace(
        _profile(environment, task.id),
        user=_user(config.agent.user),
        rights=settings.allow_root,
        network=has_network or (verifier_has_network and not task.is_separate),
        connected=has_network,
    )
    own_image = verifier_image(task)
    separate = replace(
        _profile(task.verifier_environment, task.id),
        image=own_image[0] if own_image else "",
        rights=settings.allow_root,
        network=verifier_has_network,
        connected=verifier_has_network,
    )
    agent_s = config.agent.timeout_sec and config.agent.timeout_sec * settings.times
    return TaskWork(
        sha256=task.sha256,
        agent=container,
        images=dict(filter(None, (agent_image(task), own_image))),
        verifier=separate if task.is_separate else None,
        agent_s=agent_s if settings.minutes is None else 60 * settings.minutes,
        verifier_user=_user(verifier.user),
        verifier_s=verifier.timeout_sec * settings.times,
        verifier_variables=filled(verifier.env, os.environ, task.id),
        verifier_connected=verifier_has_network,
        tests={} if own_image else files_below(task, "tests", "/tests"),
        solution=files_below(task, "solution", "/solution"),
        solution_variables=filled(config.solution.env, os.environ, task.id),
        started_with={} if task.has_dockerfile else files_below(task, "environment", ""),
        collecting=tuple(
            Collecting(command=each.command, user=_user(each.user), timeout_s=each.timeout_sec)
            for each in verifier.collect
        ),
        artifacts=(
            *(
                Artifact(
                    source=posixpath.normpath(f"/{each.source.lstrip('/')}"), exclude=tuple(each.exclude)
                )
                for each in task.artifacts
            ),
            Artifact(source="/logs/artifacts"),  # handed on by convention
        ),
        health=_health(environment.healthcheck),
        reward_range=(settings.low, settings.high),
    )


def _profile(environment: EnvironmentTable, task_id: str) -> TaskProfile:
    """Return the part of a container's profile that its table in task.toml determines."""
    return TaskProfile(
        workdir=environment.workdir or "",
        memory_bytes=(environment.memory_mb or 0) * _MEBIBYTE or MEMORY_BYTES,
        cpus=environment.cpus,
        disk_bytes=(environment.storage_mb or 0) * _MEBIBYTE or DISK_BYTES,
        environment=filled(environment.env, os.environ, task_id),
    )


def _user(given: str | int | None) -> str:
    return "" if given is None else str(given)


def _health(check: Healthcheck | None) -> Health | None:
    """Return a health check; tries within the start period do not count, as in Docker."""
    if check is None:
        return None
    first = int(check.start_period_sec // max(check.start_interval_sec, 0.1))
    return Health(
        command=check.command,
        tries=first + check.retries,
        interval_s=check.start_interval_sec if first else check.interval_sec,
        timeout_s=check.timeout_sec,
    )


def files_below(task: HarborTask, name: str, target: str) -> dict[str, File]:
    """Return the files of a task's folder by their paths below `target`; scripts get an executable bit.

    Raises ProjectError: the files are larger than 256 MiB; UsageError: a link or a device is among them.
    """
    found: dict[str, File] = {}
    folder, left = task.folder / name, _UPLOADED_BYTES
    for path in files_of(folder, within=task.folder) if folder.is_dir() else ():
        status = path.stat()
        left -= status.st_size
        if left < 0:
            raise ProjectError(f"{folder} has more than {_UPLOADED_BYTES // _MEBIBYTE} MiB")
        is_run = path.suffix == ".sh" or status.st_mode & 0o100
        below = "/".join(filter(None, (target, path.relative_to(folder).as_posix())))
        found[below] = path.read_bytes(), 0o755 if is_run else 0o644
    return found


def filled(values: Mapping[str, str], environ: Mapping[str, str], task_id: str) -> dict[str, str]:
    """Fill `${NAME}` and `${NAME:-default}` with variables of the host that the task names.

    Raises ProjectError: a variable is not set and has no default, or its name is that of a secret.
    """
    used = [found for text in values.values() for found in _VARIABLE.finditer(text)]
    names = dict.fromkeys(found["name"] for found in used)
    if secret := [name for name in names if _SECRET.search(name)]:
        raise ProjectError(
            f"`env` in {TASK_FILE} names {', '.join(secret)}, which may hold a key and is never passed on:"
            " remove it there",
            problem_id=task_id,
        )
    needed = {found["name"] for found in used if found["default"] is None}
    if unset := [name for name in names if name in needed and name not in environ]:
        raise ProjectError(
            f"`env` in {TASK_FILE} needs variables that are not set: export"
            f" {' '.join(f'{name}=...' for name in unset)}",
            problem_id=task_id,
        )

    def value_of(found: re.Match[str]) -> str:
        return environ.get(found["name"]) or found["default"] or ""

    return {name: _VARIABLE.sub(value_of, text) for name, text in values.items()}


def error_in_variables(task: HarborTask) -> str:
    """Return the reason why variables of a task cannot be filled in on this host; "" if they can."""
    config = task.config
    of_verifier = (config.verifier.env, task.verifier_environment.env)
    try:
        for values in (config.environment.env, *of_verifier, config.solution.env):
            filled(values, os.environ, task.id)
    except ProjectError as error:
        return error.cause
    return ""

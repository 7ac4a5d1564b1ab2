"""Prepare problems before their first request: fetch files, parse manifests, build prompts and rules."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from astra_async.asking.prompt import (
    PROMPT_LEAVES_OUT,
    RULE_BINARY,
    RULE_MAY_HOLD_KEYS,
    RULE_TOO_LARGE,
    build_agent_prompt,
    build_prompt,
)
from astra_async.errors import ProjectError
from astra_async.languages import LANGUAGES, lacks, language_of
from astra_async.languages.python.image import PYTHON_VERSION, unmet_version
from astra_async.languages.runners import early_stop
from astra_async.listing import some
from astra_async.overlay import PathPolicy, integrate, path_policy, replaceable_tests
from astra_async.problems import complete
from astra_async.problems.fetch.tree import without_folder
from astra_async.problems.manifest import find_manifest, read_manifest
from astra_async.problems.sources import as_utf8, source_text
from astra_async.types import AGENT_MINUTES, Integrated, is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from astra_async.types import Format, Problem, Project, Prompt, Solution
    from astra_async.types.task_work import TaskWork

_LOADS_AT_ONCE = 16
_OFFLINE = [each.offline for each in LANGUAGES if each.offline]
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NAMED = 5  # patterns or files listed in one warning


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared problem, shared by its samples. `command` is the command for bash (see `Offline`).

    With `task` the problem is a Harbor task: an agent works in the task's own container, whose verifier
    gives the score. `project` is empty then.
    """

    problem: Problem
    project: Project
    policy: PathPolicy
    prompts: Mapping[Format, Prompt]
    command: str
    reference: Solution | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)  # from the manifest, by test name
    warnings: tuple[str, ...] = ()
    task: TaskWork | None = None

    def integrated_reference(self) -> Integrated | None:
        """Return the reference's changes; None without a reference or if none of its files may be applied."""
        found = integrate(self.project, self.reference, self.policy) if self.reference else None
        return found if isinstance(found, Integrated) else None


class ProjectStore(Protocol):
    """Fetches projects and reference solutions; raises SourceError or ArchiveError."""

    async def load(self, location: str) -> Project:
        """Load the project at a folder, .zip, https or s3 location."""
        ...

    async def load_reference(self, location: str) -> Solution:
        """Load the files of a reference solution."""
        ...


async def prepare_all(
    problems: Sequence[Problem],
    source: ProjectStore,
    formats: Sequence[Format],
    *,
    leave_out: Sequence[str] | None = None,
    agent_minutes: float = AGENT_MINUTES,
    on_ready: Callable[[int], None] = lambda _: None,
) -> tuple[dict[str, Prepared], dict[str, ProjectError]]:
    """Prepare all problems; return them and the errors. `on_ready` is called with the number done."""
    ready: dict[str, Prepared] = {}
    failed: dict[str, ProjectError] = {}
    left = iter(problems)

    async def load_some() -> None:
        for problem in left:
            try:
                ready[problem.id] = await prepare(
                    problem, source, formats, leave_out=leave_out, agent_minutes=agent_minutes
                )
            except ProjectError as error:
                failed[problem.id] = error
            except Exception as error:  # noqa: BLE001 - an error of one problem must not affect others
                message = f"unexpected {type(error).__name__}: {error}; please report this"
                failed[problem.id] = ProjectError(message, problem_id=problem.id)
            on_ready(len(ready) + len(failed))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_LOADS_AT_ONCE, len(problems))):
            group.create_task(load_some())
    order = [problem.id for problem in problems]
    return (
        {name: ready[name] for name in order if name in ready},
        {name: failed[name] for name in order if name in failed},
    )


async def prepare(
    problem: Problem,
    source: ProjectStore,
    formats: Sequence[Format],
    *,
    leave_out: Sequence[str] | None = None,
    agent_minutes: float = AGENT_MINUTES,
) -> Prepared:
    """Prepare one problem. Raises ProjectError with the problem's id."""
    try:
        project = await source.load(problem.project)
        reference = await source.load_reference(problem.reference) if problem.reference else None
    except ProjectError as error:
        raise error.of_problem(problem.id) from error
    if inside := _reference_inside(problem):
        project = without_folder(project, inside)
    manifest_file = find_manifest(project)
    manifest = read_manifest(manifest_file.content if manifest_file else b"")
    whole = complete(problem, manifest)
    _refuse_unreadable(
        whole, f"{manifest_file.path}: {'; '.join(manifest.warnings)}" if manifest_file else ""
    )
    is_partial = reference is not None and "binary_left_out" in reference.repairs
    rules = PROMPT_LEAVES_OUT if leave_out is None else leave_out
    policy = path_policy(whole, project)
    prompts = {
        fmt: build_agent_prompt(whole, project, minutes=agent_minutes, leave_out=rules)
        if is_agent(fmt)
        else build_prompt(whole, project, fmt, leave_out=rules, policy=policy)
        for fmt in formats
    }
    return Prepared(
        problem=whole,
        project=project,
        policy=policy,
        prompts=prompts,
        reference=reference,
        command=reduce(lambda line, each: each.command(line, project), _OFFLINE, whole.test_command),
        environment={name: value for each in _OFFLINE for name, value in each.environment(project).items()},
        weights=manifest.weights,
        warnings=(
            *project.warnings,
            *(manifest.warnings if manifest_file else ()),
            *_ignored_patterns(policy),
            *_idle_patterns(policy),
            *_unseen_files(project, prompts.values()),
            *(["binary files of the reference were omitted"] if is_partial else []),
            *replaceable_tests(policy, whole.tests),
            *_lacking(policy),
            *filter(None, [early_stop(policy.tools.commands)]),
            *_damaged_files(project),
            *_unmet_python(whole, project),
        ),
    )


def _reference_inside(problem: Problem) -> str:
    """Return the reference's folder inside the project, which no model may see; '' if it is outside."""
    project, reference = Path(problem.project), Path(problem.reference or "")
    if not problem.reference or not (project.is_dir() and reference.exists()):
        return ""
    if not reference.resolve().is_relative_to(project.resolve()):
        return ""
    path = reference.resolve().relative_to(project.resolve()).as_posix()
    return "" if path == "." else path


def _refuse_unreadable(problem: Problem, manifest: str) -> None:
    """Raise ProjectError for a problem that is unusable, before paid requests are made for it.

    `manifest` has the manifest's warnings.
    """
    if not problem.statement.strip():
        raise ProjectError(
            "the statement is empty; fill it in, or name its column with --column problem_statement=NAME",
            problem_id=problem.id,
        )
    if not problem.test_command:
        found = manifest or "the project has no hackerrank.yml"
        raise ProjectError(
            f"no test command: {found}; correct it, or add a column test_command", problem_id=problem.id
        )


def _lacking(policy: PathPolicy) -> list[str]:
    """Return warnings about features that are not supported for the tests' languages."""
    languages = {found.name: found for path in sorted(policy.tests) if (found := language_of(path))}
    return [
        f"tests in {name}: {'; '.join(lacks(language))}"
        for name, language in languages.items()
        if lacks(language)
    ]


def _ignored_patterns(policy: PathPolicy) -> list[str]:
    named = {"read-only path": policy.read_only, "hidden path": policy.hidden, "result file": policy.reports}
    return [
        f"{what} {pattern[:200]!r} is ignored because it is invalid or matches every file"
        for what, patterns in named.items()
        for pattern in patterns.ignored
    ]


def _idle_patterns(policy: PathPolicy) -> Iterator[str]:
    """Yield warnings about patterns that match no file; later files may match."""
    for what, patterns in (("read-only", policy.read_only), ("hidden", policy.hidden)):
        if idle := patterns.without_match(policy.files):
            yield f"no project file matches the {what} pattern {_named(idle)}; wildcards are *, ** and ?"


def _unseen_files(project: Project, prompts: Iterable[Prompt]) -> Iterator[str]:
    """Yield warnings about text files that are not shown to models, or shown in another encoding."""
    prompt = next(iter(prompts), None)
    if prompt is None:
        return
    remedies = {
        RULE_BINARY: "; if these are text files, save them as UTF-8",
        RULE_TOO_LARGE: "",
        RULE_MAY_HOLD_KEYS: "",
    }
    for rule, remedy in remedies.items():
        if paths := [path for path, why in prompt.left_out if why == rule]:
            yield f"not shown to models: {_named(paths)}: {rule}{remedy}"
    shown = frozenset(prompt.files)
    saved_in: dict[str, list[str]] = {}
    for file in project.files:
        source = source_text(file.content) if file.path in shown else None
        if source and source.encoding:
            saved_in.setdefault(source.encoding, []).append(file.path)
    for encoding, paths in saved_in.items():
        yield (
            f"{_named(paths)}: not UTF-8; shown to models as {encoding} and written as UTF-8 if an answer"
            " changes the file; save as UTF-8 if another encoding was meant"
        )


def _damaged_files(project: Project) -> Iterator[str]:
    """Yield warnings about Git LFS pointers, and shell scripts that bash cannot run (CRLF line ends)."""
    contents = [(file.path, file.content) for file in project.files if file.link is None]
    if pointers := [path for path, content in contents if content.startswith(_LFS_POINTER)]:
        yield f"{_named(pointers)}: Git LFS pointers, not the files; run: git lfs pull"
    scripts = [
        path
        for path, content in contents
        if (path.endswith((".sh", ".bash")) or content.startswith(b"#!")) and b"\r\n" in content
    ]
    if scripts:
        yield f"{_named(scripts)}: CRLF line ends, which bash cannot run; run: sed -i 's/\\r$//' FILE"


def _unmet_python(problem: Problem, project: Project) -> Iterator[str]:
    """Yield a warning if an image is made for the project, but its Python is not the required one."""
    if not problem.image and (wanted := unmet_version({each.path: each.content for each in project.files})):
        yield (
            f"pyproject.toml requires Python {wanted}, but the image made for it has {PYTHON_VERSION};"
            " name another image in the CSV column `image` or with --image"
        )


def _named(names: Sequence[str]) -> str:
    return some([repr(name[:200]) for name in names], _NAMED)


def problem_part(prepared: Prepared) -> dict[str, Any]:
    """Return the settings of a problem that change its results, for the fingerprint."""
    problem, task = prepared.problem, prepared.task
    if task:
        return {
            "statement": problem.statement,
            "task_sha256": task.sha256,
            "allow_root": task.agent.rights,
            "allow_network": task.agent.network,
            "agent_s": task.agent_s,
            "verifier_s": task.verifier_s,
            "reward_range": task.reward_range,
        }
    return {
        "statement": problem.statement,
        "project_sha256": prepared.project.sha256,
        "test_command": problem.test_command,
        "result_files": problem.result_files,
        "tests": [test.name for test in problem.tests],
        "readonly_paths": problem.readonly_paths,
        "hidden_paths": problem.hidden_paths,
        "timeout_s": problem.timeout_s,
    }


def reference_sha256(prepared: Prepared) -> str | None:
    """Return the hash of the reference, whose run determines the tests that count (`testing.expected`)."""
    if prepared.reference is None:
        return None
    files = json.dumps(sorted(prepared.reference.files.items()))
    return hashlib.sha256(files.encode()).hexdigest()


def _reference_sizes(prepared: Prepared) -> dict[str, int] | None:
    """Return characters, lines and files of the reference's changes, as counted in the paper's Table 1."""
    changed = prepared.integrated_reference()
    if changed is None:
        return None
    return {
        "output_characters": sum(len(content or b"") for content in changed.files.values()),
        "lines_written": changed.lines_written,
        "files_changed": changed.files_changed,
    }


def problem_description(prepared: Prepared) -> dict[str, Any]:
    """Return a problem's description for run.json."""
    problem = prepared.problem
    shown = dict.fromkeys(path for prompt in prepared.prompts.values() for path in prompt.files)
    contents = {file.path: file.content for file in prepared.project.files}
    return {
        "name": problem.name or problem.id,
        "main_skill": problem.main_skill,
        "sub_skills": problem.sub_skills,
        "family": problem.family,
        "statement_characters": len(problem.statement),
        "input_files": len(shown),
        "input_characters": sum(len(as_utf8(contents[path]).decode()) for path in shown),
        "prompt_characters": {fmt: len(prompt.text) for fmt, prompt in prepared.prompts.items()},
        "prompt_sha256": {fmt: prompt.sha256 for fmt, prompt in prepared.prompts.items()},
        "project_sha256": prepared.project.sha256,
        "reference": _reference_sizes(prepared),
        "total": len(problem.tests) or None,
        "tests": [test.record() for test in problem.tests],
    }

"""`astra regrade`: run the tests again on recorded answers, without requests to models."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, closing
from dataclasses import fields, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from astra_async.cli.click_options import config_options
from astra_async.cli.console import say, tell
from astra_async.cli.run import start
from astra_async.errors import StorageError, UsageError
from astra_async.files import file_mode, write_atomically
from astra_async.log import AppendLog, now_utc
from astra_async.redaction.secret_patterns import MASK
from astra_async.running.description import recorded_call
from astra_async.running.directory import opened_run
from astra_async.running.problem_set import data_config
from astra_async.running.recorded import ANSWER_LOGS, CALLS_NAME, answered, valid_records
from astra_async.running.spool import (
    lock_directory,
    make_private,
    owner_of,
    refuse_foreign_problems,
)
from astra_async.types import AgentLimits, AgentSettings, AnswerKey, ModelSettings, is_agent
from astra_async.types.records import check_result

if TYPE_CHECKING:
    from astra_async.config import RunConfig

Graded = tuple[int, int, str | None]
# Files that a regrade copies from its parent run.
_PARENT_FILES = ("completions.jsonl", "turns.jsonl", "calls.jsonl", "prompts", "agent-logs", "labels.csv")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="NEW",
    help="New run directory. Default: DIRECTORY-regrade-N.",
)
@config_options(
    *("problems", "projects", "column", "skills", "only", "skill", "image", "retry_images", "sandboxes"),
    *("reuse_identical", "strict_tests", "keep_output", "cluster"),
)
@click.option("--log-json", is_flag=True, help="Print progress as JSON lines on stderr.")
def regrade(
    directory: Path, *, out: Path | None, config_file: Path | None, log_json: bool, **given: Any
) -> int:
    """Grade the recorded answers of DIRECTORY again into a new directory, and show changed verdicts.

    Other options keep the values of the run. The same command resumes.
    """
    run = opened_run(directory / "run.json")
    if "call" not in run:
        raise UsageError(f"{directory} is not a run directory: run.json is missing")
    config = _config(run, given, config_file)
    new = out or _own_name(directory, run, config)
    config = replace(config, out=new)
    if brought := _found(directory, new, run):
        tell(f"{new}: also grading {brought} answers that {directory} has received later")
    code = start(config, log_json=log_json)
    say(f"{new}: the answers of {directory} are graded again; {directory} is not changed")
    for line in _changes(_verdicts(directory), _verdicts(new)):
        say(line)
    return code


def _config(run: dict[str, Any], given: dict[str, Any], config_file: Path | None) -> RunConfig:
    recorded = {**run["call"], "only": list(run["problems"])}  # the CSV may have more problems than the run
    config = data_config(given, config_file, recorded=recorded)
    for flag, recorded_as in (("--projects", config.projects or ""), ("--problems", config.problems)):
        if MASK in recorded_as:
            raise UsageError(f"{recorded_as} was recorded without its secrets: add {flag}")
    names = {item.name for item in fields(ModelSettings)}
    models = [
        ModelSettings(**{name: value for name, value in model.items() if name in names})
        for model in run["models"]
    ]
    parts = [run["parts"]["formats"][name] for name in run["formats"] if is_agent(name)]
    return replace(
        config,
        models=tuple(models),
        formats=tuple(run["formats"]),
        agents=tuple(AgentSettings(**part["agent"]) for part in parts),
        agent_limits=AgentLimits(**parts[0]["limits"]) if parts else config.agent_limits,
        samples=run["samples"],
        turns=run.get("turns", 0),
        seed=run["seed"],
        answers_only_from_record=True,
    )


def _found(directory: Path, new: Path, run: dict[str, Any]) -> int:
    """Create the new directory with the parent's answers, or add answers that the parent received later.

    Return the number of added answers. Invariant: run.json is written last, so a directory with run.json has
    all answers that the parent had at that time.
    """
    try:
        make_private(new)
        with ExitStack() as owned:
            owned.callback(os.close, lock_directory(new))
            if (new / "run.json").exists():
                if opened_run(new / "run.json").get("parent") != _parent(directory, run):
                    raise UsageError(f"{new} belongs to another run; choose another --out")
                brought = _bring_new_answers(directory, new)
                _describe(new, _rounds(run))
                return brought
            refuse_foreign_problems(new)
            _copy_answers(directory, new)
            _describe(new, {"parent": _parent(directory, run), "created_at": now_utc(), **_rounds(run)})
            return 0
    except OSError as error:
        raise StorageError(f"{new}: {error.strerror or error}; choose another --out") from error


def _rounds(run: dict[str, Any]) -> dict[str, Any]:
    """Return the rounds of a parent with `--until`, which are also the plan of its regrade."""
    return {"deciding": {**run["deciding"], "closed": True}} if "deciding" in run else {}


def _describe(new: Path, fields: dict[str, Any]) -> None:
    """Write the fields to run.json of the new directory."""
    content = orjson.dumps(opened_run(new / "run.json") | fields)
    write_atomically(new / "run.json", content, mode=file_mode(new))


def _copy_answers(directory: Path, new: Path) -> None:
    for name in _PARENT_FILES:
        if (directory / name).is_dir():
            shutil.copytree(directory / name, new / name, dirs_exist_ok=True)
        elif (directory / name).exists():
            shutil.copyfile(directory / name, new / name)


def _bring_new_answers(directory: Path, new: Path) -> int:
    """Append the parent's new answers as complete lines; existing lines are not changed."""
    if (directory / CALLS_NAME).exists():
        shutil.copyfile(directory / CALLS_NAME, new / CALLS_NAME)  # a regrade makes no model calls
    for name in ("prompts", "agent-logs"):
        if (directory / name).is_dir():
            shutil.copytree(directory / name, new / name, dirs_exist_ok=True)
    brought = 0
    for name, check in ANSWER_LOGS.items():
        there = {key for key, _, _ in valid_records(new / name, check)}
        places = [place for key, place, _ in valid_records(directory / name, check) if key not in there]
        if places:
            with closing(AppendLog.open(new / name)) as log, (directory / name).open("rb") as parent:
                for offset, length in places:
                    parent.seek(offset)
                    log.append_line(parent.read(length))
        brought += len(places)
    return brought


def _parent(directory: Path, run: dict[str, Any]) -> dict[str, str]:
    return {"directory": str(directory.resolve()), "run_id": run["run_id"]}


def _own_name(directory: Path, run: dict[str, Any], config: RunConfig) -> Path:
    """Return the unfinished directory of an equal earlier command, else a new name."""
    plain = directory.resolve()
    names = (plain.with_name(f"{plain.name}-regrade-{number}") for number in count(1))
    return next(path for path in names if not path.exists() or _is_unfinished(path, directory, run, config))


def _is_unfinished(path: Path, directory: Path, run: dict[str, Any], config: RunConfig) -> bool:
    """Return True if some answers have no verdict yet."""
    if owner_of(path) is not None or not path.is_dir():
        return False
    if not (path / "run.json").exists():
        return {each.name for each in path.iterdir()} <= {
            ".lock",
            *_PARENT_FILES,
        }  # killed during its creation
    begun = opened_run(path / "run.json")
    if (
        begun.get("parent") != _parent(directory, run)
        or recorded_call(config) | begun.get("call", {})
        != recorded_call(config)  # older versions record fewer settings
    ):
        return False
    final = _verdicts(path).keys()
    return any(key not in final for key in answered(path) if not config.only or key.problem_id in config.only)


def _verdicts(directory: Path) -> dict[AnswerKey, Graded]:
    return {
        key: (record["passed"], record["total"], record["failure"])
        for name in ("results.jsonl", "turn_results.jsonl")
        for key, _, record in valid_records(directory / name, check_result)
    }


def _changes(old: dict[AnswerKey, Graded], new: dict[AnswerKey, Graded]) -> list[str]:
    shared = old.keys() & new.keys()
    changed = sorted((key for key in shared if old[key] != new[key]), key=tuple)
    lines = [f"{key}: {_shown(old[key])} -> {_shown(new[key])}" for key in changed]
    fresh = len(new.keys() - old.keys())
    return [
        *lines,
        f"{len(changed)} of {len(shared)} verdicts changed; {fresh} samples graded for the first time",
    ]


def _shown(verdict: Graded) -> str:
    passed, total, failure = verdict
    return f"{passed}/{total}" + (f" ({failure})" if failure else "")

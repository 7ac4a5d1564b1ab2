"""`astra batches`: list, cancel or give up the batches of a run."""

from __future__ import annotations

import asyncio
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.asking.batches.batch_log import LATE, LOG_NAME, BatchLog, age_s, read_intents
from astra_async.cli.console import open_console, say, tell
from astra_async.cli.display import duration
from astra_async.cli.env_file import env_file_option
from astra_async.errors import ConfigError, ProviderError, UsageError
from astra_async.types import ModelSettings, S3Settings
from astra_async.types.run_record import read_run, require_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.asking.batches.batch_interface import BatchInterface, BatchStatus
    from astra_async.asking.batches.batch_log import Intent

_SHARED = ("extra_headers", "extra_body")  # masked in the record


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path, dir_okay=False), help="TOML file of the run."
)
@click.option("--cancel", is_flag=True, help="Cancel open batches; finished requests are still collected.")
@click.option(
    "--forget",
    metavar="ID",
    help="Give up a batch that the provider no longer knows; its requests are sent again.",
)
@env_file_option
def batches(*, directory: Path, config_file: Path | None, cancel: bool, forget: str | None) -> int:
    """List the batches of a run: state, counts, age and cost, as the providers report them now."""
    require_run(directory)
    run = read_run(directory / "run.json")
    intents = read_intents(directory)
    if not intents:
        say(f"{directory} has no batches; `astra run --batch` sends them")
        return 0
    if forget:
        return _forget(directory, str(run["run_id"]), intents, forget, _models(run, config_file)[0])
    models, s3 = _models(run, config_file)
    trouble = asyncio.run(
        _ask(directory, models, s3, [each for each in intents.values() if each.is_open], cancel=cancel)
    )
    _print(directory, intents.values())
    for line in trouble:
        tell(line)
    if any(each.is_open for each in intents.values()):
        say("next: run the `astra run` command of this directory again to collect finished batches")
    return 1 if trouble else 0


def _models(run: Mapping[str, Any], config_file: Path | None) -> tuple[dict[str, ModelSettings], S3Settings]:
    """Return the models' settings, from the file if given, because records contain no secrets."""
    names = {item.name for item in fields(ModelSettings)} - set(_SHARED)
    recorded = {
        model["name"]: ModelSettings(
            **{name: model[name] for name in names & model.keys()} | {"stop": tuple(model.get("stop") or ())}
        )
        for model in run["models"]
    }
    if config_file is None:
        return recorded, S3Settings(**run.get("call", {}).get("s3") or {})
    from astra_async.config import load_config

    config = load_config({"out": "."}, config_file, environ=os.environ)
    return recorded | {model.name: model for model in config.models}, S3Settings(**config.s3)


async def _ask(
    directory: Path,
    models: Mapping[str, ModelSettings],
    s3: S3Settings,
    intents: Iterable[Intent],
    *,
    cancel: bool,
) -> list[str]:
    """Update each batch from its provider; return a line for each failure."""
    from astra_async.asking.batches.interfaces import open_interface
    from astra_async.asking.providers.connection import open_session

    trouble: list[str] = []
    interfaces: dict[str, BatchInterface] = {}
    async with open_session(os.environ) as session:
        for intent in intents:
            if not intent.batch_id:
                trouble.append(f"{intent.token}: id unknown; the `astra run` command searches for the batch")
                continue
            try:
                if intent.model not in interfaces:
                    interfaces[intent.model] = open_interface(models[intent.model], session, s3)
                standing = await _asked(interfaces[intent.model], intent, cancel=cancel)
                intent.state, intent.done = standing.state, standing.done
            except (ProviderError, ConfigError, KeyError) as error:
                hint = (
                    "" if isinstance(error, ProviderError) else f"; `astra batches {directory} --config FILE`"
                )
                trouble.append(f"{intent.batch_id}: recorded state, because polling failed: {error}{hint}")
    return trouble


async def _asked(interface: BatchInterface, intent: Intent, *, cancel: bool) -> BatchStatus:
    standing = await interface.status(intent.batch_id)
    if cancel and not standing.has_ended:
        await interface.cancel(intent.batch_id)
        say(f"{intent.batch_id}: cancelled; the `astra run` command collects finished requests")
        standing = await interface.status(intent.batch_id)
    return standing


def _print(directory: Path, intents: Iterable[Intent]) -> None:
    from rich.table import Table

    costs = _costs(directory)
    table = Table("model", "batch", "state", "requests", "done", "age", "cost", "at most")
    for intent in intents:
        cost_usd = sum(costs.get(key, 0.0) for key in intent.keys) if intent.is_collected else None
        state = f"{intent.state}, collected" if intent.is_collected else intent.state
        table.add_row(
            intent.model,
            intent.batch_id or intent.token,
            "nothing of it" if intent.is_closed else state,
            f"{len(intent.requests):,}",
            f"{intent.done:,}",
            duration(max(0.0, age_s(intent))),
            _usd(cost_usd),
            _usd(intent.most_usd),
        )
    open_console().print(table)


def _costs(directory: Path) -> dict[Any, float]:
    from astra_async.running.recorded import valid_records

    found: dict[Any, float] = {}
    for name in ("completions.jsonl", "turns.jsonl"):
        for key, _, record in valid_records(directory / name):
            if record.get("via") == "batch":
                found[key] = record.get("cost_usd") or 0.0
    return found


def _usd(value: float | None) -> str:
    return "" if value is None else f"${value:,.2f}"


def _forget(
    directory: Path,
    run_id: str,
    intents: Mapping[str, Intent],
    name: str,
    models: Mapping[str, ModelSettings],
) -> int:
    """Give up one batch, by the id of the batch or of its intent.

    Raises UsageError for a batch that is so young that its provider may still show it.
    """
    from astra_async.running.spool import lock_directory

    wanted = [each for each in intents.values() if name in {each.token, each.batch_id} and each.is_open]
    if not wanted:
        raise UsageError(f"{directory}/{LOG_NAME}: no open batch is called {name}")
    settings = models.get(wanted[0].model)
    wait_s = (LATE * settings.batch_settled_s if settings else 0.0) - age_s(wanted[0])
    if wait_s > 0:
        raise UsageError(
            f"{name} may still appear at its provider, and its requests would be paid twice; give it up in"
            f" {duration(wait_s)} if it is still missing"
        )
    descriptor = lock_directory(directory)
    try:
        log = BatchLog(directory, run_id)
        asyncio.run(log.record("given_up", log.intents[wanted[0].token]))
        log.close()
    finally:
        os.close(descriptor)
    say(f"{name}: given up; the `astra run` command sends its {len(wanted[0].requests)} requests again")
    return 0

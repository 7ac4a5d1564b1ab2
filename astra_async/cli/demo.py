"""`astra demo`: a small run with simulated models. `astra simulate`: the simulated server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import click

from astra_async.cli.click_options import declared_option
from astra_async.cli.console import say
from astra_async.cli.run import start
from astra_async.cli.signals import Stopper
from astra_async.config import load_config
from astra_async.errors import ConfigError
from astra_async.files import write_atomically
from astra_async.options import BUNDLED, flag_of
from astra_async.overlay import integrate
from astra_async.report.labels import COLUMNS, csv_of
from astra_async.running.recorded import valid_records
from astra_async.types import Integrated, Solution, Text, checked_value, declared
from astra_async.types.declarations import shown
from astra_async.types.records import check_result
from astra_async.types.simulation import Denial, SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from astra_async.prepare import Prepared


_FLAGS = {
    "fault_kinds": "--fault",
    "denied": "--deny",
    "batch_faults": "--batch-fault",
}  # flags that may be repeated are singular
_NO_FLAG = {"faults"}  # --fault-rate 0


def _simulation_options(command: Any) -> Any:
    """Add a flag for each setting of the server."""
    for item in reversed(declared(SimulationSettings)):
        if item.name not in _NO_FLAG:
            command = declared_option(item, _FLAGS.get(item.name, ""))(command)
    return command


@click.command()
@click.option("--port", type=int, default=8080, metavar="P", help="Port on 127.0.0.1 [default: 8080].")
@_simulation_options
def simulate(*, port: int, denied: tuple[str, ...], **given: Any) -> None:
    """Serve the simulated models over HTTP until stopped, in the wire formats of all providers.

    Answers and faults depend only on the sample, the attempt and the flags, so they are reproducible. The
    table [simulation] of a TOML file has the same settings for `astra run`.
    """
    known = {item.name: item for item in declared(SimulationSettings)}
    settings = {}
    for name, value in given.items():
        if value not in (None, ()):
            flag = _FLAGS.get(name, flag_of(name))
            typed = Text(value) if isinstance(value, str) else value
            settings[name] = checked_value(known[name], typed, f"{flag} {shown(value)}")
    asyncio.run(_serve(port, settings | {"denied": dict(map(_denial, denied))}))


def _denial(text: str) -> tuple[str, str]:
    from astra_async.simulate.profiles import PROFILES

    model, _, why = text.partition("=")
    if model not in PROFILES or why not in get_args(Denial):
        raise ConfigError(
            f"--deny {text!r}: write MODEL=key or MODEL=quota; models are {', '.join(PROFILES)}"
        )
    return model, why


async def _serve(port: int, settings: dict[str, Any]) -> None:
    from astra_async.simulate.server import SimulatedServer

    stopped = asyncio.Event()
    server = await SimulatedServer.start(port=port, settings=SimulationSettings(**settings))
    say(f"simulated models answer at {server.base_url} (Ctrl-C stops)")
    try:
        with Stopper(stopped.set).installed():
            await stopped.wait()
    finally:
        await server.stop()


MODELS = ("simulated/steady", "simulated/erratic", "simulated/weak")
FULL_MODELS = (*MODELS, "simulated/json-shy", "simulated/refuser")
PROVIDER_MODELS = (
    *("openai/steady", "openai-responses/steady", "azure/erratic", "anthropic/erratic"),
    *("gemini/weak", "bedrock/weak", "openai-compatible/json-shy"),
)
PROBLEMS = ("product-api", "company-form", "library-api")


@click.command()
@click.option("--out", default="astra-demo", metavar="DIR", help="Run directory [default: astra-demo].")
@click.option("--samples", default="4", metavar="K", help="Samples of each problem [default: 4].")
@click.option("--limit", metavar="N", help="Select the first N problems.")
@click.option("--full", is_flag=True, help="Run all bundled problems with five simulated models.")
@click.option("--providers", is_flag=True, help="Use the wire formats of all providers.")
@click.option("--agents", is_flag=True, help="Add the agent `shell` to the single answers.")
@click.option("--format", default="xml", metavar="[xml|json|both]", help="Answer format [default: xml].")
@click.option("--log-json", is_flag=True, help="Print progress as JSON lines on stderr.")
@click.option("--view", is_flag=True, help="Start `astra view` for this run and print its address.")
def demo(*, full: bool, providers: bool, agents: bool, log_json: bool, view: bool, **given: Any) -> int:
    """Run bundled problems with simulated models, over HTTP and in containers, without an API key."""
    say("The models of this demo are simulated. Their figures say nothing about real models.")
    models = PROVIDER_MODELS if providers else FULL_MODELS if full else MODELS
    given["agent"] = ("none", "shell") if agents else ()
    config = replace(
        load_config({**given, "problems": BUNDLED, "model": models, "seed": 0}), simulate_all=True
    )
    if not full:
        config = replace(config, only=PROBLEMS)
    return start(config, log_json=log_json, before_report=label_known_mistakes, view=view)


def label_known_mistakes(out: Path, prepared: Mapping[str, Prepared]) -> None:
    """Write labels.csv, if it does not exist, with the error classes of bundled faulty solutions."""
    if (out / "labels.csv").exists():
        return
    classes = {key: label for item in prepared.values() for key, label in _known_mistakes(item)}
    rows = [
        row | {"label": label}
        for key, _, row in valid_records(out / "results.jsonl", check_result)
        if (label := classes.get((key.problem_id, row.get("solution_sha256", ""))))
    ]
    write_atomically(out / "labels.csv", csv_of(COLUMNS, rows).encode())


def _known_mistakes(prepared: Prepared) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((problem, hash of the integrated solution), error class) for each bundled faulty solution."""
    from astra_async.bundled import load_answers

    answers = load_answers(prepared.problem.id)
    for faulty in answers.faulty if answers else ():
        integrated = integrate(prepared.project, Solution(files=faulty.files), prepared.policy)
        if isinstance(integrated, Integrated):
            yield (prepared.problem.id, integrated.sha256), faulty.error_class

"""`astra fetch`: a published set of problems, pinned by hashes, into a folder."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import say, tell
from astra_async.cli.options import config_options
from astra_async.cli.problems import show_problems
from astra_async.errors import UsageError
from astra_async.problems.lock import LOCK_NAME
from astra_async.problems.sources import Source, parse_source, short_name
from astra_async.running.wiring import data_config, open_store, wanted

if TYPE_CHECKING:
    from astra_async.config import RunConfig
    from astra_async.problems.fetched_folder import Collected
    from astra_async.problems.lock import Lock

_HASH_SHOWN = 12


@click.command()
@click.argument("source")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder; named as the set if not given."
)
@click.option("--update", is_flag=True, help="Take what the source holds now, in place of what is pinned.")
@config_options("projects", "column", "skills")
def fetch(source: str, *, out: Path | None, update: bool, config_file: Path | None, **given: Any) -> int:
    """Fetch a set of problems into a folder: CSV, archives, and a lock file with revision and hashes.

    SOURCE is astra-v1 (the paper's questions), hf:OWNER/NAME[@REVISION][/FILE.csv], or the address of a CSV.
    The same command again goes on where it stopped, and needs no network once all is there; then
    `--problems DIR` runs it.
    """
    from astra_async.problems.fetch.hub import hub_of

    config = data_config(given, config_file)
    found = parse_source(source, hub_of(os.environ).endpoint)
    if found is None:
        raise UsageError(
            f"{source}: neither astra-v1 nor hf:OWNER/NAME nor https://...; a CSV of this machine needs no"
            " fetching, name it with --problems"
        )
    folder = out or Path(short_name(source, found))
    try:
        collected = asyncio.run(_collect(config, found, folder, update=update))
    except KeyboardInterrupt:
        tell(f"stopped; what came is in {folder}, and the same command goes on")
        raise
    _tell(collected, folder, source)
    shown = replace(config, problems=str(folder), projects=None, columns={}, skills=None)
    code = asyncio.run(show_problems(shown))
    say(f"{folder}: --problems {folder} runs it")
    return 1 if collected.failed else code


async def _collect(config: RunConfig, source: Source, folder: Path, *, update: bool) -> Collected:
    from astra_async.problems.collect import collect

    async with open_store(config) as store:
        return await collect(source, folder, store, wanted(config), update=update, say=tell)


def _tell(collected: Collected, folder: Path, source: str) -> None:
    lock = collected.lock
    for error in collected.failed:
        tell(f"astra: {error}")
    if collected.failed:
        files = len({each.problem_id for each in collected.failed})
        tell(f"{files} problems are incomplete; `astra fetch {source} --out {folder}` tries again")
    if collected.changed:
        tell(f"changed since the last fetch: {', '.join(collected.changed)}")
    if collected.newer:
        tell(
            f"the hub holds a newer revision, {collected.newer[:_HASH_SHOWN]}; --update takes it"
            f" (pinned: {lock.revision[:_HASH_SHOWN]})"
        )
    archives = {each.path: each.size_bytes for each in lock.files}
    say(f"{lock.source}{f' at revision {lock.revision}' if lock.revision else ''}")
    say(f"{lock.csv}, {len(archives)} archives, {sum(archives.values()) / 1e6:.1f} MB; pinned in {LOCK_NAME}")
    say(f"licence: {_licence(lock)}")


def _licence(lock: Lock) -> str:
    access = "; ".join(
        told
        for holds, told in (
            (lock.gated, "gated: its terms were accepted for the account of the token"),
            (lock.private, "private: not for others"),
        )
        if holds
    )
    if lock.licence is None:
        told = "unknown (a web address states none); ask the publisher before you pass it on"
    else:
        told = lock.licence or "none stated by the publisher; ask before you pass it on"
    return f"{told}; {access}" if access else told

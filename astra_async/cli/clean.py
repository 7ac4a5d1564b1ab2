"""`astra clean`: what astra keeps on this machine, by size and age; removes what is named."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import open_console, say, tell
from astra_async.errors import EngineUnavailable, UsageError
from astra_async.running.kept import KINDS, StoredItem, cached, in_engine, nobody_else, remove
from astra_async.running.problem_set import cache_root

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from astra_async.testing.sandbox.engine import Engine

_UNITS_S = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


@click.command()
@click.option("--images", is_flag=True, help="Remove images; the next run makes or pulls what it needs.")
@click.option("--agents", is_flag=True, help="Remove installed agents.")
@click.option("--caches", is_flag=True, help="Remove fetched projects, learned tests, kept outputs.")
@click.option("--containers", is_flag=True, help="Remove containers that dead processes left.")
@click.option("--older-than", metavar="AGE", help="Only what is older, such as 12h, 30d or 8w.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean(*, older_than: str | None, yes: bool, **named: bool) -> int:
    """Show what astra keeps on this machine, and remove what is named.

    Only what astra has made itself, and nothing that a run under way uses. Run directories are yours.
    """
    least_s = _age_s(older_than)
    return asyncio.run(_clean({kind for kind in KINDS if named[kind]}, least_s, yes=yes))


async def _clean(kinds: set[str], least_s: float, *, yes: bool) -> int:
    folder = cache_root()
    async with AsyncExitStack() as stack:
        engine = await _engine(stack)
        found = [*cached(folder), *([each async for each in in_engine(engine)] if engine else [])]
        _show(found, folder)
        if not kinds:
            named = " ".join(f"--{kind}" for kind in KINDS)
            say(f"next: astra clean {named} [--older-than 30d] removes what is named")
            return 0
        chosen = [each for each in found if each.kind in kinds and time.time() - each.at >= least_s]
        removable = [each for each in chosen if not each.used_by]
        for each in chosen:
            if each.used_by:
                say(f"stays: {each.name} is used by {each.used_by}")
        if not removable:
            say("nothing to remove")
            return 0
        asked = f"remove {_counted(removable)}, {_size(removable)}?"
        if not yes and not click.confirm(asked, err=True):
            return 1
        with nobody_else(folder):
            stayed = await remove(engine, folder, removable)
    for name, why in stayed.items():
        tell(f"stays: {name}: {why}")
    gone = [each for each in removable if each.name not in stayed]
    say(f"removed {_counted(gone)}")
    return 1 if stayed else 0


async def _engine(stack: AsyncExitStack) -> Engine | None:
    from astra_async.testing.sandbox.engine import Engine

    try:
        return await stack.enter_async_context(await Engine.open())
    except EngineUnavailable as error:
        tell(f"images, agents and containers are not shown: {error}")
        return None


def _show(found: Sequence[StoredItem], folder: Path) -> None:
    from rich.table import Table

    table = Table("what", "name", "size", "age", "")
    for each in sorted(found, key=lambda thing: (thing.kind, -thing.size_bytes)):
        if each.kind != "caches":
            size = f"{each.size_bytes / 1e6:,.0f} MB"
            table.add_row(each.kind.removesuffix("s"), each.name, size, _age(each), each.used_by and "in use")
    files = [each for each in found if each.kind == "caches"]
    for name in sorted({each.name.partition("/")[0] for each in files}):
        mine = [each for each in files if each.name.startswith(f"{name}/")]
        newest = max(mine, key=lambda each: each.at)
        table.add_row("cache", f"{folder}/{name} ({len(mine)} files)", _size(mine), _age(newest), "")
    open_console().print(table)
    say("The size of an image counts layers that it shares with others.")


def _counted(things: Sequence[StoredItem]) -> str:
    counts = {kind: sum(each.kind == kind for each in things) for kind in KINDS}
    words = {"caches": "files of the cache"}
    return (
        ", ".join(f"{count} {words.get(kind, kind)}" for kind, count in counts.items() if count) or "nothing"
    )


def _size(things: Sequence[StoredItem]) -> str:
    return f"{sum(each.size_bytes for each in things) / 1e6:,.1f} MB"


def _age(thing: StoredItem) -> str:
    hours = max(0.0, time.time() - thing.at) / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} h"  # noqa: PLR2004 - two days


def _age_s(text: str | None) -> float:
    if text is None:
        return 0.0
    found = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if found is None:
        raise UsageError(f"--older-than {text}: write a number and h, d or w, such as 30d")
    return int(found[1]) * _UNITS_S[found[2]]

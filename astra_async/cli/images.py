"""`astra images`, `astra agents` and `astra clean`: images, agents and caches on this machine."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from astra_async.agents.installing import KNOWN, SHELL, install, installed, known_agent, newest_version
from astra_async.cli.click_options import config_options
from astra_async.cli.console import open_console, say, tell
from astra_async.errors import EngineUnavailable, SandboxError, UsageError
from astra_async.images.failed_images import FailedImages
from astra_async.images.resolve import ProblemImages
from astra_async.running.problem_set import (
    KINDS,
    StoredItem,
    cache_root,
    cached,
    chosen_problems,
    data_config,
    lock_cache,
    ready_problems,
    remove_stored,
    stored_in_engine,
)
from astra_async.types.declarations import is_agent_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from astra_async.agents.installing import Installed, KnownAgent
    from astra_async.config import RunConfig
    from astra_async.testing.sandbox.engine import Engine


@click.group()
def agents() -> None:
    """List, install and remove agents."""


@agents.command("list")
@click.option("--newest", is_flag=True, help="Also ask npm and PyPI for the newest versions.")
def list_(*, newest: bool) -> int:
    """List all known agents: tested version, interface, installed versions."""
    here = asyncio.run(_installed())
    _show_installed(here or (), newest=newest)
    if here is not None:
        say(f"next: astra agents install NAME..., or astra run --agent {SHELL.name}, which is built in")
    return 0


@agents.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def install_(names: tuple[str, ...]) -> int:
    """Install agents (or `all`) into volumes of the Docker Engine; each takes minutes.

    NAME is the tested version, NAME@VERSION another one, NAME@latest the newest one.
    """
    return asyncio.run(_install(list(KNOWN) if names == ("all",) else list(dict.fromkeys(names))))


@agents.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> int:
    """Remove all installed versions of agents."""
    return asyncio.run(_remove(set(names)))


async def _installed() -> list[Installed] | None:
    from astra_async.testing.sandbox.engine import Engine

    try:
        async with await Engine.open() as engine:
            return await installed(engine)
    except EngineUnavailable as error:
        tell(f"installed agents cannot be listed: {error}")
        return None


def _show_installed(here: Sequence[Installed], *, newest: bool) -> None:
    from rich.table import Table

    table = Table("agent", "tested", "speaks", "installed", *(["newest"] if newest else []))
    table.add_row(SHELL.name, SHELL.version, "its model's own interface", "part of astra")
    for name, known in KNOWN.items():
        states = [f"{each.version}, sha256 {each.sha256[:12]}" for each in here if each.name == name]
        row = [name, known.settings.version, known.settings.speaks, "\n".join(states) or "-"]
        table.add_row(*row, *([_newest(known)] if newest else []))
    open_console().print(table)


def _newest(known: KnownAgent) -> str:
    try:
        return newest_version(known)
    except SandboxError as error:
        tell(f"{known.settings.name}: {error}")
        return "-"


def _chosen(name: str) -> KnownAgent:
    """Return the agent for NAME, NAME@VERSION or NAME@latest."""
    base, _, version = name.partition("@")
    known = known_agent(base)
    if known is None:
        raise UsageError(f"{name}: unknown agent; known agents: {', '.join(KNOWN)}")
    wanted = f"{base}@{newest_version(known)}" if version == "latest" else name
    if not is_agent_name(wanted):
        raise UsageError(f"{name}: {version!r} is not a version")
    return known_agent(wanted) or known


async def _install(names: Sequence[str]) -> int:
    from astra_async.testing.sandbox.engine import Engine

    chosen = {name: _chosen(name) for name in names}
    is_failed = False
    async with await Engine.open() as engine:
        for name in names:
            try:
                each = await install(engine, chosen[name], progress=tell)
                say(f"{name} {each.version}: sha256 {each.sha256[:12]}")
            except EngineUnavailable:
                raise
            except SandboxError as error:
                tell(str(error))
                is_failed = True
    if is_failed:
        return 1
    first = chosen[names[0]].settings
    tested = KNOWN[first.name].settings.version
    say(f"next: astra run --agent {first.name}{'' if first.version == tested else f'@{first.version}'} ...")
    return 0


async def _remove(names: set[str]) -> int:
    from astra_async.testing.sandbox.engine import Engine

    async with await Engine.open() as engine:
        found = [each for each in await installed(engine) if each.name in names]
        for name in sorted(names - {each.name for each in found}):
            tell(f"{name}: not installed")
        stayed = [each for each in found if not await engine.remove_volume(each.volume)]
    for each in stayed:
        tell(f"{each.name} {each.version} is kept: a container uses it")
    for each in found:
        if each not in stayed:
            say(f"removed {each.name} {each.version}")
    say("next: astra agents list")
    return 1 if stayed or not found else 0


_UNITS_S = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


@click.command()
@click.option("--images", is_flag=True, help="Remove images; the next run builds or pulls them again.")
@click.option("--agents", is_flag=True, help="Remove installed agents.")
@click.option("--caches", is_flag=True, help="Remove fetched projects, learned tests and stored outputs.")
@click.option("--containers", is_flag=True, help="Remove containers of dead processes.")
@click.option(
    "--older-than",
    metavar="AGE",
    help="Select only older items: hours, days or weeks, such as 12h, 30d or 8w.",
)
@click.option("--yes", is_flag=True, help="Skip the question.")
def clean(*, older_than: str | None, yes: bool, **named: bool) -> int:
    """List images, caches and containers of astra on this machine, and remove the named kinds.

    Only items made by astra are removed, and never items of a running command or run directories.
    """
    least_s = _age_s(older_than)
    return asyncio.run(_clean({kind for kind in KINDS if named[kind]}, least_s, yes=yes))


async def _clean(kinds: set[str], least_s: float, *, yes: bool) -> int:
    folder = cache_root()
    async with AsyncExitStack() as stack:
        engine = await _engine(stack)
        found = [*cached(folder), *([each async for each in stored_in_engine(engine)] if engine else [])]
        _show(found, folder)
        if not kinds:
            named = " ".join(f"--{kind}" for kind in KINDS)
            say(f"next: astra clean {named} [--older-than 30d] removes these kinds")
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
        with lock_cache(folder):
            stayed = await remove_stored(engine, folder, removable)
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
        tell(f"images, agents and containers cannot be listed: {error}")
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
    say("The size of an image includes layers shared with other images.")


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


@click.group()
def images() -> None:
    """Build the images that tests run in."""


@images.command()
@config_options("problems", "projects", "column", "skills", "only", "skill", "limit", "image", "retry_images")
def build(*, config_file: Path | None, **given: Any) -> int:
    """Build all missing images of the problems; exit with 1 if a build fails."""
    return 0 if asyncio.run(_build(data_config(given, config_file))) else 1


async def _build(config: RunConfig) -> bool:
    """Build the images, print failures at once, and return True if every problem has its image."""
    from astra_async.testing.sandbox.engine import Engine

    prepared, unready = await ready_problems(config, await chosen_problems(config, tell), tell)
    async with await Engine.open() as engine:
        failures = FailedImages(cache_root(), retry=config.retry_images)
        images = await ProblemImages.open(engine, prepared, config.image, tell, failures=failures)
        try:
            await images.all_decided()
        finally:
            await images.close()
        for line in await _lines(engine, images.ready):
            say(line)
    for problem_id, error in unready.items():
        tell(f"{problem_id}: {error}")
    return not (unready or images.failed)


async def _lines(engine: Engine, found: Mapping[str, str]) -> list[str]:
    lines = []
    for image in dict.fromkeys(found.values()):
        problems = ", ".join(problem_id for problem_id, name in found.items() if name == image)
        size_bytes = int((await engine.image(image) or {}).get("Size", 0))
        lines.append(f"{image} ({size_bytes / 1e6:.0f} MB): {problems}")
    return lines

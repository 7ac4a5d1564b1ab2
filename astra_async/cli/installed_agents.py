"""`astra agents`: which agents can be run, and installing them ahead."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from astra_async.agents.catalog import KNOWN, SHELL
from astra_async.agents.installing import install, installed
from astra_async.cli.console import open_console, say, tell
from astra_async.errors import EngineUnavailable, SandboxError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.agents.installing import Installed


@click.group()
def agents() -> None:
    """The agents that can be run, and what is installed of them."""


@agents.command("list")
def list_() -> int:
    """Every agent that is known by name: its version, what it speaks, and whether it is installed."""
    here = asyncio.run(_installed())
    _show(here or ())
    if here is not None:
        say(f"next: astra agents install NAME..., or astra run --agent {SHELL.name}, which is always there")
    return 0


@agents.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def install_(names: tuple[str, ...]) -> int:
    """Install agents, or `all`, from their registries into volumes of the Docker Engine; minutes each."""
    return asyncio.run(_install(list(KNOWN) if names == ("all",) else list(dict.fromkeys(names))))


@agents.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> int:
    """Remove agents that are installed, whatever their version."""
    return asyncio.run(_remove(set(names)))


async def _installed() -> list[Installed] | None:
    from astra_async.testing.sandbox.engine import Engine

    try:
        async with await Engine.open() as engine:
            return await installed(engine)
    except EngineUnavailable as error:
        tell(f"what is installed is not shown: {error}")
        return None


def _show(here: Sequence[Installed]) -> None:
    from rich.table import Table

    table = Table("agent", "version", "speaks", "installed")
    table.add_row(SHELL.name, SHELL.version, "its model's own interface", "part of astra")
    for name, known in KNOWN.items():
        states = [_state(each, known.settings.version) for each in here if each.name == name]
        table.add_row(name, known.settings.version, known.settings.speaks, "\n".join(states) or "-")
    open_console().print(table)


def _state(each: Installed, wanted: str) -> str:
    older = "" if each.version == wanted else f"{each.version}, "
    return f"{older}sha256 {each.sha256[:12]}"


async def _install(names: Sequence[str]) -> int:
    from astra_async.testing.sandbox.engine import Engine

    for name in names:
        if name not in KNOWN:
            raise UsageError(f"{name}: no agent that can be installed; there are {', '.join(KNOWN)}")
    failed = []
    async with await Engine.open() as engine:
        for name in names:
            try:
                each = await install(engine, KNOWN[name], progress=tell)
                say(f"{name} {each.version}: sha256 {each.sha256[:12]}")
            except EngineUnavailable:
                raise
            except SandboxError as error:
                tell(f"{name}: {error}")
                failed.append(name)
    if failed:
        tell(f"next: correct what is said above, then astra agents install {' '.join(failed)}")
        return 1
    say(f"next: astra run --agent {names[0]} ...")
    return 0


async def _remove(names: set[str]) -> int:
    from astra_async.testing.sandbox.engine import Engine

    async with await Engine.open() as engine:
        found = [each for each in await installed(engine) if each.name in names]
        for name in sorted(names - {each.name for each in found}):
            tell(f"{name}: not installed")
        stayed = [each for each in found if not await engine.remove_volume(each.volume)]
    for each in stayed:
        tell(f"{each.name} {each.version} stays: a container uses it")
    for each in found:
        if each not in stayed:
            say(f"removed {each.name} {each.version}")
    say("next: astra agents list")
    return 1 if stayed or not found else 0

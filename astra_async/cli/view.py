"""`astra view`: run directories in a browser, while they grow or afterwards."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from astra_async.cli.console import say
from astra_async.cli.signals import Stopper
from astra_async.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command()
@click.argument("directories", type=click.Path(path_type=Path, file_okay=False), nargs=-1, required=True)
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="[default: free, from 7575]")
@click.option("--host", default="127.0.0.1", metavar="H", show_default=True, help="Others need a token.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
def view(directories: tuple[Path, ...], *, port: int | None, host: str, opens: bool) -> None:
    """Look into runs: how they stand, every sample, what happens just now; reads only, until Ctrl-C."""
    for directory in directories:
        if not (directory / "run.json").exists():
            raise UsageError(
                f"{directory}: no run.json there; give the directory that `astra run --out` wrote"
            )
    asyncio.run(_serve(directories, host, port, opens=opens))


async def _serve(directories: Sequence[Path], host: str, port: int | None, *, opens: bool) -> None:
    from astra_async.view.access import Access, is_loopback
    from astra_async.view.serving import Viewer, served

    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    stopped = asyncio.Event()
    async with served(Viewer(directories, Access(token)), host, port) as bound:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound}/"
        if token:
            address = f"{address}?{urlencode({'token': token})}"
        say(f"{address} (Ctrl-C stops)")
        if opens:
            click.launch(address)
        with Stopper(stopped.set).installed():
            await stopped.wait()

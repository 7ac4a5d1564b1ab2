"""`astra view`: show run directories in a browser. Also the viewer of `run --view`."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import say
from astra_async.cli.signals import Stopper
from astra_async.types.run_record import require_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from astra_async.view.serving import Server, Viewer

_GRACE_S = 5.0  # seconds that a run's viewer stays after the run and its last page
_LONGEST_S = 1800.0  # maximum seconds that open pages keep the viewer after the run
_START_S = 20.0  # seconds that a finished run waits for its viewer's address
_NICENESS = 5  # the run has priority


@click.command()
@click.argument("directories", type=click.Path(path_type=Path, file_okay=False), nargs=-1, required=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="Port [default: first free port from 7575]."
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="H",
    show_default=True,
    help="Address to listen on; an address other than loopback needs a token.",
)
@click.option("--token", "asks", is_flag=True, help="Require a token also on this machine.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--with-run", is_flag=True, hidden=True, help="End after the run that owns standard input.")
def view(directories: tuple[Path, ...], *, host: str, port: int | None, asks: bool, **flags: bool) -> None:
    """Show runs in a browser: progress, all samples, current state. Only reads; Ctrl-C stops the viewer.

    For a folder that contains run directories, the page lists the runs.
    """
    from astra_async.view.access import Access, is_loopback
    from astra_async.view.folder import Folder, runs_in
    from astra_async.view.serving import Viewer

    access = Access(secrets.token_urlsafe(24) if asks or not is_loopback(host) else None)
    first, *others = directories
    if not others and not (first / "run.json").exists() and runs_in(first):
        asyncio.run(_serve(Folder(first, access), host, port, **flags))
        return
    for directory in directories:
        if not flags["with_run"]:
            require_run(directory)
    asyncio.run(_serve(Viewer(directories, access), host, port, **flags))


async def _serve(viewer: Server, host: str, port: int | None, *, opens: bool, with_run: bool) -> None:
    from astra_async.view.serving import Viewer, served

    stopped = asyncio.Event()
    async with served(viewer, host, port) as bound:
        token = viewer.access.token
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound}/" + ("?token=" + token if token else "")
        say(address if with_run else f"{address} (Ctrl-C stops)")
        if opens:
            click.launch(address)
        with Stopper(stopped.set).installed():
            if with_run and isinstance(viewer, Viewer):
                os.nice(_NICENESS)
                await _run_is_over(viewer, stopped)
            else:
                await stopped.wait()


async def _run_is_over(viewer: Viewer, stopped: asyncio.Event) -> None:
    """Wait for the end of standard input, which the run owns, then for the last page to close."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, 64) else ended.set())
    waiting = [asyncio.create_task(event.wait()) for event in (ended, stopped)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    asyncio.get_running_loop().remove_reader(0)
    since, until = time.monotonic(), time.monotonic() + _LONGEST_S
    while not stopped.is_set() and time.monotonic() < min(until, since + _GRACE_S):
        since = time.monotonic() if viewer.watch.is_watched else since
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await stopped.wait()
    for task in waiting:
        task.cancel()


@contextmanager
def viewer_beside(
    directory: Path, tell_address: Callable[[str], None], port: int | None = None
) -> Iterator[None]:
    """Start a viewer of the directory as a separate process, which ends some time after this process.

    A failure of the viewer does not affect the run: they share only a pipe without a reader.
    """
    loop = asyncio.get_running_loop()
    at_port = () if port is None else ("--port", str(port))
    arguments = ("view", "--with-run", *at_port, "--", str(directory.absolute()))
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "astra_async", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
            start_new_session=True,  # Ctrl-C must reach only the run
        )
    except OSError as error:
        tell_address(f"the viewer cannot be started: {error}")
        yield
        return
    output = process.stdout
    assert output is not None  # noqa: S101 - it is a pipe
    reading = output.fileno()

    def read() -> None:
        loop.remove_reader(reading)
        line = os.read(reading, 4096).decode(errors="replace").strip().partition("\n")[0]
        tell_address(
            f"view: {line}" if line.startswith("http") else f"no viewer: {line or 'its process ended'}"
        )

    loop.add_reader(reading, read)
    try:
        yield
        # The address is printed even if the run ends before the viewer has started.
        if loop.remove_reader(reading) and select([reading], (), (), _START_S)[0]:
            read()
    finally:
        loop.remove_reader(reading)


# Variables that a program needs to start; API keys must not reach the viewer.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "BROWSER", "DISPLAY", "SYSTEMROOT")

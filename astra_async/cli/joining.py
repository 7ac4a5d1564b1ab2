"""`astra worker`: joins a cluster, so that this machine runs tests for a head somewhere else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import tell
from astra_async.cli.signals import Stopper
from astra_async.cluster import check_installed, connection_to
from astra_async.errors import ConfigError
from astra_async.types.declarations import is_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command()
@click.argument("scheduler")
@click.option(
    "--sandboxes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Containers at once; by cores and memory if not set.",
)
@click.option("--name", metavar="NAME", help="What records call this machine [default: its host name].")
@click.option("--host", metavar="ADDRESS", help="Own address, where it has several.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Own port [default: any].")
@click.option(
    "--contact-address", metavar="ADDRESS", help="Where others reach it (tcp://HOST:PORT), behind NAT."
)
@click.option("--tls-ca-file", type=click.Path(exists=True, dir_okay=False), help="As for dask worker.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), help="As for dask worker.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="As for dask worker.")
def worker(
    *,
    scheduler: str,
    sandboxes: int | None,
    tls_ca_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    **own: Any,
) -> int:
    """Join the Dask cluster of SCHEDULER (tcp://HOST:PORT) and run tests on this machine's Docker Engine.

    Joins again when the scheduler was lost. A signal ends it; other nodes then run its tests.
    """
    if scheduler.startswith("local:") or not is_cluster(scheduler):
        raise ConfigError(
            f"{scheduler}: the address of a scheduler is expected, tcp://HOST:PORT or tls://HOST:PORT"
        )
    check_installed()
    import uvloop
    from distributed.security import Security

    tls = {"tls_ca_file": tls_ca_file, "tls_worker_cert": tls_cert, "tls_worker_key": tls_key}
    security = Security(**{key: value for key, value in tls.items() if value})
    connection_to(scheduler, security, "worker")
    return uvloop.run(_serve(scheduler, sandboxes, {**own, "security": security}))


async def _serve(scheduler: str, sandboxes: int | None, own: Mapping[str, Any]) -> int:
    from astra_async.cluster.membership import serve
    from astra_async.testing.sandbox.engine import Engine

    async with await Engine.open():
        pass  # without one there is nothing to join with
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    stopper = Stopper(on_first=lambda: stopped.set_result(None))
    with stopper.installed():
        await serve(scheduler, sandboxes, own, until=stopped, say=tell)
    return 128 + (stopper.received or 0)

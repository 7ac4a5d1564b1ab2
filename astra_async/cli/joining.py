"""`astra worker`: join a cluster, so that this machine runs tests for a head."""

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
    help="Maximum number of containers at once. Default: by cores and memory.",
)
@click.option("--name", metavar="NAME", help="Name of this machine in records [default: its host name].")
@click.option("--host", metavar="ADDRESS", help="Address of this machine to use, if there are several.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of this worker [default: any free port]."
)
@click.option(
    "--contact-address", metavar="ADDRESS", help="Address for other machines, behind NAT (tcp://HOST:PORT)."
)
@click.option(
    "--tls-ca-file", type=click.Path(exists=True, dir_okay=False), help="Certificate authority (PEM)."
)
@click.option(
    "--tls-cert", type=click.Path(exists=True, dir_okay=False), help="Certificate of this worker (PEM)."
)
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Key of the certificate (PEM).")
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

    The worker connects again after the scheduler was lost. After a signal, other nodes run its tests.
    """
    if scheduler.startswith("local:") or not is_cluster(scheduler):
        raise ConfigError(f"{scheduler}: write the scheduler's address as tcp://HOST:PORT or tls://HOST:PORT")
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
        pass  # a worker is useless without an engine
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    stopper = Stopper(on_first=lambda: stopped.set_result(None))
    with stopper.installed():
        await serve(scheduler, sandboxes, own, until=stopped, say=tell)
    return 128 + (stopper.received or 0)

"""Tests on more than one machine: a Dask cluster behind the Sandbox protocol; see docs/cluster.md.

Dask brings membership, TLS and the ways to start workers where users have machines. Jobs travel over one
connection from the head to each worker, and not as Dask tasks: measured for archives of 100 KB, that costs
the head 0.13 ms of CPU a job instead of 1.1 to 1.6, nothing on the scheduler, and a lost worker is known at
once. Nothing here is imported without `--cluster`.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from distributed.security import Security


def check_installed() -> None:
    """Raises ConfigError where the extra is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise ConfigError("a cluster needs Dask: pip install 'astra_async[cluster]'")


def connection_to(address: str, security: Security, role: Literal["client", "worker"]) -> dict[str, Any]:
    """What a connection to a scheduler is opened with. Raises ConfigError: tls:// without certificates."""
    try:
        connection: dict[str, Any] = security.get_connection_args(role)
    except (OSError, ValueError) as error:  # ssl's errors are OSErrors
        raise ConfigError(
            f"{address}: the certificates cannot be used: {error}; see docs/cluster.md"
        ) from error
    if address.startswith("tls://") and connection.get("ssl_context") is None:
        asked = {
            "client": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..__CLIENT__CERT and ..__CLIENT__KEY",
            "worker": "--tls-ca-file, --tls-cert and --tls-key",
        }
        raise ConfigError(f"{address} wants certificates: set {asked[role]} (docs/cluster.md makes them)")
    return connection

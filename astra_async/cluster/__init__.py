"""Tests on several machines: a Dask cluster behind the Sandbox protocol (docs/cluster.md).

Dask provides membership, TLS and the start of workers on users' machines. Jobs are sent over one connection
from the head to each worker instead of as Dask tasks. For archives of 100 KB, this costs the head 0.13 ms
of CPU per job instead of 1.1 to 1.6 ms, nothing on the scheduler, and a lost worker is detected at once.
This package is imported only with `--cluster`.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from distributed.security import Security


def check_installed() -> None:
    """Raise ConfigError if the `cluster` extra is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise ConfigError("Dask is not installed; run: pip install 'astra_async[cluster]'")


def connection_to(address: str, security: Security, role: Literal["client", "worker"]) -> dict[str, Any]:
    """Return Dask's connection arguments. Raises ConfigError for tls:// without usable certificates."""
    try:
        connection: dict[str, Any] = security.get_connection_args(role)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(
            f"{address}: the certificates cannot be used: {error}; see docs/cluster.md"
        ) from error
    if address.startswith("tls://") and connection.get("ssl_context") is None:
        asked = {
            "client": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..__CLIENT__CERT and ..__CLIENT__KEY",
            "worker": "--tls-ca-file, --tls-cert and --tls-key",
        }
        raise ConfigError(f"{address} needs certificates: set {asked[role]} (see docs/cluster.md)")
    return connection

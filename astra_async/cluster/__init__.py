"""Tests on more than one machine: a Dask cluster behind the Sandbox protocol; see docs/cluster.md.

Dask brings membership, TLS and the ways to start workers where users have machines. Jobs travel over one
connection from the head to each worker, and not as Dask tasks: measured for archives of 100 KB, that costs
the head 0.13 ms of CPU a job instead of 1.1 to 1.6, nothing on the scheduler, and a lost worker is known at
once. Nothing here is imported without `--cluster`.
"""

from __future__ import annotations

import importlib.util

from astra_async.errors import ConfigError


def check_installed() -> None:
    """Raises ConfigError where the extra is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise ConfigError("a cluster needs Dask: pip install 'astra_async[cluster]'")

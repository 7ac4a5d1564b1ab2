"""Which batch interface a model's provider has, and what is refused before anything is asked."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from astra_async.asking.providers import PROVIDERS, wire_format
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from astra_async.asking.batches.batch_interface import BatchInterface
    from astra_async.types import ModelSettings


def open_interface(
    settings: ModelSettings, session: aiohttp.ClientSession, environ: Mapping[str, str] = os.environ
) -> BatchInterface:
    """The batches of one model, over a session that others share.

    Raises:
        ConfigError: as `providers.check_settings`, or its provider has no batches.
    """
    from astra_async.asking.batches.batch_interface import Control
    from astra_async.asking.providers.models import resolve

    check_batch(settings)
    module, _, name = PROVIDERS[settings.provider].batches.partition(".")
    made_by = getattr(import_module(f"{__package__}.{module}"), name)
    settings = resolve(settings)
    wire = wire_format(settings, environ)
    interface: BatchInterface = made_by(wire, Control(settings, wire, session, environ))
    return interface


def check_batch(settings: ModelSettings) -> None:
    """Refuse batches where there are none. Raises ConfigError."""
    if not PROVIDERS[settings.provider].batches:
        raise ConfigError(
            f"{settings.name}: {settings.provider} has no batches here; leave out --batch, or `batch`"
            " in [[models]]"
        )

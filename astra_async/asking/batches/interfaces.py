"""Which batch interface a model's provider has, and what is refused before anything is asked."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from astra_async.asking.providers import PROVIDERS, wire_format
from astra_async.errors import ConfigError

if TYPE_CHECKING:
    import aiohttp

    from astra_async.asking.batches.batch_interface import BatchInterface
    from astra_async.types import ModelSettings, S3Settings


def open_interface(settings: ModelSettings, session: aiohttp.ClientSession, s3: S3Settings) -> BatchInterface:
    """The batches of one model, over a session that others share; Bedrock's files lie in `s3`.

    Raises:
        ConfigError: as `check_batch` and `providers.check_settings`.
    """
    from astra_async.asking.batches.batch_interface import Control

    made_by, wire = check_batch(settings), wire_format(settings, os.environ)
    return made_by(wire, Control(wire, session, s3=s3, environ=os.environ))


def check_batch(settings: ModelSettings) -> type[BatchInterface]:
    """The class of a model's batches. Raises ConfigError: there are none, or a setting is missing."""
    module, _, name = PROVIDERS[settings.provider].batches.partition(".")
    if not name:
        raise ConfigError(
            f"{settings.name}: {settings.provider} has no batches here; leave out --batch, or `batch`"
            " in [[models]]"
        )
    made_by: type[BatchInterface] = getattr(import_module(f"{__package__}.{module}"), name)
    made_by.check(settings)
    return made_by

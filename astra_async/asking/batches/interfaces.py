"""Lookup of the batch interface of a model's provider, with a check of the model's settings."""

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
    """Return the batch interface of one model.

    Args:
        settings: settings of the model.
        session: session shared with other models.
        s3: access to the bucket with the files of Bedrock's batches.

    Raises:
        ConfigError: see `check_batch` and `providers.check_settings`.
    """
    from astra_async.asking.batches.batch_interface import Control

    interface_class, wire = check_batch(settings), wire_format(settings, os.environ)
    return interface_class(wire, Control(wire, session, s3=s3, environ=os.environ))


def check_batch(settings: ModelSettings) -> type[BatchInterface]:
    """Return the class of a model's batch interface.

    Raises:
        ConfigError: the provider has no supported batch interface, or a setting is missing.
    """
    module, _, name = PROVIDERS[settings.provider].batches.partition(".")
    if not name:
        raise ConfigError(
            f"{settings.name}: batches are not supported for {settings.provider}; remove --batch, or `batch`"
            " in [[models]]"
        )
    interface_class: type[BatchInterface] = getattr(import_module(f"{__package__}.{module}"), name)
    interface_class.check(settings)
    return interface_class

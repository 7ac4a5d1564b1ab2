"""A run that is open, as displays and the file of its state see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.config import RunConfig
    from astra_async.running.directory import RunDirectory
    from astra_async.running.model_pools import AnyPool
    from astra_async.running.runner import Runner
    from astra_async.types import RunSandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that is open: what a display looks at and what `drive` drives."""

    config: RunConfig
    directory: RunDirectory
    runner: Runner
    pools: Mapping[str, AnyPool]
    sandbox: RunSandbox | None

    def stop(self) -> None:
        """Begin nothing more; calls and tests under way come to their end and are recorded."""
        self.runner.stop()
        if self.sandbox:
            self.sandbox.stop_waiting()

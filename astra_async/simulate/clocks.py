"""Where the server's time comes from."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Monotonic seconds for limits and the prompt cache, Unix time for what is announced."""

    monotonic: Callable[[], float] = time.monotonic
    unix: Callable[[], float] = time.time

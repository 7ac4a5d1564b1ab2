"""Rule 1: what pools of one account share: whose turn it is.

Providers limit a model, an account, or both, and say neither which. Two pools that each keep half of an
account's rate still collide where their sends meet, and each takes the rejection for its own limit. So pools
whose paces are known send one after the other, as far apart as all paces together ask: where the limit is
the account's that is its rate, and where each model has a limit of its own it holds back no call, for that
distance is shorter than any pool's own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.asking.throttle.pace import Pace
    from astra_async.types import ModelSettings

_CLOSER = 0.95  # than all paces together ask: the paces are what limits
_QUIET_S, _QUIET_SENDS = 10.0, 3.0  # who has sent nothing for longer than both takes no turn

AccountKey = tuple[str, ...]


class Account:
    """The turns of one account's pools."""

    def __init__(self) -> None:
        self._sent_at: dict[Pace, float] = {}
        self._latest = -math.inf

    def sent(self, pace: Pace, now: float) -> None:
        """A pool has sent a request."""
        self._sent_at[pace] = self._latest = now

    def ready_at(self, pace: Pace, now: float) -> float:
        """When a pool's next send is due; `now` if at once."""
        if pace.per_second is None or len(self._sent_at) < 2:  # noqa: PLR2004 - turns are between two
            return now
        rates = [
            other.per_second
            for other, at in self._sent_at.items()
            if other.per_second is not None and now - at < max(_QUIET_S, _QUIET_SENDS / other.per_second)
        ]
        return max(now, self._latest + _CLOSER / sum(rates)) if len(rates) > 1 else now


def account_of(settings: ModelSettings) -> AccountKey:
    """What tells accounts apart: the provider, where it is, and whose key is sent."""
    parts = (settings.provider, settings.base_url, settings.endpoint, settings.api_key_env)
    return tuple(part or "" for part in (*parts, settings.organization, settings.project))

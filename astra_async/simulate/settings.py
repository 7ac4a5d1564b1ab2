"""How a simulated server behaves: speed, limits, faults. The models' own traits are in profiles.py."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from astra_async.errors import ConfigError

FaultKind = Literal[
    "rate_limit",  # 429 with a short delay, although no limit was passed
    "server_error",  # 500
    "unavailable",  # 503 from a gateway, with a body that is not the provider's
    "overloaded",  # 529 at Anthropic, 503 elsewhere, with the provider's own body
    "reset",  # the connection is reset, before the answer or in the middle of it
    "cut",  # the stream ends cleanly but without its terminal marker
    "stream_error",  # an error event after HTTP 200, in the middle of the answer
    "stall",  # silence in the middle of the answer, then the connection is reset
]
Denial = Literal["key", "quota"]  # the key is refused; the account is out of quota

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """What one server does to its clients.

    Attributes:
        speed: factor on every model's token times; 1.0 is realistic, 0 is without any delay.
        requests_per_minute: limit of each model, refilled continuously; None is unlimited.
        tokens_per_minute: the same for tokens (prompt, and max_tokens where the format charges it).
        burst_s: a bucket holds so many seconds' worth of its limit.
        faults: whether faults are injected at all.
        fault_rate: chance that an attempt is faulty; a key's third attempt never is.
        fault_kinds: the faults to draw from, all equally likely.
        stall_s: real seconds of silence of a `stall`, not scaled by `speed`.
        seed: for requests that carry neither an x-astra-sample header nor a seed of their own.
        chunk_characters: characters of the answer in one event of a stream.
        cache_ttl_s: how long an unused prompt stays in the simulated prompt cache.
        denied: models whose key is refused or whose quota is used up.
    """

    speed: float = 1.0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    burst_s: float = 60.0
    faults: bool = True
    fault_rate: float = 0.02
    fault_kinds: tuple[FaultKind, ...] = FAULT_KINDS
    stall_s: float = 2.0
    seed: int = 0
    chunk_characters: int = 60
    cache_ttl_s: float = 300.0
    denied: Mapping[str, Denial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, with a ConfigError that names the first of them.

        Types are checked too: settings may come from a TOML file.
        """
        for name in ("speed", "stall_s", "cache_ttl_s"):
            _require(_is_number(getattr(self, name), least=0), name, "a number, not negative")
        for name in ("requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            _require(limit is None or (_is_number(limit) and limit > 0), name, "a number above 0, or unset")
        _require(_is_number(self.burst_s) and self.burst_s > 0, "burst_s", "a number above 0")
        _require(_is_number(self.fault_rate, least=0, most=1), "fault_rate", "a number from 0 to 1")
        _require(isinstance(self.faults, bool), "faults", "true or false")
        _require(type(self.seed) is int, "seed", "a whole number")
        is_whole = isinstance(self.chunk_characters, int) and _is_number(self.chunk_characters, least=1)
        _require(is_whole, "chunk_characters", "a whole number above 0")
        listed = isinstance(self.fault_kinds, tuple | list)
        known = listed and all(kind in FAULT_KINDS for kind in self.fault_kinds)
        _require(known, "fault_kinds", f"of {', '.join(FAULT_KINDS)}")
        named = isinstance(self.denied, Mapping) and all(
            why in get_args(Denial) for why in self.denied.values()
        )
        _require(named, "denied", "key or quota for each model")


def _is_number(value: object, *, least: float = -math.inf, most: float = math.inf) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and least <= value <= most


def _require(holds: object, name: str, rule: str) -> None:
    if not holds:
        raise ConfigError(f"simulated server: {name} must be {rule}")

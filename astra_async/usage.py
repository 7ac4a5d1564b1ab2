"""Token usage of a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one request. `input_tokens` includes cached ones, `output_tokens` includes reasoning.

    `reported_usd` is the cost in US dollars and `service_tier` the tier that the provider reports.
    """

    input_tokens: Count | None = None
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    reported_usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    service_tier: str | None = None

"""How a simulated server behaves: speed, limits, faults. The models' own traits are in profiles.py."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time, by whoever checks a setting
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from annotated_types import Ge, Gt, Interval

from astra_async.types.declarations import Address, Positive, Setting

FaultKind = Literal[
    "rate_limit",  # 429 with a short delay, although no limit was passed
    "server_error",  # 500
    "unavailable",  # 503 from a proxy, with a body that is not the provider's
    "overloaded",  # 529 at Anthropic, 503 elsewhere, with the provider's own body
    "reset",  # the connection is reset, before the answer or in the middle of it
    "cut",  # the stream ends cleanly but without its terminal marker
    "stream_error",  # an error event after HTTP 200, in the middle of the answer
    "stall",  # silence in the middle of the answer, then the connection is reset
]
BatchFault = Literal[
    "none",
    "lost_before",  # the connection is reset, and no batch was created
    "lost_create",  # it was created, and the connection is reset instead of an answer
    "silent",  # it was created, and no answer comes
    "invalid",  # it fails in validation, after its creation
    "errors",  # a third of its requests fail at the server
    "expire",  # half of it is finished when it expires
    "missing",  # a fifth of its results are in no file
    "duplicates",  # every result is there twice
    "tries",  # before every result stands a failure of the same request
    "vanish",  # its results cannot be had
    "late",  # it has ended, with all counts, some looks before its files are named
    "never",  # it has ended, with all counts, and its files are never named
    "cut",  # its files are cut the first times that they are asked for
    "short",  # its files lack a fifth of what its counts promise
    "unknown",  # it and its files are unknown (404) the first times that they are asked for
    "failing",  # they answer 503 the first times
]
Denial = Literal["key", "quota"]  # the key is refused; the account is out of quota

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """What one server does to its clients; checked where they are read (`types.checked_table`)."""

    speed: Annotated[
        float, Ge(0), Setting("Factor on every model's token times; 0 is without any delay.", "X")
    ] = 1.0
    requests_per_minute: Annotated[Positive, Setting("Limit of each model, refilled continuously.", "N")] = (
        None
    )
    tokens_per_minute: Annotated[
        Positive, Setting("The same for tokens (prompt, and max_tokens where the format charges it).", "N")
    ] = None
    burst_s: Annotated[float, Gt(0), Setting("Seconds' worth of a limit that may come at once.", "S")] = 60.0
    faults: Annotated[bool, Setting("Whether faults are injected at all.")] = True
    fault_rate: Annotated[
        float,
        Interval(ge=0, le=1),
        Setting("Chance that an attempt is faulty; a sample's third attempt never is.", "P"),
    ] = 0.02
    fault_kinds: Annotated[
        tuple[FaultKind, ...], Setting("Faults to draw from, all equally likely.", "KIND")
    ] = FAULT_KINDS
    stall_s: Annotated[
        float, Ge(0), Setting("Seconds of silence of a `stall`, not scaled by `speed`.", "S")
    ] = 2.0
    seed: Annotated[int, Setting("For requests that name neither a sample nor a seed.", "N")] = 0
    chunk_characters: Annotated[int, Ge(1), Setting("Characters in one event of a stream.", "N")] = 60
    cache_ttl_s: Annotated[
        float, Ge(0), Setting("Seconds that an unused prompt stays in the prompt cache.", "S")
    ] = 300.0
    batch_delay_s: Annotated[float, Ge(0), Setting("Seconds until a batch has ended.", "S")] = 2.0
    batch_enqueued_tokens: Annotated[
        int | None, Gt(0), Setting("Most tokens in batches that have not ended.", "N")
    ] = None
    batch_faults: Annotated[
        tuple[BatchFault, ...],
        Setting("What happens to the first batches that are created, one after the other.", "KIND"),
    ] = ()
    batch_s3_endpoint: Annotated[Address, Setting("S3 that holds the files of Bedrock's batches.", "URL")] = (
        None
    )
    denied: Annotated[
        Mapping[str, Denial],
        Setting("Models whose API key is refused (`key`) or whose quota is used up (`quota`).", "MODEL=WHY"),
    ] = field(default_factory=dict)

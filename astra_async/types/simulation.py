"""Settings of a simulated server: speed, limits, faults. profiles.py has the properties of the models."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - evaluated at run time to check settings
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from annotated_types import Ge, Gt, Interval

from astra_async.types.declarations import Address, Positive, Setting

FaultKind = Literal[
    "rate_limit",  # 429 with a short delay, although no limit was exceeded
    "server_error",  # 500
    "unavailable",  # 503 from a proxy, with a body of the proxy
    "overloaded",  # 529 for Anthropic, 503 for others, with a body of the provider
    "reset",  # the connection is reset, before or during the answer
    "cut",  # the stream ends without an error and without its end mark
    "stream_error",  # an error event after HTTP 200, during the answer
    "stall",  # silence during the answer, then the connection is reset
]
BatchFault = Literal[
    "none",
    "lost_before",  # the connection is reset, and no batch is created
    "lost_create",  # the batch is created, and the connection is reset instead of a response
    "silent",  # the batch is created without a response
    "invalid",  # the batch fails in validation after its creation
    "errors",  # a third of the requests fail on the server
    "expire",  # half of the requests are finished when the batch expires
    "missing",  # a fifth of the results are in no file
    "duplicates",  # every result occurs twice
    "tries",  # a failure of the same request precedes every result
    "vanish",  # the results are unavailable
    "late",  # the batch has ended, with all counts, some polls before its files are named
    "never",  # the batch has ended, with all counts, and its files are never named
    "cut",  # the first downloads of the files are cut
    "short",  # the files have a fifth less results than the counts
    "unknown",  # the first requests for the batch and its files return 404
    "failing",  # the first requests for the batch and its files return 503
]
Denial = Literal["key", "quota"]  # the API key is refused; the quota is used up

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """Settings of one simulated server, checked by `types.checked_table`."""

    speed: Annotated[
        float, Ge(0), Setting("Factor for the token times of all models; 0 means no delay.", "X")
    ] = 1.0
    requests_per_minute: Annotated[
        Positive, Setting("Limit of requests per minute for each model, refilled continuously.", "N")
    ] = None
    tokens_per_minute: Annotated[
        Positive,
        Setting(
            "Limit of tokens per minute for each model (prompt; max_tokens if the format charges it).", "N"
        ),
    ] = None
    burst_s: Annotated[
        float, Gt(0), Setting("Size of a burst: seconds of a limit that may be used at once.", "S")
    ] = 60.0
    faults: Annotated[bool, Setting("Inject faults.")] = True
    fault_rate: Annotated[
        float,
        Interval(ge=0, le=1),
        Setting("Probability of a fault in an attempt, except a sample's third attempt.", "P"),
    ] = 0.02
    fault_kinds: Annotated[
        tuple[FaultKind, ...], Setting("Kinds of injected faults, with equal probabilities.", "KIND")
    ] = FAULT_KINDS
    stall_s: Annotated[
        float, Ge(0), Setting("Duration of the silence of a `stall`, in seconds, not scaled by `speed`.", "S")
    ] = 2.0
    seed: Annotated[int, Setting("Seed for requests without a sample and without a seed.", "N")] = 0
    chunk_characters: Annotated[
        int, Ge(1), Setting("Number of characters in one event of a stream.", "N")
    ] = 60
    cache_ttl_s: Annotated[
        float, Ge(0), Setting("Lifetime of an unused prompt in the prompt cache, in seconds.", "S")
    ] = 300.0
    batch_delay_s: Annotated[float, Ge(0), Setting("Duration of a batch in seconds.", "S")] = 2.0
    batch_enqueued_tokens: Annotated[
        int | None, Gt(0), Setting("Maximum number of tokens in open batches.", "N")
    ] = None
    batch_faults: Annotated[
        tuple[BatchFault, ...],
        Setting("Faults of the first created batches, one for each batch.", "KIND"),
    ] = ()
    batch_s3_endpoint: Annotated[
        Address, Setting("Address of the S3 server with the files of Bedrock's batches.", "URL")
    ] = None
    denied: Annotated[
        Mapping[str, Denial],
        Setting("Models with a refused API key (`key`) or a used-up quota (`quota`).", "MODEL=WHY"),
    ] = field(default_factory=dict)

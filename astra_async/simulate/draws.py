"""Which sample a request asks for, and random numbers that depend on nothing but names.

Everything that a simulated model does is drawn from a generator seeded by a hash of names (model,
seed, format, problem, sample, purpose): never from time, from the order of requests, or from Python's
`hash()`, which differs between processes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.types import Format

SAMPLE_HEADER = "x-astra-sample"


@dataclass(frozen=True, slots=True)
class SampleName:
    """What the header `x-astra-sample: SEED/FORMAT/PROBLEM/SAMPLE` names; `seed` is any text.

    A further turn of a sample has it behind an @: `.../SAMPLE@TURN`.
    """

    seed: str
    format: Format
    problem_id: str
    sample: int
    turn: int = 0

    @classmethod
    def parse(cls, header: str) -> SampleName:
        """Read the header's value; a problem id may hold slashes. Raises ValueError."""
        seed, slash, rest = header.partition("/")
        fmt, _, rest = rest.partition("/")
        problem_id, _, last = rest.rpartition("/")
        sample, at, turn = last.partition("@")
        named = slash and fmt and problem_id and sample.isdecimal()
        if not named or not (turn.isdecimal() if at else True):
            raise ValueError(
                f"{SAMPLE_HEADER} must be SEED/FORMAT/PROBLEM/SAMPLE[@TURN], not {header[:100]!r}"
            )
        return cls(seed, fmt, problem_id, int(sample), int(turn or 0))


def seeded(*names: object) -> random.Random:
    """A generator that is the same for the same names, on every machine and in every process."""
    text = "\x1f".join(map(str, names)).encode("utf-8", "surrogatepass")
    number = int.from_bytes(blake2b(text, digest_size=8).digest())
    return random.Random(number)  # noqa: S311 - repeatable draws are the point, nothing is secret


def digest(text: str) -> str:
    """A short, stable name for a long text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

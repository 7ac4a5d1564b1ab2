"""Which sample a request asks for, and random numbers that depend on nothing but names.

Everything that a simulated model does is drawn from a generator seeded by a hash of names (model,
seed, format, problem, sample, purpose): never from time, from the order of requests, or from Python's
`hash()`, which differs between processes.
"""

from __future__ import annotations

import functools
import heapq
import random
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from astra_async.bundled import problem_ids, read_statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.simulate.wires.asked import Ask
    from astra_async.types import Format


UNKNOWN_PROBLEM = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One attempt of one sample; `key` names model and sample, `attempt` counts from 0."""

    name: SampleName
    key: str
    attempt: int
    prompt: str  # the prompt's digest
    counted: bool = False


class SampleNumbers:
    """Counts attempts, and numbers the requests of clients that name no sample.

    Attempts are counted until the sample is answered, so memory holds unanswered samples only. Requests
    without a header are numbered by prompt: the k-th answer to a prompt is its k-th sample, a failed
    request gives its number back, and so k answers are the same set in whatever order they were asked.
    A request with a seed of its own always gets the answer of that seed.
    """

    def __init__(self, seed: int, find_problem: Callable[[str], str | None]) -> None:
        self._seed = seed
        self._find_problem = find_problem
        self._attempts: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}  # numbers by prompt, a heap; the last is the least never given
        self._problems: dict[str, str] = {}

    def take(self, ask: Ask, name: SampleName | None) -> Taken:
        """Begin an attempt of the sample that the header names, or of one that is counted here."""
        prompt = digest(ask.prompt)
        counted = name is None and ask.seed is None and not ask.tools
        if name is None:
            name = self._name(ask, prompt)
        key = f"{ask.model}/{name.seed}/{name.format}/{name.problem_id}/{name.sample}"
        key += f"@{name.turn}" if name.turn else ""
        key += f"#{ask.rounds}" if ask.tools else ""
        attempt = self._attempts.get(key, 0)
        self._attempts[key] = attempt + 1
        return Taken(name=name, key=key, attempt=attempt, prompt=prompt, counted=counted)

    def leave(self, taken: Taken, model: str, *, answered: bool) -> None:
        """The attempt has ended; an answered sample's attempts are forgotten."""
        if answered:
            self._attempts.pop(taken.key, None)
        elif taken.counted:
            heapq.heappush(self._free[f"{model}/{taken.prompt}"], taken.name.sample)

    def _name(self, ask: Ask, prompt: str) -> SampleName:
        problem_id = self._problem(ask.prompt, prompt)
        fmt: Format = "json" if "JSON" in ask.prompt and "<solution" not in ask.prompt else "xml"
        if ask.tools:  # a conversation grows: it is known by its problem
            return SampleName(str(self._seed), "tools", problem_id, 0)
        if ask.seed is not None:
            return SampleName(str(ask.seed), fmt, problem_id, 0, len(ask.answers))
        free = self._free.setdefault(f"{ask.model}/{prompt}", [0])
        number = heapq.heappop(free)
        if not free:  # what was never given before is the largest of them
            free.append(number + 1)
        return SampleName(f"{self._seed}-{prompt}", fmt, problem_id, number, len(ask.answers))

    def _problem(self, text: str, prompt: str) -> str:
        if prompt not in self._problems:
            self._problems[prompt] = self._find_problem(text) or UNKNOWN_PROBLEM
        return self._problems[prompt]


def find_bundled_problem(prompt: str) -> str | None:
    """The id of the bundled problem whose statement stands in the prompt, or None."""
    without_whitespace = _squeezed(prompt)
    found = (problem_id for problem_id, statement in _statements() if statement in without_whitespace)
    return next(found, None)


@functools.cache
def _statements() -> tuple[tuple[str, str], ...]:
    return tuple((problem_id, _squeezed(read_statement(problem_id))) for problem_id in problem_ids())


def _squeezed(text: str) -> str:
    # A prompt may indent or wrap the statement differently.
    return " ".join(text.split())


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

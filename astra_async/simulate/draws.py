"""Identify the requested sample, and create random generators seeded by names.

Everything that a simulated model does is drawn from a generator seeded by a hash of names (model, seed,
format, problem, sample, purpose). Time, the order of requests and Python's `hash()`, which differs between
processes, have no influence.
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

    from astra_async.simulate.wires.request_parsing import ParsedRequest
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

    Attempts are counted until the sample is answered, so only unanswered samples use memory. Requests without
    the header are numbered by prompt: the k-th answer to a prompt is its k-th sample. A failed request
    returns its number, so k answers are the same set in any order of requests. A request with a seed always
    gets the answer for that seed.
    """

    def __init__(self, seed: int, find_problem: Callable[[str], str | None]) -> None:
        self._seed = seed
        self._find_problem = find_problem
        self._attempts: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}  # heap of free numbers by prompt; the largest was never used
        self._problems: dict[str, str] = {}

    def take(self, ask: ParsedRequest, name: SampleName | None) -> Taken:
        """Start an attempt of the sample in the header, or of a sample numbered here."""
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
        """End an attempt; the attempts of an answered sample are forgotten."""
        if answered:
            self._attempts.pop(taken.key, None)
        elif taken.counted:
            heapq.heappush(self._free[f"{model}/{taken.prompt}"], taken.name.sample)

    def _name(self, ask: ParsedRequest, prompt: str) -> SampleName:
        problem_id = self._problem(ask.prompt, prompt)
        fmt: Format = "json" if "JSON" in ask.prompt and "<solution" not in ask.prompt else "xml"
        if ask.tools:  # the prompt of a conversation grows, so only the problem identifies the sample
            return SampleName(str(self._seed), "tools", problem_id, 0)
        if ask.seed is not None:
            return SampleName(str(ask.seed), fmt, problem_id, 0, len(ask.answers))
        free = self._free.setdefault(f"{ask.model}/{prompt}", [0])
        number = heapq.heappop(free)
        if not free:  # the number never used before is the largest one
            free.append(number + 1)
        return SampleName(f"{self._seed}-{prompt}", fmt, problem_id, number, len(ask.answers))

    def _problem(self, text: str, prompt: str) -> str:
        if prompt not in self._problems:
            self._problems[prompt] = self._find_problem(text) or UNKNOWN_PROBLEM
        return self._problems[prompt]


def find_bundled_problem(prompt: str) -> str | None:
    """Return the id of the bundled problem whose statement is in the prompt, or None."""
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
    """The parsed header `x-astra-sample: SEED/FORMAT/PROBLEM/SAMPLE`; `seed` is any text.

    A follow-up turn of a sample is `.../SAMPLE@TURN`.
    """

    seed: str
    format: Format
    problem_id: str
    sample: int
    turn: int = 0

    @classmethod
    def parse(cls, header: str) -> SampleName:
        """Parse the header's value; a problem id may contain slashes. Raises ValueError."""
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
    """Return a generator that is equal for equal names, on every machine and in every process."""
    text = "\x1f".join(map(str, names)).encode("utf-8", "surrogatepass")
    number = int.from_bytes(blake2b(text, digest_size=8).digest())
    return random.Random(number)  # noqa: S311 - reproducible draws, not security-relevant


def digest(text: str) -> str:
    """Return a short, stable name for a long text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

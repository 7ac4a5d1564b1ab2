"""What is to be done: problems, and the samples asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Format = Literal["xml", "json"]


class SampleKey(NamedTuple):
    """Names one sample: a model's `sample`-th independent answer (from 0) to a problem in a format.

    A tuple and no dataclass: a resume makes and hashes hundreds of thousands of them.
    """

    model: str
    format: Format
    problem_id: str
    sample: int

    @property
    def turn(self) -> int:
        """0: the sample's first answer, which is all that the paper's metrics are about."""
        return 0

    @property
    def first(self) -> SampleKey:
        """The sample itself."""
        return self

    def at(self, turn: int) -> AnswerKey:
        """The key of a turn: the sample's own for 0."""
        return TurnKey(*self, turn) if turn else self

    def __str__(self) -> str:
        return f"{self.model}/{self.format}/{self.problem_id}/{self.sample}"


class TurnKey(NamedTuple):
    """Names one further turn of a sample: its `turn`-th answer (from 1) after feedback."""

    model: str
    format: Format
    problem_id: str
    sample: int
    turn: int

    @property
    def first(self) -> SampleKey:
        """The sample that it is a turn of."""
        return SampleKey(self.model, self.format, self.problem_id, self.sample)

    def at(self, turn: int) -> AnswerKey:
        """The key of another turn of the same sample."""
        return self.first.at(turn)

    def __str__(self) -> str:
        return f"{self.first}, turn {self.turn}"


AnswerKey = SampleKey | TurnKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTest:
    """One test that counts towards T; `weight` is recorded and shown, never used in the score."""

    name: str
    file: str | None = None
    type: str | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One row of the problems CSV, completed from the project's hackerrank.yml where it was silent.

    `project` and `reference` are locations (folder, .zip, https, s3), absolute once loaded.
    `tests` is empty when the expected names are to be learned from a run.
    """

    id: str
    statement: str
    project: str
    name: str = ""
    main_skill: str = ""
    sub_skills: tuple[str, ...] = ()
    family: str = ""
    test_command: str = ""
    result_files: tuple[str, ...] = ()
    tests: tuple[ExpectedTest, ...] = ()
    image: str = ""
    timeout_s: float | None = None
    readonly_paths: tuple[str, ...] = ()
    hidden_paths: tuple[str, ...] = ()
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What hackerrank.yml says, with a warning for everything that was misplaced or broken.

    An empty `command` means that the manifest names none; empty `result_files` mean that the
    command's standard output is scored.
    """

    command: str = ""
    result_files: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    hidden_paths: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

"""What an answer gives and changes, what the tests said, the verdict, and the final line of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import msgspec

from astra_async.types.agents import AgentWork  # noqa: TC001 - msgspec reads annotations
from astra_async.types.calls import FinishReason  # noqa: TC001 - the same
from astra_async.types.samples import AnswerKey, Format, SampleKey
from astra_async.usage import Count, Usage

Status = Literal["scored", "no_solution"]
Failure = Literal[
    "tests_failed",
    "no_report",
    "build_failure",
    "timeout",
    "out_of_memory",
    "tampered",  # of older versions only
    "refusal",
    "truncated",
    "context_exceeded",
    "format_error",
    "path_violation",
    "no_change",
]
Trouble = Literal["provider_error", "project_error", "sandbox_error"]
Outcome = Literal["passed", "failed", "error", "skipped", "missing"]

# No feedback turn follows these failures; None: all tests passed.
_LAST: frozenset[Failure | None] = frozenset({None, "context_exceeded", "tampered"})
REUSED = "verdict of sample "  # how the note of a result begins whose verdict is another sample's


def is_last(failure: Failure | None) -> bool:
    """Whether a sample whose latest line has this failure goes on no more."""
    return failure in _LAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The files an answer gives, path to full text, as the model wrote the paths; repairs by name.

    `exact`: these are an agent's, as they lay in its container, and their paths are meant as they stand. Only
    then are there `deleted` paths, contents that are no text (`binary`), and the pristine texts of what was
    changed or deleted (`before`).
    """

    files: Mapping[str, str]
    repairs: tuple[str, ...] = ()
    exact: bool = False
    deleted: tuple[str, ...] = ()
    binary: Mapping[str, bytes] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """An answer without a usable solution: 0 of T, and the reason in one line."""

    failure: Failure
    reason: str
    repairs: tuple[str, ...] = ()


class Dropped(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change that was not applied, and the rule that says so."""

    path: str
    reason: str


class FileChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One file that an answer adds or changes, with the lines that a diff would show as added and removed."""

    path: str
    added: int
    removed: int
    kind: Literal["new", "changed", "deleted"]


Changed = Mapping[str, bytes | None]  # a project's files by path, as an answer leaves them; None: deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrated:
    """What an answer changes in the project: new content by path (None: deleted), and what was dropped.

    `lines_written` counts lines that the pristine file does not have: a moved line is none of them, though
    `changes` counts it as added and removed. `sha256` covers the applied paths and contents.
    """

    files: Changed
    changes: tuple[FileChange, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    suspicions: tuple[str, ...] = ()
    files_changed: int = 0
    lines_written: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One reported test case. `is_suite`: it stands for a class or suite, not for a test."""

    __test__: ClassVar[bool] = False  # not a test for pytest to collect

    name: str
    outcome: Outcome
    classname: str = ""
    file: str = ""
    message: str = ""
    is_suite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """All cases of all result files, and what could not be read of them."""

    __test__: ClassVar[bool] = False

    cases: tuple[TestCase, ...] = ()
    problems: tuple[str, ...] = ()


class NamedOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One expected test and what became of it.

    `message` is what the report says of one that did not pass: at most 500 characters, line breaks among
    them, without terminal codes; empty where it says nothing.
    """

    name: str
    outcome: str  # an Outcome
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Expected tests that passed, of T; everything else that was reported is `extra_tests`."""

    passed: int
    total: int
    tests: tuple[NamedOutcome, ...] = ()
    extra_tests: tuple[NamedOutcome, ...] = ()


class Result(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One final line of results.jsonl, or of turn_results.jsonl, field for field (docs/formats.md).

    A line of these types is believed (`records.read_result`); the outcomes of tests and an agent's `end`
    may be words of a newer version.
    """

    schema: int
    model: str
    format: Format
    problem_id: str
    sample: Count
    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None  # recorded of further turns only
    status: Status
    failure: Failure | None
    passed: Count
    total: Annotated[int, msgspec.Meta(ge=1)]
    provisional: bool = False  # no complete run confirms `total` (docs/runners.md)
    score: float | None = None
    tests: tuple[NamedOutcome, ...] = ()
    extra_tests: tuple[NamedOutcome, ...] = ()
    exit_code: int | None = None
    timed_out: bool = False
    repairs: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    suspicions: tuple[str, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    cost_usd: float | None = None
    cost_estimated: bool = False
    attempts: Count = 1
    ttft_s: float | None = None
    latency_s: float | None = 0.0
    test_s: float = 0.0
    input_characters: Count = 0
    output_characters: Count = 0
    changes: tuple[FileChange, ...] = ()
    files_changed: Count = 0
    lines_written: Count = 0
    prompt_sha256: str = ""
    solution_sha256: str = ""
    image_id: str = ""
    node: str = ""  # of a cluster, on which the tests ran; empty without one
    returned_model: str = ""
    output_tail: str = ""
    note: str = ""  # one line on why there is no solution or no report
    started_at: str = ""
    finished_at: str = ""
    agent: AgentWork | None = None  # recorded of agents only

    @property
    def key(self) -> AnswerKey:
        """The sample, or the turn of one, that this line is final for."""
        return SampleKey(self.model, self.format, self.problem_id, self.sample).at(self.turn or 0)

"""Solutions, changes, test reports, verdicts, and the final line of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, Self

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
    "tampered",  # only in lines of older versions
    "refusal",
    "truncated",
    "context_exceeded",
    "format_error",
    "path_violation",
    "no_change",
]
Trouble = Literal["provider_error", "project_error", "sandbox_error", "over_budget"]
Outcome = Literal["passed", "failed", "error", "skipped", "missing"]

# No follow-up turn is requested after these failures; None: all tests passed.
_LAST: frozenset[Failure | None] = frozenset({None, "context_exceeded", "tampered"})
REUSED = "verdict of sample "  # beginning of the note of a result with a reused verdict


def is_last(failure: Failure | None) -> bool:
    """Return True if no turn follows a line with this failure."""
    return failure in _LAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Files of an answer: path (as the model wrote it) to full text; repairs by name.

    Attributes:
        exact: True for the files of an agent, whose paths are used unchanged. The other attributes need it.
        deleted: deleted paths.
        binary: contents that are not text.
        before: untouched texts of the changed and deleted files.
        executable: files with an executable bit; None if the answer does not set these bits.
    """

    files: Mapping[str, str]
    repairs: tuple[str, ...] = ()
    exact: bool = False
    deleted: tuple[str, ...] = ()
    binary: Mapping[str, bytes] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    executable: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """An answer without a usable solution: 0 of T, and the reason in one line."""

    failure: Failure
    reason: str
    repairs: tuple[str, ...] = ()


class Dropped(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Change that was not applied, and the rule that refused it."""

    path: str
    reason: str


class FileChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """File that an answer changes, with the number of added and removed lines in a diff."""

    path: str
    added: int
    removed: int
    kind: Literal["new", "changed", "deleted"]


class ModedContent(bytes):
    """Content of a file together with its executable bit, which the archive then uses unchanged."""

    executable: bool

    @classmethod
    def of(cls, content: bytes, *, executable: bool) -> Self:
        """Return the content with this bit."""
        made = cls(content)
        made.executable = executable
        return made


Changed = Mapping[str, bytes | None]  # path to content after the answer's changes; None: deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrated:
    """Applied changes of an answer: new content by path (None: deleted), and dropped changes.

    `lines_written` counts lines that the untouched file does not have. `changes` also counts
    moved lines, as added and removed. `sha256` covers the applied paths and contents, and the executable bits
    that an agent set against the rule for single answers (see `project_archive`).
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
    """One reported test case. `is_suite` is True for a class or suite."""

    __test__: ClassVar[bool] = False  # not a test for pytest to collect

    name: str
    outcome: Outcome
    classname: str = ""
    file: str = ""
    message: str = ""
    is_suite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """Cases of all result files, and the problems in parsing them."""

    __test__: ClassVar[bool] = False

    cases: tuple[TestCase, ...] = ()
    problems: tuple[str, ...] = ()


class NamedOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Outcome of one expected test.

    `message` is the report's text for a test that did not pass: at most 500 characters, with line breaks and
    without terminal codes. It is empty if the report has no text.
    """

    name: str
    outcome: str  # an Outcome
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Number of passed tests of T expected tests; all other reported tests are `extra_tests`."""

    passed: int
    total: int
    tests: tuple[NamedOutcome, ...] = ()
    extra_tests: tuple[NamedOutcome, ...] = ()


class Result(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Final line of results.jsonl or turn_results.jsonl (docs/formats.md).

    `records.read_result` accepts lines of these types. The outcomes of tests and an agent's `end` may be
    words of a newer version.
    """

    schema: int
    model: str
    format: Format
    problem_id: str
    sample: Count
    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None  # only for follow-up turns
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
    node: str = ""  # node of a cluster on which the tests ran; empty without a cluster
    returned_model: str = ""
    output_tail: str = ""
    note: str = ""  # reason why there is no solution or no report, in one line
    started_at: str = ""
    finished_at: str = ""
    agent: AgentWork | None = None  # only for agents
    rewards: Mapping[str, float] | None = None  # raw rewards by name; only for tasks

    @property
    def exact_score(self) -> float:
        """Score from 0 to 1: the recorded score of a task, else passed / total without rounding."""
        return self.passed / self.total if self.rewards is None or self.score is None else self.score

    @property
    def key(self) -> AnswerKey:
        """Return the key of the sample or turn of this line."""
        return SampleKey(self.model, self.format, self.problem_id, self.sample).at(self.turn or 0)

"""The values that travel through the house, all frozen, and the Protocols of its edges.

A sample's way: Problem -> Project -> Prompt -> Completion -> Solution -> Integrated -> Execution
-> TestReport -> Verdict -> Result. Units stand in the names (`_s` seconds, `_bytes` bytes, `_usd`
US dollars); paths inside a project are relative, with `/`, and never begin with `./`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

Format = Literal["xml", "json"]
Status = Literal["scored", "no_solution"]
Failure = Literal[
    "tests_failed",
    "no_report",
    "build_failure",
    "timeout",
    "out_of_memory",
    "tampered",
    "refusal",
    "truncated",
    "context_exceeded",
    "format_error",
    "path_violation",
]
Trouble = Literal["provider_error", "project_error", "sandbox_error"]
FinishReason = Literal["stop", "length", "refusal", "content_filter", "context_exceeded"]
Outcome = Literal["passed", "failed", "error", "skipped", "missing"]

REUSED = "verdict of sample "  # how the note of a result begins whose verdict is another sample's


# --- the plan ---------------------------------------------------------------------------------------


class SampleKey(NamedTuple):
    """Names one sample: a model's `sample`-th independent answer (from 0) to a problem in a format.

    A tuple and no dataclass: a resume makes and hashes hundreds of thousands of them.
    """

    model: str
    format: Format
    problem_id: str
    sample: int

    def __str__(self) -> str:
        return f"{self.model}/{self.format}/{self.problem_id}/{self.sample}"


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


# --- the project ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """One file of a project. `link` is the target of a symbolic link that stays inside the project."""

    path: str
    content: bytes = b""
    executable: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A problem's pristine files, sorted by path, and its empty folders.

    `sha256` covers paths, contents, executable bits, links and empty folders, nothing else: the same
    project has the same hash whether it came from a folder, an archive or S3.
    """

    files: tuple[ProjectFile, ...]
    empty_folders: tuple[str, ...] = ()
    sha256: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The exact text sent, the same to the byte in every sample of (problem, format, version)."""

    text: str
    sha256: str
    files: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # (path, rule that left it out)


# --- the model call ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call. `input_tokens` includes cached ones, `output_tokens` includes reasoning."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """One model of a run: what is sent, where, and the limits of its pool (`[[models]]` in TOML).

    `name` is what every record calls it. None means: not set, leave it out of the request.
    Prices are US dollars per million tokens; limits are per minute.
    """

    name: str
    spec: str
    provider: str
    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    endpoint: str | None = None
    api_version: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    context_length: int | None = None
    requests_per_minute: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    max_in_flight: int = 256
    timeout_s: float = 600.0
    price_input: float | None = None
    price_cached_input: float | None = None
    price_output: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One conversation to open. `cache` asks for prompt-cache markers: a reuse is expected soon."""

    key: SampleKey
    prompt: str
    prompt_sha256: str
    seed: int | None = None
    sample_header: str | None = None  # x-astra-sample, for simulated models only
    cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One finished answer, whatever it says. `latency_s` and `ttft_s` are the final attempt's.

    `attempts` and `cost_usd` cover all attempts; `cost_usd` is None when no price is known.
    `repairs` names what was mended before recording (`surrogate`).
    """

    text: str
    finish_reason: FinishReason
    usage: Usage
    returned_model: str
    ttft_s: float | None
    latency_s: float
    attempts: int = 1
    cost_usd: float | None = None
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWindow:
    """One dimension of a provider's announced limit; `reset_s` is seconds from the response."""

    limit: float | None = None
    remaining: float | None = None
    reset_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """What the headers of one response announced, per-minute windows only."""

    requests: RateWindow | None = None
    tokens: RateWindow | None = None
    input_tokens: RateWindow | None = None
    output_tokens: RateWindow | None = None


class CallWatch(Protocol):
    """What a provider tells its pool while an attempt runs."""

    def limits(self, limits: RateLimits) -> None:
        """Rate-limit headers of this attempt's response, also of an error response."""

    def first_token(self) -> None:
        """The answer has begun to stream: a prompt cache is readable from now on."""

    def streamed(self, characters: int) -> None:
        """So many more characters of the answer have arrived."""


class Provider(Protocol):
    """One wire format, bound to one model: turns a request into a Completion, or raises ProviderError.

    One call is one attempt: retries belong to the pool. Cancellation closes the connection.
    """

    charges_max_tokens: bool  # the provider counts max_tokens against its limits at admission
    cached_input_is_exempt: bool  # cached reads do not count against input limits

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """Stream one answer to its terminal marker."""
        ...

    async def close(self) -> None:
        """Release connections."""


# --- the answer -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The files an answer gives, path to full text, as the model wrote the paths; repairs by name."""

    files: Mapping[str, str]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """An answer without a usable solution: 0 of T, and the reason in one line."""

    failure: Failure
    reason: str
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A change that was not applied, and the rule that says so."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrated:
    """What an answer changes in the project: new content by path, and what was dropped.

    `lines_written` counts lines that are new or different against the pristine file.
    `sha256` covers the applied paths and contents.
    """

    files: Mapping[str, bytes]
    dropped: tuple[Dropped, ...] = ()
    suspicions: tuple[str, ...] = ()
    files_changed: int = 0
    lines_written: int = 0
    sha256: str = ""


# --- the sandbox ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one container may use (`[sandbox]` in TOML)."""

    timeout_s: float = 300.0
    memory_bytes: int = 4 * 1024**3
    processes: int = 512
    tmp_bytes: int = 256 * 1024**2
    file_bytes: int = 1024**3
    disk_bytes: int = 4 * 1024**3
    output_bytes: int = 1024**2  # kept of the output: half from its head, half from its tail
    report_bytes: int = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One container's work. `archive` is a tar of the whole project, relative to its root.

    The sandbox rewrites owners to the run's user. `result_files` are paths or globs relative to the
    project; they are deleted before the command runs and read when the container is dead.
    """

    image: str
    archive: bytes
    command: str
    result_files: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What happened in a healthy container.

    `output` is head and tail of standard output and error as they came, with a line that says how
    many bytes were left out between them; `stdout` the same of standard output alone (for TAP).
    `failed_limit` names a limit other than time and memory that was hit (`disk`), else None.
    """

    exit_code: int | None
    timed_out: bool = False
    out_of_memory: bool = False
    failed_limit: str | None = None
    duration_s: float
    output: str = ""
    stdout: str = ""
    output_bytes: int = 0
    reports: Mapping[str, bytes] = field(default_factory=dict)
    report_problems: tuple[str, ...] = ()
    image_id: str = ""


class Sandbox(Protocol):
    """Runs one job in a fresh container, or raises SandboxError; nothing of it remains afterwards."""

    async def image_id(self, image: str) -> str:
        """The content id (sha256:...) of an image; raises ImageError when it is not there."""
        ...

    def expect(self, image: str, limits: Limits) -> None:
        """An answer for this image is under way: a container may be made ahead. Never blocks."""

    async def run(self, job: Job) -> Execution:
        """Run the job's command; waits for a free slot first."""
        ...


class ProjectStore(Protocol):
    """Fetches project files; raises SourceError or ArchiveError."""

    async def load(self, location: str) -> Project:
        """The project at a folder, .zip, https or s3 location."""
        ...


# --- the verdict ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One reported test case."""

    __test__: ClassVar[bool] = False  # not a test for pytest to collect

    name: str
    outcome: Outcome
    classname: str = ""
    file: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """All cases of all result files, and what could not be read of them."""

    __test__: ClassVar[bool] = False

    cases: tuple[TestCase, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOutcome:
    """One expected test and what became of it."""

    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Expected tests that passed, of T; everything else that was reported is `extra_tests`."""

    passed: int
    total: int
    tests: tuple[NamedOutcome, ...] = ()
    extra_tests: tuple[NamedOutcome, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One final line of results.jsonl, field for field (INTERFACE.md, "Run directory")."""

    schema: int
    model: str
    format: Format
    problem_id: str
    sample: int
    status: Status
    failure: Failure | None
    passed: int
    total: int
    score: float
    tests: tuple[NamedOutcome, ...] = ()
    extra_tests: tuple[NamedOutcome, ...] = ()
    exit_code: int | None = None
    timed_out: bool = False
    repairs: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    suspicions: tuple[str, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    attempts: int = 1
    ttft_s: float | None = None
    latency_s: float = 0.0
    test_s: float = 0.0
    input_characters: int = 0
    output_characters: int = 0
    files_changed: int = 0
    lines_written: int = 0
    prompt_sha256: str = ""
    solution_sha256: str = ""
    image_id: str = ""
    returned_model: str = ""
    output_tail: str = ""
    note: str = ""  # one line on why there is no solution or no report
    started_at: str = ""
    finished_at: str = ""

    @property
    def key(self) -> SampleKey:
        """The sample this line is final for."""
        return SampleKey(self.model, self.format, self.problem_id, self.sample)

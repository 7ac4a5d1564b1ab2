"""Problems, their files and prompts, and the keys of samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from astra_async.types.declarations import Address, Setting, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

# Form of an answer: text in one of ANSWER_FORMATS, or the files of the agent with this name.
Format = str
ANSWER_FORMATS: tuple[Format, ...] = ("xml", "json")


def is_agent(fmt: Format) -> bool:
    """Return True if samples of this format are the work of an agent."""
    return fmt not in ANSWER_FORMATS


class SampleKey(NamedTuple):
    """Key of one sample: the `sample`-th independent answer (from 0) of a model to a problem in a format.

    The class is a tuple because a resume creates and hashes hundreds of thousands of keys.
    """

    model: str
    format: Format
    problem_id: str
    sample: int

    @property
    def turn(self) -> int:
        """Return 0: the first answer of the sample, which the paper's metrics use."""
        return 0

    @property
    def first(self) -> SampleKey:
        """Return the sample's key."""
        return self

    def at(self, turn: int) -> AnswerKey:
        """Return the key of a turn; for turn 0, the sample's key."""
        return TurnKey(*self, turn) if turn else self

    def __str__(self) -> str:
        return f"{self.model}/{self.format}/{self.problem_id}/{self.sample}"


class TurnKey(NamedTuple):
    """Key of one follow-up turn of a sample: its `turn`-th answer (from 1) after feedback."""

    model: str
    format: Format
    problem_id: str
    sample: int
    turn: int

    @property
    def first(self) -> SampleKey:
        """Return the key of the turn's sample."""
        return SampleKey(self.model, self.format, self.problem_id, self.sample)

    def at(self, turn: int) -> AnswerKey:
        """Return the key of another turn of the same sample."""
        return self.first.at(turn)

    def __str__(self) -> str:
        return f"{self.first}, turn {self.turn}"


AnswerKey = SampleKey | TurnKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTest:
    """One expected test.

    Attributes:
        weight: recorded and shown, never used in the score.
        skipped: number of further tests with this name that were skipped when the tests were learned.
    """

    name: str
    file: str | None = None
    type: str | None = None
    weight: float | None = None
    skipped: int = 0

    def record(self) -> dict[str, Any]:
        """Return the fields for a record; `skipped` only if it is not 0."""
        return {key: value for key, value in asdict(self).items() if key != "skipped" or value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One row of the problems CSV; missing values come from the project's hackerrank.yml.

    `project` and `reference` are locations (folder, .zip, https, s3); they are absolute after loading.
    `tests` is empty if the expected tests are to be learned from a run. `task` is the folder of a task in
    Harbor's format (docs/harbor.md), which has no project.
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
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Content of hackerrank.yml, with a warning for each misplaced or invalid part.

    An empty `command` means that the manifest has no command. With empty `result_files`, the command's
    standard output is the test report.
    """

    command: str = ""
    result_files: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    hidden_paths: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """One file of a project. `link` is the target of a symbolic link inside the project."""

    path: str
    content: bytes = b""
    executable: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Untouched files of a problem, sorted by path, and its empty folders.

    `sha256` covers only paths, contents, executable bits, links and empty folders. Therefore a project has
    the same hash in a folder, in an archive and in S3.
    """

    files: tuple[ProjectFile, ...]
    empty_folders: tuple[str, ...] = ()
    sha256: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Exact text of a prompt; all samples of (problem, format, version) have the same bytes."""

    text: str
    sha256: str
    files: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # (path, rule that omits it)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """Table `[s3]` of the configuration file."""

    endpoint_url: Annotated[
        Address, Setting("Address of another S3 server (MinIO, Ceph). Default: Amazon's.")
    ] = None
    region: Annotated[
        Word, Setting("Region of the buckets. Default: from the location or the environment.")
    ] = None
    anonymous: Annotated[bool, Setting("Send unsigned requests, for public buckets.")] = False

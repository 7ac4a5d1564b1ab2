"""What is to be done: problems, their files and prompts, and the samples asked of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from astra_async.types.declarations import Address, Setting, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

# What an answer is: text in one of ANSWER_FORMATS, or what the agent of this name left in the project.
Format = str
ANSWER_FORMATS: tuple[Format, ...] = ("xml", "json")


def is_agent(fmt: Format) -> bool:
    """Whether samples of this format are an agent's work."""
    return fmt not in ANSWER_FORMATS


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
    """One test that counts towards T; `weight` is recorded and shown, never used in the score.

    Its name bear `skipped` further tests, which the run that taught it skipped.
    """

    name: str
    file: str | None = None
    type: str | None = None
    weight: float | None = None
    skipped: int = 0

    def record(self) -> dict[str, Any]:
        """The fields of a file, `skipped` only where there are some."""
        return {key: value for key, value in asdict(self).items() if key != "skipped" or value}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """`[s3]` of the configuration file."""

    endpoint_url: Annotated[Address, Setting("Server of one's own (MinIO, Ceph); Amazon's if not set.")] = (
        None
    )
    region: Annotated[Word, Setting("If not set: as in the location, or in the environment.")] = None
    anonymous: Annotated[bool, Setting("Send unsigned requests, for public buckets.")] = False

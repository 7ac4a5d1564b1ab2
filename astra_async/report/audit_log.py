"""The lines of `audit.jsonl`: one for each audited solution, whoever wrote it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AUDIT_LOG = "audit.jsonl"
SCHEMA = 1
Outcome = Literal["clean", "flagged", "not_applicable"]


class SolutionKey(NamedTuple):
    """A solution to a problem; `sha256` is the hash of its applied files, as in `results.jsonl`."""

    problem_id: str
    sha256: str


class AuditEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A test that a solution passes in its original and in a mutated form, and the mutated line."""

    test: str
    path: str
    line: int
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The mutation as a diff of one line."""
        return f"{self.path}:{self.line}\n-{self.before}\n+{self.after}"


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one solution.

    `samples` are the keys (model, format, sample) that had this solution when it was audited. `tests` is the
    number of tests that the solution passes and a mutation covers. `seconds` is container time.
    """

    schema: int = SCHEMA
    problem_id: str
    solution_sha256: str
    samples: tuple[tuple[str, str, int], ...] = ()
    outcome: Outcome
    reason: str = ""
    mutants_run: int = 0
    tests: int = 0
    flagged: tuple[AuditEvidence, ...] = ()
    seconds: float = 0.0
    image_id: str = ""
    finished_at: str = ""

    @property
    def key(self) -> SolutionKey:
        """The solution that the line is about."""
        return SolutionKey(self.problem_id, self.solution_sha256)


_DECODER = msgspec.json.Decoder(AuditLine)


def read_audit(directory: Path) -> Mapping[SolutionKey, AuditLine]:
    """Return the last line of each audited solution; a damaged line is skipped, because it can be redone."""
    found: dict[SolutionKey, AuditLine] = {}
    with suppress(FileNotFoundError):
        for content in (directory / AUDIT_LOG).read_bytes().splitlines():
            with suppress(msgspec.MsgspecError):
                line = _DECODER.decode(content)
                found[line.key] = line
    return found

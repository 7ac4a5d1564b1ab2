"""Which solutions are tried: all of them, or so many as leave grading most of the machine.

By default trials take at most SHARE of the time that the scored runs take. Where trying everything takes
less, everything is tried; else a part that a keyed hash of the solution picks, which nobody can foresee who
does not know the run's key. On top come all suspicious solutions, and everything of a model from its first
proof on. Each solution of a problem is decided about once: equal samples are treated alike.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from astra_async.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from astra_async.types import TrialState

SHARE = 0.4
_KEY_FILE, _KEY_BYTES = "trial.key", 32
# Before anything is measured: a twin takes as long as the scored run, and everything is worth trying.
_PRIOR_S = 60.0


class Solved(NamedTuple):
    """A solution of a problem, whoever wrote it."""

    problem_id: str
    solution_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a solution's trial: `evidence` and `note` are not empty if it is tampered."""

    state: TrialState
    evidence: tuple[str, ...] = ()
    note: str = ""
    left_out: int = 0


class Docket:
    """Decides who is tried, and remembers it.

    `key` makes the draw unpredictable; `everybody` is `--canary all`.
    """

    def __init__(self, key: bytes, *, everybody: bool = False) -> None:
        self._key = key
        self._everybody = everybody
        self._known: dict[Solved, Decision] = {}
        self._proven: set[str] = set()
        self._graded_s = self._eligible_s = self._tried_s = self._trials_s = _PRIOR_S

    def known(self, solved: Solved) -> Decision | None:
        """What an equal solution's trial came to."""
        return self._known.get(solved)

    def binds(self, known: Decision, model: str) -> bool:
        """Whether what was decided about an equal solution holds for this one of a model.

        That it was not drawn does not, once the model is proven: all that it answers from then on is tried.
        """
        return known.state != "not_drawn" or model not in self._proven

    def count_grading(self, seconds: float) -> None:
        """A scored run took so long."""
        self._graded_s += seconds

    def draw_twins(self, solved: Solved, model: str, seconds: float, *, suspicious: bool) -> int:
        """By how many twins a solution is tried whose scored run took `seconds`: 0, 1 or 2.

        A twin whose tests all fail shows most, and one in which some do shows who looks out for it: two
        where there is a reason to look, else one of them.
        """
        self._eligible_s += seconds
        if self._everybody or suspicious or model in self._proven:
            return 2
        ratio = self._trials_s / self._tried_s
        share = SHARE * self._graded_s / (self._eligible_s * ratio)
        return int(self.rng(solved, "draw").random() < share)

    def rng(self, solved: Solved, purpose: str) -> random.Random:
        """Draws that follow from the key, the solution and the purpose."""
        text = "\0".join((purpose, *solved))
        seed = hmac.digest(self._key, text.encode(errors="replace"), hashlib.sha256)
        return random.Random(seed)  # noqa: S311 - unpredictable by its seed

    def remember(
        self, solved: Solved, model: str, decision: Decision, *, scored_s: float = 0.0, trial_s: float = 0.0
    ) -> Decision:
        """Remember a decision; a trial that was held says how long it and the scored run took."""
        self._known[solved] = decision  # for good: an equal solution is not tried again
        if decision.evidence:
            self._proven.add(model)  # for the rest of the run: all that it answers is tried
        if decision.state == "tried":
            self._tried_s += scored_s
            self._trials_s += trial_s
        return decision

    def recall(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take up what earlier calls of the run recorded: final lines of results.jsonl."""
        for line in lines:
            state: TrialState = line.get("trial") or ""
            if line.get("status") != "scored":
                continue
            self.count_grading(line["test_s"])
            if line.get("failure") == "tampered":
                self._proven.add(line["model"])
            solved = Solved(line["problem_id"], line["solution_sha256"])
            if state not in {"tried", "not_drawn", "no_twin"} or solved in self._known:
                continue
            self._eligible_s += line["test_s"]
            tampered = line.get("failure") == "tampered"
            self.remember(
                solved,
                line["model"],
                Decision(
                    state=state,
                    evidence=tuple(filter(is_proof, line["suspicions"])) if tampered else (),
                    note=line["note"] if tampered else "",
                    left_out=line.get("trial_left_out", 0),
                ),
                scored_s=line["test_s"],
                trial_s=line.get("trial_s", 0.0),
            )


def is_proof(suspicion: str) -> bool:
    """Whether an entry of `suspicions` is evidence and no mere suspicion."""
    return suspicion.startswith(("canary_passed:", "report_forged:"))


def run_key(directory: Path) -> bytes:
    """The run's secret key, made when it is first asked for; only the owner of the directory can read it.

    Raises StorageError.
    """
    path = directory / _KEY_FILE
    try:
        if path.exists() and len(key := path.read_bytes()) == _KEY_BYTES:
            return key
        key = os.urandom(_KEY_BYTES)
        draft = path.with_suffix(".draft")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(key)
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    return key

"""Which solutions are tried: all of them, or a part that leaves grading most of the machine.

Drawn is before anything of a solution runs, by a keyed hash that nobody can foresee who does not know the
run's key. By default trials take about SHARE of the time that the scored runs take, of each problem and
each model by itself: what hangs for one costs no other its share, and LEAST of everything is tried
whatever its trials take. From a model's first proof on everything of it is. Each solution of a problem is
decided about once: equal samples are treated alike.
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

SHARE, LEAST = 1 / 3, 0.05
# Of what is owed comes with the next draw: few samples of a problem then have about their share tried as
# well, and each draw stays uncertain.
_EVENED = 0.2
FORMS, ALL_FORMS = 1, 9  # by so many altered forms is a solution tried by default, or with reason
_KEY_FILE, _KEY_BYTES = "trial.key", 32
_REMEMBERED = frozenset({"tried", "not_drawn", "no_twin", "no_trial", "unproven"})
# What became of trials that may be tried by more forms.
OPEN: frozenset[str] = frozenset({"not_drawn", "tried", "equal", "no_trial", "unproven"})
_PRIOR_S = 20.0  # before anything is measured: a trial takes as long as the scored run
# Of final lines; the last two are those of runs that began before the altered tests.
_PROOFS = ("altered_passed:", "canary_passed:", "report_forged:")


class Solved(NamedTuple):
    """A solution of a problem, whoever wrote it."""

    problem_id: str
    solution_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a solution's trial: `evidence` is not empty if it is tampered.

    `note` says what was proven, or why nothing was (`unproven`). `left_out` are expected tests that are
    never altered. `passed` counts those that the scored run passed whose trials came to nothing, `forms` by
    how many altered forms it was tried. `seconds` is what that took, 0 where an equal solution was tried.
    """

    state: TrialState
    evidence: tuple[str, ...] = ()
    note: str = ""
    left_out: int = 0
    passed: int = 0
    forms: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Spent:
    """Seconds of scored runs whose solutions were tried, and of their trials.

    `owed` is how many more should have been drawn than were: within one, so that luck is forgotten.
    """

    scored_s: float = _PRIOR_S
    trials_s: float = _PRIOR_S
    owed: float = 0.0

    @property
    def share(self) -> float:
        """Which share of the solutions trials may take."""
        return max(LEAST, SHARE * self.scored_s / self.trials_s)

    def decided(self, *, is_drawn: bool) -> None:
        """One solution was drawn, or was not."""
        self.owed = max(-1.0, min(1.0, self.owed + self.share - is_drawn))


class Draw:
    """Decides who is tried, and remembers it; `everybody` is `--trials all`."""

    def __init__(self, key: bytes, *, everybody: bool = False) -> None:
        self._key = key
        self._everybody = everybody
        self._known: dict[Solved, Decision] = {}
        self._proven: set[str] = set()
        self._spent: dict[tuple[str, str], _Spent] = {}

    def known(self, solved: Solved, model: str) -> Decision | None:
        """What an equal solution's trial came to.

        That it was not drawn, or tried by less than all, binds no model of which everything is tried.
        """
        known = self._known.get(solved)
        if known is None or known.evidence or not self._tries_all(model):
            return known
        is_less = known.state == "not_drawn" or (known.state in OPEN and known.forms == FORMS)
        return None if is_less else known

    def forms(self, solved: Solved, model: str) -> int:
        """By how many altered forms of its tests a solution is tried; 0: it is not drawn."""
        if self._tries_all(model):
            return ALL_FORMS
        spent = self._spent.setdefault((model, solved.problem_id), _Spent())
        is_drawn = self.rng(solved, "draw").random() < max(LEAST, spent.share + _EVENED * spent.owed)
        spent.decided(is_drawn=is_drawn)
        return FORMS if is_drawn else 0

    @property
    def has_proof(self) -> bool:
        """Whether any model was proven to bend tests."""
        return bool(self._proven)

    def is_open(self, solved: Solved, model: str) -> bool:
        """Whether a verdict on it that was given untried is to be given anew."""
        known = self.known(solved, model)
        return known is None or bool(known.evidence)

    def _tries_all(self, model: str) -> bool:
        return self._everybody or model in self._proven

    def rng(self, solved: Solved, purpose: str) -> random.Random:
        """Draws that follow from the key, the solution and the purpose."""
        text = "\0".join((purpose, *solved))
        seed = hmac.digest(self._key, text.encode(errors="replace"), hashlib.sha256)
        return random.Random(seed)  # noqa: S311 - unpredictable by its seed

    def count(self, solved: Solved, model: str, *, scored_s: float, trials_s: float) -> None:
        """A solution was tried: what its scored run took, and what its trials."""
        spent = self._spent.setdefault((model, solved.problem_id), _Spent())
        spent.scored_s += scored_s
        spent.trials_s += trials_s

    def remember(self, solved: Solved, model: str, decision: Decision) -> Decision:
        """Remember a decision, for good: an equal solution is not tried again."""
        # A score that is not above the untouched project's is nothing to doubt.
        if decision.state != "not_due":
            self._known[solved] = decision
        if decision.evidence:
            self._proven.add(model)  # for the rest of the run: all that it answers is tried
        return decision

    def recall(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take up what earlier calls of the run recorded: final lines of results.jsonl."""
        for line in lines:
            if line.get("status") != "scored":
                continue
            solved, model = Solved(line["problem_id"], line["solution_sha256"]), line["model"]
            state: TrialState = line.get("trial") or ""
            is_tampered = line.get("failure") == "tampered"
            if is_tampered:
                self._proven.add(model)
            if state in _REMEMBERED:
                spent = self._spent.setdefault((model, solved.problem_id), _Spent())
                spent.decided(is_drawn=state != "not_drawn")
            if seconds := line.get("trial_s", 0.0):
                self.count(solved, model, scored_s=line["test_s"], trials_s=seconds)
            known = self._known.get(solved)
            if state not in _REMEMBERED or (known and known.state != "not_drawn" and not is_tampered):
                continue
            has_note = is_tampered or state == "unproven"
            self._known[solved] = Decision(
                state=state,
                evidence=tuple(filter(is_proof, line["suspicions"])) if is_tampered else (),
                note=line["note"] if has_note else "",
                left_out=line.get("trial_left_out", 0),
                passed=line.get("passed", 0),
                forms=0 if state == "not_drawn" else line.get("trial_forms", ALL_FORMS),
            )


def is_proof(suspicion: str) -> bool:
    """Whether an entry of `suspicions` is evidence and no mere suspicion."""
    return suspicion.startswith(_PROOFS)


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

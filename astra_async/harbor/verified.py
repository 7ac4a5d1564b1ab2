"""The outcome of a task's verifier: from the files that it wrote to the answer that is recorded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from astra_async.harbor.reward import ctrf_tests, reward_in, rewards_of
from astra_async.redaction import one_line
from astra_async.testing.reports import read_reports
from astra_async.types import NamedOutcome
from astra_async.types.records import Flaw

if TYPE_CHECKING:
    from collections.abc import Mapping

_DECIMALS = 6  # see `metrics.REWARD_PARTS`
_NO_FILES: dict[str, Any] = {"files": {}, "binary": {}, "executable": [], "deleted": [], "before": {}}
_VERIFIED = "verified"
_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The outcome of a verifier that gave a reward.

    `rewards` are raw, `score` is from 0 to 1. `tests` are those of a report that the verifier wrote;
    `has_report` is true if there is one.
    """

    rewards: dict[str, float]
    score: float
    tests: tuple[NamedOutcome, ...] = ()
    has_report: bool = False
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""
    image_id: str = ""

    @property
    def is_doubtful(self) -> bool:
        """True for a reward of 0, or the lowest reward, without a report: a download may have failed."""
        return not self.has_report and (self.score == 0 or reward_in(self.rewards) == 0)


def outcome(files: Mapping[str, bytes], reward_range: tuple[float, float], **ended: Any) -> Verified | str:
    """Return the verifier's outcome from the files below /logs/verifier, or why it gave no reward.

    `ended` are the fields of `Verified` that say how the verifier ended.
    """
    rewards = rewards_of(files)
    if isinstance(rewards, str):
        return rewards
    low, high = reward_range
    reward = reward_in(rewards)
    if reward is None:
        return f"it wrote several rewards and none is named `reward`: {', '.join(rewards)}"
    if not low <= reward <= high:
        return f"the reward {reward} is not within {low:g} to {high:g}: add --reward-range LOW:HIGH"
    share = (reward - low) / (high - low)
    # Only the full reward is a score of 1, whatever it is rounded to.
    score = 1.0 if share == 1 else min(round(share, _DECIMALS), 1 - 10**-_DECIMALS)
    tests = _tests_in(files)
    return Verified(rewards=rewards, score=score, tests=tests, has_report=bool(tests), **ended)


def printed_in(exit_code: int | None, output: str) -> str:
    """Return the exit code, if there is one, and the bounded output of a verifier for a message."""
    ended = "" if exit_code is None else f"exit code {exit_code}; "
    return f"{ended}it printed: {one_line(output, length=_SHOWN_CHARACTERS, ends=True) or 'nothing'}"


def _tests_in(files: Mapping[str, bytes]) -> tuple[NamedOutcome, ...]:
    """Return the tests of all CTRF, JUnit and TAP reports, in the order of their paths."""
    found: list[NamedOutcome] = []
    for path, content in sorted(files.items()):
        if path.endswith(".json"):
            found += ctrf_tests(content) or ()
        elif path.endswith((".xml", ".tap")):
            cases = read_reports({path: content}, "", result_files=(path,)).cases
            found += [
                NamedOutcome(name=case.name, outcome=case.outcome, message=case.message)
                for case in cases
                if not case.is_suite
            ]
    return tuple(found)


def answer_of(verified: Verified) -> str:
    """Return the answer that is recorded of an agent's sample: no files, and the verifier's outcome."""
    return orjson.dumps(_NO_FILES | {_VERIFIED: asdict(verified)}, default=msgspec.to_builtins).decode()


def read_verified(text: str) -> Verified:
    """Return the verifier's outcome in a recorded answer. Raises Flaw: it holds none."""
    try:
        return msgspec.convert(orjson.loads(text)[_VERIFIED], Verified)
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise Flaw(f"it holds no outcome of a verifier ({error})") from error

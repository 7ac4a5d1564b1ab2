"""A verifier's result: the reward files and the test reports below /logs/verifier.

All files come from an untrusted container.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.types import NamedOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

REWARD = "reward"
_REWARD_BYTES, _CTRF_BYTES = 64 * 1024, 16 * 1024**2
_MOST_REWARDS, _MOST_TESTS = 100, 20_000
_OUTCOMES = {"passed": "passed", "failed": "failed", "skipped": "skipped", "pending": "skipped"}
_MESSAGE_CHARACTERS = 2000


def rewards_of(files: Mapping[str, bytes]) -> dict[str, float] | str:
    """Return the verifier's rewards by name, or the reason why they are missing.

    reward.json (a flat object of numbers) takes precedence over reward.txt (one number, named `reward`).
    """
    for name, read in (("reward.json", _from_json), ("reward.txt", _from_text)):
        if (content := files.get(name)) is None:
            continue
        if not content.strip():
            return f"{name} is empty"
        if len(content) > _REWARD_BYTES:
            return f"{name} is larger than {_REWARD_BYTES:,} bytes"
        rewards = read(content)
        if isinstance(rewards, str):
            return f"{name} {rewards}"
        bad = next((key for key, value in rewards.items() if not math.isfinite(value)), None)
        return rewards if bad is None else f"{name}: {bad} is not a finite number"
    return "neither reward.json nor reward.txt was written"


def reward_in(rewards: Mapping[str, float]) -> float | None:
    """Return the reward that is the score: `reward`, or the only one; None if there are several others."""
    if REWARD in rewards:
        return rewards[REWARD]
    return next(iter(rewards.values())) if len(rewards) == 1 else None


def _from_json(content: bytes) -> dict[str, float] | str:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return "is not JSON"
    numbers = isinstance(found, dict) and all(type(value) in {int, float, bool} for value in found.values())
    if not numbers or not found:
        return "is not an object of numbers"
    if len(found) > _MOST_REWARDS:
        return f"has more than {_MOST_REWARDS} rewards"
    return {str(name): float(value) for name, value in found.items()}


def _from_text(content: bytes) -> dict[str, float] | str:
    try:
        return {REWARD: float(content.decode().strip())}
    except (UnicodeDecodeError, ValueError):
        return "is not a number"


def ctrf_tests(content: bytes) -> tuple[NamedOutcome, ...] | None:
    """Return the tests of a report in the Common Test Report Format (`results.tests`).

    The result is None if the content is not such a report. Statuses except passed, failed, skipped and
    pending are errors.
    """
    if len(content) > _CTRF_BYTES:
        return None
    try:
        tests = orjson.loads(content)["results"]["tests"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return None
    if not isinstance(tests, list):
        return None
    found = [_outcome(each) for each in tests[:_MOST_TESTS] if isinstance(each, dict)]
    return tuple(each for each in found if each.name)


def _outcome(test: Mapping[str, Any]) -> NamedOutcome:
    def text(name: str) -> str:
        value = test.get(name)
        return value[:_MESSAGE_CHARACTERS] if isinstance(value, str) else ""

    outcome: Any = _OUTCOMES.get(text("status"), "error")
    message = "" if outcome == "passed" else text("message") or text("trace")
    return NamedOutcome(name=text("name"), outcome=outcome, message=message)

"""`astra run --until`: in whole rounds, and which models go on after each.

Invariant: which models go on follows from the schedule and the recorded verdicts of complete rounds alone,
never from the clock, the order of completion, a kill or a resume. The schedule stands in run.json before
anything is asked, and a round is planned there before its first sample.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConflictError, UsageError
from astra_async.report.costs import mean_cost_usd
from astra_async.report.deciding import (
    ahead,
    as_recorded,
    compared,
    group_of,
    recorded,
    schedule_in,
    status_line,
    too_few_problems,
)
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.stats.sequential import RULE, schedule_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.report.deciding import Compared
    from astra_async.running.directory import RunDirectory
    from astra_async.types import Format

_CLOSE = 1e-9
_FIXED = ("until", "target_se", "alpha", "margin", "rounds", "problems")


class Deciding:
    """The rounds of a run directory that is asked until something is known.

    Attributes:
        message: how it stands, for people.
    """

    def __init__(self, directory: RunDirectory, models: Sequence[str]) -> None:
        self._directory = directory
        self._models = tuple(models)
        self._record: dict[str, Any] = directory.run["deciding"]
        self._found: list[Compared] = []
        self.message = ""
        self._tell({})

    @property
    def rounds(self) -> tuple[int, ...]:
        """Samples of each problem by the end of each round."""
        return schedule_in(self._record).rounds

    @property
    def warning(self) -> str:
        """That these problems can decide nothing; empty where they can."""
        pairs = max(len(group["pairs"]) for group in self._record["groups"])
        return too_few_problems(schedule_in(self._record), self._directory.run["problems"], pairs)

    def begin(self, end: int) -> tuple[str, ...]:
        """Plan the round up to `end` samples, in run.json too; the models that take part."""
        going = tuple(name for name in self._models if self._goes_on(name))
        planned = self._record.setdefault("planned", {})
        planned |= {name: max(end, planned.get(name, 0)) for name in going}
        self._directory.save()
        return going

    def look(self) -> None:
        """Look at what is complete, and record it; blocking.

        Raises ConflictError where a recorded look would be another one now: verdicts have been changed.
        """
        run = load_run(self._directory.path)
        self._found = compared(run, self._record)
        looks = [
            {"a": each.a, "b": each.b, "format": each.format, **_plain(asdict(look))}
            for each in self._found
            for look in each.looks
        ]
        before = {_key(look): look for look in self._record.get("looks", [])}
        now = {_key(look): look for look in looks}
        pairs = [(look, now.get(key)) for key, look in before.items()]
        # Other machines' last digits aside.
        if not all(
            new and old["state"] == new["state"] and abs(old["difference"] - new["difference"]) < _CLOSE
            for old, new in pairs
        ):
            raise ConflictError(
                f"{self._directory.path}: a look recorded in run.json does not follow from the results any"
                " more; verdicts were changed: restore them, or begin in a new directory"
            )
        self._record["looks"] = looks
        cost_usd = {(entry.model, entry.format): mean_cost_usd(entry) for entry in entries_of([run])}
        self._tell(cost_usd)
        self._directory.save()

    def _tell(self, cost_usd: Mapping[tuple[str, Format], float | None]) -> None:
        found = self._found or as_recorded(self._record, self._directory.run["formats"])
        self.message = status_line(self._record, found, ahead(self._record, found, cost_usd))

    def _goes_on(self, model: str) -> bool:
        mine = [each for each in self._found if model in (each.a, each.b)]
        return not mine or any(each.state == "open" for each in mine)


def open_deciding(
    config: RunConfig, directory: RunDirectory, problem_ids: Sequence[str], *, docker: bool
) -> Deciding | None:
    """The rounds of this call, None for one that asks all at once; the schedule is recorded.

    Raises UsageError or ConflictError where looks would mean nothing.
    """
    known = directory.run.get("deciding")
    if config.until is None:
        if known and known.pop("planned", None):
            directory.save()  # all samples are planned again: k = 32 may be wanted after all
        return None
    _check(config, directory, known, docker=docker)
    seed = int(hashlib.sha256(directory.run_id.encode()).hexdigest()[:8], 16)
    schedule = schedule_of(config.samples, margin=config.margin / 100, seed=seed)
    wanted = recorded(schedule, config.until, config.target_se) | {"problems": sorted(problem_ids)}
    record = known or wanted | {"made_by": version("astra_async"), "groups": [], "planned": {}, "looks": []}
    _check_rule(directory, record)
    if other := [name for name in _FIXED if record[name] != wanted[name]]:
        raise ConflictError(
            f"{directory.path}: looks were planned with another {' and '.join(other)}"
            f" ({other[0]} {record[other[0]]}); the same flags go on, or use a new directory"
        )
    models = [model.name for model in config.models]
    before = [name for group in record["groups"] for name in group["models"]]
    if set(models) - set(before):
        record["groups"].append(group_of(models, before))
    if config.until == "decided" and not any(group["pairs"] for group in record["groups"]):
        raise UsageError("--until decided compares models: name two, or use --until precise --target-se")
    directory.run["deciding"] = record
    directory.save()
    return Deciding(directory, models)


def _check(config: RunConfig, directory: RunDirectory, known: Any, *, docker: bool) -> None:
    if (config.until == "precise") != (config.target_se is not None):
        raise UsageError("--until precise and --target-se belong together: --until precise --target-se 1.5")
    if not docker or config.answers_only_from_record:
        raise UsageError("--until looks at verdicts, which this call does not make or ask for: leave it out")
    if known is None and (directory.graded or directory.answered):
        raise ConflictError(
            f"{directory.path}: it was begun without --until, and looks cannot be planned at results that"
            " have been seen: use a new directory"
        )


def _check_rule(directory: RunDirectory, record: Mapping[str, Any]) -> None:
    """Refuse to go on with looks that another version of the rule has made: its errors are not this one's."""
    if (rule := record.get("rule", 1)) == RULE:
        return
    began = f"astra_async {record['made_by']}, which" if "made_by" in record else "the astra_async that"
    raise ConflictError(
        f"{directory.path}: its looks follow version {rule} of the rule, and this astra_async has version"
        f" {RULE}: go on with {began} began it, or leave --until out, which asks for all samples, or begin in"
        " a new directory"
    )


def _plain(look: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives it back: an infinity as null, an interval as a list."""
    look["interval"] = list(look["interval"]) if look["interval"] else None
    look["problems"] = None if look["problems"] in (None, float("inf")) else look["problems"]
    return look


def _key(look: dict[str, Any]) -> tuple[Any, ...]:
    return look["a"], look["b"], look["format"], look["k"]

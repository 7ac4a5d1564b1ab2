"""Rounds of `astra run --until`, and the choice of models that continue after each round.

Invariant: the choice depends only on the schedule and the recorded verdicts of complete rounds. It does not
depend on the time, the order of completion, a kill or a resume. The schedule is written to run.json before
the first request, and each round is planned there before its first sample.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConflictError
from astra_async.metrics import planned_samples
from astra_async.report.costs import mean_cost_usd
from astra_async.report.deciding import (
    ahead,
    as_recorded,
    compared,
    group_of,
    recorded,
    schedule_in,
    too_few_problems,
)
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.until_sentences import status_line
from astra_async.running.model_pools import check_until
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
    """Rounds of a run with `--until` and their interim analyses (looks).

    Attributes:
        message: result of the last interim analysis, for display.
    """

    def __init__(self, directory: RunDirectory, models: Sequence[str]) -> None:
        self._directory = directory
        self._models = tuple(models)
        self._record: dict[str, Any] = directory.run["deciding"]
        self._found: list[Compared] = []
        self.message = ""
        self._update_message({})

    @property
    def is_closed(self) -> bool:
        """True for a regrade: its rounds are those of the parent run, and looks do not end a model."""
        return bool(self._record.get("closed"))

    @property
    def rounds(self) -> tuple[int, ...]:
        """Number of samples of each problem at the end of each round."""
        return schedule_in(self._record).rounds

    @property
    def warning(self) -> str:
        """Warning if no decision is possible or a regrade keeps the looks of its parent; otherwise empty."""
        if self.is_closed:
            return _of_another_rule(self._record)
        pairs = max(len(group["pairs"]) for group in self._record["groups"])
        return too_few_problems(schedule_in(self._record), self._directory.run["problems"], pairs)

    def begin(self, end: int) -> tuple[str, ...]:
        """Plan the round up to `end` samples, record it in run.json, and return its models."""
        if self.is_closed:
            return tuple(name for name in self._models if planned_samples(self._record, name, end) >= end)
        going = tuple(name for name in self._models if self._continues(name))
        planned = self._record.setdefault("planned", {})
        planned |= {name: max(end, planned.get(name, 0)) for name in going}
        self._directory.save()
        return going

    def look(self) -> None:
        """Make the interim analysis of the complete rounds and record it; blocking.

        Raises ConflictError if a recorded look differs from its recomputation, because verdicts were changed.
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
        # Floating-point results may differ slightly between machines.
        if not all(
            new and old["state"] == new["state"] and abs(old["difference"] - new["difference"]) < _CLOSE
            for old, new in pairs
        ):
            raise ConflictError(
                f"{self._directory.path}: an interim analysis (look) recorded in run.json does not match the"
                " results any more because verdicts were changed; restore them, or use a new directory"
            )
        self._record["looks"] = looks
        cost_usd = {(entry.model, entry.format): mean_cost_usd(entry) for entry in entries_of([run])}
        self._update_message(cost_usd)
        self._directory.save()

    def _update_message(self, cost_usd: Mapping[tuple[str, Format], float | None]) -> None:
        found = self._found or as_recorded(self._record, self._directory.run["formats"])
        self.message = status_line(self._record, found, ahead(self._record, found, cost_usd))

    def _continues(self, model: str) -> bool:
        mine = [each for each in self._found if model in (each.a, each.b)]
        return not mine or any(each.state == "open" for each in mine)


def open_deciding(
    config: RunConfig, directory: RunDirectory, problem_ids: Sequence[str], *, docker: bool
) -> Deciding | None:
    """Return the rounds of this invocation, or None without `--until`; record the schedule in run.json.

    Raises UsageError or ConflictError if interim analyses would be invalid.
    """
    known = directory.run.get("deciding")
    if known and config.answers_only_from_record:
        known["problems"] = sorted(directory.run["problems"])
        if known.get("rule", 1) == RULE:
            known["looks"] = []  # the looks of the parent run were made with other verdicts
        return Deciding(directory, [model.name for model in config.models])
    if config.until is None:
        if known and known.pop("planned", None):
            directory.save()  # without --until, all samples of every model are planned
        return None
    check_until(config, directory.run, generate_only=not docker)
    if (known is None or known.get("closed")) and (directory.graded or directory.answered):
        raise ConflictError(
            f"{directory.path}: the run was started without --until, and interim analyses must be planned"
            " before the first result; use a new directory"
        )
    seed = int(hashlib.sha256(directory.run_id.encode()).hexdigest()[:8], 16)
    schedule = schedule_of(config.samples, margin=config.margin / 100, seed=seed)
    wanted = recorded(schedule, config.until, config.target_se) | {"problems": sorted(problem_ids)}
    record = known or wanted | {"made_by": version("astra_async"), "groups": [], "planned": {}, "looks": []}
    _check_rule(directory, record)
    if other := [name for name in _FIXED if record[name] != wanted[name]]:
        raise ConflictError(
            f"{directory.path}: the interim analyses were planned with another {' and '.join(other)}"
            f" ({other[0]} {record[other[0]]}); use the same options, or a new directory"
        )
    models = [model.name for model in config.models]
    before = [name for group in record["groups"] for name in group["models"]]
    if set(models) - set(before):
        record["groups"].append(group_of(models, before))
    directory.run["deciding"] = record
    directory.save()
    return Deciding(directory, models)


def _check_rule(directory: RunDirectory, record: Mapping[str, Any]) -> None:
    """Raise ConflictError if another version of the decision rule made the recorded interim analyses.

    Mixing two rules would invalidate their error rates.
    """
    if (rule := record.get("rule", 1)) == RULE:
        return
    began = f"astra_async {record['made_by']}, which" if "made_by" in record else "the astra_async that"
    raise ConflictError(
        f"{directory.path}: its interim analyses use version {rule} of the decision rule, but this"
        f" astra_async has version {RULE}; continue with {began} started the run,"
        " remove --until to run all samples, or use a new directory"
    )


def _of_another_rule(record: Mapping[str, Any]) -> str:
    """Return a warning if the looks of a regrade cannot be recomputed from its verdicts; otherwise ""."""
    if (rule := record.get("rule", 1)) == RULE:
        return ""
    return (
        f"warning: the interim analyses (looks) are those of the parent run, made with its verdicts: they use"
        f" version {rule} of the decision rule, and this astra_async has version {RULE}"
    )


def _plain(look: dict[str, Any]) -> dict[str, Any]:
    """Convert a look to JSON values: infinity to null, an interval to a list."""
    look["interval"] = list(look["interval"]) if look["interval"] else None
    look["problems"] = None if look["problems"] in (None, float("inf")) else look["problems"]
    return look


def _key(look: dict[str, Any]) -> tuple[Any, ...]:
    return look["a"], look["b"], look["format"], look["k"]

"""Shapes of reports, each made from generated runs, for tests of what the sentences claim."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from astra_async.report.deciding import compared, group_of, recorded
from astra_async.report.load import load_run
from astra_async.stats.sequential import schedule_of
from made_runs import Made, MadeProblem, agreeing, made_problems, write_run, write_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Shape = Callable[[Path], list[Path]]
    Change = Callable[[dict[str, Any]], dict[str, Any] | None]

PROBLEMS = tuple(made_problems(12))


def changed(directory: Path, change: Change, name: str = "results.jsonl") -> Path:
    """Replace each record of a run's file by what `change` returns; None removes it."""
    lines = (directory / name).read_bytes().splitlines()
    records = filter(None, (change(orjson.loads(line)) for line in lines))
    (directory / name).write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    return directory


def with_settings(directory: Path, **fields: Any) -> Path:
    """Replace fields of run.json."""
    path = directory / "run.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | fields))
    return directory


@dataclass(frozen=True, kw_only=True)
class Until:
    """A run with `--until`, stopped as soon as no pair or model is open.

    Each model of `joins` joins the run later, in a group of its own.
    """

    made: Made
    until: str = "decided"
    target_se: float | None = None
    joins: Sequence[str] = field(default=())
    change: Change = dict

    def __call__(self, folder: Path) -> list[Path]:
        schedule = schedule_of(self.made.samples, seed=self.made.seed)
        record = recorded(schedule, self.until, self.target_se) | {"groups": [], "planned": {}, "looks": []}
        record["problems"] = sorted(each.id for each in self.made.problems)
        first = [name for name in self.made.skill if name not in self.joins]
        for models in (first, *([name] for name in self.joins)):
            known = [name for group in record["groups"] for name in group["models"]]
            record["groups"].append(group_of(models, known))
        whole = changed(write_run(folder / "whole", self.made), self.change)
        for k in schedule.rounds:
            planned = record | {"planned": dict.fromkeys(self.made.skill, k)}
            run = with_settings(_copied(whole, folder / "run"), deciding=planned)
            lines = (whole / "results.jsonl").read_bytes().splitlines(keepends=True)
            kept = b"".join(line for line in lines if orjson.loads(line)["sample"] < k)
            (run / "results.jsonl").write_bytes(kept)
            found = compared(load_run(run), planned)
            if all(each.looks and each.looks[-1].state != "open" for each in found):
                break
        return [run]


def _copied(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target, dirs_exist_ok=True))


def _one(made: Made, change: Change | None = None, **settings: Any) -> Shape:
    def make(folder: Path) -> list[Path]:
        run = with_settings(write_run(folder / "run", made), **settings)
        return [changed(run, change) if change else run]

    return make


def _turns(folder: Path) -> list[Path]:
    made = replace(TWO, samples=4)
    run = write_run(folder / "run", made)
    write_turns(run, made, 2, {"alpha": 0.9, "beta": 0.7})
    return [run]


def _several(folder: Path) -> list[Path]:
    return [
        write_run(folder / name, replace(TWO, skill={model: skill}, run_id=name))
        for name, (model, skill) in {"monday": ("alpha", 0.85), "tuesday": ("beta", 0.5)}.items()
    ]


def _rewarded(line: dict[str, Any]) -> dict[str, Any]:
    share = round(line["passed"] / line["total"], 2)
    line = agreeing(line, int(share == 1), total=1)
    return line | {"score": float(share), "rewards": {"reward": share}, "tests": []}


def _costless(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"cost_usd": None}


def _partly_costless(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"cost_usd": None} if line["model"] == "alpha" and line["sample"] % 2 else line


def _twice_the_cost(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"cost_usd": (2 if line["model"] == "alpha" else 1) * 0.01}


def _flagged(line: dict[str, Any]) -> dict[str, Any]:
    suspicious = line["model"] == "alpha" and line["problem_id"] < "p04"
    return line | ({"suspicions": ["test_file_read"]} if suspicious else {})


def _identical(line: dict[str, Any]) -> dict[str, Any]:
    return agreeing(line, (int(line["problem_id"][1:]) + line["sample"]) % (line["total"] + 1))


def _failed(line: dict[str, Any]) -> dict[str, Any]:
    return agreeing(line, 0)


def _saturated(line: dict[str, Any]) -> dict[str, Any]:
    return agreeing(line, line["total"] if line["model"] == "alpha" else 0)


def _without_beta(line: dict[str, Any]) -> dict[str, Any] | None:
    return None if line["model"] == "beta" else line


def _half_missing(line: dict[str, Any]) -> dict[str, Any] | None:
    return None if line["model"] == "beta" and line["sample"] % 2 else line


def _easy_half_missing(line: dict[str, Any]) -> dict[str, Any] | None:
    """Remove beta's easy problems: alpha has the higher mean, and beta is better on the hard problems."""
    if line["problem_id"] < "p06":
        return agreeing(line, 1 + (line["model"] == "beta"))
    return agreeing(line, line["total"]) if line["model"] == "alpha" else None


TWO = Made(skill={"alpha": 0.85, "beta": 0.5}, problems=PROBLEMS, samples=8)
EQUAL = replace(TWO, skill={"alpha": 0.6, "beta": 0.6})
ONE = replace(TWO, skill={"alpha": 0.7})
MANY = replace(TWO, skill={f"m{i}": 0.3 + 0.1 * i for i in range(7)}, samples=4)
AGENTS = replace(TWO, formats=("xml", "shell", "codex"), samples=4)
ALIKE = [MadeProblem(id=f"p{i:02}", total=4) for i in range(8)]  # all of one skill
LARGE = [MadeProblem(id=f"p{i:03}", total=4) for i in range(60)]
SHAPES: Mapping[str, Shape] = {
    "one model": _one(ONE),
    "one model, one problem": _one(replace(ONE, problems=PROBLEMS[:1])),
    "two different models": _one(TWO),
    "two equal models": _one(EQUAL),
    "identical results": _one(EQUAL, _identical),
    "identical results on many problems": _one(replace(EQUAL, problems=LARGE, samples=4), _identical),
    "all tests against none": _one(TWO, _saturated),
    "all tests against none until decided": Until(made=TWO, change=_saturated),
    "only failures": _one(TWO, _failed),
    "a model without results": _one(TWO, _without_beta),
    "one of three models without results": _one(
        replace(TWO, skill={"alpha": 0.85, "beta": 0.5, "gamma": 0.7}), _without_beta
    ),
    "missing samples": _one(TWO, _half_missing),
    "missing problems": _one(TWO, _easy_half_missing),
    "unknown costs": _one(TWO, _costless),
    "incomplete costs": _one(EQUAL, _partly_costless),
    "twice the cost": _one(EQUAL, _twice_the_cost),
    "flagged samples": _one(TWO, _flagged),
    "families": _one(replace(TWO, problems=made_problems(12, families=True))),
    "both formats": _one(replace(TWO, formats=("xml", "json"), samples=4)),
    "agents": _one(AGENTS),
    "rewards of tasks": _one(replace(TWO, formats=("shell",)), _rewarded),
    "turns": _turns,
    "many models": _one(MANY),
    "several runs": _several,
    "until decided": Until(made=replace(TWO, samples=16)),
    "until precise": Until(made=replace(ONE, samples=16), until="precise", target_se=6.0),
    "precise with all samples used": Until(
        made=replace(ONE, skill={"alpha": 0.5}, problems=LARGE, samples=4), until="precise", target_se=2.5
    ),
    "skills after looks": Until(
        made=replace(TWO, skill={"alpha": 0.72, "beta": 0.5}, problems=ALIKE, seed=16)
    ),
    "models that joined": Until(
        made=replace(TWO, skill={"alpha": 0.85, "beta": 0.5, "gamma": 0.8}, samples=8), joins=("gamma",)
    ),
    "stopped before the first look": Until(
        made=replace(TWO, leave_out=frozenset({("beta", "xml", "p00", 0)}))
    ),
}


def drawn(seed: int, *, gain: float, problems: int) -> Until:
    """A run of two models with `--until decided`; `gain` is the difference of their skills."""
    rng = np.random.default_rng(seed)
    base = float(rng.uniform(0.4, 0.7))
    made = Made(
        skill={"alpha": base + gain, "beta": base},
        problems=[MadeProblem(id=f"p{i:02}", total=1 + i % 6) for i in range(problems)],
        samples=16,
        seed=seed,
    )
    return Until(made=made)


def models_of(directories: Sequence[Path]) -> Iterator[str]:
    """Yield the names of all planned models."""
    for directory in directories:
        yield from (each["name"] for each in orjson.loads((directory / "run.json").read_bytes())["models"])

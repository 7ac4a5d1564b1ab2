"""Tables for reproducing a run: settings (paper, table 2), fingerprints, prompts, images, versions.

Also the paper's published results, and the replay of complete runs with `--until decided`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.costs import mean_cost_usd
from astra_async.report.deciding import compared, group_of, recorded
from astra_async.report.table import Column, Table
from astra_async.stats.sequential import schedule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Cell


_ROWS = (
    ("o1", 0.7580, 0.11, 0.6392, None, None),
    ("o1-preview", 0.7555, 0.17, 0.6089, 0.7236, 0.5475),
    ("Claude-3.5-Sonnet-1022", 0.7507, 0.05, 0.6274, 0.7004, 0.5750),
    ("Gemini-1.5-pro", 0.7117, 0.13, 0.5815, 0.7008, 0.5356),
    ("GPT-4o-0513", 0.6952, 0.20, 0.5091, 0.6813, 0.5031),
)
_ERRATA = (
    (
        "Source: tables 3, 5 and 6 of the paper (n = 65 problems, k = 32, SD with ddof = 0). Your"
        " problems and prompts are different, so only the order of magnitude is comparable."
    ),
    (
        "GPT-4o's pass@1 is 58.15 % in the paper's table 3, which is also Gemini's value. In table"
        " 5 and on the publisher's leaderboard it is 50.91 %. This table shows 50.91 %."
    ),
    (
        "The publisher's website defines consistency as the mean SD, the paper as the median SD."
        " This table shows the median."
    ),
    (
        "The paper concludes that XML is consistently better than JSON. Its tests do not confirm"
        " this for GPT-4o and for Gemini's mean score."
    ),
    (
        "The paper reports an average problem statement of 718 characters. The 58 statements"
        " published elsewhere have 2,451 on average."
    ),
)


def published() -> Table:
    """Return the paper's leaderboard, with known errata as notes."""
    return Table(
        name="published",
        title="Published results (HackerRank-ASTRA v1)",
        columns=(
            Column("model", "Model"),
            Column("mean_score", "Mean score %", "percent"),
            Column("median_sd", "Median SD", "score"),
            Column("pass_at_1", "Pass@1 %", "percent"),
            Column("json_mean_score", "JSON mean score %", "percent"),
            Column("json_pass_at_1", "JSON pass@1 %", "percent"),
        ),
        rows=_ROWS,
        notes=_ERRATA,
    )


_MOST_MODELS = 8  # maximum number of models for a replay; the number of pairs grows with the square


def replays(runs: Sequence[Run], entries: Sequence[Entry]) -> Table:
    """Return samples, cost and decisions that complete runs would have had with `--until decided`."""
    columns = (
        Column("run", "Run"),
        Column("asked", "Samples used %", "percent", help="share of the run's samples"),
        Column("cost_usd", "Cost $", "usd", help="cost of the samples used, at each model's mean"),
        Column("whole_usd", "Whole run $", "usd", help="cost of all samples"),
        Column("decided", "Decided", "count", help="pairs concluded as better, worse or equivalent"),
        Column("pairs", "Pairs", "count"),
        Column("same", "Same conclusion", "count", help="pairs; compared with one look after all samples"),
    )
    complete = [run for run in runs if not run.settings.deciding and not len(run.missing)]
    items = [_replayed(run, entries) for run in complete if 1 < len(run.settings.models) <= _MOST_MODELS]
    notes = (
        ("A replay of the run with --until decided, using its samples (docs/deciding.md).",) if items else ()
    )
    return Table.of("looks_replayed", "With --until decided", columns, items, notes=notes)


def _replayed(run: Run, entries: Sequence[Entry]) -> dict[str, Cell]:
    schedule = schedule_of(run.settings.samples)
    groups = {"groups": [group_of(list(run.settings.models), [])]}
    found = compared(run, recorded(schedule, "decided", None) | groups)
    one_look = replace(schedule, rounds=schedule.rounds[-1:], spent=(schedule.alpha,))
    at_end = compared(run, recorded(one_look, "decided", None) | groups)
    last = {
        model: max((each.k for each in found if model in (each.a, each.b)), default=0)
        for model in run.settings.models
    }
    costs = [
        (entry.summary.planned * (mean_cost_usd(entry) or 0.0), last[entry.model] / run.settings.samples)
        for entry in entries
        if any(part is run for part, _ in entry.parts)
    ]
    return {
        "run": str(run.directory),
        "asked": math.fsum(last.values()) / (len(last) * run.settings.samples),
        "cost_usd": math.fsum(cost * share for cost, share in costs) or None,
        "whole_usd": math.fsum(cost for cost, _ in costs) or None,
        "decided": sum(each.state not in ("open", "not separable") for each in found),
        "pairs": len(found),
        "same": sum(one.state == other.state for one, other in zip(found, at_end, strict=True)),
    }


_SETTINGS = ("temperature", "max_tokens", "reasoning_effort")


def models(runs: Sequence[Run]) -> Table:
    """Return context length, temperature and other settings of each model as recorded (paper, table 2)."""
    columns = (
        Column("model", "Model"),
        Column("spec", "Spec"),
        Column("context_length", "Context length, tokens"),
        Column("temperature", "Temperature"),
        Column("max_tokens", "Output limit, tokens"),
        Column("reasoning_effort", "Reasoning effort"),
        Column("returned_model", "Answered as", help="name in the provider's responses"),
        Column("directory", "Run"),
    )
    notes = ('"default" means that the request had no such setting, so the provider\'s default applied.',)
    items = (_asked(run, model) for run in runs for model in run.settings.models)
    return Table.of("models", "Settings of the models", columns, items, notes=notes)


def run_facts(runs: Sequence[Run]) -> Table:
    """Return one row for each run directory."""
    columns = (
        Column("directory", "Directory", of=lambda run: run.directory.name),
        Column("run_id", "Run", of=lambda run: run.settings.run_id),
        Column("parent", "Regrade of", of=lambda run: run.settings.parent),
        Column("simulated", "Simulated", of=lambda run: run.settings.simulated),
        Column("started_at", "First sample, UTC", of=lambda run: run.started_at[:19]),
        Column("finished_at", "Last sample, UTC", of=lambda run: run.finished_at[:19]),
        Column("problems", "Problems", "count", of=lambda run: len(run.problems)),
        Column("k", "k", "count", of=lambda run: run.settings.samples),
        Column("versions", "Versions", of=_versions),
    )
    return Table.of("runs", "Runs", columns, runs)


def fingerprints(runs: Sequence[Run]) -> Table:
    """Return the hash of every part that affects results; equal hashes mean equal parts."""
    columns = (
        Column("directory", "Run"),
        Column("part", "Part"),
        Column("name", "Name"),
        Column("sha256", "SHA-256"),
    )
    items = (
        {"directory": run.directory.name, "part": part, "name": name, "sha256": sha}
        for run in runs
        for part, names in run.settings.fingerprints.items()
        for name, sha in names.items()
    )
    return Table.of("fingerprints", "Fingerprints", columns, items)


def inputs(runs: Sequence[Run]) -> Table:
    """Return the prompt hashes and images recorded by the samples of each problem and format."""
    columns = (
        Column("directory", "Run"),
        Column("problem_id", "Problem"),
        Column("format", "Format"),
        Column("prompts", "Prompts", "count", help="distinct prompts", of=lambda row: len(row["prompt"])),
        Column("prompt_sha256", "Prompt SHA-256", of=lambda row: ", ".join(row["prompt"])),
        Column("images", "Images", "count", help="distinct images", of=lambda row: len(row["image"])),
        Column("image_id", "Image", of=lambda row: ", ".join(row["image"])),
    )
    items = [item for run in runs for item in _recorded(run)]
    odd = sum(len(item["prompt"]) != 1 for item in items)
    note = "All samples of a problem and format had the same prompt, byte for byte."
    if odd:
        note = f"{odd} problems had more than one prompt, so their samples are not comparable."
    return Table.of("inputs", "Prompts and images as recorded", columns, items, notes=(note,))


def _asked(run: Run, model: str) -> dict[str, Cell]:
    settings = run.settings.models[model]
    numbers = [number for number, (name, _) in enumerate(run.pairs) if name == model]
    returned = [run.pair_rows(number)["returned_model"] for number in numbers]
    return {
        **{name: _setting(settings.get(name), "default") for name in _SETTINGS},
        "model": model,
        "spec": settings.get("spec"),
        "context_length": _setting(settings.get("context_length"), "not recorded"),
        "returned_model": ", ".join(_texts(run, np.concatenate(returned))),
        "directory": run.directory.name,
    }


def _versions(run: Run) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(run.settings.versions.items()))


def _recorded(run: Run) -> Iterator[dict[str, Any]]:
    for answer_format in run.settings.formats:
        for problem, name in enumerate(run.problems):
            mine = run.problem_rows(problem, answer_format)
            if len(mine):
                known = {field: _texts(run, mine[field]) for field in ("prompt", "image")}
                yield {"directory": run.directory.name, "problem_id": name, "format": answer_format, **known}


def _texts(run: Run, numbers: np.ndarray) -> list[str]:
    return sorted(filter(None, (run.texts[number] for number in np.unique(numbers).tolist())))


def _setting(value: Cell, absent: str) -> str:
    if value is None:
        return absent
    return f"{value:,}" if isinstance(value, int) else str(value)

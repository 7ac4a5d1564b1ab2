"""What makes a run reproducible: settings (paper, table 2), fingerprints, prompts, images, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.load import Run
    from astra_async.report.table import Cell

_SETTINGS = ("temperature", "max_tokens", "reasoning_effort")


def models(runs: Sequence[Run]) -> Table:
    """Context length and temperature of each model as recorded (table 2), and what else was set."""
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
    notes = ('"default" means that nothing was sent: the provider\'s own default applied.',)
    items = (_asked(run, model) for run in runs for model in run.settings.models)
    return Table.of("models", "Models as asked", columns, items, notes=notes)


def run_facts(runs: Sequence[Run]) -> Table:
    """One row for each run directory."""
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
    """The hash of every part that changes results: equal hashes mean equal settings."""
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
    """Prompt and image of each problem as its samples recorded them; more than one is a finding."""
    columns = (
        Column("directory", "Run"),
        Column("problem_id", "Problem"),
        Column("format", "Format"),
        Column("prompts", "Prompts", "count", help="different ones", of=lambda row: len(row["prompt"])),
        Column("prompt_sha256", "Prompt SHA-256", of=lambda row: ", ".join(row["prompt"])),
        Column("images", "Images", "count", help="different ones", of=lambda row: len(row["image"])),
        Column("image_id", "Image", of=lambda row: ", ".join(row["image"])),
    )
    items = [item for run in runs for item in _recorded(run)]
    odd = sum(len(item["prompt"]) != 1 for item in items)
    note = "Every sample of a problem and format was asked with the same prompt, to the byte."
    if odd:
        note = f"{odd} problems were asked with more than one prompt: their samples are not comparable."
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

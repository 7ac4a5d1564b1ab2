"""What makes a run reproducible: settings (paper, table 2), fingerprints, prompts, images, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.load import Run
    from astra_async.report.table import Cell

_SETTINGS = ("temperature", "max_tokens", "reasoning_effort")


def models(runs: Sequence[Run]) -> Table:
    """Context length and temperature of each model as recorded (table 2), and what else was set."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        for model, settings in run.settings.models.items():
            length = _setting(settings.get("context_length"), "not recorded")
            shown = [_setting(settings.get(name), "default") for name in _SETTINGS]
            rows.append(
                (model, settings.get("spec"), length, *shown, _returned(run, model), run.directory.name)
            )
    return Table(
        name="models",
        title="Models as asked",
        columns=(
            Column("model", "Model"),
            Column("spec", "Spec"),
            Column("context_length", "Context length, tokens"),
            Column("temperature", "Temperature"),
            Column("max_tokens", "Output limit, tokens"),
            Column("reasoning_effort", "Reasoning effort"),
            Column("returned_model", "Answered as", help="name in the provider's responses"),
            Column("directory", "Run"),
        ),
        rows=tuple(rows),
        notes=('"default" means that nothing was sent: the provider\'s own default applied.',),
    )


def run_facts(runs: Sequence[Run]) -> Table:
    """One row for each run directory."""
    return Table(
        name="runs",
        title="Runs",
        columns=(
            Column("directory", "Directory"),
            Column("run_id", "Run"),
            Column("parent", "Regrade of"),
            Column("simulated", "Simulated"),
            Column("started_at", "First sample, UTC"),
            Column("finished_at", "Last sample, UTC"),
            Column("problems", "Problems", "count"),
            Column("k", "k", "count"),
            Column("versions", "Versions"),
        ),
        rows=tuple(
            (
                run.directory.name,
                run.settings.run_id,
                run.settings.parent,
                run.settings.simulated,
                run.started_at[:19],
                run.finished_at[:19],
                len(run.problems),
                run.settings.samples,
                ", ".join(f"{name} {version}" for name, version in sorted(run.settings.versions.items())),
            )
            for run in runs
        ),
    )


def fingerprints(runs: Sequence[Run]) -> Table:
    """The hash of every part that changes results: equal hashes mean equal settings."""
    return Table(
        name="fingerprints",
        title="Fingerprints",
        columns=(
            Column("directory", "Run"),
            Column("part", "Part"),
            Column("name", "Name"),
            Column("sha256", "SHA-256"),
        ),
        rows=tuple(
            (run.directory.name, part, name, sha)
            for run in runs
            for part, names in run.settings.fingerprints.items()
            for name, sha in names.items()
        ),
    )


def inputs(runs: Sequence[Run]) -> Table:
    """Prompt and image of each problem as its samples recorded them; more than one is a finding."""
    rows = [row for run in runs for row in _input_rows(run)]
    odd = sum(row[3] != 1 for row in rows)
    return Table(
        name="inputs",
        title="Prompts and images as recorded",
        columns=(
            Column("directory", "Run"),
            Column("problem_id", "Problem"),
            Column("format", "Format"),
            Column("prompts", "Prompts", "count", help="different ones"),
            Column("prompt_sha256", "Prompt SHA-256"),
            Column("images", "Images", "count", help="different ones"),
            Column("image_id", "Image"),
        ),
        rows=tuple(rows),
        notes=(
            (f"{odd} problems were asked with more than one prompt: their samples are not comparable.",)
            if odd
            else ("Every sample of a problem and format was asked with the same prompt, to the byte.",)
        ),
    )


def _input_rows(run: Run) -> Iterator[tuple[Cell, ...]]:
    for answer_format in run.settings.formats:
        for problem, name in enumerate(run.problems):
            mine = run.problem_rows(problem, answer_format)
            if len(mine) == 0:
                continue
            prompts = _texts(run, mine["prompt"])
            images = _texts(run, mine["image"])
            yield (
                run.directory.name,
                name,
                answer_format,
                len(prompts),
                ", ".join(prompts),
                len(images),
                ", ".join(images),
            )


def _texts(run: Run, numbers: np.ndarray) -> list[str]:
    return sorted(filter(None, (run.texts[number] for number in np.unique(numbers).tolist())))


def _returned(run: Run, model: str) -> str:
    each = [run.pair_rows(number) for number, (name, _) in enumerate(run.pairs) if name == model]
    return ", ".join(_texts(run, np.concatenate([rows["returned_model"] for rows in each])))


def _setting(value: Cell, absent: str) -> str:
    if value is None:
        return absent
    return f"{value:,}" if isinstance(value, int) else str(value)

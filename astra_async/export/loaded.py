"""Python API for run directories: `load` and `compare` return pandas frames.

pandas is an extra: `pip install 'astra_async[pandas]'`. The frame of a table has the columns of that table's
CSV file. A missing sample is NA, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from astra_async.errors import IncompleteRun, UsageError
from astra_async.export.frames import frame, frame_of, pandas, sample_columns, test_columns, turns_of
from astra_async.export.lines import places
from astra_async.files import read_at
from astra_async.log import decode
from astra_async.report.compare import compare_runs
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.problem_tables import problems_table
from astra_async.running.recorded import completion_from, stored_prompt
from astra_async.types import SampleKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from astra_async.report.load import Run
    from astra_async.report.tables import Report
    from astra_async.types import AnswerKey, Completion, Format

    Key = AnswerKey | tuple[str, Format, str, int] | tuple[str, Format, str, int, int]


def load(*directories: str | Path, provisional: bool = False) -> Loaded:
    """Load one or several run directories; a run may still be in progress.

    Args:
        directories: run directories. With several, every frame of samples has a column `directory`.
        provisional: allow the leaderboard and pairwise comparisons of an incomplete run. By default they
        raise
            IncompleteRun.

    Raises:
        UsageError: a path is not a run directory, or pandas is not installed.
        ConflictError: two lines of a run contradict each other.
    """
    if not directories:
        raise UsageError("load() needs a run directory")
    pandas()
    return Loaded(tuple(load_run(Path(directory)) for directory in directories), provisional=provisional)


def compare(a: str | Path | Loaded, b: str | Path | Loaded) -> ComparedRuns:
    """Compare B with A, paired over problems; differences are B - A.

    Raises UsageError if no models can be paired.
    """
    found = compare_runs(_one(a), _one(b))
    names = ("compare", "compare_problems", "changed_verdicts")
    overall, problems, changed = (frame(found.table(name)) for name in names)
    return ComparedRuns(
        conclusions=found.conclusions,
        overall=overall,
        problems=problems,
        changed=changed,
        warnings=found.warnings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """Comparison of two runs: sentences, and frames over all problems and problem by problem.

    `changed` has equal solutions with different test results; it has rows only if both runs graded the same
    solutions (a regrade).
    """

    conclusions: tuple[str, ...]
    overall: pd.DataFrame
    problems: pd.DataFrame
    changed: pd.DataFrame
    warnings: tuple[str, ...]


class Loaded:
    """Loaded runs. Frames are computed at first access and cached.

    Attributes:
        directories: the run directories.
        warnings: one line for each kind of ignored input.
    """

    def __init__(self, runs: tuple[Run, ...], *, provisional: bool = False) -> None:
        self.directories = tuple(run.directory for run in runs)
        self.warnings = tuple(warning for run in runs for warning in run.warnings)
        self._runs = runs
        self._provisional = provisional
        self._indexes: dict[Path, dict[AnswerKey, tuple[int, int]]] = {}  # byte ranges of answers, by log

    @cached_property
    def report(self) -> Report:
        """The report of these runs, computed at first access."""
        from astra_async.report.tables import report_of

        return report_of(self._runs)

    @property
    def complete(self) -> bool:
        """True if every planned sample has a result."""
        return not any(len(run.missing) for run in self._runs)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """The report's conclusions as sentences."""
        return self.report.conclusions

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables of the report, for `table(name)`."""
        return tuple(self.report.data())

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the report, equal to its CSV file. Raises UsageError for an unknown name."""
        try:
            return frame(self.report.data()[name])
        except KeyError:
            raise UsageError(
                f"the report has no table {name!r}; use one of: {', '.join(self.tables)}"
            ) from None

    @cached_property
    def leaderboard(self) -> pd.DataFrame:
        """A row for each model and format: scores, pass@1 (fractions), SD, intervals, US dollars.

        Raises IncompleteRun if samples are missing, unless loaded with `provisional=True`.
        """
        self._demand_all()
        return self.table("leaderboard")

    @cached_property
    def problems(self) -> pd.DataFrame:
        """A row for each model, format and problem, with the numbers of planned and valid samples."""
        return frame(problems_table(entries_of(self._runs)))

    def pairwise(self) -> pd.DataFrame:
        """Return a row for each pair of models and metric, with tests and conclusion.

        Raises IncompleteRun if samples are missing, unless loaded with `provisional=True`.
        """
        self._demand_all()
        return self.table("pairwise")

    @cached_property
    def samples(self) -> pd.DataFrame:
        """A row for each planned sample, sorted by model, format, problem and sample.

        A missing sample has NA in every column except its key. `score` is passed / total; times are in
        seconds, `cost_usd` in US dollars; `repairs` and `suspicions` are joined by `;`.
        """
        columns = (sample_columns(run, run.rows, run.missing) for run in self._runs)
        return self._with_directory(list(map(frame_of, columns)))

    @cached_property
    def turns(self) -> pd.DataFrame:
        """A row for each recorded turn of each sample; the first answer is turn 0 (docs/turns.md).

        A turn with `status` `no_solution` changed no file: the sample's score after that turn is the score of
        its last `scored` turn. A missing sample has no row.
        """
        return self._with_directory([turns_of(run) for run in self._runs])

    @cached_property
    def tests(self) -> pd.DataFrame:
        """A row for each expected test of each sample, with the test's name and outcome.

        `message` is the test report's message for a test that did not pass; None if not recorded.
        """
        columns = (test_columns(run, run.rows, run.tests(run.rows)) for run in self._runs)
        return self._with_directory(list(map(frame_of, columns)))

    def answer(self, key: Key, directory: str | Path | None = None) -> Completion:
        """Return the recorded answer of a sample, read from disk.

        `key` is (model, format, problem_id, sample), with the number of a follow-up turn as an optional fifth
        element. `directory` is required if several runs are loaded. Raises UsageError if the answer is not
        recorded.
        """
        wanted = SampleKey(*key[:4]).at(*[int(each) for each in key[4:]] or [0])
        log = self._directory(directory) / ("turns.jsonl" if wanted.turn else "completions.jsonl")
        if log not in self._indexes:
            self._indexes[log] = places(log)
        place = self._indexes[log].get(wanted)
        if place is None:
            raise UsageError(f"{log.parent}: the answer of {wanted} is not recorded")
        return completion_from(decode(read_at(log, *place)))

    def prompt(self, sha256: str, directory: str | Path | None = None) -> str:
        """Return the text of a prompt by its `prompt_sha256`. Raises UsageError if it is not stored."""
        path = self._directory(directory)
        text = stored_prompt(path, sha256)
        if text is None:
            raise UsageError(f"{path}: the prompt {sha256} is not stored")
        return text

    def __repr__(self) -> str:
        planned = sum(len(run.rows) + len(run.missing) for run in self._runs)
        there = sum(len(run.rows) for run in self._runs)
        where = ", ".join(map(str, self.directories))
        return f"<{where}: {there} of {planned} samples{'' if self.complete else ', incomplete'}>"

    def _demand_all(self) -> None:
        missing = sum(len(run.missing) for run in self._runs)
        if not (self.complete or self._provisional):
            raise IncompleteRun(
                f"{missing} planned samples have no result, so the figures would be incomplete. Run the same"
                " command again, or use load(..., provisional=True) for provisional figures"
            )

    def _directory(self, directory: str | Path | None) -> Path:
        if directory is not None:
            return Path(directory)
        if len(self.directories) > 1:
            raise UsageError("several runs are loaded; name one with directory=")
        return self.directories[0]

    def _with_directory(self, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
        if len(frames) == 1:
            return frames[0]
        pd = pandas()
        whole = pd.concat(dict(zip(map(str, self.directories), frames, strict=True)), names=["directory"])
        for name in ("model", "format", "problem_id"):
            whole[name] = whole[name].astype("category")
        return whole.reset_index(level="directory").reset_index(drop=True)


def _one(run: str | Path | Loaded) -> Path:
    if isinstance(run, Loaded):
        return run._directory(None)  # noqa: SLF001 - of this very module
    return Path(run)

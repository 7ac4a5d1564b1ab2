"""Everything a report says, as data: sections of tables, in the order of reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.report import leaderboard as board
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.problems import problems_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Tables that belong together; `plots` are names of figures shown above them."""

    name: str
    title: str
    text: str
    tables: tuple[Table, ...]
    plots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report.

    `simulated` is true when any run's models are simulated; `leaderboard` is the wide table from which
    the first section's tables are cut; `warnings` say what the loaders ignored.
    """

    runs: tuple[Run, ...]
    entries: tuple[Entry, ...]
    leaderboard: Table
    sections: tuple[Section, ...]
    simulated: bool
    warnings: tuple[str, ...]

    def tables(self) -> Iterator[Table]:
        """All tables of all sections."""
        for section in self.sections:
            yield from section.tables

    def table(self, name: str) -> Table:
        """The table of that name; KeyError if there is none."""
        for table in self.tables():
            if table.name == name:
                return table
        raise KeyError(name)


def build_report(directories: Sequence[Path]) -> Report:
    """Load run directories and work out every table.

    Raises UsageError or ConflictError as `load_run` does.
    """
    runs = tuple(load_run(directory) for directory in directories)
    entries = entries_of(runs)
    wide = board.leaderboard(entries)
    return Report(
        runs=runs,
        entries=entries,
        leaderboard=wide,
        sections=tuple(_sections(entries, wide)),
        simulated=any(run.settings.simulated for run in runs),
        warnings=tuple(f"{run.directory}: {warning}" for run in runs for warning in run.warnings),
    )


def _sections(entries: Sequence[Entry], wide: Table) -> Iterator[Section]:
    yield Section(
        name="leaderboard",
        title="Leaderboard",
        text="",
        tables=(
            board.headline(wide),
            board.so_far(wide),
            board.uncertainty(wide),
            board.consistency(wide),
            board.reliability(wide),
        ),
    )
    yield Section(name="problems", title="Problems", text="", tables=(problems_table(entries),))

"""Everything a report says, as data: sections of tables, in the order of reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.report import by_skill, costs, dataset, failures, formats, harness, lengths, provenance
from astra_async.report import leaderboard as board
from astra_async.report.conclusions import conclusions
from astra_async.report.difficulty import difficulty, telling_tests
from astra_async.report.entries import entries_of
from astra_async.report.judgements import judge_tables, judged_classes
from astra_async.report.load import load_run
from astra_async.report.paired_table import for_people, paired_table
from astra_async.report.pairwise import judged_pairs, pairs_of
from astra_async.report.problem_rows import problems_table
from astra_async.report.published import published
from astra_async.report.trial_table import trials
from astra_async.report.turn_states import courses_of
from astra_async.report.turn_tables import TEXT, turn_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Table
    from astra_async.report.turn_states import Courses

_MOST_PLAIN = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Tables that belong together.

    `plots` are names of figures shown above them; `data` are wide tables for CSV files only.
    """

    name: str
    title: str
    text: str
    tables: tuple[Table, ...]
    plots: tuple[str, ...] = ()
    data: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report.

    `conclusions` are its sentences, the most important first; `simulated` is true when any run's models
    are simulated; `leaderboard` is the wide table from which the first section's tables are cut;
    `warnings` say what the loaders ignored.
    """

    runs: tuple[Run, ...]
    entries: tuple[Entry, ...]
    conclusions: tuple[str, ...]
    leaderboard: Table
    sections: tuple[Section, ...]
    simulated: bool
    warnings: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True when every planned sample of every entry has a result."""
        return all(entry.complete for entry in self.entries)

    def tables(self) -> Iterator[Table]:
        """All tables that people see."""
        for section in self.sections:
            yield from section.tables

    def data(self) -> dict[str, Table]:
        """Every table that has a CSV file of its own, by its name: nothing that people see is elsewhere."""
        wide = (self.leaderboard, *(table for section in self.sections for table in section.data))
        whole = (table for table in self.tables() if not table.within)
        return {table.name: table for table in whole} | {table.name: table for table in wide}

    @property
    def runs_file(self) -> str:
        """runs.csv, or runs.csv.gz where it would have more than 100,000 rows (some 30 MB)."""
        planned = sum(entry.summary.planned for entry in self.entries)
        return "runs.csv" if planned <= _MOST_PLAIN else "runs.csv.gz"

    def files(self) -> list[str]:
        """The report's data, relative to its directory: every table, all of them in one, every sample."""
        tables = [table.file for table in self.data().values()]
        return ["report.json", *sorted(tables, key=lambda name: ("/" in name, name)), self.runs_file]

    def table(self, name: str) -> Table:
        """The table of that name, wide ones included; KeyError if there is none."""
        for section in self.sections:
            for table in (*section.tables, *section.data):
                if table.name == name:
                    return table
        raise KeyError(name)


def build_report(directories: Sequence[Path]) -> Report:
    """Load run directories and work out every table.

    Raises UsageError or ConflictError as `load_run` does.
    """
    return report_of(tuple(load_run(directory) for directory in directories))


def report_of(runs: tuple[Run, ...]) -> Report:
    """Every table of loaded runs; raises ConflictError where they contradict each other."""
    entries = entries_of(runs)
    compared = judged_pairs(list(pairs_of(entries)))
    wide = board.leaderboard(entries, compared)
    by_format = judged_pairs(formats.both_formats(entries))
    courses, ignored = courses_of(entries)
    return Report(
        runs=runs,
        entries=entries,
        conclusions=conclusions(entries, compared, by_format),
        leaderboard=wide,
        sections=(
            _leaderboard_section(entries, wide),
            _pairs_section(paired_table("pairwise", "Pairs of models", compared)),
            _skills_section(entries),
            _problems_section(runs, entries),
            _formats_section(entries, paired_table("formats", "XML against JSON", by_format)),
            _failures_section(entries),
            _lengths_section(entries),
            _costs_section(entries),
            *([_turns_section(courses)] if courses else []),
            _harness_section(runs, entries),
            _provenance_section(runs),
        ),
        simulated=any(run.settings.simulated for run in runs),
        warnings=(*(f"{run.directory}: {warning}" for run in runs for warning in run.warnings), *ignored),
    )


def _leaderboard_section(entries: Sequence[Entry], wide: Table) -> Section:
    return Section(
        name="leaderboard",
        title="Leaderboard",
        text="Mean score, pass@1 and consistency as the paper defines them (equations 1 to 5).",
        tables=(
            board.headline(wide),
            board.uncertainty(wide),
            board.consistency(wide),
            board.reliability(wide),
            board.curves(entries),
            published(),
        ),
        plots=("leaderboard", "sd", "curves"),
    )


def _pairs_section(wide: Table) -> Section:
    return Section(
        name="pairs",
        title="Pairs of models",
        text="Is one model really better than the other? Paired over the problems both have completed.",
        tables=tuple(for_people(wide)),
        plots=("pairs",),
        data=(wide,),
    )


def _skills_section(entries: Sequence[Entry]) -> Section:
    found = {kind: by_skill.skills_of(entries, kind) for kind in by_skill.KINDS}
    tables = [
        table
        for kind, each in found.items()
        for table in (
            by_skill.matrix(each, entries, kind),
            by_skill.winners(each, kind),
            by_skill.frequency(each, kind),
        )
    ]
    return Section(
        name="skills",
        title="Skills",
        text="Who is best at what. A skill with few problems says little: look at n and the intervals.",
        tables=tuple(tables),
        plots=tuple(
            name
            for kind in by_skill.KINDS
            for name in (f"{kind}_skill_frequency", f"{kind}_skill_winners", f"{kind}_skills")
        ),
        data=(by_skill.long_table([skill for each in found.values() for skill in each]),),
    )


def _problems_section(runs: Sequence[Run], entries: Sequence[Entry]) -> Section:
    return Section(
        name="problems",
        title="Problems and samples",
        text="Each cell of the map is one sample: the share of its tests that passed.",
        tables=(
            problems_table(entries),
            dataset.table_1(dataset.facts_of_all(entries)),
            difficulty(runs, entries),
            telling_tests(runs),
        ),
    )


def _formats_section(entries: Sequence[Entry], wide: Table) -> Section:
    return Section(
        name="formats",
        title="Answer formats",
        text="The same model asked for XML and for JSON, and answers that could not be used.",
        tables=(
            formats.format_scores(entries),
            *for_people(wide),
            formats.answer_rates(entries),
        ),
        plots=("formats",),
        data=(wide,),
    )


def _failures_section(entries: Sequence[Entry]) -> Section:
    return Section(
        name="failures",
        title="Failures",
        text="What the program recorded, and apart from it what people, or a judging model, said of it.",
        tables=(failures.automatic_kinds(entries), judged_classes(entries), *judge_tables(entries)),
        plots=("failures",),
    )


def _lengths_section(entries: Sequence[Entry]) -> Section:
    return Section(
        name="lengths",
        title="Length and score",
        text="Do longer answers, or longer prompts, go with lower scores?",
        tables=(lengths.correlations(lengths.lengths_of(entries)),),
        plots=("lengths",),
    )


def _costs_section(entries: Sequence[Entry]) -> Section:
    return Section(
        name="costs",
        title="Cost and time",
        text="Of samples with a result, all attempts included in the money.",
        tables=(costs.costs(entries), costs.times(entries)),
        plots=("costs",),
    )


def _turns_section(courses: Sequence[Courses]) -> Section:
    return Section(
        name="turns", title="After feedback", text=TEXT, tables=turn_tables(courses), plots=("turns",)
    )


def _harness_section(runs: Sequence[Run], entries: Sequence[Entry]) -> Section:
    events = harness.events_of(runs)
    return Section(
        name="harness",
        title="The harness",
        text="What was not the models' doing. Missing samples never count as failures.",
        tables=(
            harness.missing_samples(entries, events),
            harness.flakiness(runs),
            harness.handling(entries),
            trials(runs, entries),
            harness.nodes(runs),
            harness.event_counts(events),
        ),
    )


def _provenance_section(runs: Sequence[Run]) -> Section:
    return Section(
        name="provenance",
        title="Settings and provenance",
        text="What it takes to run the same again.",
        tables=(
            provenance.models(runs),
            provenance.run_facts(runs),
            provenance.inputs(runs),
            provenance.fingerprints(runs),
        ),
    )

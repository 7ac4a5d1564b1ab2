"""Report data: conclusions, and sections of tables in reading order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.report import agent_tables, by_skill, deciding, formats, harness, provenance
from astra_async.report import leaderboard as board
from astra_async.report.answer_warnings import warnings_of_run
from astra_async.report.audited import audit_tables
from astra_async.report.common_problems import left_out
from astra_async.report.conclusions import conclusions
from astra_async.report.costs import costs, times
from astra_async.report.entries import entries_of
from astra_async.report.failures import automatic_kinds, judge_tables, judged_classes
from astra_async.report.formats import correlations, lengths_of
from astra_async.report.load import load_run
from astra_async.report.paired_table import display_tables, paired_table
from astra_async.report.pairwise import concluded_pairs, pairs_of
from astra_async.report.problem_tables import difficulty, problems_of, problems_table, table_1, test_rates
from astra_async.report.provenance import published
from astra_async.report.turn_states import courses_of
from astra_async.report.turn_tables import TEXT, turn_tables, with_turns
from astra_async.report.until_sentences import sentences as until_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.pairwise import Found
    from astra_async.report.table import Table
    from astra_async.report.turn_states import Courses

_MOST_PLAIN = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Section of a report: tables and names of figures. `data` has wide tables, written only as CSV."""

    name: str
    title: str
    text: str
    tables: tuple[Table, ...]
    plots: tuple[str, ...] = ()
    data: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report.

    Attributes:
        conclusions: sentences, the most important first.
        leaderboard: wide table; the first section's tables have parts of its columns.
        skills: source of the tables and figures on skills.
        simulated: True if the models of any run are simulated.
        warnings: one line for each kind of ignored input, suspicious answers or changed problems.
    """

    runs: tuple[Run, ...]
    entries: tuple[Entry, ...]
    conclusions: tuple[str, ...]
    leaderboard: Table
    skills: Mapping[by_skill.SkillKind, list[by_skill.Skill]]
    sections: tuple[Section, ...]
    simulated: bool
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        names = Counter(table.name for table in self._own_files())
        if twice := [name for name, times in names.items() if times > 1]:
            raise ValueError(
                f"several tables have the same name and would overwrite each other's file: {', '.join(twice)}"
            )

    @property
    def complete(self) -> bool:
        """True if every planned sample of every entry has a result."""
        return all(entry.complete for entry in self.entries)

    def tables(self) -> Iterator[Table]:
        """Yield all displayed tables."""
        for section in self.sections:
            yield from section.tables

    def data(self) -> dict[str, Table]:
        """Return by name every table with a CSV file; together the files have all displayed values."""
        return {table.name: table for table in self._own_files()}

    def _own_files(self) -> Iterator[Table]:
        yield self.leaderboard
        yield from (table for table in self.tables() if not table.within)
        yield from (table for section in self.sections for table in section.data)

    @property
    def runs_file(self) -> str:
        """`runs.csv`, or `runs.csv.gz` for more than 100,000 samples (about 30 MB)."""
        planned = sum(entry.summary.planned for entry in self.entries)
        return "runs.csv" if planned <= _MOST_PLAIN else "runs.csv.gz"

    def files(self) -> list[str]:
        """Return the names of the data files, relative to the report's directory."""
        tables = [table.file for table in self.data().values()]
        return ["report.json", *sorted(tables, key=lambda name: ("/" in name, name)), self.runs_file]

    def table(self, name: str) -> Table:
        """Return the table with this name, also a wide one. Raises KeyError for an unknown name."""
        found = (each for section in self.sections for each in (*section.data, *section.tables))
        return {each.name: each for each in found}[name]


def build_report(directories: Sequence[Path]) -> Report:
    """Build the report of run directories. Raises UsageError or ConflictError as `load_run` does."""
    return report_of(tuple(load_run(directory) for directory in directories))


def report_of(runs: tuple[Run, ...]) -> Report:
    """Build the report of loaded runs. Raises ConflictError if the runs contradict each other."""
    entries = entries_of(runs)
    looks = deciding.interim_conclusions(entries)
    pairs = [pair for pair in pairs_of(entries) if frozenset((pair.a.name, pair.b.name)) not in looks]
    compared = concluded_pairs(pairs)
    by_format = concluded_pairs(formats.both_formats(entries))
    by_agent = concluded_pairs(agent_tables.agent_pairs(entries), together=True)
    wide = board.leaderboard(entries, compared, looks)
    skills = {kind: by_skill.skills_of(entries, kind) for kind in by_skill.KINDS}
    courses = courses_of(entries)
    return Report(
        runs=runs,
        entries=entries,
        conclusions=(*until_sentences(runs), *conclusions(entries, compared, by_format, by_agent)),
        leaderboard=wide,
        skills=skills,
        sections=(
            *_models(runs, entries, wide, compared, courses),
            *_problems(runs, entries, skills, with_looks=bool(looks)),
            *_answers(entries, by_format),
            *_agents(entries, by_agent),
            *_turns(courses),
            *_harness(runs, entries),
        ),
        simulated=any(run.settings.simulated for run in runs),
        warnings=(
            *(f"{run.directory}: {warning}" for run in runs for warning in run.warnings),
            *(f"{run.directory}: {warning}" for run in runs for warning in warnings_of_run(run.directory)),
            *left_out((pair.a, pair.b) for pair, _ in compared),
        ),
    )


def _models(
    runs: Sequence[Run], entries: Sequence[Entry], wide: Table, compared: Found, courses: Sequence[Courses]
) -> Iterator[Section]:
    yield Section(
        name="leaderboard",
        title="Leaderboard",
        text="Mean score, pass@1 and consistency as the paper defines them (equations 1 to 5).",
        tables=(
            with_turns(board.headline(wide), courses),
            board.uncertainty(wide),
            board.consistency(wide),
            board.reliability(wide),
            board.reliability_intervals(wide),
            board.curves(entries),
            published(),
            deciding.looks_at_pairs(runs),
            deciding.looks_at_models(runs),
            deciding.spread_table(runs),
            provenance.replays(runs, entries),
        ),
        plots=("leaderboard", "sd", "curves"),
    )
    pairs = paired_table("pairwise", "Pairs of models", compared)
    yield Section(
        name="pairs",
        title="Pairs of models",
        text=(
            "Tests of each pair of models, paired over the problems that both have completed. Pairs"
            " compared by"
            " --until decided are in the table of looks instead, because these tests are not valid"
            " after looks."
        ),
        tables=tuple(display_tables(pairs)),
        plots=("pairs",),
        data=(pairs,),
    )


def _problems(
    runs: Sequence[Run],
    entries: Sequence[Entry],
    found: Mapping[by_skill.SkillKind, list[by_skill.Skill]],
    *,
    with_looks: bool,
) -> Iterator[Section]:
    yield Section(
        name="skills",
        title="Skills",
        text="The highest mean by skill. Means over few problems are imprecise: check n and the intervals.",
        tables=tuple(
            table
            for kind in found
            for table in by_skill.display_tables(found[kind], entries, kind, with_looks=with_looks)
        ),
        plots=tuple(
            name
            for kind in found
            for name in (f"{kind}_skill_frequency", f"{kind}_skill_winners", f"{kind}_skills")
        ),
        data=(by_skill.long_table([skill for each in found.values() for skill in each]),),
    )
    yield Section(
        name="problems",
        title="Problems and samples",
        text="Each cell of the map is one sample. It shows the share of tests that passed.",
        tables=(
            problems_table(entries),
            table_1(problems_of(entries)),
            difficulty(runs, entries),
            test_rates(runs),
        ),
    )


def _answers(entries: Sequence[Entry], by_format: Found) -> Iterator[Section]:
    compared = paired_table("formats", "XML against JSON", by_format)
    yield Section(
        name="formats",
        title="Answer formats",
        text="Comparison of XML and JSON with the same model, and rates of unusable answers.",
        tables=(formats.format_scores(entries), *display_tables(compared), formats.answer_rates(entries)),
        plots=("formats",),
        data=(compared,),
    )
    yield Section(
        name="failures",
        title="Failures",
        text="Outcomes as recorded by astra_async, and classes of errors as labelled by people or judges.",
        tables=(automatic_kinds(entries), judged_classes(entries), *judge_tables(entries)),
        plots=("failures",),
    )
    yield Section(
        name="lengths",
        title="Length and score",
        text="Correlation of the length of answers and prompts with the mean score.",
        tables=(correlations(lengths_of(entries)),),
        plots=("lengths",),
    )
    yield Section(
        name="costs",
        title="Cost and time",
        text="Only samples with a result are counted. The cost includes all attempts.",
        tables=(costs(entries), times(entries)),
        plots=("costs",),
    )


def _agents(entries: Sequence[Entry], by_agent: Found) -> Iterator[Section]:
    if agent_tables.with_agents(entries):
        pairs = paired_table("agent_pairs", "Effect of agents", by_agent)
        yield Section(
            name="agents",
            title="Agents",
            text=agent_tables.TEXT,
            tables=(agent_tables.work(entries), *display_tables(pairs)),
            plots=("costs",),
            data=(pairs,),
        )


def _turns(courses: Sequence[Courses]) -> Iterator[Section]:
    if courses:
        yield Section(
            name="turns", title="After feedback", text=TEXT, tables=turn_tables(courses), plots=("turns",)
        )


def _harness(runs: Sequence[Run], entries: Sequence[Entry]) -> Iterator[Section]:
    events = {str(run.directory): harness.read_events(run.directory / "events.jsonl") for run in runs}
    yield Section(
        name="harness",
        title="The harness",
        text="Results of the harness and not of the models. Missing samples never count as failures.",
        tables=(
            harness.missing_samples(entries, events),
            harness.flakiness(runs),
            harness.handling(entries),
            *audit_tables(entries),
            harness.nodes(runs),
            harness.event_counts(events),
        ),
    )
    yield Section(
        name="provenance",
        title="Settings and provenance",
        text="Settings and versions needed to repeat the run.",
        tables=(
            provenance.models(runs),
            provenance.run_facts(runs),
            provenance.inputs(runs),
            provenance.fingerprints(runs),
        ),
    )

"""Tables on failures: recorded outcomes, and classes of errors judged by people or models (paper, 4.6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from operator import itemgetter
from typing import TYPE_CHECKING

from astra_async.report.labels import CLASSES, JUDGE, read_judged
from astra_async.report.packed_row import FAILURES
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.stats.association import agreement, corrected_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.labels import Key, Labels
    from astra_async.report.table import Cell
    from astra_async.types import Failure

_KINDS: dict[Failure, str] = {
    "no_report": "No report",
    "build_failure": "Build failed",
    "timeout": "Time-out",
    "out_of_memory": "Out of memory",
    "tampered": "Tampered (older version)",
    "refusal": "Refused",
    "truncated": "Cut",
    "context_exceeded": "Context exceeded",
    "format_error": "Unreadable",
    "path_violation": "Bad paths",
    "no_change": "No change",
}


def automatic_kinds(entries: Sequence[Entry]) -> Table:
    """Return the numbers of samples by recorded outcome; a failure that never occurred has no column."""
    seen = [kind for kind in _KINDS if any(entry.summary.failures.get(kind) for entry in entries)]
    columns = (
        *ENTRY_COLUMNS,
        Column("valid", "Valid", "count", help="samples", of=lambda entry: entry.summary.valid),
        Column(
            "perfect", "All tests passed", "count", help="samples", of=lambda entry: int(entry.perfect.sum())
        ),
        Column("partial", "Some", "count", help="samples that passed some tests", of=_partial),
        Column("none_passed", "None", "count", help="samples that failed all tests", of=_none_passed),
        *(Column(kind, _KINDS[kind], "count", of=_failed(kind)) for kind in seen),
    )
    note = 'Each sample is counted once. Only "All tests passed" and "Some" have scores above 0.'
    return Table.of("failures", "Outcome of samples, as recorded", columns, entries, notes=(note,))


def judged_classes(entries: Sequence[Entry]) -> Table:
    """Return the numbers of samples in the paper's four classes (section 4.6), by entry and source of labels.

    An entry without labels has a row with the source "not labelled".
    """
    columns = (
        *ENTRY_COLUMNS,
        Column("source", "Judged by", help="hand, or judge: with the model's name"),
        Column("failed", "Not all passed", "count", help="samples"),
        Column("labelled", "Labelled", "count", help="samples"),
        *(Column(name, title, "count") for name, title in CLASSES.items()),
    )
    items = (item for entry in entries for item in _by_class(entry))
    note = (
        "The four classes are those of the paper, section 4.6. Labels by hand come from labels.csv,"
        " labels by a judge from judgements.jsonl."
    )
    return Table.of("error_classes", "Classes of errors, as judged", columns, items, notes=(note,))


def judge_tables(entries: Sequence[Entry]) -> tuple[Table, ...]:
    """Return the tables on agreement of judges with people and on corrected shares of classes.

    Return () if there are no judgements.
    """
    directories = {run.directory: None for entry in entries for run, _ in entry.parts}
    found = [read_judged(directory) for directory in directories]
    judges = sorted({name for labels in found for name in labels.judges})
    if not judges:
        return ()
    return _agreement_table(found, judges), _shares_table(entries, judges)


def _failed(kind: Failure) -> Callable[[Entry], int]:
    return lambda entry: entry.summary.failures.get(kind, 0)


def _partial(entry: Entry) -> int:
    tests_failed = FAILURES.index("tests_failed")
    some = entry.per_problem(lambda rows: (rows["failure"] == tests_failed) & (rows["score"] > 0))
    return int(some.sum())


def _none_passed(entry: Entry) -> int:
    return _failed("tests_failed")(entry) - _partial(entry)


def _by_class(entry: Entry) -> Iterator[dict[str, Cell]]:
    known = entry.cells | {"failed": entry.summary.valid - int(entry.perfect.sum())}
    by_source: dict[str, Counter[str | None]] = {}
    for run, _ in entry.parts:
        for source, given in read_judged(run.directory).sources.items():
            if counted := Counter(label for key, label in given.items() if _is_of(key, entry)):
                by_source[source] = by_source.get(source, Counter()) + counted
    for source, counts in by_source.items():
        each = {name: counts[name] for name in CLASSES}
        yield {**known, "source": source, "labelled": sum(each.values()), **each}
    if not by_source:
        yield {**known, "source": "not labelled", "labelled": 0, **dict.fromkeys(CLASSES)}


def _agreement_table(found: Sequence[Labels], judges: Sequence[str]) -> Table:
    columns = (
        Column("source", "Judged by"),
        Column("judged", "Judged", "count", help="samples"),
        Column("rejected", "Rejected", "count", help="judgements without a valid quotation"),
        Column("both", "Also by hand", "count", help="samples"),
        Column("agreement", "Equal %", "percent"),
        Column("kappa", "Cohen's kappa", "number", help="1: always equal, 0: as expected by chance"),
    )
    items = (_agreeing(found, judge) for judge in judges)
    return Table.of("judge_agreement", "Judges against people", columns, items)


def _agreeing(found: Sequence[Labels], judge: str) -> dict[str, Cell]:
    given = [(labels.hand, labels.judges.get(judge, {})) for labels in found]
    pairs = [(hand[key], mine[key]) for hand, mine in given for key in hand if key in mine]
    answers = [label for _, mine in given for label in mine.values()]
    seen = agreement(pairs)
    return {
        "source": JUDGE + judge,
        "judged": len(answers),
        "rejected": sum(label is None for label in answers),
        "both": len(pairs),
        "agreement": seen.share if seen else None,
        "kappa": seen.kappa if seen else None,
    }


def _shares_table(entries: Sequence[Entry], judges: Sequence[str]) -> Table:
    columns = (
        *ENTRY_COLUMNS,
        Column("source", "Judged by"),
        Column("class", "Class"),
        Column("judged", "Judged", "count", help="samples", of=itemgetter("total")),
        Column("checked", "Also by hand", "count", help="samples"),
        Column("share", "Judge says %", "percent", of=itemgetter("judged")),
        Column("corrected", "Corrected %", "percent", help="prediction-powered inference"),
        Column("corrected_interval", "95 %", "percent", interval=True, of=itemgetter("interval")),
    )
    notes = (
        "Shares of a model's judged samples, corrected with the samples that people also labelled.",
        "The interval is valid only if these samples are a random draw (astra label --draw N).",
    )
    items = (item for judge in judges for entry in entries for item in _shares(entry, judge))
    return Table.of("class_shares", "Shares of classes, corrected", columns, items, notes=notes)


def _shares(entry: Entry, judge: str) -> Iterator[dict[str, Cell]]:
    judged: list[str | None] = []
    checked: list[tuple[str | None, str]] = []
    for run, _ in entry.parts:
        labels = read_judged(run.directory)
        mine = {key: label for key, label in labels.judges.get(judge, {}).items() if _is_of(key, entry)}
        judged += mine.values()
        checked += [(mine[key], label) for key, label in labels.hand.items() if key in mine]
    for name, title in CLASSES.items() if judged else ():
        share = corrected_share(
            [label == name for label in judged], [(mine == name, hand == name) for mine, hand in checked]
        )
        yield entry.cells | asdict(share) | {"source": JUDGE + judge, "class": title}


def _is_of(key: Key, entry: Entry) -> bool:
    return key[:2] == (entry.model, entry.format)

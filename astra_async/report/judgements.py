"""judgements.jsonl and the `source` of labels: what a judging model said, beside what people said."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.report.labels import CLASSES, read_labels
from astra_async.report.table import WHO, Column, Table
from astra_async.stats.agreement import agreement, corrected_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell

    Key = tuple[str, str, str, int]

HAND = "hand"
JUDGE = "judge:"
FILE_NAME = "judgements.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What a run directory holds of classes of errors.

    Attributes:
        hand: by people; a label without a source is one.
        judges: by model, for each sample that it judged: its class, or None where its answer did not count.
    """

    hand: Mapping[Key, str]
    judges: Mapping[str, Mapping[Key, str | None]]

    @property
    def sources(self) -> tuple[str, ...]:
        """`hand` and the judges that there are."""
        return (*((HAND,) if self.hand else ()), *(JUDGE + name for name in self.judges))


def read_judged(directory: Path) -> Labels:
    """The labels of a run directory by their source. Raises UsageError for a labels.csv with a mistake."""
    path = directory / "labels.csv"
    sources = _sources(path)
    hand = {key: label for key, label in read_labels(path).items() if not is_judges(sources.get(key, ""))}
    judges: dict[str, dict[Key, str | None]] = {}
    for record in judgements(directory):
        judges.setdefault(record["judge"], {})[_key(record)] = record["label"]
    return Labels(hand=hand, judges=judges)


def judgements(directory: Path) -> Iterator[dict[str, Any]]:
    """The lines of judgements.jsonl that hold a judgement; what is no such line is left out."""
    try:
        lines = (directory / FILE_NAME).read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            record = orjson.loads(line)
            whole = isinstance(record["judge"], str) and record["label"] in (None, *CLASSES)
            whole = whole and isinstance(_key(record)[3], int)
        except (orjson.JSONDecodeError, KeyError, TypeError):
            continue
        if whole:
            yield record


def is_judges(source: str) -> bool:
    """Whether a label's source is a judging model."""
    return source.strip().casefold().startswith(JUDGE)


def with_judgements(text: str, judged: Mapping[Key, str], source: str) -> str:
    """The text of a labels.csv with a judge's labels in it; those by hand, and more columns, stay."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    columns = list(rows.fieldnames or ("model", "format", "problem_id", "sample", "label"))
    columns += [] if "source" in columns else ["source"]
    kept = [row for row in rows if not is_judges(row.get("source") or "") or _row_key(row) not in judged]
    by_hand = {_row_key(row) for row in kept if not is_judges(row.get("source") or "")}
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "source": row.get("source") or HAND} for row in kept)
    for key, label in judged.items():
        if key not in by_hand:
            named = dict(zip(("model", "format", "problem_id", "sample"), key, strict=True))
            writer.writerow({**named, "label": label, "source": source})
    return written.getvalue()


def judged_classes(entries: Sequence[Entry]) -> Table:
    """The paper's four classes (section 4.6) by model and source; an entry without any label says so."""
    rows: list[tuple[Cell, ...]] = []
    for entry in entries:
        found = [read_judged(run.directory) for run, _ in entry.parts]
        failed = entry.summary.valid - int(entry.perfect.sum())
        by_source: dict[str, Counter[str | None]] = {}
        for labels in found:
            for source, given in ((HAND, labels.hand), *((JUDGE + n, j) for n, j in labels.judges.items())):
                counted = Counter(label for key, label in given.items() if _is_of(key, entry))
                if counted:
                    by_source[source] = by_source.get(source, Counter()) + counted
        for source, counts in by_source.items():
            classes: list[Cell] = [counts[name] for name in CLASSES]
            labelled = sum(counts[name] for name in CLASSES)
            rows.append((*entry.who, source, failed, labelled, *classes))
        if not by_source:
            rows.append((*entry.who, "not labelled", failed, 0, *(None for _ in CLASSES)))
    return Table(
        name="error_classes",
        title="Classes of errors, as judged",
        columns=(
            *WHO,
            Column("source", "Judged by", help="hand, or judge: and the model"),
            Column("failed", "Not all passed", "count", help="samples"),
            Column("labelled", "Labelled", "count", help="samples"),
            *(Column(name, title, "count") for name, title in CLASSES.items()),
        ),
        rows=tuple(rows),
        notes=(
            "The four classes of the paper, section 4.6: by hand (labels.csv), by a judge (judgements.jsonl)",
        ),
    )


def judge_tables(entries: Sequence[Entry]) -> tuple[Table, ...]:
    """How far judges agree with people, and shares of classes corrected by that; nothing without a judge."""
    directories = {run.directory: None for entry in entries for run, _ in entry.parts}
    found = [read_judged(directory) for directory in directories]
    judges = sorted({name for labels in found for name in labels.judges})
    if not judges:
        return ()
    return _agreement_table(found, judges), _shares_table(entries, judges)


def _agreement_table(found: Sequence[Labels], judges: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for judge in judges:
        given = [(labels.hand, labels.judges.get(judge, {})) for labels in found]
        pairs = [(hand[key], mine[key]) for hand, mine in given for key in hand if key in mine]
        answers = [label for _, mine in given for label in mine.values()]
        seen = agreement(pairs)
        rows.append(
            (
                JUDGE + judge,
                len(answers),
                sum(label is None for label in answers),
                len(pairs),
                seen.share if seen else None,
                seen.kappa if seen else None,
            )
        )
    return Table(
        name="judge_agreement",
        title="Judges against people",
        columns=(
            Column("source", "Judged by"),
            Column("judged", "Judged", "count", help="samples"),
            Column("rejected", "Not counted", "count", help="answers without a true quotation"),
            Column("both", "By hand, too", "count", help="samples"),
            Column("agreement", "Equal %", "percent"),
            Column("kappa", "Cohen's kappa", "number", help="1: always equal, 0: as by chance"),
        ),
        rows=tuple(rows),
    )


def _shares_table(entries: Sequence[Entry], judges: Sequence[str]) -> Table:
    rows = [row for judge in judges for entry in entries for row in _shares(entry, judge)]
    return Table(
        name="class_shares",
        title="Shares of classes, corrected",
        columns=(
            *WHO,
            Column("source", "Judged by"),
            Column("class", "Class"),
            Column("judged", "Judged", "count", help="samples"),
            Column("checked", "By hand, too", "count", help="samples"),
            Column("share", "Judge says %", "percent"),
            Column("corrected", "Corrected %", "percent", help="prediction-powered inference"),
            Column("corrected_interval", "95 %", "percent", interval=True),
        ),
        rows=tuple(rows),
        notes=(
            "Shares of a model's judged samples, corrected by those that people labelled as well.",
            "Those must be a random draw (astra label --draw N), which is what the interval is about.",
        ),
    )


def _shares(entry: Entry, judge: str) -> Iterator[tuple[Cell, ...]]:
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
        yield (
            *(*entry.who, JUDGE + judge, title, share.total, share.checked),
            *(share.judged, share.corrected, share.interval),
        )


def _is_of(key: Key, entry: Entry) -> bool:
    return key[:2] == (entry.model, entry.format)


def _sources(path: Path) -> dict[Key, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return {}  # told by whoever reads the labels
    return {_row_key(row): row.get("source") or "" for row in csv.DictReader(io.StringIO(text, newline=""))}


def _row_key(row: Mapping[str, Any]) -> Key:
    sample = str(row.get("sample") or "")
    number = int(sample) if sample.isdecimal() else -1
    return str(row.get("model")), str(row.get("format")), str(row.get("problem_id")), number


def _key(record: Mapping[str, Any]) -> Key:
    return record["model"], record["format"], record["problem_id"], record["sample"]

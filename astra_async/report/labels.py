"""Labels of error classes (paper, section 4.6): labels.csv by people, judgements.jsonl by judges."""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.errors import UsageError
from astra_async.types.records import Flaw, read_key, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

Key = tuple[str, str, str, int]  # model, format, problem, sample

CLASSES: dict[str, str] = {
    "user_interface": "User interface and presentation",
    "logic": "Logical and implementation",
    "data_handling": "Data handling and misuse",
    "syntax": "Typos, syntax and misinterpretation",
}
_SPELLINGS = {
    spelling: name
    for name, title in CLASSES.items()
    for spelling in (name, name.replace("_", " "), title.casefold())
}
HAND = "hand"
JUDGE = "judge:"
JUDGEMENTS = "judgements.jsonl"
_KEY = ("model", "format", "problem_id", "sample")
COLUMNS = (*_KEY, "label")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Error classes of a run directory's samples.

    Attributes:
        hand: labels by people; a label without a source counts as one by hand.
        judges: labels by judge model; None if the judge's answer was rejected.
    """

    hand: Mapping[Key, str]
    judges: Mapping[str, Mapping[Key, str | None]]

    @property
    def sources(self) -> dict[str, Mapping[Key, str | None]]:
        """All labels by source: `hand`, or `judge:` and the model."""
        by_hand: dict[str, Mapping[Key, str | None]] = {HAND: self.hand} if self.hand else {}
        return by_hand | {JUDGE + name: given for name, given in self.judges.items()}


def read_judged(directory: Path) -> Labels:
    """Return the labels of a run directory. Raises UsageError for an invalid labels.csv."""
    judges: dict[str, dict[Key, str | None]] = {}
    for record in judgements(directory):
        judges.setdefault(record["judge"], {})[read_key(record)] = record["label"]
    found = read_labels(directory / "labels.csv")
    hand = {key: label for key, (label, source) in found.items() if not is_judges(source)}
    return Labels(hand=hand, judges=judges)


def read_labels(path: Path) -> dict[Key, tuple[str, str]]:
    """Return (label, source) by key; empty if the file does not exist.

    A source is HAND, or JUDGE and a model. Columns: `model, format, problem_id, sample, label` and optionally
    `source`; a label is a name or a title of CLASSES. Raises UsageError with the line number.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; save it as CSV in UTF-8") from error
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if absent := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
        raise UsageError(
            f"{path}: the column {', '.join(absent)} is missing; the first line must be {','.join(COLUMNS)}"
        )
    found = {}
    for row in rows:
        label, sample = _SPELLINGS.get((row["label"] or "").strip().casefold()), row["sample"] or ""
        if label is None or not sample.isdecimal():
            raise UsageError(
                f"{path} line {rows.line_num}: label {row['label']!r} or sample {sample!r} is invalid; "
                f"a label is one of {', '.join(CLASSES)}, a sample is a number"
            )
        source = (row.get("source") or "").strip() or HAND
        found[row["model"], row["format"], row["problem_id"], int(sample)] = label, source
    return found


def judgements(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the judgements in judgements.jsonl; malformed lines are skipped."""
    try:
        lines = (directory / JUDGEMENTS).read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        with suppress(Flaw, KeyError):
            record = read_record(line)
            read_key(record)
            if isinstance(record["judge"], str) and record["label"] in (None, *CLASSES):
                yield record


def is_judges(source: str) -> bool:
    """Return True if a label's source is a judge."""
    return source.strip().casefold().startswith(JUDGE)


def relabelled(text: str, key: Key, label: str | None) -> str:
    """Return the text of a labels.csv in which one sample's label by hand is replaced.

    With None the label by hand is removed; a judge's label stays. Other rows and extra columns are kept. An
    empty text becomes a new table. Raises UsageError if a column is missing.
    """
    rows, columns = _table(text)
    if absent := [name for name in COLUMNS if name not in columns]:
        raise UsageError(
            f"labels.csv: the column {', '.join(absent)} is missing; correct line 1 or remove the file"
        )
    kept = [row for row in rows if _row_key(row) != key]
    if label is None:
        judged = [row for row in rows if is_judges(row.get("source") or "")]
        return csv_of(columns, [*kept, *(row for row in judged if _row_key(row) == key)])
    return csv_of(columns, [*kept, _named(key) | {"label": label}])


def with_judgements(text: str, judged: Mapping[Key, str], source: str) -> str:
    """Return the text of a labels.csv with a judge's labels; labels by hand and extra columns are kept."""
    rows, columns = _table(text)
    columns += [] if "source" in columns else ["source"]
    kept = [row for row in rows if not is_judges(row.get("source") or "") or _row_key(row) not in judged]
    by_hand = {_row_key(row) for row in kept if not is_judges(row.get("source") or "")}
    new = [
        _named(key) | {"label": label, "source": source}
        for key, label in judged.items()
        if key not in by_hand
    ]
    return csv_of(columns, [*({**row, "source": row.get("source") or HAND} for row in kept), *new])


def _table(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows and the column names of a labels.csv; the default columns if the text is empty."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    return list(rows), list(rows.fieldnames or COLUMNS)


def csv_of(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a labels.csv with these rows; values without a column are left out."""
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def _named(key: Key) -> dict[str, str]:
    return dict(zip(_KEY, map(str, key), strict=True))


def _row_key(row: Mapping[str, Any]) -> Key:
    sample = str(row.get("sample") or "")
    number = int(sample) if sample.isdecimal() else -1
    return str(row.get("model")), str(row.get("format")), str(row.get("problem_id")), number

"""Classes of errors (paper, section 4.6): labels.csv, by people, and judgements.jsonl, by judges."""

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
    """What a run directory holds of classes of errors.

    Attributes:
        hand: by people; a label without a source is one.
        judges: by model, for each sample that it judged: its class, or None where its answer did not count.
    """

    hand: Mapping[Key, str]
    judges: Mapping[str, Mapping[Key, str | None]]

    @property
    def sources(self) -> dict[str, Mapping[Key, str | None]]:
        """All labels by `hand` and by each judge."""
        by_hand: dict[str, Mapping[Key, str | None]] = {HAND: self.hand} if self.hand else {}
        return by_hand | {JUDGE + name: given for name, given in self.judges.items()}


def read_judged(directory: Path) -> Labels:
    """The labels of a run directory by their source. Raises UsageError for a labels.csv with a mistake."""
    judges: dict[str, dict[Key, str | None]] = {}
    for record in judgements(directory):
        judges.setdefault(record["judge"], {})[read_key(record)] = record["label"]
    found = read_labels(directory / "labels.csv")
    hand = {key: label for key, (label, source) in found.items() if not is_judges(source)}
    return Labels(hand=hand, judges=judges)


def read_labels(path: Path) -> dict[Key, tuple[str, str]]:
    """Label and its source, HAND or JUDGE and a model, by key; empty if there is no such file.

    Columns: `model, format, problem_id, sample, label`; a label is one of CLASSES' names or titles.
    Raises UsageError with the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; save it as CSV in UTF-8") from error
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if absent := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
        raise UsageError(f"{path}: no column {', '.join(absent)}; the header is {','.join(COLUMNS)}")
    found = {}
    for row in rows:
        label, sample = _SPELLINGS.get((row["label"] or "").strip().casefold()), row["sample"] or ""
        if label is None or not sample.isdecimal():
            raise UsageError(
                f"{path} line {rows.line_num}: label {row['label']!r} or sample {sample!r} is not known; "
                f"labels are {', '.join(CLASSES)}"
            )
        source = (row.get("source") or "").strip() or HAND
        found[row["model"], row["format"], row["problem_id"], int(sample)] = label, source
    return found


def judgements(directory: Path) -> Iterator[dict[str, Any]]:
    """The lines of judgements.jsonl that hold a judgement; what is no such line is left out."""
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
    """Whether a label's source is a judge."""
    return source.strip().casefold().startswith(JUDGE)


def relabelled(text: str, key: Key, label: str | None) -> str:
    """The text of a labels.csv with another label by hand for one sample; all else stays, more columns too.

    None takes away what was given by hand, and no judge's label. An empty text becomes a new table. Raises
    UsageError for a text that is no such table.
    """
    rows, columns = _table(text)
    if absent := [name for name in COLUMNS if name not in columns]:
        raise UsageError(f"labels.csv: no column {', '.join(absent)}; correct its header or remove the file")
    kept = [row for row in rows if _row_key(row) != key]
    if label is None:
        judged = [row for row in rows if is_judges(row.get("source") or "")]
        return csv_of(columns, [*kept, *(row for row in judged if _row_key(row) == key)])
    return csv_of(columns, [*kept, _named(key) | {"label": label}])


def with_judgements(text: str, judged: Mapping[Key, str], source: str) -> str:
    """The text of a labels.csv with a judge's labels in it; those by hand, and more columns, stay."""
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
    """The rows and the columns of a labels.csv, those of a new one if it is empty."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    return list(rows), list(rows.fieldnames or COLUMNS)


def csv_of(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """The text of a labels.csv with these rows; what they have under no column is left out."""
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

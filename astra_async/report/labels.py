"""labels.csv: the paper's four classes of common errors (section 4.6), given by people."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from astra_async.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLASSES: dict[str, str] = {
    "user_interface": "User interface and presentation",
    "logic": "Logical and implementation",
    "data_handling": "Data handling and misuse",
    "syntax": "Typos, syntax and misinterpretation",
}
_KEY = ("model", "format", "problem_id", "sample")


def read_labels(path: Path) -> dict[tuple[str, str, str, int], str]:
    """Labels by key (model, format, problem, sample); empty if there is no such file.

    Columns: `model, format, problem_id, sample, label`; a label is one of CLASSES' names or titles.
    Raises UsageError with the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; save it as CSV in UTF-8") from error
    return dict(_labels(path, text))


def relabelled(text: str, key: tuple[str, str, str, int], label: str | None) -> str:
    """The text of a labels.csv with another label for one sample, or none; all else stays, more columns too.

    An empty text becomes a new table. Raises UsageError for a text that is no such table.
    """
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    columns = list(rows.fieldnames or (*_KEY, "label"))
    if absent := [name for name in (*_KEY, "label") if name not in columns]:
        raise UsageError(f"labels.csv: no column {', '.join(absent)}; mend its header or remove the file")
    named = dict(zip(_KEY, (*key[:3], str(key[3])), strict=True))
    kept = [row for row in rows if any(row[name] != value for name, value in named.items())]
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows([*kept, named | {"label": label}] if label else kept)
    return written.getvalue()


def _labels(path: Path, text: str) -> Iterator[tuple[tuple[str, str, str, int], str]]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    absent = [name for name in (*_KEY, "label") if name not in (rows.fieldnames or ())]
    if absent:
        raise UsageError(f"{path}: no column {', '.join(absent)}; the header is {','.join((*_KEY, 'label'))}")
    for row in rows:
        label = _class(row["label"] or "")
        sample = row["sample"] or ""
        if label is None or not sample.isdecimal():
            raise UsageError(
                f"{path} line {rows.line_num}: label {row['label']!r} or sample {sample!r} is not known; "
                f"labels are {', '.join(CLASSES)}"
            )
        yield (row["model"], row["format"], row["problem_id"], int(sample)), label


def _class(label: str) -> str | None:
    wanted = label.strip().casefold()
    for name, title in CLASSES.items():
        if wanted in (name, name.replace("_", " "), title.casefold()):
            return name
    return None

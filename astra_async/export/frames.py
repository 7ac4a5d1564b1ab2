"""pandas frames of tables and logs, with typed columns; a missing sample is NA, never 0."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from astra_async.errors import UsageError
from astra_async.report.packed_row import FAILURES, FINISHES, STATUSES
from astra_async.report.table import csv_header, csv_row
from astra_async.types import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from astra_async.report.load import Run
    from astra_async.report.table import Kind, Table
    from astra_async.types import NamedOutcome

    Columns = dict[str, Any]  # by name: Coded, Masked, or an array in which None and NaN mean no value

_COUNTS = (
    *("passed", "total", "attempts", "input_characters", "output_characters", "files_changed"),
    *("lines_written", "extra_tests", "dropped"),
)
_NUMBERS = (
    *("exit_code", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd"),
    *("ttft_s", "latency_s", "test_s"),
)
_KEY = ("model", "format", "problem_id", "sample")
_OF_A_TURN = (
    *("status", "failure", "passed", "total", "score"),
    *("input_tokens", "output_tokens", "cost_usd", "latency_s"),
)
_FLAGS = ("timed_out", "reused", "cost_estimated")
_TEXTS = {"repairs": "repairs", "suspicions": "suspicions", "prompt_sha256": "prompt", "image_id": "image"}
_NAMES: dict[str, tuple[str, Sequence[str | None]]] = {
    "status": ("status", STATUSES),
    "failure": ("failure", FAILURES),
    "finish_reason": ("finish", FINISHES),
}


class Coded(NamedTuple):
    """Column of texts, as indexes into `texts`; -1 means no value."""

    codes: NDArray[Any]
    texts: Sequence[str]


class Masked(NamedTuple):
    """Column of numbers or booleans; cells with `absent` True have no value."""

    cells: NDArray[Any]
    absent: NDArray[np.bool_]


def frame(table: Table) -> pd.DataFrame:
    """Return a table as a frame with typed columns: text, integers and floats, with NA for empty cells."""
    columns = table_columns(table)
    texts = [name for name, column in columns.items() if not isinstance(column, Masked)]
    return frame_of(columns).astype(dict.fromkeys(texts, "string"))


def table_columns(table: Table) -> Columns:
    """Return the columns of a table's CSV file by name: texts, integers or floats."""
    rows = [csv_row(row, table.columns) for row in table.rows]
    kinds = [column.kind for column in table.columns for _ in csv_header((column,))]
    names = csv_header(table.columns)
    return {
        name: _typed(kind, [row[place] for row in rows])
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }


def _typed(kind: Kind, cells: Sequence[str | float | None]) -> Masked | NDArray[np.object_]:
    """Return a typed column: text if any cell is a str ("not labelled"), integers for counts, else floats."""
    if kind == "text" or any(isinstance(cell, str) for cell in cells):
        return np.array([None if cell is None else str(cell) for cell in cells], dtype=object)
    numbers = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    absent = np.array([cell is None for cell in cells], dtype=bool)
    if kind != "count" or not all(cell is None or float(cell).is_integer() for cell in cells):
        return Masked(numbers, absent)
    return Masked(np.array([int(cell or 0) for cell in cells], dtype=np.int64), absent)


def sample_columns(run: Run, rows: NDArray[np.void], missing: NDArray[np.int64]) -> Columns:
    """Return the columns of a run's samples by name: those with `rows`, and `missing` ones."""
    keys = {
        name: np.concatenate([rows[name], missing[:, at]])
        for at, name in enumerate(("pair", "problem", "sample"))
    }
    order = np.lexsort((keys["sample"], keys["problem"], keys["pair"]))

    def placed(values: Any, filler: float) -> Any:
        return np.concatenate([values, np.full(len(missing), filler, dtype=values.dtype)])[order]

    absent = placed(np.zeros(len(rows), dtype=bool), True)  # noqa: FBT003 - a value like others
    columns = _key_columns(run, *(keys[name][order] for name in ("pair", "problem", "sample")))
    del keys  # frees 24 MB for a million samples
    for name, (field, values) in _NAMES.items():
        columns[name] = _coded(placed(rows[field].astype(np.int64), -1), values)
    for name in _COUNTS:
        columns[name] = Masked(placed(rows[name].astype(np.int64), 0), absent)
    columns["score"] = placed(rows["score"], np.nan)
    columns["perfect"] = Masked(placed(rows["passed"] == rows["total"], 0), absent)
    for name in _NUMBERS:
        columns[name] = placed(rows[name].astype(np.float64), np.nan)
    for name in _FLAGS:
        columns[name] = Masked(placed(rows[name].astype(bool), 0), absent)
    for name, field in {**_TEXTS, "returned_model": "returned_model"}.items():
        columns[name] = _coded(placed(rows[field].astype(np.int64), -1), run.texts)
    return columns


def turns_of(run: Run) -> pd.DataFrame:
    """Return a row for each recorded turn; see `Loaded.turns`."""
    pd = pandas()
    samples = frame_of(sample_columns(run, run.rows, run.missing))
    tokens = ("input_tokens", "output_tokens")
    records = [
        record | {name: (record.get("usage") or {}).get(name) for name in tokens}
        for record in run.turns.values()
    ]
    columns, texts = [*_KEY, "turn", *_OF_A_TURN], ("model", "format", "problem_id", "status", "failure")
    parts = [samples[samples["status"].notna()].assign(turn=0)]
    if records:
        parts.append(pd.DataFrame(records, columns=columns))
    whole = {"passed": "Int64", "total": "Int64", "sample": "int64", "turn": "int64"}
    kinds = dict.fromkeys(columns, "float64") | dict.fromkeys(texts, object) | whole
    both = pd.concat([part[columns].astype(kinds) for part in parts], ignore_index=True)
    return both.astype(dict.fromkeys(texts, "category")).sort_values([*_KEY, "turn"], ignore_index=True)


def test_columns(run: Run, rows: NDArray[np.void], tests: Iterable[tuple[NamedOutcome, ...]]) -> Columns:
    """Return the columns of expected tests by name, a row for each test of each sample in `rows`."""
    known = sorted({name for _, names in run.outcomes for name in names})
    outcomes: list[str] = list(get_args(Outcome))
    places = {name: at for at, name in enumerate(known)}
    numbers = {outcome: at for at, outcome in enumerate(outcomes)}

    @lru_cache  # many samples of a problem have equal outcomes and messages
    def coded(tests: tuple[NamedOutcome, ...]) -> tuple[array[int], array[int], list[str | None]]:
        return (
            array("i", [places[test.name] for test in tests]),
            array("b", [numbers.get(test.outcome, -1) for test in tests]),
            [test.message or None for test in tests],
        )

    sizes, names, found, messages = [], array("i"), array("b"), list[str | None]()
    for each in tests:
        its_names, its_outcomes, its_messages = coded(each)
        sizes.append(len(each))
        names += its_names
        found += its_outcomes
        messages += its_messages
    return {
        **_key_columns(run, *(np.repeat(rows[name], sizes) for name in ("pair", "problem", "sample"))),
        "test": Coded(np.array(names), known),
        "outcome": Coded(np.array(found), outcomes),
        "message": np.array(messages, dtype=object),
    }


def _key_columns(run: Run, pair: Any, problem: Any, sample: Any) -> Columns:
    models, formats = zip(*run.pairs, strict=True)
    return {
        "model": _coded(pair, models),
        "format": _coded(pair, formats),
        "problem_id": _coded(problem, run.problems),
        "sample": sample.astype(np.int64),
    }


def _coded(codes: Any, values: Sequence[str | None]) -> Coded:
    """Return a Coded column from indexes into `values`; None becomes "no value", equal values are merged."""
    known = list(dict.fromkeys(value for value in values if value is not None))
    places = {value: at for at, value in enumerate(known)}
    kind = np.min_scalar_type(-1 - len(known))  # the smallest type saves memory with a million samples
    lookup = np.array([-1 if value is None else places[value] for value in values] + [-1], dtype=kind)
    return Coded(lookup[codes], known)


def frame_of(columns: Columns) -> pd.DataFrame:
    """Return columns as a frame."""
    return pandas().DataFrame({name: _series(values) for name, values in columns.items()}, copy=False)


def _series(column: Any) -> Any:
    pd = pandas()
    if isinstance(column, Coded):
        return pd.Categorical.from_codes(column.codes, categories=column.texts)
    if isinstance(column, Masked):
        kinds = {"b": pd.arrays.BooleanArray, "i": pd.arrays.IntegerArray, "f": pd.arrays.FloatingArray}
        return kinds[column.cells.dtype.kind](column.cells, column.absent.copy())
    return column


def pandas() -> Any:
    """Import and return pandas. Raises UsageError if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise UsageError("pandas is not installed: pip install 'astra_async[pandas]'") from error
    return pd

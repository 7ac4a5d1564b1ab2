"""pandas frames of a table and of a run's logs: typed columns, missing samples as NaN and never as 0."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from astra_async.errors import UsageError
from astra_async.report.packing import FAILURES, FINISHES, STATUSES, TRIALS
from astra_async.report.table import csv_header, csv_row
from astra_async.report.turn_states import read_turns
from astra_async.types import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from astra_async.report.load import Run
    from astra_async.report.table import Table
    from astra_async.types.records import TestFields

_COUNTS = (
    *("passed", "total", "attempts", "input_characters", "output_characters", "files_changed"),
    *("lines_written", "extra_tests", "dropped", "trial_left_out"),
)
_NUMBERS = (
    *("exit_code", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd"),
    *("ttft_s", "latency_s", "test_s", "trial_s"),
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
    "trial": ("trial", TRIALS),
}


def frame(table: Table) -> pd.DataFrame:
    """A table with typed columns: text, whole numbers and fractions, empty cells as NA."""
    pd = pandas()
    rows = [csv_row(row, table.columns) for row in table.rows]
    whole = pd.DataFrame(rows, columns=csv_header(table.columns), dtype=object)
    for column in table.columns:
        for name in csv_header((column,)):
            whole[name] = whole[name].astype(_kind(column.kind, list(whole[name])))
    return whole


def _kind(kind: str, values: list[object]) -> str:
    """A column's type: whole numbers stay whole; words among the numbers ("not labelled") make it text."""
    if kind == "text" or any(isinstance(value, str) for value in values):
        return "string"
    whole = all(value is None or float(value).is_integer() for value in values)  # type: ignore[arg-type]
    return "Int64" if kind == "count" and whole else "Float64"


def samples_of(run: Run, rows: NDArray[np.void], missing: NDArray[np.int64]) -> pd.DataFrame:
    """A row for each of these planned samples of a run; see `Loaded.samples`."""
    keys = {
        name: np.concatenate([rows[name], missing[:, at]])
        for at, name in enumerate(("pair", "problem", "sample"))
    }
    order = np.lexsort((keys["sample"], keys["problem"], keys["pair"]))
    models, formats = zip(*run.pairs, strict=True)

    def placed(values: Any, filler: float) -> Any:
        return np.concatenate([values, np.full(len(missing), filler, dtype=values.dtype)])[order]

    absent = placed(np.zeros(len(rows), dtype=bool), True)  # noqa: FBT003 - a value like others
    columns: dict[str, Any] = {
        "model": _category(keys["pair"][order], models),
        "format": _category(keys["pair"][order], formats),
        "problem_id": _category(keys["problem"][order], run.problems),
        "sample": keys["sample"][order].astype(np.int64),
    }
    for name, (field, values) in _NAMES.items():
        columns[name] = _category(placed(rows[field].astype(np.int64), -1), values)
    for name in _COUNTS:
        columns[name] = _masked(placed(rows[name].astype(np.int64), 0), absent)
    columns["score"] = placed(rows["passed"] / rows["total"], np.nan)
    columns["perfect"] = _masked(placed(rows["passed"] == rows["total"], 0), absent)
    for name in _NUMBERS:
        columns[name] = placed(rows[name].astype(np.float64), np.nan)
    for name in _FLAGS:
        columns[name] = _masked(placed(rows[name].astype(bool), 0), absent)
    for name, field in {**_TEXTS, "returned_model": "returned_model"}.items():
        columns[name] = _category(placed(rows[field].astype(np.int64), -1), run.texts)
    return pandas().DataFrame(columns, copy=False)


def turns_of(run: Run) -> pd.DataFrame:
    """A row for each recorded turn; see `Loaded.turns`."""
    pd = pandas()
    samples = samples_of(run, run.rows, run.missing)
    first = samples[samples["status"].notna()][[*_KEY, *_OF_A_TURN]].assign(turn=0)
    records = list(read_turns(run)[0].values())
    further = pd.DataFrame(
        {name: [record.get(name) for record in records] for name in (*_KEY, "turn", *_OF_A_TURN)}
    )
    for name in _OF_A_TURN:
        if name in ("input_tokens", "output_tokens"):
            further[name] = [(record.get("usage") or {}).get(name) for record in records]
        further[name] = further[name].astype(object if name in ("status", "failure") else "float64")
        first[name] = first[name].astype(further[name].dtype)
    for name in ("model", "format", "problem_id"):
        first[name] = first[name].astype(object)
    both = pd.concat([first, further], ignore_index=True) if records else first
    names = {"passed": "Int64", "total": "Int64", "sample": "int64", "turn": "int64"}
    categories = dict.fromkeys(("model", "format", "problem_id", "status", "failure"), "category")
    both = both.astype({**names, **categories})[[*_KEY, "turn", *_OF_A_TURN]]
    return both.sort_values([*_KEY, "turn"], ignore_index=True)


def tests_of(run: Run, rows: NDArray[np.void], tests: Iterable[tuple[TestFields, ...]]) -> pd.DataFrame:
    """A row for each expected test of the samples of some rows; see `Loaded.tests`."""
    pd = pandas()
    models, formats = zip(*run.pairs, strict=True)
    known = sorted({name for _, names in run.outcomes for name in names})
    outcomes: list[str] = list(get_args(Outcome))
    places = {name: at for at, name in enumerate(known)}
    numbers = {outcome: at for at, outcome in enumerate(outcomes)}
    sizes, names, found, messages = [], array("i"), array("b"), list[str | None]()
    for each in tests:
        sizes.append(len(each))
        names.extend([places[test.name] for test in each])
        found.extend([numbers.get(test.outcome, -1) for test in each])
        messages += [test.message or None for test in each]
    pair, problem, sample = (np.repeat(rows[name], sizes) for name in ("pair", "problem", "sample"))
    return pd.DataFrame(
        {
            "model": _category(pair, models),
            "format": _category(pair, formats),
            "problem_id": _category(problem, run.problems),
            "sample": sample.astype(np.int64),
            "test": pd.Categorical.from_codes(np.array(names), categories=known),
            "outcome": pd.Categorical.from_codes(np.array(found), categories=outcomes),
            "message": pd.Series(messages, dtype=object),
        }
    )


def _category(codes: Any, values: Sequence[str | None]) -> pd.Categorical:
    """Codes as a categorical; the code of None and -1 are NaN, and equal values are one category."""
    pd = pandas()
    known = list(dict.fromkeys(value for value in values if value is not None))
    places = {value: at for at, value in enumerate(known)}
    lookup = np.array([-1 if value is None else places[value] for value in values] + [-1], dtype=np.int64)
    return pd.Categorical.from_codes(lookup[codes], categories=known)


def _masked(values: NDArray[Any], absent: NDArray[np.bool_]) -> Any:
    arrays = pandas().arrays
    kind = arrays.BooleanArray if values.dtype == bool else arrays.IntegerArray
    return kind(values, absent.copy())


def pandas() -> Any:
    """The library; raises UsageError where it is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise UsageError("pandas is not installed: pip install 'astra_async[pandas]'") from error
    return pd

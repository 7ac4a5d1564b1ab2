"""Export as Parquet files, in the layout of the Hugging Face hub and the `datasets` library.

    OUT/README.md                    data set card, with `configs:`
    OUT/data/samples-00000.parquet   a row for each planned sample; a missing one is null except in its key
    OUT/data/tests-00000.parquet     a row for each expected test of each sample
    OUT/data/problems-00000.parquet  a row for each model, format and problem

The samples have the columns of the frames and those of _FROM_LINES. The column `answer` is included only on
request, because published answers could become training data.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import orjson

from astra_async.errors import UsageError
from astra_async.export.frames import Coded, Masked, sample_columns, table_columns, test_columns
from astra_async.export.lines import places
from astra_async.files import read_at
from astra_async.report.entries import entries_of
from astra_async.report.problem_tables import problems_table
from astra_async.types import SampleKey, Usage
from astra_async.types.records import read_line, read_record, tests_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.export.frames import Columns
    from astra_async.report.load import Run
    from astra_async.types import AnswerKey, NamedOutcome

_SAMPLES_AT_ONCE = 2_000
# Text fields of a result line; `changes` and `rewards` are JSON text.
_TEXTS = ("solution_sha256", "node", "note", "changes", "rewards", "output_tail", "started_at", "finished_at")
_FROM_LINES = (*_TEXTS, "cache_write_tokens")
_CARD = """---
license: other
pretty_name: {name}
configs:
- config_name: samples
  data_files: data/samples-*.parquet
  default: true
- config_name: tests
  data_files: data/tests-*.parquet
- config_name: problems
  data_files: data/problems-*.parquet
---

# {name}

A run of astra_async: {samples} planned samples of {problems} problems by {models} models, {state}.
The columns are described in docs/python.md of astra_async. A sample without a result is null in every column
except its key.
{answers}
"""


class _Line(msgspec.Struct, gc=False):
    """Fields of a result line that are exported in addition to the frames' columns; None if not recorded."""

    solution_sha256: str | None = None
    node: str | None = None
    note: str | None = None
    changes: msgspec.Raw = msgspec.Raw(b"[]")
    rewards: msgspec.Raw = msgspec.Raw(b"null")
    output_tail: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    usage: Usage | None = None
    tests: msgspec.Raw = msgspec.Raw(b"[]")


_LINES = msgspec.json.Decoder(_Line)


def write_parquet(runs: tuple[Run, ...], out: Path, *, with_answers: bool) -> None:
    """Write the folder atomically. Raises UsageError if pyarrow is not installed or `out` is not empty."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError("pyarrow is not installed: pip install 'astra_async[export]'") from error
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; name another folder with --out")
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "data").mkdir(parents=True)
    try:
        with ExitStack() as opened:
            files: dict[str, Any] = {}
            for name, part in _parts(runs, with_answers=with_answers):
                table = _table(part)
                if name not in files:
                    path = draft / "data" / f"{name}-00000.parquet"
                    files[name] = opened.enter_context(pq.ParquetWriter(path, table.schema))
                files[name].write_table(table)
        problems = table_columns(problems_table(entries_of(runs)))
        pq.write_table(_table(problems), draft / "data" / "problems-00000.parquet")
        (draft / "README.md").write_text(_card(runs, out.name, with_answers), encoding="utf-8")
        if out.exists():
            out.rmdir()
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _parts(runs: tuple[Run, ...], *, with_answers: bool) -> Iterator[tuple[str, Columns]]:
    """Yield (table name, columns) for pieces of the tables `samples` and `tests`; every line is read once."""
    for run in runs:
        log = run.directory / "completions.jsonl"
        answers = places(log) if with_answers else {}
        for rows, missing in _blocks(run):
            lines = [_line(content) for content in run.contents(rows)]
            samples = sample_columns(run, rows, missing)
            samples |= _from_lines([line for line, _ in lines], samples["status"].codes >= 0)
            if with_answers:
                samples["answer"] = np.array([*_answers(samples, log, answers)], dtype=object)
            tests = test_columns(run, rows, (each for _, each in lines))
            for name, part in (("samples", samples), ("tests", tests)):
                count = len(part["sample"])
                origin = {"directory": np.full(count, str(run.directory), object)} if len(runs) > 1 else {}
                yield name, origin | part


def _blocks(run: Run) -> Iterator[tuple[NDArray[np.void], NDArray[np.int64]]]:
    """Yield (rows, missing samples) in order, in blocks of whole problems with about 2,000 samples."""
    cells = run.missing[:, 0] * len(run.problems) + run.missing[:, 1]
    planned = np.diff(run.bounds) + np.bincount(cells, minlength=len(run.bounds) - 1)
    blocks = np.cumsum(planned) // _SAMPLES_AT_ONCE
    ends = np.flatnonzero(np.diff(blocks, append=blocks[-1] + 1)) + 1
    for first, last in pairwise([0, *ends.tolist()]):
        lost, until = np.searchsorted(cells, [first, last])
        yield run.rows[run.bounds[first] : run.bounds[last]], run.missing[lost:until]


def _answers(
    samples: Columns, log: Path, answers: Mapping[AnswerKey, tuple[int, int]]
) -> Iterator[str | None]:
    model, fmt, problem = (samples[name] for name in ("model", "format", "problem_id"))
    for a, b, c, number in zip(
        model.codes, fmt.codes, problem.codes, samples["sample"].tolist(), strict=True
    ):
        place = answers.get(SampleKey(model.texts[a], fmt.texts[b], problem.texts[c], number))
        yield place and str(read_record(read_at(log, *place))["text"])


def _line(content: bytes) -> tuple[_Line, tuple[NamedOutcome, ...]]:
    """Decode a line and its tests; text that is invalid in UTF-8 (lone surrogates) is replaced."""
    try:
        line = _LINES.decode(content)
        tests = tests_of(line.tests)
    except msgspec.MsgspecError:
        pass
    else:
        if b"\\u" not in bytes(line.changes):
            return line, tests
    line = _LINES.decode(orjson.dumps(read_line(content)))
    return line, tests_of(line.tests)


def _from_lines(lines: Sequence[_Line], there: NDArray[np.bool_]) -> Columns:
    """Return the columns of _FROM_LINES, with None for missing samples."""
    cells = {name: [*map(attrgetter(name), lines)] for name in (*_TEXTS, "usage")}
    for name in ("changes", "rewards"):
        cells[name] = [bytes(each).decode() for each in cells[name]]
    tokens = _spread([usage and usage.cache_write_tokens for usage in cells.pop("usage")], there)
    absent = tokens == None  # noqa: E711 - of each element
    columns = {name: _spread(each, there) for name, each in cells.items()}
    return columns | {"cache_write_tokens": Masked(np.where(absent, 0, tokens).astype(np.int64), absent)}


def _spread(cells: Sequence[object], there: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return an array with `cells` at the places with `there` True, and None elsewhere."""
    whole = np.full(len(there), None, dtype=object)
    whole[there] = cells
    return whole


def _table(columns: Columns) -> Any:
    """Return a pyarrow table; its types do not depend on the values, so all pieces have equal types.

    `pyarrow.array` is avoided, because it imports pandas if pandas is installed.
    """
    import pyarrow as pa

    return pa.Table.from_arrays([*map(_array, columns.values())], names=[*columns])


def _array(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, Coded):
        codes = _numbers(column.codes.astype(np.int32), column.codes < 0)
        return pa.DictionaryArray.from_arrays(codes, _texts(column.texts))
    if isinstance(column, Masked):
        return _numbers(*column)
    return _texts(column) if column.dtype == object else _numbers(column, np.isnan(column))


def _numbers(values: NDArray[Any], absent: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    content = _bits(values) if values.dtype == bool else pa.py_buffer(np.ascontiguousarray(values))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [_bits(~absent), content])


def _texts(cells: Iterable[str | None]) -> Any:
    import pyarrow as pa

    builder = pa.lib.StringBuilder()
    builder.append_values(cells)
    return builder.finish()


def _bits(values: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _card(runs: tuple[Run, ...], name: str, with_answers: bool) -> str:  # noqa: FBT001 - one reading
    missing = sum(len(run.missing) for run in runs)
    return _CARD.format(
        name=name,
        samples=sum(len(run.rows) for run in runs) + missing,
        problems=len({problem for run in runs for problem in run.problems}),
        models=len({model for run in runs for model, _ in run.pairs}),
        state=f"{missing} of them missing" if missing else "all with a result",
        answers="The models' answers are in the column `answer`."
        if with_answers
        else "The models' answers are not included.",
    )

"""A run as Parquet files, in the layout that the Hugging Face hub shows and `datasets` loads.

    OUT/README.md                    what it is, with `configs:`
    OUT/data/samples-00000.parquet   a row for each planned sample; a missing one is null in all but its key
    OUT/data/tests-00000.parquet     a row for each expected test of each sample
    OUT/data/problems-00000.parquet  a row for each model, format and problem

Beside the columns of the frames the samples have those of _FROM_LINES, as the lines have them. Answers are a
column `answer`, only if asked for: they could end up in training data.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import orjson

from astra_async.errors import UsageError
from astra_async.export.frames import pandas, samples_of, tests_of
from astra_async.export.lines import places
from astra_async.export.loaded import Loaded
from astra_async.report.packing import read_at
from astra_async.types import SampleKey
from astra_async.types.records import TestFields, UsageFields, read_line, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from astra_async.report.load import Run

_SAMPLES_AT_ONCE = 5_000
# Fields of a final line by their type in pandas; `changes` as JSON.
_FROM_LINES = {
    **dict.fromkeys(("solution_sha256", "node", "note", "changes", "output_tail"), "object"),
    **dict.fromkeys(("started_at", "finished_at"), "object"),
    "cache_write_tokens": "Int64",
}
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
Columns: docs/python.md of the project. A sample without a result is null in every column but its key.
{answers}
"""


class _Line(msgspec.Struct, gc=False):
    """What of a final line is exported beside the frames' columns; None: not recorded."""

    solution_sha256: str | None = None
    node: str | None = None
    note: str | None = None
    changes: Any = None
    output_tail: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    usage: UsageFields | None = None
    tests: tuple[TestFields, ...] = ()


_LINES = msgspec.json.Decoder(_Line)


def write_parquet(runs: tuple[Run, ...], out: Path, *, with_answers: bool) -> None:
    """Write the folder whole or not at all. Raises UsageError when pyarrow is missing or `out` is in use."""
    try:
        import pyarrow as pa
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
                table = _arrow(part)
                if name not in files:
                    path = draft / "data" / f"{name}-00000.parquet"
                    files[name] = opened.enter_context(pq.ParquetWriter(path, table.schema))
                files[name].write_table(table)
        problems = pa.Table.from_pandas(Loaded(runs).problems, preserve_index=False)
        pq.write_table(problems, draft / "data" / "problems-00000.parquet")
        (draft / "README.md").write_text(_card(runs, out.name, with_answers), encoding="utf-8")
        if out.exists():
            out.rmdir()
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _parts(runs: tuple[Run, ...], *, with_answers: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """Pieces of both tables, by name; every line is read once."""
    for run in runs:
        log = run.directory / "completions.jsonl"
        answers = places(log) if with_answers else {}
        for rows, missing in _blocks(run):
            lines = [_line(content) for content in run.contents(rows)]
            samples = samples_of(run, rows, missing)
            _add_lines(samples, lines)
            if with_answers:
                keys = samples[["model", "format", "problem_id", "sample"]].itertuples(index=False)
                found = [answers.get(SampleKey(*key)) for key in keys]
                samples["answer"] = [
                    place and str(read_record(read_at(log, *place))["text"]) for place in found
                ]
            tests = tests_of(run, rows, (line.tests for line in lines))
            for name, part in (("samples", samples), ("tests", tests)):
                if len(runs) > 1:
                    part.insert(0, "directory", str(run.directory))
                yield name, part


def _blocks(run: Run) -> Iterator[tuple[NDArray[np.void], NDArray[np.int64]]]:
    """The rows and the missing samples of whole problems of a model, some thousands together, in order."""
    cells = run.missing[:, 0] * len(run.problems) + run.missing[:, 1]
    planned = np.diff(run.bounds) + np.bincount(cells, minlength=len(run.bounds) - 1)
    blocks = np.cumsum(planned) // _SAMPLES_AT_ONCE
    ends = np.flatnonzero(np.diff(blocks, append=blocks[-1] + 1)) + 1
    for first, last in pairwise([0, *ends.tolist()]):
        lost, until = np.searchsorted(cells, [first, last])
        yield run.rows[run.bounds[first] : run.bounds[last]], run.missing[lost:until]


def _line(content: bytes) -> _Line:
    try:
        return _LINES.decode(content)
    except msgspec.MsgspecError:
        return msgspec.convert(read_line(content), _Line)


def _add_lines(samples: pd.DataFrame, lines: Sequence[_Line]) -> None:
    """The columns of _FROM_LINES; nothing for missing samples."""
    there = np.flatnonzero(samples["status"].notna())
    found = zip(*map(_besides, lines), strict=True) if lines else [()] * len(_FROM_LINES)
    for (name, kind), values in zip(_FROM_LINES.items(), found, strict=True):
        cells = np.full(len(samples), None, dtype=object)
        cells[there] = values
        samples[name] = pandas().array(cells, dtype=kind)


def _besides(line: _Line) -> tuple[str | int | None, ...]:
    return (
        *(line.solution_sha256, line.node, line.note, orjson.dumps(line.changes or []).decode()),
        *(line.output_tail, line.started_at, line.finished_at),
        line.usage.cache_write_tokens if line.usage else None,
    )


def _arrow(part: pd.DataFrame) -> Any:
    """As pyarrow has it, with the same types whatever the values of this piece are."""
    import pyarrow as pa

    whole = pa.Table.from_pandas(part, preserve_index=False).replace_schema_metadata(None)
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)

    def kind(found: Any) -> Any:
        if pa.types.is_dictionary(found):
            return pa.dictionary(pa.int32(), pa.string())
        return found if any(fits(found) for fits in is_number) else pa.string()

    return whole.cast(pa.schema([(field.name, kind(field.type)) for field in whole.schema]))


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
        else "The models' answers are not part of it.",
    )

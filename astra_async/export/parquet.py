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
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.errors import UsageError
from astra_async.export.frames import tests_in_parts
from astra_async.export.lines import lines
from astra_async.export.loaded import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from astra_async.report.load import Run

_BATCH = 2_000
_SAMPLES_AT_ONCE = 20_000
# Fields of a final line by pyarrow's type; `changes` as JSON.
_FROM_LINES = {
    **dict.fromkeys(("solution_sha256", "node", "note", "changes", "output_tail"), "string"),
    **dict.fromkeys(("started_at", "finished_at"), "string"),
    "cache_write_tokens": "int64",
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


def write_parquet(runs: tuple[Run, ...], out: Path, *, with_answers: bool) -> None:
    """Write the folder whole or not at all. Raises UsageError when pyarrow is missing or `out` is in use."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError("pyarrow is not installed: pip install 'astra_async[export]'") from error
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; name another folder with --out")
    loaded = Loaded(runs, provisional=True)
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "data").mkdir(parents=True)
    try:
        samples = pa.Table.from_pandas(loaded.samples, preserve_index=False)
        schema = _schema(samples, pa, with_answers=with_answers)
        with pq.ParquetWriter(draft / "data" / "samples-00000.parquet", schema) as file:
            for part, records in _parts(samples, runs, with_answers=with_answers):
                for name in schema.names[len(part.column_names) :]:
                    column = pa.array([each.get(name) for each in records], type=schema.field(name).type)
                    part = part.append_column(name, column)  # noqa: PLW2901 - a table with one column more
                file.write_table(part)
        _write_tests(runs, draft / "data" / "tests-00000.parquet")
        problems = pa.Table.from_pandas(loaded.problems, preserve_index=False)
        pq.write_table(problems, draft / "data" / "problems-00000.parquet")
        (draft / "README.md").write_text(_card(loaded, out.name, with_answers), encoding="utf-8")
        if out.exists():
            out.rmdir()
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_tests(runs: tuple[Run, ...], path: Path) -> None:
    """All tests of all runs, those of so many samples in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    named = pa.dictionary(pa.int32(), pa.string())
    columns = dict.fromkeys(("model", "format", "problem_id", "sample", "test", "outcome"), named)
    schema = pa.schema(columns | {"sample": pa.int64(), "message": pa.string()})
    if len(runs) > 1:
        schema = schema.insert(0, pa.field("directory", pa.string()))
    with pq.ParquetWriter(path, schema) as file:
        for run in runs:
            for part in tests_in_parts(run, _SAMPLES_AT_ONCE):
                cells = {"directory": [str(run.directory)] * len(part)} | dict(part.items())
                file.write_table(pa.table({name: cells[name] for name in schema.names}).cast(schema))


def _schema(samples: Any, pa: Any, *, with_answers: bool) -> Any:
    schema = samples.schema.remove_metadata()
    for name, kind in _FROM_LINES.items():
        schema = schema.append(pa.field(name, getattr(pa, kind)()))
    return schema.append(pa.field("answer", pa.string())) if with_answers else schema


def _parts(
    samples: Any, runs: tuple[Run, ...], *, with_answers: bool
) -> Iterator[tuple[Any, list[Mapping[str, Any]]]]:
    """The samples in batches, with what their lines have besides; nothing for missing ones."""
    samples = samples.replace_schema_metadata(None)
    waiting = _besides(runs, with_answers=with_answers)
    for start in range(0, samples.num_rows, _BATCH):
        part = samples.slice(start, _BATCH)
        there = part.column("status").is_valid().to_pylist()
        yield part, [next(waiting) if valid else {} for valid in there]


def _besides(runs: tuple[Run, ...], *, with_answers: bool) -> Iterator[Mapping[str, Any]]:
    """The fields of _FROM_LINES and the answer of all valid samples, in the order of the frames."""
    for run in runs:
        for pair in range(len(run.pairs)):
            for record, answer in lines(run, pair, with_answers=with_answers):
                found = {name: record.get(name) for name in _FROM_LINES}
                found["changes"] = orjson.dumps(record.get("changes") or []).decode()
                found["cache_write_tokens"] = (record.get("usage") or {}).get("cache_write_tokens")
                yield found | {"answer": answer}


def _card(loaded: Loaded, name: str, with_answers: bool) -> str:  # noqa: FBT001 - one reading
    samples = loaded.samples
    missing = int(samples["status"].isna().sum())
    return _CARD.format(
        name=name,
        samples=len(samples),
        problems=samples["problem_id"].nunique(),
        models=samples["model"].nunique(),
        state=f"{missing} of them missing" if missing else "all with a result",
        answers="The models' answers are in the column `answer`."
        if with_answers
        else "The models' answers are not part of it.",
    )

"""What people and editors do to the files of a run: each reader believes the same and says the same."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.errors import ConflictError
from astra_async.log import encode
from astra_async.report.load import load_run
from astra_async.running.directory import RunDirectory
from astra_async.types import Completion, NamedOutcome, Result, SampleKey, Usage
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAMPLES = 4
RUN = {
    "schema": 1,
    "run_id": "abc",
    "samples": SAMPLES,
    "formats": ["xml"],
    "models": [{"name": "m"}],
    "problems": {"p": {}},
}


def a_line(sample: int, passed: int = 1) -> dict[str, Any]:
    outcomes = ["passed"] * passed + ["failed"] * (2 - passed)
    result = Result(
        schema=1,
        model="m",
        format="xml",
        problem_id="p",
        sample=sample,
        status="scored",
        failure=None if passed == 2 else "tests_failed",
        passed=passed,
        total=2,
        score=passed / 2,
        tests=tuple(NamedOutcome(name=f"t{n}", outcome=o) for n, o in enumerate(outcomes)),
    )
    line: dict[str, Any] = orjson.loads(encode(result))
    return line


def a_run(path: Path, *lines: dict[str, Any], mark: bytes = b"", **run: Any) -> Path:
    path.mkdir(mode=0o700)
    (path / "run.json").write_bytes(orjson.dumps(RUN | run))
    (path / "results.jsonl").write_bytes(mark + b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def believed(path: Path) -> tuple[set[int], set[int], list[str], tuple[str, ...]]:
    """Samples that a resume and a report count, and what each of them says."""
    report = load_run(path)
    with closing(RunDirectory.open(path)) as directory:
        return (
            {key.sample for key in directory.graded},
            {int(row["sample"]) for row in report.rows},
            directory.warnings,
            report.warnings,
        )


EDITS: tuple[tuple[Callable[[dict[str, Any]], dict[str, Any]], str], ...] = (
    (
        lambda line: line | {"passed": 2},
        "2 of 2 passed, and yet status is 'scored' and failure \"tests_failed\"",
    ),
    (
        lambda line: line | {"passed": 2, "score": 1.0, "failure": None},
        "passed is 2 of 2, and its own tests say 1 of 2",
    ),
    (lambda line: line | {"passed": "1"}, "passed: expected `int`, got `str`"),
    (lambda line: line | {"passed": True}, "passed: expected `int`, got `bool`"),
    (lambda line: line | {"passed": 3}, "passed is 3 of 2"),
    (lambda line: line | {"score": 1.0}, "score is 1.0, and 1 of 2 passed"),
    (lambda line: line | {"total": 0, "passed": 0}, "total: expected `int` >= 1"),
    (lambda line: line | {"usage": None}, "usage: expected `object`, got `null`"),
    (
        lambda line: line | {"usage": {"input_tokens": "7"}},
        "usage.input_tokens: expected `int | null`, got `str`",
    ),
    (lambda line: line | {"tests": {}}, "tests: expected `array`, got `object`"),
    (lambda line: line | {"tests": ["t0"]}, "tests[0]: expected `object`, got `str`"),
    (lambda line: line | {"failure": "bad luck"}, "failure: invalid enum value 'bad luck'"),
    (lambda line: line | {"status": "no_solution"}, "1 of 2 passed, and yet status is 'no_solution'"),
    (lambda line: line | {"cost_usd": "1.5"}, "cost_usd: expected `float | null`, got `str`"),
    (lambda line: line | {"attempts": None}, "attempts: expected `int`, got `null`"),
    (lambda line: line | {"finish_reason": 7}, "finish_reason: expected `str`, got `int`"),
)


@pytest.mark.parametrize(("edit", "why"), EDITS, ids=[why for _, why in EDITS])
def test_a_line_that_contradicts_itself_is_counted_by_nobody_and_named_by_everybody(
    tmp_path: Path, edit: Callable[[dict[str, Any]], dict[str, Any]], why: str
) -> None:
    lines = [a_line(sample) for sample in range(SAMPLES)]
    lines[2] = edit(lines[2])
    by_run, by_report, said, told = believed(a_run(tmp_path / "run", *lines))
    assert by_run == by_report == {0, 1, 3}
    assert tuple(said) == told
    assert len(told) == 1
    assert told[0].startswith(f"results.jsonl line 3: {why}")
    assert told[0].endswith("; not counted, m/xml/p/2 is missing until `astra run` repeats it")


def test_nothing_is_said_to_be_repeated_where_another_line_is_counted(tmp_path: Path) -> None:
    edited = a_line(1) | {"passed": 2}
    lines = (a_line(0), edited, a_line(2), a_line(3), a_line(1))
    by_run, by_report, said, told = believed(a_run(tmp_path / "run", *lines))
    assert by_run == by_report == {0, 1, 2, 3}
    assert tuple(said) == told
    assert told[0].endswith("; not counted: another line of m/xml/p/1 is")


def test_a_byte_order_mark_hides_no_line(tmp_path: Path) -> None:
    lines = [a_line(sample) for sample in range(SAMPLES)]
    by_run, by_report, said, told = believed(a_run(tmp_path / "run", *lines, mark=b"\xef\xbb\xbf"))
    assert by_run == by_report == {0, 1, 2, 3}
    assert (said, told) == ([], ())


def test_an_answer_stays_although_what_stands_beside_it_is_damaged(tmp_path: Path) -> None:
    key = SampleKey("m", "xml", "p", 0)
    answer = Completion(
        text="<solution/>", finish_reason="stop", usage=Usage(), returned_model="m", ttft_s=None, latency_s=1
    )
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_completion(key, answer, "abc")
    path = tmp_path / "completions.jsonl"
    line = orjson.loads(path.read_bytes()) | {"usage": None, "cost_usd": "much", "repairs": 7}
    path.write_bytes(b"\xef\xbb\xbf" + orjson.dumps(line) + b"\n")
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert directory.completion(key)[0].text == "<solution/>"
        assert sum(each.cost_usd for each in directory.earlier.values()) == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "not a JSON object"),
        (RUN | {"samples": "x"}, 'samples is "x"'),
        (RUN | {"samples": 0}, "samples is 0"),
        (RUN | {"models": {"m": 1}}, "models is"),
        (RUN | {"models": [{"spec": "m"}]}, "models is"),
        (RUN | {"problems": ["p"]}, "problems is"),
        (RUN | {"formats": ["Yaml"]}, "formats is"),
        (RUN | {"run_id": None}, "run_id is null"),
        (RUN | {"parts": []}, "parts is"),
        (RUN | {"schema": 2}, "schema 2, this version reads 1; use the version that wrote it"),
    ],
    ids=str,
)
@pytest.mark.parametrize("words", [("report",), ("compare", "run"), ("regrade",)], ids=str)
def test_a_run_json_of_the_wrong_shape_is_one_line_that_says_what_and_where(
    tmp_path: Path, content: Any, why: str, words: tuple[str, ...]
) -> None:
    path = a_run(tmp_path / "run", a_line(0))
    (path / "run.json").write_bytes(orjson.dumps(content))
    with pytest.raises(ConflictError) as caught:
        read_run(path / "run.json")
    with pytest.raises(ConflictError) as also:
        RunDirectory.open(path)
    assert str(caught.value) == str(also.value)
    assert why in str(caught.value)
    if content == []:  # one of them through the whole program: the others are the same function
        command = [sys.executable, "-m", "astra_async", words[0], "run", *words[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (
            2,
            "astra: run/run.json: not a JSON object; restore it from a copy\n",
        )


def test_a_newer_version_is_told(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run", a_line(0), versions={"astra_async": "99.0"})
    _, _, said, told = believed(path)
    assert said == list(told)
    assert said[0].startswith("run.json: written by astra_async 99.0, and this is ")


def test_lines_of_a_newer_schema_are_refused_by_run_and_report(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run", a_line(0) | {"schema": 2})
    for read in (load_run, RunDirectory.open):
        with pytest.raises(ConflictError, match=r"results\.jsonl line 1: schema 2, this version reads 1"):
            read(path)

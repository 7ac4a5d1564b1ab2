from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from msgspec import structs

from astra_async.cli.run import lossy_answers
from astra_async.errors import ConflictError, StorageError
from astra_async.files import scan
from astra_async.fingerprint import Parts
from astra_async.log import encode
from astra_async.running.directory import RunDirectory
from astra_async.types import AgentWork, Completion, Result, SampleKey, Usage

if TYPE_CHECKING:
    from pathlib import Path

KEY = SampleKey("m", "xml", "p", 0)
COMPLETION = Completion(
    text="<solution/>",
    finish_reason="stop",
    usage=Usage(input_tokens=7, output_tokens=3),
    returned_model="m-1",
    ttft_s=0.5,
    latency_s=1.5,
    attempts=2,
    cost_usd=0.01,
    repairs=("surrogate",),
)


def result(key: SampleKey = KEY, passed: int = 2) -> Result:
    return Result(
        schema=1,
        model=key.model,
        format=key.format,
        problem_id=key.problem_id,
        sample=key.sample,
        status="scored",
        failure=None if passed == 2 else "tests_failed",
        passed=passed,
        total=2,
        score=passed / 2,
    )


def test_answers_and_results_are_found_again_after_reopening(tmp_path: Path) -> None:
    seen: list[Any] = []
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_completion(KEY, COMPLETION, "abc")
        directory.record_result(result())
        run_id = directory.run_id
        directory.save()
    with closing(RunDirectory.open(tmp_path, seen.append)) as directory:
        assert directory.completion(KEY)[0] == COMPLETION
        assert directory.result(KEY)["passed"] == 2
        assert directory.run_id == run_id
        assert [record["passed"] for record in seen] == [2]
        assert directory.warnings == []


def test_samples_whose_answers_lack_files_are_named_at_the_end_of_a_run(tmp_path: Path) -> None:
    work = AgentWork(agent="own", version="1", end="done")
    with closing(RunDirectory.open(tmp_path)) as directory:
        for sample, lost in enumerate((0, 3, 1)):
            line = result(KEY._replace(sample=sample))
            directory.record_result(structs.replace(line, agent=replace(work, lost=lost)))
        said = list(lossy_answers(directory))
        directory.save()
    assert len(said) == 1
    assert said[0].startswith("warning: files of 2 samples are not part of the agent's answer")
    assert said[0].endswith(f"astra show {tmp_path} m p 1 --format xml --part result")
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert list(lossy_answers(directory)) == said


def test_a_second_process_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with (
        closing(RunDirectory.open(tmp_path)),
        pytest.raises(ConflictError, match=r"in use by process \d+"),
    ):
        RunDirectory.open(tmp_path)
    RunDirectory.open(tmp_path).close()


def test_a_second_final_line_for_a_key_is_refused(tmp_path: Path) -> None:
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_result(result())
        with pytest.raises(ConflictError, match="already has a final line"):
            directory.record_result(result(passed=1))


def test_identical_duplicate_lines_count_once_with_a_warning(tmp_path: Path) -> None:
    line = encode(result()) + b"\n"
    (tmp_path / "results.jsonl").write_bytes(line + line)
    seen: list[Any] = []
    with closing(RunDirectory.open(tmp_path, seen.append)) as directory:
        assert len(seen) == 1
        assert directory.warnings == ["results.jsonl line 2: repeats line 1, counted once"]


def test_conflicting_lines_stop_with_both_line_numbers(tmp_path: Path) -> None:
    lines = [encode(result(passed=passed)) + b"\n" for passed in (1, 2)]
    (tmp_path / "results.jsonl").write_bytes(b'"x"\n' + b"".join(lines))
    with pytest.raises(ConflictError, match="lines 2 and 3 contradict"):
        RunDirectory.open(tmp_path)


def test_garbage_in_the_middle_is_named_and_its_sample_repeated(tmp_path: Path) -> None:
    good = encode(result()) + b"\n"
    (tmp_path / "results.jsonl").write_bytes(b"\x00\xff garbage\n" + good + b'{"torn": ')
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert list(directory.graded) == [KEY]
        assert directory.warnings == [
            "results.jsonl: removed an incomplete last line of 9 bytes",
            (
                "results.jsonl line 1: not readable as JSON; not counted, and if a sample is missing for it"
                " `astra run` repeats that"
            ),
        ]


def test_lines_of_another_schema_are_refused(tmp_path: Path) -> None:
    record = {**orjson.loads(encode(result())), "schema": 0}
    (tmp_path / "results.jsonl").write_bytes(orjson.dumps(record) + b"\n")
    with pytest.raises(ConflictError, match="schema 0"):
        RunDirectory.open(tmp_path)


def parts(temperature: float | None = None, image: str = "a") -> Parts:
    return Parts(
        models={"m": {"temperature": temperature}},
        formats={"xml": {"version": "xml-1"}},
        problems={"p": {"statement": "s"}},
        grading={"p": {"image": image}},
    )


def test_a_changed_part_is_refused_with_the_difference_once_it_has_lines(tmp_path: Path) -> None:
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.extend(parts(), {}, samples=2)
        directory.extend(parts(temperature=0.5), {}, samples=2)  # nothing asked yet: replaced
        directory.record_completion(KEY, COMPLETION, "abc")
        with pytest.raises(ConflictError, match=r"model m .*temperature: 0.5 -> 1.0.*another --out"):
            directory.extend(parts(temperature=1.0), {}, samples=2)
        directory.extend(parts(temperature=0.5, image="b"), {}, samples=2)  # nothing graded yet
        directory.record_result(result())
        with pytest.raises(ConflictError, match=r"grading of p .*image: \"b\" -> \"c\".*astra regrade"):
            directory.extend(parts(temperature=0.5, image="c"), {}, samples=2)


def test_a_run_only_grows(tmp_path: Path) -> None:
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.extend(parts(), {"models": [{"name": "m"}], "problems": {"p": {"name": "P"}}}, samples=8)
        more = Parts(models={"n": {}}, formats={"json": {}}, problems={"q": {}}, grading={})
        directory.extend(more, {"models": [{"name": "n"}], "problems": {"q": {"name": "Q"}}}, samples=4)
    with closing(RunDirectory.open(tmp_path)) as directory:
        run = directory.run
    assert run["samples"] == 8
    assert run["formats"] == ["xml", "json"]
    assert [model["name"] for model in run["models"]] == ["m", "n"]
    assert list(run["problems"]) == ["p", "q"]
    assert {kind: list(names) for kind, names in run["fingerprints"].items()} == {
        "models": ["m", "n"],
        "formats": ["xml", "json"],
        "problems": ["p", "q"],
        "grading": ["p"],
    }


def test_a_full_disk_loses_no_answer_under_way(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(mount)], check=True)
    try:
        with closing(RunDirectory.open(mount / "run")) as directory:
            answer = replace(COMPLETION, text="x" * 2**20)
            for sample in range(12):
                directory.record_completion(SampleKey("m", "xml", "p", sample), answer, "abc")
            assert directory.spool.exhausted
        assert len(list(scan(mount / "run" / "completions.jsonl"))) == 12
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_disk_without_room_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], check=True)
    try:
        with pytest.raises(StorageError, match="free at least 16 MB"):
            RunDirectory.open(mount / "run")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_refused_call_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    for path in (tmp_path / "new", tmp_path / "kept"):
        with closing(RunDirectory.open(path)) as directory:
            directory.extend(parts(), {}, samples=2)
            directory.discard_if_unused()
    assert [path.name for path in tmp_path.rglob("*")] == []


def test_a_directory_with_answers_is_never_discarded(tmp_path: Path) -> None:
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_completion(KEY, COMPLETION, "abc")
        directory.discard_if_unused()
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert list(directory.answered) == [KEY]


def test_events_carry_the_key_and_the_reason(tmp_path: Path) -> None:
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_event("provider_error", KEY, detail="HTTP 500", attempts=6)
    event = orjson.loads((tmp_path / "events.jsonl").read_bytes())
    assert event.pop("at").endswith("Z")
    assert event == {
        "kind": "provider_error",
        "model": "m",
        "format": "xml",
        "problem_id": "p",
        "sample": 0,
        "detail": "HTTP 500",
        "attempts": 6,
    }


def test_a_directory_whose_only_trace_is_a_paid_failure_is_never_discarded(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with closing(RunDirectory.open(path)) as directory:
        directory.extend(parts(), {}, samples=2)
        directory.record_event("provider_error", KEY, cost_usd=0.5)
        directory.discard_if_unused()
    with closing(RunDirectory.open(path)) as directory:
        assert directory.earlier["m"].cost_usd == 0.5

"""outputs.jsonl: what is kept of an output, its order beside the verdict, and that it costs none."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.redaction import register_secret
from astra_async.redaction.secret_patterns import MASK
from astra_async.running.directory import RunDirectory
from astra_async.running.evidence import (
    MAX_OUTPUT_BYTES,
    evidence_of,
    head_and_tail,
    stderr_last,
    stderr_lines,
)
from astra_async.testing.verdict import Examined, Tested
from astra_async.types import Execution, NamedOutcome, TestReport, Verdict
from astra_async.types.records import is_output_of
from fakes import TESTS, CountingSandbox, ScriptedPool, completion, xml_answer
from in_memory import run_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from astra_async.options import KeepOutput
    from astra_async.running.runner import Runner
    from astra_async.types import Job

SAMPLES = 10
PRINTED = "\x1b[31mran\x1b[0m " + "x" * 3000


class PrintingSandbox(CountingSandbox):
    """One whose tests print."""

    async def run(self, job: Job) -> Execution:
        done = await super().run(job)
        return replace(done, output=PRINTED, output_bytes=len(PRINTED))


def run(path: Path, **options: Any) -> Runner:
    """Every fifth sample passes all tests."""
    pool = ScriptedPool(lambda request: completion(xml_answer(request.key.sample % (TESTS + 1))))
    given: dict[str, Any] = {"problem_ids": ["p"], "samples": SAMPLES} | options
    return asyncio.run(run_in_memory(path, {"m": pool}, PrintingSandbox(), **given))


def lines(path: Path, name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (path / name).read_bytes().splitlines()]


def matched(path: Path) -> dict[int, int]:
    """How many lines of outputs.jsonl are of each sample's final line."""
    outputs = lines(path, "outputs.jsonl")
    return {
        result["sample"]: sum(is_output_of(output, result) for output in outputs)
        for result in lines(path, "results.jsonl")
    }


@pytest.mark.parametrize(
    ("keep", "kept"), [("failed", {0, 1, 2, 3}), ("all", {0, 1, 2, 3, 4}), ("none", set())]
)
def test_outputs_are_kept_of_whom_the_option_says(tmp_path: Path, keep: KeepOutput, kept: set[int]) -> None:
    run(tmp_path, keep_output=keep)
    assert matched(tmp_path) == {sample: int(sample % 5 in kept) for sample in range(SAMPLES)}
    for line in lines(tmp_path, "outputs.jsonl"):
        assert (line["output"], line["output_bytes"]) == (PRINTED, len(PRINTED))
    for line in lines(tmp_path, "results.jsonl"):
        assert bool(line["output_tail"]) == (line["failure"] is not None)


def test_an_output_stands_before_its_final_line(tmp_path: Path) -> None:
    """So that a process that is killed between the two leaves no final line without its output."""
    seen: list[str] = []

    class Watched:
        def __init__(self, directory: RunDirectory) -> None:
            self._directory = directory

        def __getattr__(self, name: str) -> Any:
            if name.startswith("record_"):
                seen.append(name)
            return getattr(self._directory, name)

    run(tmp_path, samples=1, around=lambda name, room: Watched(room) if name == "directory" else room)
    assert seen == ["record_completion", "record_output", "record_result"]


def test_an_output_whose_final_line_never_came_is_nobodys(tmp_path: Path) -> None:
    run(tmp_path)
    failed = tmp_path / "results.jsonl"
    kept = [line for line in failed.read_bytes().splitlines(keepends=True) if b'"sample":1,' not in line]
    failed.write_bytes(b"".join(kept))  # killed between the two
    run(tmp_path)
    assert len(lines(tmp_path, "outputs.jsonl")) == 9  # eight failed, one of them twice
    assert matched(tmp_path) == {sample: int(sample % 5 != 4) for sample in range(SAMPLES)}


def test_an_output_of_a_broken_off_grading_is_not_taken_for_one_that_passed(tmp_path: Path) -> None:
    run(tmp_path, samples=1)
    (tmp_path / "results.jsonl").write_bytes(b"")
    passing = {"m": ScriptedPool(lambda _: completion(xml_answer(TESTS)))}
    answer = lines(tmp_path, "completions.jsonl")[0] | {"text": xml_answer(TESTS)}
    (tmp_path / "completions.jsonl").write_bytes(orjson.dumps(answer) + b"\n")
    asyncio.run(run_in_memory(tmp_path, passing, PrintingSandbox(), problem_ids=["p"], samples=1))
    (result,) = lines(tmp_path, "results.jsonl")
    (output,) = lines(tmp_path, "outputs.jsonl")
    assert result["failure"] is None
    assert not is_output_of(output, result)


def test_a_torn_last_line_is_cut_off_and_told(tmp_path: Path) -> None:
    run(tmp_path, samples=2)
    with (tmp_path / "outputs.jsonl").open("ab") as stream:
        stream.write(b'{"schema":1,"model":"m","outp')
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert directory.warnings == ["outputs.jsonl: removed an incomplete last line of 29 bytes"]
    assert len(lines(tmp_path, "outputs.jsonl")) == 2


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """What would make a file larger fails as on a full disk (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_log_that_takes_no_more_costs_no_verdict_and_is_told_once(tmp_path: Path) -> None:
    tmp_path.joinpath("outputs.jsonl").write_bytes(b"")
    os.truncate(tmp_path / "outputs.jsonl", 32 * 2**20)
    with (tmp_path / "outputs.jsonl").open("ab") as stream:
        stream.write(b"\n")
    with files_of_at_most(32 * 2**20):
        run(tmp_path)
    assert len(lines(tmp_path, "results.jsonl")) == SAMPLES
    (event,) = (line for line in lines(tmp_path, "events.jsonl") if line["kind"] == "output_lost")
    assert "File too large" in event["detail"]
    assert (tmp_path / "outputs.jsonl").stat().st_size == 32 * 2**20 + 1, "nothing half-written stays"


def test_a_directory_of_the_version_before_goes_on(tmp_path: Path) -> None:
    run(tmp_path, samples=4)
    old = []
    for line in lines(tmp_path, "results.jsonl"):
        del line["changes"]
        for test in line["tests"]:
            test.pop("message", None)
        old.append(orjson.dumps(line) + b"\n")
    (tmp_path / "results.jsonl").write_bytes(b"".join(old))
    (tmp_path / "outputs.jsonl").unlink()
    runner = run(tmp_path)
    assert runner.tally.final == SAMPLES
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert directory.warnings == []
    assert (tmp_path / "results.jsonl").read_bytes().startswith(b"".join(old))


def test_a_short_output_is_kept_as_it_came() -> None:
    for output in ("", "plain", PRINTED, "x" * MAX_OUTPUT_BYTES, "\ufffd" * 21_845):
        assert head_and_tail(output, len(output)) == output


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600", "\ud800"])
def test_a_long_output_is_kept_as_head_and_tail(letter: str) -> None:
    output = "begin " + letter * 300_000 + " end"
    kept = head_and_tail(output, 10_000_000)
    assert kept.startswith("begin ")
    assert kept.endswith(" end")
    assert MAX_OUTPUT_BYTES - 100 < len(kept.encode()) <= MAX_OUTPUT_BYTES
    assert "bytes of output left out ...]" in kept


def test_keys_are_masked_also_where_the_middle_is_cut_out() -> None:
    secret = "a-secret-of-this-test-4711"
    register_secret(secret)
    half = MAX_OUTPUT_BYTES // 2
    for shift in range(0, 60, 7):
        kept = head_and_tail("x" * (half - shift) + f" {secret} " + "y" * 10**6, 10**6)
        assert secret[:12] not in kept
        kept = head_and_tail("x" * 10**6 + f" {secret} " + "y" * (half - shift), 10**6)
        assert secret[-12:] not in kept
    assert head_and_tail(f"key={secret}", 30) == f"key={MASK}"


@pytest.mark.parametrize("keys", [5_000, 40_000])
def test_no_half_of_a_key_is_left_where_masking_takes_most_of_a_text_away(keys: int) -> None:
    secret = "still-another-secret-of-this-test-" + "0123456789" * 4
    register_secret(secret)
    for shift in range(0, len(secret), 9):
        kept = head_and_tail("x" * shift + f" {secret}" * keys + " " + "y" * shift, 10**6)
        assert secret[:6] not in kept
        assert secret[-6:] not in kept


def test_masking_that_lengthens_a_text_passes_no_limit() -> None:
    kept = head_and_tail("http://a@ " * (MAX_OUTPUT_BYTES // 10), MAX_OUTPUT_BYTES)
    assert len(kept) <= MAX_OUTPUT_BYTES
    assert "a@" not in kept


def examined(tests: Sequence[NamedOutcome], output: str = "") -> Examined:
    execution = Execution(exit_code=1, duration_s=1.0, output=output, output_bytes=len(output))
    verdict = Verdict(passed=0, total=len(tests), tests=tuple(tests))
    tested = Tested(execution=execution, report=TestReport())
    return Examined(tested=tested, verdict=verdict, failure="tests_failed")


async def test_messages_are_masked_and_kept_as_long_as_there_is_room() -> None:
    register_secret("another-secret-of-this-test")
    told = ("key another-secret-of-this-test " + "x" * 600)[:500]
    tests = [NamedOutcome(name=f"t{number}", outcome="failed", message=told) for number in range(1000)]
    kept = (await evidence_of(examined(tests), with_output=True)).tests
    assert [test.name for test in kept] == [test.name for test in tests]
    assert "another-secret" not in "".join(test.message for test in kept)
    assert kept[0].message.startswith("key *** xxx")
    assert 99_000 < sum(len(test.message) for test in kept) <= 100_000
    assert kept[-1].message == ""


async def test_without_its_output_only_messages_are_kept() -> None:
    tests = [NamedOutcome(name="t", outcome="failed", message="why")]
    kept = await evidence_of(examined(tests, "printed"), with_output=False)
    assert (kept.output, kept.tests) == ("", tuple(tests))


@given(
    st.lists(st.sampled_from(["out 1", "out 2", ""]), max_size=8),
    st.lists(st.sampled_from(["error 1", "error 2", ""]), max_size=8),
    st.data(),
)
def test_two_streams_are_told_apart_however_they_were_mixed(
    out: list[str], error: list[str], data: st.DataObject
) -> None:
    def mixed() -> str:
        streams = [list(out), list(error)]
        lines = []
        while any(streams):
            both = [stream for stream in streams if stream]
            lines.append(data.draw(st.sampled_from(both)).pop(0))
        return "".join(f"{line}\n" for line in lines)

    stdout = "".join(f"{line}\n" for line in out)
    once, again = (stderr_last(text, stderr_lines(text, stdout)) for text in (mixed(), mixed()))
    assert once == again
    assert once == "\n".join([*stdout.split("\n"), *(line for line in error if line)])

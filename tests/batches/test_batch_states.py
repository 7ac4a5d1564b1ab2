"""What can become of a batch: limits, expiry, failures, results missing, twice or gone; who ends it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from batch_runs import MODELS, PLANNED, BatchRun, Simulated, online_answers, simulated_for

from command_server import astra
from waiting import awaited

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.long, pytest.mark.first]


def whole(run: BatchRun) -> bool:
    return len(run.keys()) == len(set(run.keys())) == PLANNED


def kinds(run: BatchRun) -> list[str]:
    return [line["kind"] for line in run.lines("batches.jsonl") if line["kind"] != "state"]


def batches(run: BatchRun, *words: str, code: int = 0) -> str:
    done = astra("batches", str(run.out), *words)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.first(spec=lambda spec: spec)
@pytest.mark.parametrize("spec", MODELS)
def test_an_answer_out_of_a_batch_is_recorded_as_one(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert whole(run)
        for line in run.lines("completions.jsonl"):
            assert (line["via"], line["latency_s"], line["ttft_s"]) == ("batch", None, None)
            assert line["usage"]["output_tokens"] > 0
        assert run.answers() == online_answers(tmp_path, spec)


@pytest.mark.parametrize("spec", MODELS)
def test_what_expired_is_sent_again_and_what_was_finished_is_kept(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec, batch_faults=("expire",)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert whole(run)
        lost = PLANNED // 2 if spec.startswith("gemini") else 0  # an expired batch of its brings no results
        assert server.processed == PLANNED + lost
        assert kinds(run) == ["intent", "submitted", "collected"] * 2


@pytest.mark.parametrize("spec", MODELS)
def test_requests_that_fail_at_the_server_are_sent_again(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec, batch_faults=("errors",)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert whole(run)
        assert server.processed == PLANNED
        assert {line["attempts"] for line in run.lines("completions.jsonl")} == {1, 2}


def test_a_batch_that_fails_in_validation_is_told_and_costs_nothing(tmp_path: Path) -> None:
    with Simulated(batch_faults=("invalid",)) as server:
        run = BatchRun(folder=tmp_path, server=server)
        assert f"{PLANNED} samples missing" in run.finish(1)
        assert kinds(run) == ["intent", "submitted", "refused"]
        run.finish()
        assert whole(run)
        assert server.processed == PLANNED


@pytest.mark.parametrize("spec", ["openai/steady", "anthropic/steady"])
def test_results_that_come_twice_count_once(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec, batch_faults=("duplicates",)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert whole(run)


def test_results_that_are_in_no_file_are_missing_and_asked_for_by_the_next_command_only(
    tmp_path: Path,
) -> None:
    with Simulated(batch_faults=("missing",)) as server:
        run = BatchRun(folder=tmp_path, server=server, settings={"batch_settled_s": 0.1})
        assert "has ended without a result for this request" in run.finish(1)
        assert server.created == 1
        run.finish()
        assert whole(run)


@pytest.mark.parametrize("spec", ["openai/steady", "anthropic/steady", "gemini/steady"])
def test_results_that_are_gone_are_paid_for_again_only_by_somebodys_will(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec, batch_faults=("vanish",)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec, settings={"batch_settled_s": 0.1})
        said = run.finish(1)
        run.finish(1)
        assert server.created == 1
        token = re.search(r"--forget (\S+?)`", said)
        assert token
        path = run.out / "run.json"
        recorded = path.read_text()
        path.write_text(recorded.replace('"batch_settled_s": 0.1', '"batch_settled_s": 3600'))
        early = astra("batches", str(run.out), "--forget", token[1], env=run.environ)
        assert early.returncode == 2
        assert "would be paid twice; give it up in 9 h" in early.stderr
        path.write_text(recorded)
        assert "given up" in batches(run, "--forget", token[1])
        run.finish()
        assert whole(run)
        assert server.created == 2


def test_batches_go_out_in_windows_that_fit_the_enqueued_tokens(tmp_path: Path) -> None:
    with Simulated(batch_enqueued_tokens=12_000) as server:
        run = BatchRun(folder=tmp_path, server=server)
        run.finish()
        assert whole(run)
        assert server.processed == PLANNED
        assert server.created > 2


def test_a_window_that_is_set_is_kept_to_without_a_refusal(tmp_path: Path) -> None:
    with Simulated(batch_enqueued_tokens=12_000) as server:
        run = BatchRun(folder=tmp_path, server=server, settings={"batch_enqueued_tokens": 11_000})
        run.finish()
        assert whole(run)
        assert "refused" not in kinds(run)


def test_ctrl_c_leaves_batches_running_and_the_same_command_collects_them(tmp_path: Path) -> None:
    with Simulated(batch_delay_s=30.0) as server:
        run = BatchRun(folder=tmp_path, server=server)
        process = run.start()
        awaited(lambda: "submitted" in kinds(run), "a batch to be submitted")
        awaited(lambda: b'"id":"batch_' in (run.out / "live.json").read_bytes(), "its id to be shown")
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        assert process.returncode == 130
        assert "left with the provider: 1 batch of 8 requests (batch_" in said
        assert f"astra batches {run.out}" in said
        listed = batches(run)
        assert "in_progress" in listed or "validating" in listed
        server.hurry()
        run.finish()
        assert whole(run)
        assert server.created == 1


@pytest.mark.parametrize("spec", MODELS)
def test_cancel_ends_batches_and_the_next_command_collects_and_sends_the_rest(
    tmp_path: Path, spec: str
) -> None:
    with simulated_for(spec, batch_delay_s=30.0) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        process = run.start()
        awaited(lambda: "submitted" in kinds(run), "a batch to be submitted")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert "cancelled" in batches(run, "--cancel")
        if spec.startswith("gemini"):  # shows only in the end that it was cancelled
            awaited(lambda: "cancelled" in batches(run), "the batch to end")
        server.hurry()
        run.finish()
        assert whole(run)
        assert server.processed == PLANNED


def test_a_batch_that_is_cancelled_under_way_is_not_sent_again_by_itself(tmp_path: Path) -> None:
    with Simulated(batch_delay_s=30.0) as server:
        run = BatchRun(folder=tmp_path, server=server)
        process = run.start()
        awaited(lambda: "submitted" in kinds(run), "a batch to be submitted")
        awaited(lambda: any(line["kind"] == "state" for line in run.lines("batches.jsonl")), "a first look")
        batches(run, "--cancel")
        server.hurry()
        said = process.communicate()[1]
        assert process.returncode == 1
        assert "was cancelled; run the same command again to send the remaining" in said
        assert server.created == 1
        run.finish()
        assert whole(run)


def test_a_run_without_batch_does_not_ask_again_what_lies_in_batches(tmp_path: Path) -> None:
    with Simulated(batch_delay_s=30.0) as server:
        run = BatchRun(folder=tmp_path, server=server)
        process = run.start()
        awaited(lambda: "submitted" in kinds(run), "a batch to be submitted")
        process.kill()
        process.communicate()
        run.options = ("--generate-only",)
        assert "8 requests of openai/steady are in open batches: add --batch" in run.finish(2)


def test_a_budget_bounds_what_is_submitted(tmp_path: Path) -> None:
    prices = {"price_input": 1.0, "price_output": 100.0, "max_tokens": 1000}
    with Simulated() as server:
        run = BatchRun(folder=tmp_path, server=server, settings=prices)
        run.options = ("--batch", "--generate-only", "--budget-usd", "0.2")
        assert "the budget of $0.20 is reached" in run.finish(1)
        submitted = sum(
            len(line["requests"]) for line in run.lines("batches.jsonl") if line["kind"] == "intent"
        )
        assert 0 < submitted < PLANNED
        answers = run.lines("completions.jsonl")
        assert len(answers) == server.processed == submitted
        assert sum(line["cost_usd"] for line in answers) <= 0.2


def test_a_batch_costs_half(tmp_path: Path) -> None:
    prices = {"price_input": 1.0, "price_output": 10.0}
    with Simulated() as server:
        run = BatchRun(folder=tmp_path, server=server, settings=prices)
        run.finish()
        for line in run.lines("completions.jsonl"):
            usage = line["usage"]
            whole_usd = (usage["input_tokens"] * 1.0 + usage["output_tokens"] * 10.0) / 1e6
            assert line["cost_usd"] == pytest.approx(whole_usd / 2)


def test_a_dry_run_tells_of_batches_and_their_price(tmp_path: Path) -> None:
    prices = {"price_input": 1.0, "price_output": 10.0}
    with Simulated() as server:
        told = []
        for options in (("--dry-run", "--batch"), ("--dry-run",)):
            run = BatchRun(folder=tmp_path, server=server, settings=prices, options=options)
            command = [sys.executable, "-m", "astra_async", *run.words]
            told.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        batch_usd, online_usd = (float(re.findall(r"\$([\d.]+)", each)[0]) for each in told)
        assert batch_usd == pytest.approx(online_usd / 2, abs=0.01)
        assert "In batches, each within a day: openai/steady; half the price." in told[0]
        assert server.created == 0

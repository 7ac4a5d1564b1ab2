"""Whole runs on a cluster: the same digits, whatever joins, leaves or dies meanwhile."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from small_cluster import (
    SmallCluster,
    a_run,
    await_tests,
    check_nothing_left,
    check_scores,
    containers,
    passing,
    verdicts,
)

from nasty_server import NastyServer
from private_engine import needs_own_engine
from whole_runs import finished

if TYPE_CHECKING:
    from pathlib import Path

    from private_engine import PrivateEngine

pytestmark = [pytest.mark.docker, needs_own_engine]
Engines = tuple["PrivateEngine", "PrivateEngine"]


def test_a_cluster_gives_the_verdicts_of_one_machine(tmp_path: Path, engines: Engines) -> None:
    """And each node gets the image from the head's engine, where no registry answers."""
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        far = a_run(tmp_path / "far", server, cluster.address, engines[0], sleep_s=0.3)
        said = far.finish()
        check_scores(far, server, graded_by={"one", "two"})
        assert {line["node"] for line in far.lines("results.jsonl")} == {"one", "two"}
        assert "sending cluster-test:1 to node two" in said
        near = a_run(tmp_path / "near", server, cluster.address, engines[0])
        near.options = ()
        near.finish()
        assert verdicts(near) == verdicts(far)
        assert {line["node"] for line in near.lines("results.jsonl")} == {""}
        assert {line["image_id"] for line in (*near.lines("results.jsonl"), *far.lines("results.jsonl"))} == {
            near.lines("results.jsonl")[0]["image_id"]
        }
    check_nothing_left(engines)


def test_a_worker_killed_in_mid_test_costs_no_result(tmp_path: Path, engines: Engines) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines, 2)
        cluster.workers["two"].kill()
        finished(process, 0)
        check_scores(run, server, graded_by={"one", "two"})
        # Nobody of its own came back to that machine.
        check_nothing_left(engines)
        assert not [event for event in run.lines("events.jsonl") if event["kind"] == "sandbox_error"]


def test_a_stopped_worker_is_given_up_and_its_late_results_are_not_counted(
    tmp_path: Path, engines: Engines
) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines, 2)
        cluster.workers["two"].send_signal(signal.SIGSTOP)
        said = finished(process, 0)
        assert "node two is lost (silent for" in said
        check_scores(run, server, graded_by={"one", "two"})
        assert containers(engines[1])  # nobody could remove them
        cluster.workers["two"].send_signal(signal.SIGCONT)
        check_nothing_left(engines)
        check_scores(run, server, graded_by={"one", "two"})


def test_an_engine_restarted_under_its_worker_costs_no_result(tmp_path: Path, engines: Engines) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines, 2)
        engines[1].stop(signal.SIGKILL)
        engines[1].start()
        engines[1].await_answer()
        finished(process, 0)
        check_scores(run, server, graded_by={"one", "two"})
        check_nothing_left(engines)


def test_a_scheduler_restarted_in_mid_run_costs_no_result(tmp_path: Path, engines: Engines) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines, 2)
        cluster.stop_scheduler()
        time.sleep(1)
        cluster.start_scheduler()
        finished(process, 0)
        check_scores(run, server, graded_by={"one", "two"})
        check_nothing_left(engines)


def test_a_worker_that_joins_late_takes_its_share(tmp_path: Path, engines: Engines) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines[:1], 2)
        cluster.start_worker("two", engines[1], sandboxes=4)
        finished(process, 0)
        check_scores(run, server, graded_by={"one", "two"})
        assert {line["node"] for line in run.lines("results.jsonl")} == {"one", "two"}
        check_nothing_left(engines)


def test_without_any_worker_the_answers_are_kept_and_the_same_command_resumes(
    tmp_path: Path, engines: Engines
) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines[:1], 2)
        os.kill(cluster.workers["one"].pid, signal.SIGKILL)
        cluster.workers["one"].wait()
        said = finished(process, 3)
        assert "No worker of the cluster" in said
        assert len(run.lines("completions.jsonl")) == run.samples
        assert len(run.lines("results.jsonl")) < run.samples
        cluster.start_worker("again", engines[0])
        run.finish()
        check_scores(run, server, graded_by={"one", "again"})
        check_nothing_left(engines)

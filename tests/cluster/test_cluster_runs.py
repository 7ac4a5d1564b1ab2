"""Whole runs on a cluster: the same digits, whatever joins, leaves or dies meanwhile."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from small_cluster import (
    IMAGE,
    NO_WORKERS,
    SILENCE,
    Cable,
    SmallCluster,
    a_run,
    await_tests,
    check_nothing_left,
    check_scores,
    containers,
    executing,
    forget_image,
    give_another_image,
    passing,
    verdicts,
)

from nasty_server import NastyServer, answers
from private_engine import needs_own_engine
from small_problems import solution
from threaded_server import free_port
from waiting import awaited
from whole_runs import finished, once

if TYPE_CHECKING:
    from nasty_server import Behaviour
    from private_engine import PrivateEngine

pytestmark = [pytest.mark.docker, pytest.mark.seconds(25), needs_own_engine]
Engines = tuple["PrivateEngine", "PrivateEngine"]


@pytest.mark.first
def test_a_cluster_gives_the_verdicts_of_one_machine(tmp_path: Path, engines: Engines) -> None:
    """And each node gets the image from the head's engine, where no registry answers."""
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        cluster.await_members()
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


@pytest.mark.first
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
    silence = {SILENCE: "12s"}
    with NastyServer(passing) as server, SmallCluster(tmp_path, **silence) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2, environ=silence)
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


@pytest.mark.parametrize("how", ["silent", "cut"])
def test_a_network_that_drops_for_ten_seconds_costs_no_result(
    tmp_path: Path, engines: Engines, how: Literal["silent", "cut"]
) -> None:
    # One that is silent is lost after half a minute only, one that is cut off at once.
    silence = {SILENCE: "30s"}
    with NastyServer(passing) as server, SmallCluster(tmp_path, **silence) as cluster:
        own_port = free_port()
        cables = Cable(own_port), Cable(cluster.port)
        cluster.start_worker("one", engines[0])
        reached = ("--port", str(own_port), "--contact-address", f"tcp://127.0.0.1:{cables[0].port}")
        cluster.start_worker("two", engines[1], *reached, at=f"tcp://127.0.0.1:{cables[1].port}")
        more: Any = {"environ": silence, "samples": 24}
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2, **more)
        process = run.start()
        await_tests(engines, 2)
        for cable in cables:
            cable.unplug(how)
        time.sleep(10)
        for cable in cables:
            cable.plug()
        said = finished(process, 0)
        assert ("node two is lost" in said) == (how == "cut")
        check_scores(run, server, graded_by={"one", "two"})
        check_nothing_left(engines)


def test_a_job_that_takes_its_workers_with_it_is_missing_and_no_score(
    tmp_path: Path, engines: Engines
) -> None:
    def one_is_slow(sample: str, attempt: int) -> Behaviour:
        return answers(solution(9)) if sample == "p/0" else passing(sample, attempt)

    before = 'read -r answer < src/answer.txt; [ "$answer" != 9 ] || sleep 1000'
    with NastyServer(one_is_slow) as server, SmallCluster(tmp_path) as cluster:
        for name, engine in zip(("one", "two"), engines, strict=True):
            cluster.start_worker(name, engine)
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], before=before, samples=4)
        process = run.start()
        run.await_lines("results.jsonl", 3)
        for _ in range(3):
            running = awaited(lambda: places_in_use(engines), "the job's container", while_runs=process)
            name = ("one", "two")[running[0]]
            cluster.kill_worker(name)
            check_nothing_left([engines[running[0]]])
            cluster.start_worker(name, engines[running[0]])
            cluster.await_members()
        said = finished(process, 1)
        assert "were lost one after the other while they ran this job" in said
        run.check_end(missing=1)
        assert {line["sample"] for line in run.lines("results.jsonl")} == {1, 2, 3}


def test_a_worker_that_joins_late_takes_its_share(tmp_path: Path, engines: Engines) -> None:
    joined = threading.Event()

    def script(sample: str, attempt: int) -> Behaviour:
        first: Behaviour = passing(sample, attempt)
        return first if int(sample.partition("/")[2]) < 4 else once(joined, first)

    with NastyServer(script) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2)
        process = run.start()
        await_tests(engines[:1], 2)
        cluster.start_worker("two", engines[1], sandboxes=4)
        cluster.await_members()
        joined.set()
        finished(process, 0)
        check_scores(run, server, graded_by={"one", "two"})
        assert {line["node"] for line in run.lines("results.jsonl")} == {"one", "two"}
        check_nothing_left(engines)


def test_without_any_worker_the_answers_are_kept_and_the_same_command_resumes(
    tmp_path: Path, engines: Engines
) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.await_members()
        soon = {NO_WORKERS: "2s"}
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], sleep_s=2, environ=soon)
        process = run.start()
        await_tests(engines[:1], 2)
        cluster.kill_worker("one")
        said = finished(process, 3)
        assert "no worker of the cluster" in said
        assert len(run.lines("completions.jsonl")) == run.samples
        assert len(run.lines("results.jsonl")) < run.samples
        cluster.start_worker("again", engines[0])
        cluster.await_members()
        run.finish()
        check_scores(run, server, graded_by={"one", "again"})
        check_nothing_left(engines)


def test_workers_of_dasks_own_command_do_as_well_and_doctor_shows_each_node(
    tmp_path: Path, engines: Engines
) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_dask_worker("one", engines[0])
        cluster.start_worker("two", engines[1], sandboxes=3)
        cluster.await_members()
        for name, slots in (("one", 2), ("two", 3)):
            code, said = doctor(cluster.address)
            (line,) = (line for line in said.splitlines() if f"node {name} " in line)
            assert line.split()[0] == "ok"
            assert f"{slots} sandboxes" in line
            assert version("astra_async") in line
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], samples=8)
        run.finish()
        check_scores(run, server, graded_by={"one", "two"})
        engines[1].stop()
        code, said = doctor(cluster.address)
        assert code == 1
        assert "No Docker Engine answers" in said
        engines[1].start()
        engines[1].await_answer()
    check_nothing_left(engines)


def test_two_heads_share_a_worker_and_its_places(tmp_path: Path, engines: Engines) -> None:
    with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        runs = [
            a_run(tmp_path / name, server, cluster.address, engines[0], sleep_s=1, samples=4)
            for name in ("first", "second")
        ]
        processes = [run.start() for run in runs]
        for run in runs:
            run.await_lines("results.jsonl")  # by now each has looked at the image, which takes no place
        most = 0
        while any(process.poll() is None for process in processes):
            most = max(most, len(containers(engines[0], running_only=True)))
        for run, process in zip(runs, processes, strict=True):
            finished(process, 0)
            assert {line["sample"]: line["passed"] for line in run.lines("results.jsonl")} == {
                sample: 1 + sample for sample in range(4)
            }
        assert 1 <= most <= 2
    check_nothing_left(engines)


def test_a_node_with_another_image_of_that_name_is_refused_before_the_first_test(
    tmp_path: Path, engines: Engines
) -> None:
    give_another_image(engines[1])
    try:
        with NastyServer(passing) as server, SmallCluster(tmp_path) as cluster:
            cluster.start_worker("one", engines[0])
            cluster.start_worker("two", engines[1])
            cluster.await_members()
            run = a_run(tmp_path / "run", server, cluster.address, engines[0], samples=4)
            said = run.finish()
            assert "worker two (" in said
            assert f"is refused: its image {IMAGE} is sha256:" in said
            check_scores(run, server, graded_by={"one"})
    finally:
        forget_image(engines[1])


def test_local_workers_end_with_the_run_however_it_ends(tmp_path: Path, engines: Engines) -> None:
    with NastyServer(passing) as server:
        run = a_run(tmp_path / "run", server, "local:2", engines[0], sleep_s=1)
        process = run.start()
        awaited(lambda: len(local_processes(process.pid)) == 3, "a scheduler and two workers")
        await_tests(engines[:1], 1)
        children = local_processes(process.pid)
        process.kill()
        process.communicate()
        awaited(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "their end")
        check_nothing_left(engines)
        run.finish()
        check_scores(run, server, graded_by={"local-1", "local-2"})
        check_nothing_left(engines)


def places_in_use(engines: Engines) -> list[int]:
    return [place for place, engine in enumerate(engines) if executing(engine)]


def doctor(address: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "astra_async", "doctor", "--cluster", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def local_processes(parent: int) -> list[int]:
    """The children of a process that are a local cluster's."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            command = (path.parent / "cmdline").read_bytes()
            is_child = int(path.read_text().rpartition(")")[2].split()[1]) == parent
            if is_child and b"astra_async.cluster.local" in command:
                found.append(int(path.parent.name))
    return found

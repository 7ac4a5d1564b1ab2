"""Nothing is paid twice and nothing is lost, counted at the provider: kills, lost answers, two runs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from batch_runs import ANSWERS, LOG, MODELS, PLANNED, BatchRun, Simulated, online_answers, simulated_for

from waiting import awaited
from whole_runs import finished

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.long, pytest.mark.first]


def check_paid_once(run: BatchRun, server: Simulated) -> None:
    assert server.processed == PLANNED
    assert len(run.keys()) == len(set(run.keys())) == PLANNED


@pytest.mark.parametrize("spec", MODELS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_sigkill_at_every_line_of_the_batch_log_pays_for_nothing_twice(
    tmp_path: Path, spec: str, moment: str
) -> None:
    with simulated_for(spec) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        kills = 0
        while (process := run.start(LOG, moment, "2")).wait() == -signal.SIGKILL:  # each gets a line further
            process.communicate()
            kills += 1
        assert process.returncode == 0, process.communicate()[1]
        process.communicate()
        assert kills >= 2
        check_paid_once(run, server)
        assert run.answers() == online_answers(tmp_path, spec)


@pytest.mark.parametrize("spec", MODELS)
def test_sigkill_between_the_intent_and_the_create_sends_it_once(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        finished(run.start(LOG, "after", "1"), -signal.SIGKILL)
        assert server.created == 0
        run.finish()
        assert server.created == 1
        check_paid_once(run, server)


@pytest.mark.parametrize("spec", MODELS)
def test_sigkill_between_request_and_answer_finds_the_batch_again(tmp_path: Path, spec: str) -> None:
    with simulated_for(spec, batch_faults=("silent",)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        process = run.start()
        awaited(lambda: server.created == 1, "the create to arrive")
        process.kill()
        process.communicate()
        assert [line["kind"] for line in run.lines("batches.jsonl")] == ["intent"]
        run.finish()
        assert server.created == 1
        check_paid_once(run, server)


@pytest.mark.parametrize("spec", MODELS)
@pytest.mark.parametrize(("fault", "created"), [("lost_create", 1), ("lost_before", 1)])
def test_a_create_whose_answer_is_lost_is_looked_for_and_not_repeated(
    tmp_path: Path, spec: str, fault: str, created: int
) -> None:
    with simulated_for(spec, batch_faults=(fault,)) as server:
        run = BatchRun(folder=tmp_path, server=server, spec=spec)
        run.finish()
        assert server.created == created
        check_paid_once(run, server)


@pytest.mark.parametrize("number", ["1", "3"])
def test_sigkill_while_results_are_recorded_loses_none(tmp_path: Path, number: str) -> None:
    with Simulated() as server:
        run = BatchRun(folder=tmp_path, server=server)
        finished(run.start(ANSWERS, "after", number), -signal.SIGKILL)
        run.finish()
        assert server.created == 1
        check_paid_once(run, server)


@pytest.mark.parametrize("spec", MODELS)
def test_two_runs_of_one_account_take_each_its_own_batch(tmp_path: Path, spec: str) -> None:
    """Both are of the same size, and both lose the answer to their create."""
    with simulated_for(spec, batch_faults=("lost_create", "lost_create")) as server:
        runs = [BatchRun(folder=tmp_path, server=server, spec=spec, name=name) for name in ("one", "other")]
        processes = [run.start() for run in runs]
        for process in processes:
            finished(process, 0)
        assert server.created == 2
        assert server.processed == 2 * PLANNED
        texts = [set(run.answers()) for run in runs]
        assert all(len(run.keys()) == len(set(run.keys())) == PLANNED for run in runs)
        ids = [run.lines("batches.jsonl")[1]["batch"] for run in runs]
        assert len(set(ids)) == 2, texts

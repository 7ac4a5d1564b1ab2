from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.answers.lenient import LenientParser
from astra_async.errors import (
    ContainerLost,
    EngineUnavailable,
    InvariantError,
    PoolUnusable,
    TransientError,
)
from astra_async.metrics import Metrics
from astra_async.prepare import prepare_all
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import Grading
from astra_async.running.plan import Plan
from astra_async.running.runner import Runner
from astra_async.running.sample import Asking, Setup
from astra_async.testing.expected import Expectations
from astra_async.types import Completion, Limits, ModelRequest
from fakes import CountingSandbox, MemorySource, ScriptedPool, a_problem, a_project, completion, xml_answer

if TYPE_CHECKING:
    from pathlib import Path

PROBLEMS = ("p1", "p2", "p3")
SAMPLES = 4


class Harness:
    """A run directory with a plan over in-memory edges."""

    def __init__(self, path: Path, pools: dict[str, ScriptedPool], sandbox: CountingSandbox | None) -> None:
        self.path = path
        self.pools = pools
        self.sandbox = sandbox
        self.runner: Runner

    def run(self, **changes: Any) -> Runner:
        asyncio.run(self._run(**changes))
        return self.runner

    async def _run(self, *, stop_after: int | None = None, samples: int = SAMPLES) -> None:
        source = MemorySource({name: a_project() for name in PROBLEMS})
        prepared, failed = await prepare_all([a_problem(name) for name in PROBLEMS], source, ("xml",))
        assert not failed
        plan = Plan(
            models=tuple(self.pools),
            formats=("xml",),
            problem_ids=PROBLEMS,
            samples=samples,
            prepared=prepared,
            max_in_flight=dict.fromkeys(self.pools, 3),
        )
        lines: list[Any] = []
        with closing(RunDirectory.open(self.path, lines.append)) as directory:
            metrics = Metrics({(model, "xml"): dict.fromkeys(PROBLEMS, samples) for model in self.pools})
            for line in lines:
                counted = (line[name] for name in ("model", "format", "problem_id", "passed", "total"))
                metrics.add(*counted, status=line["status"], failure=line["failure"])
            setup = Setup(directory=directory, asking=Asking(pools=self.pools), grading=self._grading())
            self.runner = Runner(plan, setup, metrics)
            if stop_after is not None:
                self._stop_after(stop_after)
            await self.runner.run()

    def _grading(self) -> Grading | None:
        if self.sandbox is None:
            return None
        return Grading(
            sandbox=self.sandbox,
            images=dict.fromkeys(PROBLEMS, "any"),
            expectations=Expectations(
                self.path / "expected.json", self.path / "cache", self.sandbox, Limits()
            ),
            lenient=LenientParser(),
            limits=Limits(),
            retry_delays_s=(0.0, 0.0),
        )

    def _stop_after(self, answers: int) -> None:
        pool = next(iter(self.pools.values()))
        answer = pool._answer

        def counted(request: ModelRequest) -> Any:
            if len(pool.asked) == answers:
                self.runner.stop()
            return answer(request)

        pool._answer = counted

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (self.path / name).read_bytes().splitlines()]


def by_sample(request: ModelRequest) -> Completion:
    return completion(xml_answer(request.key.sample % 5))


def test_every_planned_sample_is_answered_once_and_scored_as_its_tests_say(tmp_path: Path) -> None:
    pool = ScriptedPool(by_sample)
    harness = Harness(tmp_path, {"m": pool}, CountingSandbox())
    runner = harness.run()
    results = harness.lines("results.jsonl")
    assert len(results) == len(PROBLEMS) * SAMPLES == len(set(pool.asked))
    assert all(line["passed"] == line["sample"] and line["total"] == 4 for line in results)
    assert {line["failure"] for line in results} == {"tests_failed"}
    summary = runner.metrics.summary("m", "xml")
    assert summary.complete
    assert summary.mean_score == pytest.approx((0 + 1 + 2 + 3) / 16)


def test_a_final_line_repeats_what_its_answer_took(tmp_path: Path) -> None:
    guessed = replace(completion(xml_answer(4)), cost_estimated=True, attempts=2)
    harness = Harness(tmp_path, {"m": ScriptedPool(lambda _: guessed)}, CountingSandbox())
    harness.run(samples=1)
    names = ("finish_reason", "usage", "cost_usd", "cost_estimated", "attempts", "ttft_s", "latency_s")
    for answer, result in zip(
        harness.lines("completions.jsonl"), harness.lines("results.jsonl"), strict=False
    ):
        assert {name: result[name] for name in names} == {name: answer[name] for name in names}
        assert result["cost_estimated"]


def test_samples_are_asked_in_passes_over_the_problems(tmp_path: Path) -> None:
    pool = ScriptedPool(by_sample)
    Harness(tmp_path, {"m": pool}, None).run()
    passes = [pool.asked[start : start + 3] for start in range(0, 12, 3)]
    assert [{name.split("/")[2] for name in asked} for asked in passes] == [set(PROBLEMS)] * SAMPLES


def test_a_resume_asks_nothing_again_and_changes_no_digit(tmp_path: Path) -> None:
    whole = Harness(tmp_path / "whole", {"m": ScriptedPool(by_sample)}, CountingSandbox())
    expected = whole.run().metrics.summary("m", "xml")
    asked: list[str] = []
    for stop_after in (1, 2, 3, 2, 1, None):
        pool = ScriptedPool(by_sample)
        harness = Harness(tmp_path / "parts", {"m": pool}, CountingSandbox())
        runner = harness.run(stop_after=stop_after)
        asked += pool.asked
    assert len(asked) == len(set(asked)) == 12
    assert runner.metrics.summary("m", "xml") == expected


def test_answers_without_docker_are_graded_by_a_later_run_without_asking_again(tmp_path: Path) -> None:
    pool = ScriptedPool(by_sample)
    runner = Harness(tmp_path, {"m": pool}, None).run()
    assert runner.tally.answered == 12
    assert runner.tally.final == 0
    later = ScriptedPool(by_sample)
    runner = Harness(tmp_path, {"m": later}, CountingSandbox()).run()
    assert later.asked == []
    assert runner.tally.final == 12


def test_more_samples_extend_a_finished_run(tmp_path: Path) -> None:
    Harness(tmp_path, {"m": ScriptedPool(by_sample)}, CountingSandbox()).run(samples=2)
    pool = ScriptedPool(by_sample)
    runner = Harness(tmp_path, {"m": pool}, CountingSandbox()).run(samples=4)
    assert len(pool.asked) == 6
    assert runner.tally.final == 12


def failing_second_problem(request: ModelRequest) -> Completion:
    if request.key.problem_id == "p2":
        raise TransientError("HTTP 500 from the server", status=500)
    return by_sample(request)


def test_a_providers_trouble_is_missing_named_and_repeated_on_resume(tmp_path: Path) -> None:
    harness = Harness(tmp_path, {"m": ScriptedPool(failing_second_problem)}, CountingSandbox())
    runner = harness.run()
    assert runner.tally.missing == {"provider_error": 4}
    assert runner.tally.final == 8
    assert not runner.metrics.summary("m", "xml").complete
    events = [event for event in harness.lines("events.jsonl") if event["kind"] == "provider_error"]
    assert [(event["problem_id"], event["status"]) for event in events] == [("p2", 500)] * 4
    pool = ScriptedPool(by_sample)
    runner = Harness(tmp_path, {"m": pool}, CountingSandbox()).run()
    assert len(pool.asked) == 4
    assert runner.tally.final == 12


def refused(_: ModelRequest) -> Completion:
    raise PoolUnusable("HTTP 401: the key is refused", status=401)


def test_a_pool_whose_key_is_refused_stops_while_the_other_completes(tmp_path: Path) -> None:
    bad, good = ScriptedPool(refused), ScriptedPool(by_sample)
    runner = Harness(tmp_path, {"bad": bad, "good": good}, CountingSandbox()).run()
    assert len(bad.asked) <= 3  # those under way when the refusal came
    assert runner.metrics.summary("good", "xml").complete
    assert runner.tally.missing == {"provider_error": 12}
    assert set(runner.dead) == {"bad"}


def test_a_lost_container_is_repeated_and_never_scored(tmp_path: Path) -> None:
    sandbox = CountingSandbox(troubles=[ContainerLost("the engine restarted")] * 2)
    harness = Harness(tmp_path, {"m": ScriptedPool(by_sample)}, sandbox)
    runner = harness.run()
    assert runner.tally.final == 12
    assert [event["kind"] for event in harness.lines("events.jsonl")] == ["sandbox_retry"] * 2


def test_an_engine_that_stays_away_ends_the_run_and_keeps_the_answers(tmp_path: Path) -> None:
    sandbox = CountingSandbox(troubles=[EngineUnavailable("no engine answers")] * 10_000)
    pool = ScriptedPool(by_sample)
    harness = Harness(tmp_path, {"m": pool}, sandbox)
    with pytest.raises(EngineUnavailable, match="no engine answers"):
        harness.run()
    assert harness.lines("results.jsonl") == []
    later = ScriptedPool(by_sample)
    runner = Harness(tmp_path, {"m": later}, CountingSandbox()).run()
    assert runner.tally.final == 12
    assert not set(later.asked) & set(pool.asked)


def test_a_crashed_suite_scores_zero_of_the_learned_tests(tmp_path: Path) -> None:
    pool = ScriptedPool(lambda _: completion(xml_answer("crash")))
    harness = Harness(tmp_path, {"m": pool}, CountingSandbox())
    harness.run()
    line = harness.lines("results.jsonl")[0]
    assert (line["status"], line["failure"], line["passed"], line["total"]) == ("scored", "no_report", 0, 4)


def test_an_unreadable_answer_is_a_format_error_of_the_model(tmp_path: Path) -> None:
    pool = ScriptedPool(lambda _: completion("I would rather talk about the weather."))
    harness = Harness(tmp_path, {"m": pool}, CountingSandbox())
    runner = harness.run()
    line = harness.lines("results.jsonl")[0]
    assert (line["status"], line["failure"], line["total"]) == ("no_solution", "format_error", 4)
    assert runner.metrics.summary("m", "xml").complete


def test_a_task_that_vanishes_is_noticed_at_the_end(tmp_path: Path) -> None:
    async def vanish(_: ModelRequest) -> Completion:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0)
        raise AssertionError

    harness = Harness(tmp_path, {"m": ScriptedPool(vanish)}, CountingSandbox())
    with pytest.raises(InvariantError, match="12 samples are neither recorded nor missing"):
        harness.run()


def test_problems_csv_is_there_after_a_run(tmp_path: Path) -> None:
    Harness(tmp_path, {"m": ScriptedPool(by_sample)}, CountingSandbox()).run()
    header, *rows = (tmp_path / "problems.csv").read_text().splitlines()
    assert header.startswith("model,format,problem_id")
    assert len(rows) == 3

"""Whole runs in which a model is proven late: what it was graded untried before is tried after all."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from test_trials import BENT, RIGHT, TESTS, UNTOUCHED, WRONG, ObedientSandbox, files_of, is_trial

from astra_async.answers.lenient import LenientParser
from astra_async.errors import ConflictError, ContainerLost
from astra_async.integrity.draw import Draw
from astra_async.integrity.trials import Trials
from astra_async.metrics import Metrics
from astra_async.problems.prepare import prepare_all
from astra_async.report.load import load_run
from astra_async.report.packed_row import TRIALS
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import Grading
from astra_async.running.plan import Plan
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.running.runner import Runner
from astra_async.running.sample import Asking, Setup
from astra_async.running.turns import TurnPlan
from astra_async.running.untried import untried
from astra_async.testing.expected import Expectations
from astra_async.types import Limits, Problem, Project, ProjectFile
from fakes import MemorySource, ScriptedPool, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from astra_async.types import Completion, Execution, Job, ModelRequest

SAMPLES = 30
KEY = b"the run's key"


def answer(text: str) -> Completion:
    return completion(f'<solution><file path="app.py"><![CDATA[{text}]]></file></solution>')


def bent_in_each_sample(request: ModelRequest) -> Completion:
    return answer(f"{WRONG}{BENT}# {request.key.sample}\n")


def honest_then_bent(request: ModelRequest) -> Completion:
    text = WRONG + BENT if request.key.sample > SAMPLES // 2 else RIGHT
    return answer(f"{text}# {request.key.sample}\n")


def bent_and_honest(request: ModelRequest) -> Completion:
    text = WRONG + BENT if request.key.sample % 3 else RIGHT
    return answer(f"{text}# {request.key.sample}\n")


@dataclass
class Harness:
    """One run of a pytest project over a sandbox that behaves as the solutions' texts say."""

    path: Path
    answers: Mapping[str, Callable[[ModelRequest], Completion]]
    samples: int = SAMPLES
    reuse: bool = False
    turns: int = 0
    everybody: bool = False
    sandbox: Any = field(default_factory=ObedientSandbox)
    runner: Any = None

    def run(self, on_open: Callable[[Runner], None] = lambda _: None) -> Harness:
        asyncio.run(self._run(on_open))
        return self

    async def _run(self, on_open: Callable[[Runner], None]) -> None:
        texts = {"app.py": UNTOUCHED, "tests/test_app.py": TESTS}
        files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items())
        problem = Problem(
            id="p",
            statement="Add.",
            project="p",
            test_command="pytest",
            result_files=("unit.xml",),
            image="any",
        )
        source = MemorySource({"p": Project(files=files, sha256="app")})
        prepared, _ = await prepare_all([problem], source, ("xml",))
        models = tuple(self.answers)
        plan = Plan(
            models=models, formats=("xml",), problem_ids=("p",), samples=self.samples, prepared=prepared
        )
        metrics = Metrics({(model, "xml"): {"p": self.samples} for model in models})
        recorded = Recorded(reuse_identical=self.reuse, trials=True, turns=self.turns > 0)
        opened = RunDirectory.open(
            self.path, recorded.add, turns=self.turns > 0, on_turn=partial(recorded.add, is_turn=True)
        )
        with closing(opened) as directory:
            recorded.count_into(metrics)
            learned = Expectations(self.path / "expected.json", self.path / "cache", self.sandbox, Limits())
            draw = Draw(KEY, everybody=self.everybody)
            draw.recall(recorded.tried())
            grading = Grading(
                sandbox=self.sandbox,
                images={"p": "any"},
                expectations=learned,
                lenient=LenientParser(),
                limits=Limits(),
                at_once=2,
                retry_delays_s=(),
                trials=Trials(self.sandbox, learned, Limits(), draw),
                earlier=EarlierVerdicts(directory, recorded.first, draw) if self.reuse else None,
            )
            setup = Setup(
                directory=directory,
                asking=Asking(pools={model: ScriptedPool(each) for model, each in self.answers.items()}),
                grading=grading,
                turns=TurnPlan(most=self.turns, feedback={"p": "count"}, ended=recorded.ended),
            )
            self.runner = Runner(plan, setup, metrics)
            on_open(self.runner)
            try:
                await self.runner.run()
            finally:
                names = {"models": [{"name": model} for model in models], "formats": ["xml"]}
                directory.run |= {**names, "samples": self.samples, "problems": {"p": {}}}
                directory.save()

    def lines(self, name: str = "results.jsonl") -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (self.path / name).read_bytes().splitlines()]

    def last(self) -> dict[tuple[str, int], dict[str, Any]]:
        return {(line["model"], line["sample"]): line for line in self.lines()}

    def load(self) -> dict[int, tuple[int, str]]:
        """What a report sees of the model `m`: tests passed, and what became of the trial."""
        return {
            int(row["sample"]): (int(row["passed"]), TRIALS[row["trial"]])
            for row in load_run(self.path).rows
            if row["pair"] == 0
        }


def test_a_proven_model_keeps_nothing_of_what_it_was_graded_before(tmp_path: Path) -> None:
    harness = Harness(tmp_path, {"m": bent_in_each_sample}).run()
    assert len(harness.lines()) > SAMPLES  # some had come before the proof
    first = [line for line in harness.lines() if "replaces" not in line]
    later = [line for line in harness.lines() if "replaces" in line]
    assert len(first) == SAMPLES
    assert {line["sample"] for line in later} == {
        line["sample"] for line in first if line["failure"] != "tampered"
    }
    assert {str(line["replaces"]) for line in later} == {"{'passed': 4, 'failure': None}"}
    assert {line["failure"] for line in harness.last().values()} == {"tampered"}
    summary = harness.runner.metrics.summary("m", "xml")
    assert (summary.valid, summary.mean_score, summary.failures) == (SAMPLES, 0.0, {"tampered": SAMPLES})
    assert load_run(tmp_path).metrics.summary("m", "xml") == summary
    assert set(harness.load().values()) == {(0, "tried")}
    assert (harness.runner.tally.final, harness.runner.retrials.left, untried(tmp_path)) == (SAMPLES, 0, [])


def test_honest_samples_of_a_proven_model_keep_their_points_and_other_models_are_left_alone(
    tmp_path: Path,
) -> None:
    def honest(request: ModelRequest) -> Completion:
        return answer(f"{RIGHT}# of another {request.key.sample}\n")

    harness = Harness(tmp_path, {"m": bent_and_honest, "n": honest}).run()
    for (model, number), line in harness.last().items():
        is_honest = model == "n" or number % 3 == 0
        assert (line["failure"], line["passed"]) == ((None, 4) if is_honest else ("tampered", 0))
        assert model == "n" or line["trial"] == "tried"
    assert not [line for line in harness.lines() if line["model"] == "n" and "replaces" in line]
    assert "not_drawn" in {line["trial"] for line in harness.lines() if line["model"] == "n"}


def test_who_gave_what_was_proven_elsewhere_loses_it_and_is_tried(tmp_path: Path) -> None:
    def same_first(request: ModelRequest) -> Completion:
        text = WRONG + BENT if request.key.sample % 2 else RIGHT
        return answer(f"{text}# {request.key.sample}\n")

    answers = {"m": bent_in_each_sample, "n": same_first}
    harness = Harness(tmp_path, answers).run()
    assert {line["failure"] for line in harness.last().values() if line["sample"] % 2} == {"tampered"}
    assert untried(tmp_path) == []


def test_the_rest_is_tried_by_the_next_call_wherever_the_first_was_stopped(tmp_path: Path) -> None:
    whole = Harness(tmp_path / "whole", {"m": honest_then_bent}).run()
    stopped = 0
    for cut in range(SAMPLES + 1, len(whole.lines())):
        path = tmp_path / str(cut)
        path.mkdir()
        for name in ("completions.jsonl", "run.json", "expected.json"):
            (path / name).write_bytes((tmp_path / "whole" / name).read_bytes())
        kept = (tmp_path / "whole" / "results.jsonl").read_bytes().splitlines(keepends=True)[:cut]
        (path / "results.jsonl").write_bytes(b"".join(kept) + b'{"torn')
        assert untried(path)
        stopped += 1
        again = Harness(path, {"m": honest_then_bent}).run()
        assert again.runner.metrics.summaries() == whole.runner.metrics.summaries()
        assert {key: line["failure"] for key, line in again.last().items()} == {
            key: line["failure"] for key, line in whole.last().items()
        }
    assert stopped > 3


def test_a_stop_ends_it_and_nothing_of_it_is_missing(tmp_path: Path) -> None:
    def stop_after_one(runner: Runner) -> None:
        def heard(result: Any) -> None:
            if result.replaces:
                runner.stop()

        runner.on_result = heard

    harness = Harness(tmp_path, {"m": honest_then_bent}).run(stop_after_one)
    assert harness.runner.retrials.left > 0
    assert harness.runner.tally.missing.total() == 0
    assert len(untried(tmp_path)) == harness.runner.retrials.left
    Harness(tmp_path, {"m": honest_then_bent}).run()
    assert untried(tmp_path) == []


@dataclass
class Lossy(ObedientSandbox):
    """An engine that loses every run once a model was proven."""

    is_lost: bool = False

    async def run(self, job: Job) -> Execution:
        if self.is_lost:
            raise ContainerLost("the engine went away")
        return await super().run(job)


def test_trouble_leaves_the_first_verdict_an_event_and_work_for_the_next_call(tmp_path: Path) -> None:
    sandbox = Lossy()

    def lose(runner: Runner) -> None:
        def heard(result: Any) -> None:
            sandbox.is_lost = runner.tally.final == SAMPLES

        runner.on_result = heard

    harness = Harness(tmp_path, {"m": bent_in_each_sample}, sandbox=sandbox).run(lose)
    left = harness.runner.retrials.left
    assert left == len(untried(tmp_path)) > 0
    assert harness.runner.tally.missing.total() == 0
    events = [event for event in harness.lines("events.jsonl") if event["kind"] == "sandbox_error"]
    assert len(events) == left
    assert Harness(tmp_path, {"m": bent_in_each_sample}).run().runner.retrials.left == 0


def test_a_verdict_that_is_used_again_is_not_one_that_was_given_untried(tmp_path: Path) -> None:
    def in_pairs(request: ModelRequest) -> Completion:
        return answer(f"{WRONG}{BENT}# {request.key.sample // 2}\n")

    harness = Harness(tmp_path, {"m": in_pairs}, reuse=True).run()
    assert {line["failure"] for line in harness.last().values()} == {"tampered"}
    assert untried(tmp_path) == []


def test_lines_in_another_order_mean_the_same_and_two_replacements_are_a_conflict(tmp_path: Path) -> None:
    harness = Harness(tmp_path, {"m": bent_in_each_sample}).run()
    before = load_run(tmp_path).metrics.summaries()
    path = tmp_path / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines)))
    assert load_run(tmp_path).metrics.summaries() == before
    assert Harness(tmp_path, {"m": bent_in_each_sample}).run().runner.metrics.summaries() == before
    twice = orjson.dumps({**harness.lines()[0], "note": "another"}) + b"\n"
    path.write_bytes(b"".join(lines) + twice)
    with pytest.raises(ConflictError, match="contradict each other"):
        load_run(tmp_path)


def test_a_line_whose_first_one_is_gone_counts_once(tmp_path: Path) -> None:
    harness = Harness(tmp_path, {"m": bent_and_honest}).run()
    path = tmp_path / "results.jsonl"
    last = {line["sample"]: line for line in harness.lines()}
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in last.values()))
    again = Harness(tmp_path, {"m": bent_and_honest}).run()
    assert again.runner.metrics.summaries() == harness.runner.metrics.summaries()
    assert load_run(tmp_path).metrics.summaries() == harness.runner.metrics.summaries()


@dataclass
class Slow(ObedientSandbox):
    """The trials of one solution take as long as fewer others than that are scored."""

    others: int = 0
    scored: int = 0
    waited: int = 0

    async def run(self, job: Job) -> Execution:
        found = await super().run(job)
        if not is_trial(job):
            self.scored += len(self.jobs) > 1  # the first run learns which tests count
        elif files_of(job.archive)["app.py"].decode() == RIGHT:
            async with asyncio.timeout(60):
                while self.scored < self.others:
                    self.waited += 1
                    await asyncio.sleep(0.001)
        return found


def test_equal_solutions_are_scored_while_one_of_them_is_tried(tmp_path: Path) -> None:
    (tmp_path / "trial.key").write_bytes(b"k" * 32)  # of which a trial goes first
    sandbox = Slow(others=SAMPLES - 1)
    harness = Harness(tmp_path, {"m": lambda _: answer(RIGHT)}, sandbox=sandbox, everybody=True).run()
    assert sandbox.waited
    states = [line["trial"] for line in harness.lines()]
    assert (states.count("tried"), states.count("equal")) == (1, SAMPLES - 1)


def test_who_waits_for_an_equal_solutions_verdict_keeps_nobody_from_being_read(tmp_path: Path) -> None:
    def mostly_equal(request: ModelRequest) -> Completion:
        return answer(RIGHT if request.key.sample < 20 else f"{RIGHT}# {request.key.sample}\n")

    (tmp_path / "trial.key").write_bytes(b"k" * 32)  # of which a trial goes first
    sandbox = Slow(others=10)
    harness = Harness(tmp_path, {"m": mostly_equal}, sandbox=sandbox, reuse=True, everybody=True).run()
    assert sandbox.waited
    assert [line["trial"] for line in harness.lines()].count("equal") == 19


def test_turns_that_were_graded_untried_are_tried_after_all_too(tmp_path: Path) -> None:
    def bent_when_asked_again(request: ModelRequest) -> Completion:
        text = WRONG + BENT if request.key.turn else WRONG
        return answer(f"{text}# {request.key.sample}\n")

    harness = Harness(tmp_path, {"m": bent_when_asked_again}, turns=1).run()
    lines = harness.lines("turn_results.jsonl")
    assert [line for line in lines if "replaces" in line]
    assert {line["failure"] for line in {line["sample"]: line for line in lines}.values()} == {"tampered"}
    assert harness.runner.tally.turns.final == SAMPLES
    assert {line["failure"] for line in harness.last().values()} == {"tests_failed"}
    assert untried(tmp_path) == []
    again = Harness(tmp_path, {"m": bent_when_asked_again}, turns=1).run()
    assert again.lines("turn_results.jsonl") == lines

"""Further turns: what goes on, what is recorded and what survives, over in-memory edges."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.asking.feedback import NO_ANSWER
from astra_async.errors import BudgetExhausted, TransientError
from astra_async.types import Execution, Job, ModelRequest, Project, ProjectFile
from fakes import IMAGE_ID, CountingSandbox, ScriptedPool, a_project, completion, xml_answer
from in_memory import run_in_memory

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.running.runner import Runner
    from astra_async.types import Completion

PROBLEMS = ("p1", "p2")
SAMPLES = 3


def better_each_turn(request: ModelRequest) -> Completion:
    """The n-th sample passes n tests at first, and one more in each turn."""
    return completion(xml_answer(min(4, request.key.sample + request.key.turn)))


def brought_about(
    path: Path, pool: ScriptedPool, sandbox: Any = None, *, samples: int = SAMPLES, **how: Any
) -> Runner:
    return asyncio.run(
        run_in_memory(
            path, {"m": pool}, sandbox or CountingSandbox(), problem_ids=PROBLEMS, samples=samples, **how
        )
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return (line["problem_id"], line["sample"], line.get("turn", 0))


def by_key(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Lines by key, without what two runs need not have in common."""
    found = lines(path)
    assert len({key(line) for line in found}) == len(found), "a key has two lines"
    return {
        key(line): {name: value for name, value in line.items() if not name.endswith("_at")} for line in found
    }


def test_a_sample_goes_on_until_its_tests_pass_or_its_turns_are_used(tmp_path: Path) -> None:
    pool = ScriptedPool(better_each_turn)
    runner = brought_about(tmp_path, pool, turns=3)
    results = by_key(tmp_path / "turn_results.jsonl")
    assert {at: (line["passed"], line["failure"]) for at, line in results.items() if at[0] == "p1"} == {
        ("p1", 0, 1): (1, "tests_failed"),
        ("p1", 0, 2): (2, "tests_failed"),
        ("p1", 0, 3): (3, "tests_failed"),
        ("p1", 1, 1): (2, "tests_failed"),
        ("p1", 1, 2): (3, "tests_failed"),
        ("p1", 1, 3): (4, None),
        ("p1", 2, 1): (3, "tests_failed"),
        ("p1", 2, 2): (4, None),
    }
    assert by_key(tmp_path / "turns.jsonl").keys() == results.keys()
    tally = runner.tally
    assert (tally.turns.final, tally.turns.asking, tally.turns.grading) == (16, 0, 0)


def test_the_first_answers_lie_in_their_files_as_without_turns(tmp_path: Path) -> None:
    without, turned = tmp_path / "without", tmp_path / "turned"
    first = brought_about(without, ScriptedPool(better_each_turn))
    second = brought_about(turned, ScriptedPool(better_each_turn), turns=3)
    for name in ("completions.jsonl", "results.jsonl"):
        assert by_key(without / name) == by_key(turned / name)
    assert (without / "problems.csv").read_bytes() == (turned / "problems.csv").read_bytes()
    assert first.metrics.summaries() == second.metrics.summaries()
    assert not (without / "turns.jsonl").exists()


def test_what_is_said_is_the_prompt_each_answer_and_what_became_of_it(tmp_path: Path) -> None:
    asked: dict[tuple[int, int], ModelRequest] = {}

    def answer(request: ModelRequest) -> Completion:
        if request.key.problem_id == "p1":
            asked[request.key.sample, request.key.turn] = request
        return better_each_turn(request)

    brought_about(tmp_path, ScriptedPool(answer), turns=2, samples=1)
    first, second, third = (asked[0, turn] for turn in range(3))
    assert first.messages == (("user", first.prompt),)
    assert second.messages[:2] == (("user", first.prompt), ("assistant", xml_answer(0)))
    assert third.messages[: len(second.messages)] == second.messages
    assert "0 of 4 tests passed" in second.messages[-1][1]
    assert "- test 0 (failed)" in second.messages[-1][1]
    assert "1 of 4 tests passed" in third.messages[-1][1]
    assert "- test 0 " not in third.messages[-1][1]
    assert third.begun_sha256 == second.sha256 != first.sha256
    assert [each.goes_on for each in (first, second, third)] == [True, True, False]
    recorded = by_key(tmp_path / "turns.jsonl")
    assert recorded["p1", 0, 2]["feedback"] == third.messages[-1][1]
    result = by_key(tmp_path / "turn_results.jsonl")["p1", 0, 2]
    assert result["input_characters"] == sum(len(text) for _, text in third.messages)


def test_files_that_a_turn_leaves_out_stay_and_an_unusable_answer_uses_its_turn(tmp_path: Path) -> None:
    answers = {
        0: xml_answer(1),
        1: '<solution><file path="src/more.txt">more</file></solution>',
        2: "",
        3: '<solution><file path="src/answer.txt">4</file></solution>',
    }
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Completion:
        asked.append(request)
        given = completion(answers[request.key.turn])
        return given if given.text else replace(given, finish_reason="refusal")

    brought_about(tmp_path, ScriptedPool(answer), turns=3, samples=1)
    results = [by_key(tmp_path / "turn_results.jsonl")["p1", 0, turn] for turn in (1, 2, 3)]
    assert [(line["status"], line["passed"], line["files_changed"]) for line in results] == [
        ("scored", 1, 2),  # what the first answer gave is still there
        ("no_solution", 0, 0),
        ("scored", 4, 2),  # and so is what the second one gave, over an answer that gave nothing
    ]
    said = asked[-1].messages[-1][1]
    assert "Your answer gives no files" in said
    assert "with them 1 of 4 tests passed" in said
    assert ("assistant", NO_ANSWER) in asked[-1].messages


@pytest.mark.parametrize("finish", ["context_exceeded"])
def test_a_conversation_that_no_longer_fits_ends(tmp_path: Path, finish: Any) -> None:
    def answer(request: ModelRequest) -> Completion:
        given = better_each_turn(request)
        return replace(given, text="", finish_reason=finish) if request.key.turn == 1 else given

    brought_about(tmp_path, ScriptedPool(answer), turns=3, samples=1)
    assert set(by_key(tmp_path / "turn_results.jsonl")) == {("p1", 0, 1), ("p2", 0, 1)}


def test_a_providers_trouble_makes_a_turn_missing_and_the_next_call_goes_on_there(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> Completion:
        if (request.key.problem_id, request.key.turn) == ("p2", 2):
            raise TransientError("cut")
        return better_each_turn(request)

    runner = brought_about(tmp_path, ScriptedPool(answer), turns=3, samples=1)
    assert runner.tally.turns.missing == {"provider_error": 1}
    assert not runner.tally.missing
    assert runner.tally.final == 2
    event = next(line for line in lines(tmp_path / "events.jsonl") if line["kind"] == "provider_error")
    assert (event["problem_id"], event["turn"]) == ("p2", 2)

    pool = ScriptedPool(better_each_turn)
    runner = brought_about(tmp_path, pool, turns=3, samples=1)
    assert sorted(pool.asked) == ["m/xml/p2/0, turn 2", "m/xml/p2/0, turn 3"]
    assert not runner.tally.turns.missing


def test_a_budget_stops_turns_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    calls = Counter[str]()

    def answer(request: ModelRequest) -> Completion:
        calls["all"] += 1
        if calls["all"] > 4:
            raise BudgetExhausted("the budget is reached")
        return better_each_turn(request)

    runner = brought_about(tmp_path, ScriptedPool(answer), turns=3, samples=1)
    assert "m" in runner.dead
    assert sum(runner.tally.turns.missing.values()) == 2
    runner = brought_about(tmp_path, ScriptedPool(better_each_turn), turns=3, samples=1)
    assert runner.tally.turns.final == 6


def test_turns_extend_a_run_that_had_none_or_fewer(tmp_path: Path) -> None:
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    brought_about(whole, ScriptedPool(better_each_turn), turns=3)
    asked: list[str] = []
    for turns in (0, 1, 3, 2):
        pool = ScriptedPool(better_each_turn)
        brought_about(grown, pool, turns=turns)
        asked += pool.asked
    assert len(asked) == len(set(asked))
    for name in ("completions.jsonl", "results.jsonl", "turns.jsonl", "turn_results.jsonl"):
        assert by_key(whole / name) == by_key(grown / name)


class Killer:
    """A run directory that kills its process after so many lines, or in the midst of the next."""

    def __init__(self, directory: Any, after: int, *, torn: bool) -> None:
        self._directory, self._left, self._torn = directory, after, torn

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._directory, name)
        if name not in ("record_completion", "record_result", "record_output"):
            return found

        def recorded(*args: Any, **named: Any) -> None:
            if self._left == 0:
                if self._torn:
                    log = self._directory.path / "turns.jsonl"
                    with log.open("ab") as stream:
                        stream.write(b'{"schema": 1, "model": "m", "tu')
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
            found(*args, **named)

        return recorded


def paid(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines())


def killed_after(out: Path, bill: Path, count: int, *, torn: bool) -> None:
    """A process of its own that is killed between two lines; each answer that is recorded is on the bill."""

    def answer(request: ModelRequest) -> Completion:
        return better_each_turn(request)

    with warnings.catch_warnings():  # of pytest's own threads, which the child leaves alone (Python 3.12)
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            brought_about(
                out,
                ScriptedPool(answer),
                turns=3,
                around=lambda name, room: Killer(room, count, torn=torn) if name == "directory" else room,
            )
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    whole = [
        orjson.loads(line)
        for name in ("completions.jsonl", "turns.jsonl")
        for line in (out / name).read_bytes().rpartition(b"\n")[0].splitlines()
    ]
    bill.write_text("".join(f"{key(line)}\n" for line in whole))


def test_sigkill_between_any_two_lines_loses_no_turn_and_pays_for_none_twice(tmp_path: Path) -> None:
    whole, out, bill = tmp_path / "whole", tmp_path / "out", tmp_path / "bill"
    brought_about(whole, ScriptedPool(better_each_turn), turns=3)
    before: Counter[str] = Counter()
    for number, count in enumerate((1, 3, 2, 5, 4, 7, 6, 1, 9, 3)):
        killed_after(out, bill, count, torn=number % 2 == 0)
        now = paid(bill)
        assert not before - now, "a recorded answer was lost"
        assert set(now.values()) == {1}
        before = now
    pool = ScriptedPool(better_each_turn)
    brought_about(out, pool, turns=3)
    for name in ("completions.jsonl", "results.jsonl", "turns.jsonl", "turn_results.jsonl"):
        assert by_key(whole / name) == by_key(out / name)
    assert (out / "problems.csv").read_bytes() == (whole / "problems.csv").read_bytes()


HIDDEN = """\
def test_the_quetzal_is_counted():
    assert count("quetzal-and-axolotl") == 17, "the ocelot was not counted"
"""
SEEN = """\
def test_zero():
    assert count("") == 0
"""


class NamingSandbox(CountingSandbox):
    """Reports two tests, one of a hidden file, and prints what pytest would of them."""

    async def run(self, job: Job) -> Execution:
        await super().run(job)
        cases = (
            '<testcase name="test_zero" classname="tests.test_seen">'
            "<failure>assert 1 == 0</failure></testcase>"
            '<testcase name="test_the_quetzal_is_counted" classname="hidden.test_more">'
            "<failure>the ocelot was not counted</failure></testcase>"
        )
        output = (
            "tests/test_seen.py::test_zero FAILED\n"
            "hidden/test_more.py::test_the_quetzal_is_counted FAILED\n"
            f">   {HIDDEN.splitlines()[1].strip()}\n"
            "E   AssertionError: the ocelot was not counted\n"
        )
        return Execution(
            exit_code=1,
            duration_s=0.5,
            output=output,
            reports={"junit.xml": f'<testsuite name="s" tests="2">{cases}</testsuite>'.encode()},
            image_id=IMAGE_ID,
        )


def with_hidden_tests() -> Project:
    more = {"hidden/test_more.py": HIDDEN, "tests/test_seen.py": SEEN}
    files = [
        *a_project().files,
        *(ProjectFile(path=path, content=text.encode()) for path, text in more.items()),
    ]
    return Project(files=tuple(sorted(files, key=lambda each: each.path)), sha256="with-hidden")


@pytest.mark.parametrize("mode", ["full", "names", "count"])
def test_nothing_of_hidden_tests_is_ever_said(tmp_path: Path, mode: Any) -> None:
    said: list[str] = []

    def answer(request: ModelRequest) -> Completion:
        said.extend(text for _, text in request.messages)
        return completion(xml_answer(request.key.turn))

    brought_about(
        tmp_path, ScriptedPool(answer), NamingSandbox(), turns=2, feedback=mode, project=with_hidden_tests()
    )
    assert any("0 of 2 tests passed" in text for text in said)
    for secret in ("quetzal", "ocelot", "axolotl", "test_more", "hidden"):
        assert not [text for text in said if secret in text]
    assert any("test_zero (failed)" in text for text in said) == (mode != "count")
    assert any("assert 1 == 0" in text for text in said) == (mode == "full")

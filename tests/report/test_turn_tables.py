"""What the report says of further turns, against the logs and against what is known by construction."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from astra_async.errors import ConflictError
from astra_async.export.loaded import load
from astra_async.report.table import records
from astra_async.report.tables import build_report
from astra_async.report.turn_states import Course, TurnState
from astra_async.report.write import write_built
from made_runs import Made, made_problems, write_run, write_turns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from astra_async.report.tables import Report
    from astra_async.types import Failure

TURNS = 3
OWN = {"alpha": 0.5, "beta": 0.5, "gamma": 0.5}
LATER = {"alpha": 0.8, "beta": 0.5, "gamma": 0.05}  # better than a blind sample, the same, worse


def made(problems: int = 6, samples: int = 4, **fields: Any) -> Made:
    return Made(skill=OWN, problems=made_problems(problems), samples=samples, **fields)


def run_with_turns(directory: Path, plan: Made) -> Path:
    write_run(directory, plan)
    write_turns(directory, plan, TURNS, LATER)
    return directory


def rows(directory: Path, name: str) -> list[dict[str, Any]]:
    return records(report_of(directory).table(name))


@cache
def report_of(directory: Path) -> Report:
    return build_report([directory])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Recounted:
    """The same figures from the logs alone, with nothing of the program: plain loops over plain records."""

    def __init__(self, directory: Path, model: str) -> None:
        self.samples: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for line in lines(directory / "results.jsonl"):
            if line["model"] == model:
                self.samples[line["problem_id"], line["sample"]] = [line]
        later = [line for line in lines(directory / "turn_results.jsonl") if line["model"] == model]
        for line in sorted(later, key=lambda line: int(line["turn"])):
            self.samples[line["problem_id"], line["sample"]].append(line)

    def standing(self, sample: tuple[str, int], turn: int) -> dict[str, Any] | None:
        usable = [line for line in self.samples[sample][: turn + 1] if line["status"] == "scored"]
        return usable[-1] if usable else None

    def by_problem(self, values: dict[tuple[str, int], float]) -> list[float]:
        grouped = defaultdict(list)
        for (problem, _), value in values.items():
            grouped[problem].append(value)
        return [sum(each) / len(each) for each in grouped.values()]

    def score(self, turn: int) -> float:
        found = {}
        for sample in self.samples:
            stands = self.standing(sample, turn)
            found[sample] = stands["passed"] / stands["total"] if stands else 0.0
        means = self.by_problem(found)
        return sum(means) / len(means)

    def solved(self, turn: int) -> float:
        found = dict.fromkeys(self.samples, 0.0)
        for sample in self.samples:
            stands = self.standing(sample, turn)
            found[sample] = float(bool(stands) and stands["failure"] is None)  # type: ignore[index]
        means = self.by_problem(found)
        return sum(means) / len(means)

    def blind(self, tries: int) -> float:
        """Of all sets of so many first answers, the share in which one passes: counted out."""
        grouped = defaultdict(list)
        for (problem, _), answers in self.samples.items():
            grouped[problem].append(answers[0]["failure"] is None)
        shares = []
        for passed in grouped.values():
            sets = list(combinations(passed, tries))
            shares.append(sum(any(one) for one in sets) / len(sets))
        return sum(shares) / len(shares)

    def changes(self, turn: int) -> Counter[str]:
        count: Counter[str] = Counter()
        for sample, answers in self.samples.items():
            if len(answers) <= turn:
                continue
            count["answers"] += 1
            now, before = answers[turn], self.standing(sample, turn - 1)
            count["solved"] += now["failure"] is None
            if now["status"] != "scored":
                count["unusable"] += 1
                continue
            earlier, later = passed_names(before), passed_names(now)
            count["won"] += len(later - earlier)
            count["lost"] += len(earlier - later)
            count["regressed"] += bool(earlier - later)
            count["identical"] += bool(before and before["solution_sha256"] == now["solution_sha256"])
        return count

    def ends(self) -> Counter[str]:
        return Counter(self.end(sample) for sample in self.samples)

    def end(self, sample: tuple[str, int]) -> str:
        answers = self.samples[sample]
        if answers[-1]["failure"] is None:
            return "later" if len(answers) > 1 else "first"
        if len(answers) <= TURNS:
            return "missing"
        seen = [
            None if (stands := self.standing(sample, turn)) is None else passed_names(stands)
            for turn in range(len(answers))
        ]
        if seen[-1] == seen[-2]:
            return "stalled"
        for first, last in combinations(range(len(seen)), 2):
            if seen[first] == seen[last] and any(seen[at] != seen[first] for at in range(first, last)):
                return "oscillating"
        return "out_of_turns"

    def prices(self, turn: int) -> tuple[int, float, float, float]:
        later = [line for answers in self.samples.values() for line in answers[1 : turn + 1]]
        further = sum(line["failure"] is None for line in later)
        tokens = sum(line["usage"]["input_tokens"] + line["usage"]["output_tokens"] for line in later)
        return len(later), further, tokens / further, sum(line["cost_usd"] for line in later) / further


def passed_names(line: dict[str, Any] | None) -> set[str]:
    tests = line["tests"] if line else ()
    return {test["name"] for test in tests if test["outcome"] == "passed"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_with_turns(tmp_path_factory.mktemp("turns") / "run", made())


@pytest.mark.parametrize("model", OWN)
def test_every_figure_can_be_recounted_from_the_logs(directory: Path, model: str) -> None:
    again = Recounted(directory, model)
    for row in rows(directory, "turns"):
        if row["model"] == model:
            assert row["mean_score"] == pytest.approx(again.score(row["turn"]), abs=1e-12)
            assert row["solved"] == pytest.approx(again.solved(row["turn"]), abs=1e-12)
            assert (row["known"], row["missing"]) == (24, 0)
    for row in rows(directory, "turn_gain"):
        if row["model"] == model:
            blind = again.blind(row["turn"] + 1)
            assert row["blind"] == pytest.approx(blind, abs=1e-12)
            assert row["gain"] == pytest.approx(again.solved(row["turn"]) - blind, abs=1e-12)
    for row in rows(directory, "turn_changes"):
        if row["model"] == model:
            again_changes = again.changes(row["turn"])
            names = ("answers", "unusable", "identical", "solved", "won", "lost", "regressed")
            assert {name: row[name] for name in names} == {name: again_changes[name] for name in names}
    (row,) = (row for row in rows(directory, "turn_ends") if row["model"] == model)
    assert {name: row[name] for name in again.ends()} == again.ends()
    assert sum(again.ends().values()) == row["samples"]
    for row in rows(directory, "turn_costs"):
        if row["model"] == model:
            calls, further, tokens, usd = again.prices(row["turn"])
            assert (row["calls"], row["further"]) == (calls, further)
            assert (row["tokens"], row["usd"]) == pytest.approx((tokens, usd), abs=1e-9)


def test_blind_samples_stop_when_they_have_it_too(directory: Path) -> None:
    for row in rows(directory, "turn_costs"):
        again = Recounted(directory, row["model"])
        per_problem = Counter(problem for problem, _ in again.samples)
        assert len(set(per_problem.values())) == 1
        calls = len(again.samples) * sum(1 - again.blind(m) for m in range(1, row["turn"] + 1))
        assert row["blind_calls"] == pytest.approx(calls, abs=1e-9)
        further = len(again.samples) * (again.blind(row["turn"] + 1) - again.blind(1))
        assert row["blind_further"] == pytest.approx(further, abs=1e-9)


def test_gains_known_by_construction_are_found(tmp_path: Path) -> None:
    directory = run_with_turns(tmp_path / "run", made(problems=40, samples=8))
    found = {row["model"]: row for row in rows(directory, "turn_gain") if row["turn"] == 1}
    assert (found["alpha"]["verdict"], found["gamma"]["verdict"]) == (
        "feedback better",
        "blind samples better",
    )
    assert found["beta"]["verdict"] in ("inconclusive", "equivalent")
    assert found["alpha"]["gain_interval_low"] > 0 > found["gamma"]["gain_interval_high"]
    assert found["beta"]["gain_interval_low"] < 0 < found["beta"]["gain_interval_high"]


def test_the_leaderboard_has_the_score_after_the_last_turn(directory: Path, tmp_path: Path) -> None:
    shown = {str(row["model"]): row for row in report_of(directory).table("leaderboard").by_name()}
    for model, row in shown.items():
        recounted = Recounted(directory, model)
        assert row["mean_score"] == pytest.approx(recounted.score(0))
        assert row["after_turns"] == pytest.approx(recounted.score(TURNS))
    page = write_built(report_of(directory), tmp_path / "report")
    after = f"{100 * Recounted(directory, 'alpha').score(TURNS):.1f}"
    assert "After 3 turns %" in page.read_text()
    assert (
        f'data-label="after 3 turns %" data-v="{shown["alpha"]["after_turns"]!r}">{after}</td>'
        in page.read_text()
    )
    assert "After 3 turns %" in (tmp_path / "report" / "report.md").read_text()


def test_the_leaderboard_has_no_score_after_turns_while_turns_are_missing(tmp_path: Path) -> None:
    directory = run_with_turns(tmp_path / "run", made())
    path = directory / "turn_results.jsonl"
    kept = [line for line in lines(path) if (line["model"], line["turn"]) != ("gamma", 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    cells = {
        row["model"]: row["after_turns"] for row in build_report([directory]).table("leaderboard").by_name()
    }
    assert cells["gamma"] is None
    assert cells["alpha"] is not None


def test_the_cost_of_a_sample_includes_its_turns(directory: Path) -> None:
    report, paid = report_of(directory), defaultdict(list)
    for name in ("results.jsonl", "turn_results.jsonl"):
        for line in lines(directory / name):
            paid[line["model"]].append(line["cost_usd"])
    costs = {str(row["model"]): row for row in rows(directory, "costs")}
    board = {str(row["model"]): row for row in report.leaderboard.by_name()}
    for model, each in paid.items():
        assert costs[model]["cost_usd"] == pytest.approx(sum(each))
        assert board[model]["cost_per_sample"] == pytest.approx(sum(each) / costs[model]["valid"])
    first, second = (f"${board[name]['cost_per_sample']:.4f}" for name in list(board)[:2])
    assert f"{first} a sample against {second}" in report.conclusions[0]


def without_costs(path: Path) -> list[list[str]]:
    names, *table = list(csv.reader(path.read_text().splitlines(keepends=True)))
    kept = [
        place for place, name in enumerate(names) if name not in ("cost_usd", "cost_per_sample", "whole_usd")
    ]
    return [[row[place] for place in kept] for row in (names, *table)]


def test_turns_change_only_costs_in_other_tables(tmp_path: Path) -> None:
    plan = made()
    write_built(build_report([write_run(tmp_path / "run", plan)]), tmp_path / "without")
    write_turns(tmp_path / "run", plan, TURNS, LATER)
    write_built(build_report([tmp_path / "run"]), tmp_path / "with")
    before = {path.relative_to(tmp_path / "without"): path for path in (tmp_path / "without").rglob("*.csv")}
    after = {path.relative_to(tmp_path / "with"): path for path in (tmp_path / "with").rglob("*.csv")}
    assert {path.name for path in after.keys() - before.keys()} == {
        *("turns.csv", "turn_gain.csv", "turn_changes.csv", "turn_ends.csv", "turn_costs.csv"),
        "turn_skills.csv",
    }
    assert all(without_costs(path) == without_costs(after[name]) for name, path in before.items())
    told = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("without", "with")]
    first, second = (re.sub(r"\$[^)]*", "", each["conclusions"][0]) for each in told)
    assert first == second
    assert "received feedback on the failures" in (tmp_path / "with" / "report.md").read_text()
    assert (tmp_path / "with" / "plots" / "turns.svg").exists()


def test_a_run_without_turns_has_no_such_section(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", made())])
    assert "turns" not in [section.name for section in report.sections]
    assert not any(name.startswith("turn") for name in report.data())
    assert "after_turns" not in [column.name for column in report.table("leaderboard").columns]


def test_a_missing_turn_is_no_failure_and_says_so(directory: Path, tmp_path: Path) -> None:
    whole = rows(directory, "turns")
    shorter = tmp_path / "run"
    run_with_turns(shorter, made())
    path = shorter / "turn_results.jsonl"
    kept = [line for line in lines(path) if (line["model"], line["turn"]) != ("gamma", 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    report = build_report([shorter])
    table = report.table("turns")
    places = [(row[0], row[2]) for row in table.rows]
    assert {places[at] for at in table.provisional} == {("gamma", 2), ("gamma", 3)}
    gamma = [row for row in records(table) if row["model"] == "gamma"]
    assert [row for row in whole if row["model"] != "gamma"] == [
        row for row in records(table) if row["model"] != "gamma"
    ]
    assert gamma[1] == next(row for row in whole if (row["model"], row["turn"]) == ("gamma", 1))
    missing = gamma[2]["missing"]
    assert isinstance(missing, int)
    assert missing > 0
    (ends,) = (row for row in rows(shorter, "turn_ends") if row["model"] == "gamma")
    assert ends["missing"] == missing
    assert "~" in table.shown(places.index(("gamma", 2)))[4]


def test_a_torn_repeated_or_foreign_line_is_told_and_not_counted(directory: Path, tmp_path: Path) -> None:
    other = run_with_turns(tmp_path / "run", made())
    path = other / "turn_results.jsonl"
    first = path.read_text().splitlines()[0]
    path.write_text(path.read_text() + first + "\n" + '{"turn": 0}\n' + first[:40])
    report = build_report([other])
    assert records(report.table("turns")) == rows(directory, "turns")
    told = "\n".join(report.warnings)
    assert "repeats line 1, counted once" in told
    assert "the sample key is incomplete" in told


def test_contradicting_lines_of_one_turn_stop_the_report(tmp_path: Path) -> None:
    other = run_with_turns(tmp_path / "run", made())
    path = other / "turn_results.jsonl"
    changed = lines(path)[0] | {"note": "another one"}
    path.write_text(path.read_text() + json.dumps(changed) + "\n")
    with pytest.raises(ConflictError, match=r"lines 1 and \d+ contradict each other"):
        build_report([other])


def answer(passed: str, failure: Failure | None = "tests_failed", *, usable: bool = True) -> TurnState:
    return TurnState(
        usable=usable,
        failure=failure,
        passed=frozenset((name, 1) for name in passed),
        total=3,
        solution=passed,
        tokens=10,
        cost_usd=None,
        seconds=1,
    )


def course(*answers: TurnState) -> Course:
    return Course(problem=0, most=3, answers=answers)


@pytest.mark.parametrize(
    ("passed", "end"),
    [
        (("a", "a", "ab", "ab"), "stalled"),
        (("a", "ab", "a", "ab"), "oscillating"),
        (("a", "b", "c", "a"), "oscillating"),
        (("", "a", "b", "c"), "out_of_turns"),
        (("a", "a", "ab", "b"), "out_of_turns"),
        (("a", "ab"), "missing"),
    ],
)
def test_how_a_sample_ends(passed: Iterable[str], end: str) -> None:
    assert course(*map(answer, passed)).end == end


def test_what_solves_or_breaks_off_ends_a_sample() -> None:
    assert course(answer("abc", None)).end == "first"
    assert course(answer("a"), answer("abc", None)).end == "later"
    assert course(answer("a"), answer("", "tampered")).end == "broken_off"


def test_an_unusable_answer_leaves_the_files_as_they_stood() -> None:
    told = course(answer("ab"), answer("", "format_error", usable=False), answer("abc", None))
    assert [len(state.passed) if (state := told.state(turn)) else 0 for turn in range(4)] == [2, 2, 3, 3]


def test_what_a_turn_answered_can_be_read(directory: Path) -> None:
    first = lines(directory / "turns.jsonl")[0]
    key = (first["model"], first["format"], first["problem_id"], first["sample"], first["turn"])
    assert load(directory).answer(key).text == first["text"]

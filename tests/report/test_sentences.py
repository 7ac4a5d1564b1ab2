"""Sentences of `--until`: each state, in its plainest and in its longest form."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from astra_async.report import until_sentences
from astra_async.report.deciding import Compared, NextRound
from astra_async.report.pairwise import RARE_DIFFERENCES
from astra_async.report.tables import build_report
from astra_async.report.until_sentences import sentence, status_line
from astra_async.stats.sequential import SequentialOutcome
from made_runs import Made, MadeProblem, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.load import Run
    from astra_async.stats.sequential import State

RECORD = {
    "until": "decided",
    "problems": list(range(65)),
    "margin": 0.02,
    "target_se": 1.5,
    "rounds": [2, 4, 8],
}
REVERSE = f" {RARE_DIFFERENCES}"
DECIDED = "decided after 4 samples of each problem"


def within(bounds: str) -> str:
    """The parentheses with a repeated interval."""
    return f"(repeated 95 % interval [{bounds}], {DECIDED})"


def said(state: State, *, b: str = "y", **fields: Any) -> str:
    """The sentence on x and y, or on x alone, whose last look had this outcome."""
    known: dict[str, Any] = {"k": 4, "difference": 0.115, "interval": None, "problems": None, **fields}
    look = SequentialOutcome(state=state, **known)
    return sentence(Compared(a="x", b=b, format="xml", looks=(look,)), RECORD)


@pytest.mark.parametrize(
    ("state", "fields", "expected"),
    [
        (
            "better",
            {"interval": (0.03, 0.2)},
            f"x is better than y: its mean score is 11.5 points higher {within('+3.0, +20.0')}.",
        ),
        (
            "better",
            {},
            f"x's mean score is 11.5 points above y's ({DECIDED}).{REVERSE}",
        ),
        (
            "worse",
            {"difference": -0.115, "interval": (-0.2, 0.01)},
            f"y's mean score is 11.5 points above x's {within('-1.0, +20.0')}.{REVERSE}",
        ),
        (
            "equivalent",
            {"interval": (-0.01, 0.01)},
            (
                "x and y are equivalent: a difference of 2 points or more in mean score can be excluded"
                f" at 95 % ({DECIDED})."
            ),
        ),
        ("open", {}, "x and y: no decision after 4 samples of each problem."),
        ("open", {"b": ""}, "x: no decision after 4 samples of each problem."),
        ("precise", {"b": ""}, f"x has reached the target standard error of 1.5 points ({DECIDED})."),
        (
            "not separable",
            {"interval": (-0.1, 0.2), "problems": 1234.0},
            (
                "x and y are not separable with 65 problems: their mean scores differ by 11.5 points"
                f" {within('-10.0, +20.0')}. If the difference is as observed, about 1,234"
                " problems are needed."
            ),
        ),
        (
            "not separable",
            {"problems": math.inf},
            (
                "x and y are not separable with 65 problems: their mean scores differ by 11.5 points"
                f" ({DECIDED}). If the difference is as observed, more than 10,000 problems are needed."
            ),
        ),
        (
            "not separable",
            {"b": "", "problems": 180.0},
            (
                "x has not reached the target standard error of 1.5 points with 4 samples of each of 65"
                " problems. It needs about 180 problems; more samples would narrow the interval by 5 % at"
                " most."
            ),
        ),
        (
            "not separable",
            {"b": "", "k": 8, "problems": 70.0},
            (
                "x has not reached the target standard error of 1.5 points with 8 samples of each of 65"
                " problems. It needs about 70 problems; more samples (--samples above 8) may also be enough."
            ),
        ),
    ],
)
def test_a_look_has_a_sentence_for_each_state(state: State, fields: dict[str, Any], expected: str) -> None:
    assert said(state, **fields) == expected


def test_a_line_has_the_numbers_of_decided_and_open_pairs_and_the_next_round() -> None:
    open_pair = Compared(a="x", b="y", format="xml", looks=())
    outcome = SequentialOutcome(state="better", k=2, difference=0.1, interval=None)
    decided = Compared(a="x", b="z", format="xml", looks=(outcome,))
    assert status_line(RECORD, [decided], None) == "1 of 1 pairs decided after 2 samples of each problem"
    missed = Compared(a="x", b="", format="xml", looks=(replace(outcome, state="not separable"),))
    assert status_line(RECORD | {"until": "precise"}, [missed], None) == (
        "0 of 1 mean scores precise, 1 not reached after 2 samples of each problem"
    )
    ahead = NextRound(end=4, models=("x", "y"), cost_usd=1234.5)
    assert status_line(RECORD, [decided, open_pair], ahead) == (
        "1 of 2 pairs decided, 1 open after 2 samples of each problem;"
        " next round: up to 4 samples of each problem from x, y, about $1,234.50"
    )


def test_a_single_model_without_an_interval_has_the_plainest_sentence(tmp_path: Path) -> None:
    made = Made(skill={"m": 0.7}, problems=[MadeProblem(id="p")], samples=2)
    (text,) = build_report([write_run(tmp_path / "run", made)]).conclusions
    assert text.startswith("m has a mean score of ")
    assert "interval" not in text


def test_models_with_other_problems_and_missing_samples_have_the_longest_sentence(tmp_path: Path) -> None:
    missing = frozenset({("b", "xml", "p00", 0)})
    one = Made(skill={"a": 0.9}, problems=made_problems(12), samples=4)
    two = Made(skill={"b": 0.2}, problems=made_problems(8), samples=4, leave_out=missing)
    runs = [write_run(tmp_path / "one", one), write_run(tmp_path / "two", two)]
    (text,) = build_report(runs).conclusions
    assert text.startswith("So far, with samples missing: on the 8 problems that both have begun, a ")


def test_a_model_with_missing_samples_is_marked_before_its_sentence(tmp_path: Path) -> None:
    made = Made(
        skill={"m": 0.7}, problems=made_problems(8), leave_out=frozenset({("m", "xml", "p00", 0)}), samples=2
    )
    (text,) = build_report([write_run(tmp_path / "run", made)]).conclusions
    assert text.startswith("So far, with samples missing: m has a mean score of ")


def test_models_that_join_and_rounds_that_disagree_limit_the_conclusions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steady = np.tile(np.linspace(0, 1, 65)[:, None], 4)
    later = steady - np.array([0, 0, 0.1, 0.1]) * np.linspace(0.5, 1.5, 65)[:, None]
    scores = {("x", "xml"): steady, ("y", "xml"): later}
    monkeypatch.setattr(until_sentences, "scores_of", lambda _: scores)
    run = cast("Run", SimpleNamespace(settings=SimpleNamespace(formats=("xml",))))
    record = RECORD | {"alpha": 0.05, "groups": [{}, {}, {}]}
    joined, drifted = until_sentences._limits_of(run, record)
    assert joined == (
        "The pairs are tested in 3 groups (models that began together, with one answer format), each with an"
        " error rate of 5 %. A false difference is concluded in up to 15 % of such runs, and a false"
        " equivalence as well."
    )
    assert drifted.startswith("y scores 10.0 points lower after its first round than in it (p = ")
    assert drifted.endswith("and all conclusions above assume that it did not.")
    assert list(until_sentences._limits_of(run, record | {"groups": [{}]})) == [drifted]

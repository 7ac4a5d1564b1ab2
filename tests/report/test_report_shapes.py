"""No sentence of a report claims more than its table: shapes of reports, and runs with `--until`.

`better`, `costs less` and `more consistent` are only said if the interval excludes "no difference", and every
planned model occurs in the conclusions. ASTRA_UNTIL_RUNS=2000 (scripts/long) draws more runs.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from report_shapes import SHAPES, TWO, drawn, models_of

from astra_async.report.compare import Side, compare_runs
from astra_async.report.pairwise import EQUIVALENCE_MARGIN
from astra_async.report.tables import build_report
from made_runs import write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.tables import Report

RUNS = int(os.environ.get("ASTRA_UNTIL_RUNS", "24"))
_INTERVAL = r"95 % interval \[([^,\]]+), ([^\]]+)\]"
_NAME = r"([\w-]+(?: \([\w-]+\))?)"
BETTER = re.compile(
    rf"{_NAME} is better than ((?:{_NAME}(?:, | and )?)+)"
    rf"(?:: its mean score is [\d.]+ points higher \((?:repeated )?{_INTERVAL})?"
)
ABOVE = re.compile(rf"(?:^|: ){_NAME}'s mean score is [\d.]+ points above {_NAME}'s")
EQUIVALENT = re.compile(rf"{_NAME} and {_NAME} are equivalent")
COSTS = re.compile(rf"{_NAME} costs less than {_NAME}: .*?{_INTERVAL}")
SD = re.compile(rf"{_NAME} is (?:less|more) consistent than {_NAME}: .*?{_INTERVAL}")
UNCLEAR = re.compile(
    rf"(?:{_NAME} and {_NAME} are not separable|{_NAME} and {_NAME}: no decision|"
    rf"{_NAME}'s mean score is [\d.]+ points above {_NAME}'s)"
)  # fmt: skip


def _differences(report: Report) -> dict[frozenset[Any], Any]:
    """Intervals of the difference in mean score by pair."""
    table = report.table("pairwise")
    columns = ([str(row[0]) for row in table.rows], *map(table.column, ("a", "b", "difference_interval")))
    return {frozenset((a, b)): interval for metric, a, b, interval in zip(*columns, strict=True)
            if metric == "mean_score"}  # fmt: skip


def check_means(report: Report) -> None:
    """Compare sentences on all problems with results with the means of the leaderboard."""
    means = {entry.label: entry.summary.mean_score or 0.0 for entry in report.entries}
    for text in report.conclusions if len({entry.format for entry in report.entries}) == 1 else ():
        for a, b in ABOVE.findall(text):
            assert means[a] > means[b]
        for a, b in EQUIVALENT.findall(text):
            assert abs(means[a] - means[b]) < EQUIVALENCE_MARGIN


def check_claims(report: Report) -> None:
    """Compare every claim in the conclusions with its own interval or with the table of pairs."""
    better: set[tuple[str, frozenset[str]]] = set()
    unclear: set[tuple[str, frozenset[str]]] = set()
    intervals = _differences(report)
    for text in report.conclusions:
        answers = text.partition(":")[0]  # the format, if there are several
        for a, others, _, low, high in BETTER.findall(text):
            for b in re.split(", | and ", others):
                found = (float(low), float(high)) if low else intervals[frozenset((a, b))]
                assert found[0] > 0 or found[1] < 0, text
                better.add((answers, frozenset((a, b))))
        for *_, low, high in COSTS.findall(text):
            assert not float(low) <= 1 <= float(high), text
        for *_, low, high in SD.findall(text):
            assert not float(low) <= 0 <= float(high), text
        for names in UNCLEAR.findall(text):
            unclear.add((answers, frozenset(filter(None, names))))
    assert not better & unclear
    tested = [row for row in report.table("main_skill_winners").by_name() if "not_separable" in row]
    for row in tested:
        if row["n"] == len(report.entries[0].problem_ids):  # the same scores
            alike = str(row["not_separable"]).split(", ")
            assert all(pair - {row["winners"]} <= {*alike} for _, pair in unclear if row["winners"] in pair)


@pytest.mark.parametrize("name", SHAPES)
def test_no_sentence_claims_more_than_its_table(name: str, tmp_path: Path) -> None:
    runs = SHAPES[name](tmp_path)
    report = build_report(runs)
    check_claims(report)
    check_means(report)
    said = "\n".join(report.conclusions)
    assert [model for model in models_of(runs) if model not in said] == []


def test_the_checks_find_a_claim_without_its_interval(tmp_path: Path) -> None:
    report = build_report(SHAPES["both formats"](tmp_path))
    (claim,) = [text for text in report.conclusions if "is better than" in text]
    for wrong in (
        re.sub(r"\[\+[\d.]+,", "[-0.1,", claim, count=1),
        claim.replace("-0.307, -0.008", "-0.307, +0.008"),
    ):
        with pytest.raises(AssertionError):
            check_claims(replace(report, conclusions=(wrong,)))


def test_a_mean_that_needs_more_samples_than_planned_is_not_called_unreachable(tmp_path: Path) -> None:
    report = build_report(SHAPES["precise with all samples used"](tmp_path))
    assert "more samples (--samples above 4) may also be enough" in report.conclusions[0]
    looks = report.table("looks_precise")
    assert looks.column("state") == ["open", "not reached"]
    assert [column.title for column in looks.columns[3:5]] == ["Mean score %", "95 % interval"]
    assert report.table("looks").rows == ()


@pytest.mark.parametrize("gain", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("problems", [6, 12])
def test_a_run_until_decided_has_one_conclusion_on_each_pair(
    gain: float, problems: int, tmp_path: Path
) -> None:
    """Ordinary tests after interim looks contradicted the looks in up to 13 % of such runs."""
    for seed in range(max(1, RUNS // 6)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        report = build_report(drawn(seed, gain=gain, problems=problems)(folder))
        check_claims(report)
        assert len(report.table("pairwise").rows) == 0
        assert sum("alpha" in text and "beta" in text for text in report.conclusions) == 1


def test_a_comparison_after_looks_repeats_their_conclusion_and_tests_nothing(tmp_path: Path) -> None:
    (run,) = SHAPES["until decided"](tmp_path)
    found = compare_runs(*(Side(directory=run, model=name) for name in ("alpha", "beta")))
    assert found.conclusions[0] == build_report([run]).conclusions[0]
    assert "decided after" in found.conclusions[0]
    assert found.data[0].rows == ()
    ordinary = write_run(tmp_path / "ordinary", TWO)
    tested = compare_runs(*(Side(directory=ordinary, model=name) for name in ("alpha", "beta")))
    assert len(tested.data[0].rows) > 0

"""Flagged samples in the report: counts, evidence, and the score without them."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from astra_async.log import encode
from astra_async.report.audited import AUDIT_LOG, AuditEvidence, AuditLine
from astra_async.report.leaderboard import headline
from astra_async.report.tables import build_report
from astra_async.running.directory import RunDirectory
from astra_async.running.reuse import Recorded
from astra_async.types.records import read_key
from made_runs import Made, agreeing, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

FOUND = AuditEvidence(test="adds", path="t.py", line=2, before="assert add() == 3", after="assert add() == 4")


def lines_of(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def audited_run(path: Path, flagged: int) -> Path:
    """A run of six problems; the solutions of the first samples of the first model are flagged."""
    run = write_run(path, Made(problems=made_problems(6), samples=4))
    lines = lines_of(run)
    model = lines[0]["model"]
    chosen = [line for line in lines if line["model"] == model and line["status"] == "scored"][:flagged]
    found = []
    for number, line in enumerate(lines):
        line["solution_sha256"] = f"{number + 1:015x}" + "0" * 49
        if line["status"] != "scored":
            continue
        key = {"problem_id": line["problem_id"], "solution_sha256": line["solution_sha256"]}
        evidence = (FOUND,) if line in chosen else ()
        found.append(AuditLine(**key, outcome="flagged" if evidence else "clean", flagged=evidence))  # type: ignore[arg-type]
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / AUDIT_LOG).write_bytes(b"".join(encode(each) + b"\n" for each in found))
    return run


def test_without_an_audit_nothing_is_said(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", Made(problems=made_problems(2), samples=2))])
    assert "audit" not in {table.name for table in report.tables()}
    assert "flagged" not in {column.name for column in headline(report.leaderboard).columns}


def test_flagged_samples_stand_beside_the_score_with_their_evidence(tmp_path: Path) -> None:
    run = audited_run(tmp_path / "run", flagged=3)
    plain = write_run(tmp_path / "plain", Made(problems=made_problems(6), samples=4))
    report = build_report([run])
    evidence = report.table("flagged")
    assert len(evidence.rows) == 3
    assert set(evidence.column("before")) == {FOUND.before}
    assert set(evidence.column("place")) == {"t.py:2"}
    counts = report.table("audit")
    assert 3 in counts.column("flagged")
    assert max(map(str, counts.column("share"))) > "0.0"
    assert "flagged" in {column.name for column in headline(report.leaderboard).columns}
    [note] = [each for each in report.leaderboard.notes if "flagged" in each]
    assert "3 of " in note
    assert " % with flagged samples and " in note
    scores = [build_report([each]).leaderboard.column("mean_score") for each in (run, plain)]
    assert scores[0] == scores[1]  # an audit changes no score


def test_means_with_and_without_flagged_samples_are_over_the_same_problems(tmp_path: Path) -> None:
    run = audited_run(tmp_path / "run", flagged=24)  # all samples of the first model
    report = build_report([run])
    [note] = [each for each in report.leaderboard.notes if "flagged" in each]
    assert note.endswith(": 24 of 24 audited samples are flagged. No problem has other samples.")
    first, other = report.table("audit").by_name()
    assert (first["mean_with"], first["mean_without"]) == (None, None)
    board = report.leaderboard.by_name()
    assert {other["mean_with"], other["mean_without"]} <= {row["mean_score"] for row in board}
    lines = (run / AUDIT_LOG).read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["problem_id"] == "p00" or b'"clean"' in line]
    (run / AUDIT_LOG).write_bytes(b"".join(kept))
    report = build_report([run])
    [note] = [each for each in report.leaderboard.notes if "flagged" in each]
    assert note.endswith(" Both omit 1 problem with only flagged samples.")
    first = report.table("audit").by_name()[0]
    assert first["mean_with"] == first["mean_without"]


def test_a_tampered_sample_of_an_older_version_is_shown_as_flagged(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made(problems=made_problems(2), samples=2))
    lines = lines_of(run)
    at = next(number for number, line in enumerate(lines) if line["status"] == "scored")
    lines[at] = agreeing(lines[at], 0, failure="tampered") | {"trial": "tried", "trial_s": 1.0}
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [test] = build_report([run]).table("flagged").column("test")
    assert "raw score is unknown" in str(test)


def test_a_second_line_of_an_older_version_replaces_the_first(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made(problems=made_problems(2), samples=2))
    lines = lines_of(run)
    at = next(number for number, line in enumerate(lines) if line["passed"])
    second = agreeing(lines[at], 0, failure="tampered")
    second["replaces"] = {"passed": lines[at]["passed"], "failure": lines[at]["failure"]}
    before = build_report([run]).entries[0].valid.sum()
    with (run / "results.jsonl").open("a") as stream:
        stream.write(json.dumps(second) + "\n")
    report = build_report([run])
    assert report.entries[0].valid.sum() == before
    assert len(report.table("flagged").rows) == 1
    recorded = Recorded(reuse_identical=False)
    with closing(RunDirectory.open(run, recorded.add)) as directory:
        assert directory.result(read_key(second))["failure"] == "tampered"

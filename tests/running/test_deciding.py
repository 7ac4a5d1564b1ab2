"""A run that ends when it is decided: whole rounds, looks that follow from the record alone, money saved."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.cli.regrade import _found
from astra_async.config import RunConfig
from astra_async.errors import ConflictError, TransientError, UsageError
from astra_async.report.deciding import has_open_pairs
from astra_async.report.load import load_run
from astra_async.report.tables import build_report
from astra_async.running.description import planned_metrics
from astra_async.running.directory import opened_run
from astra_async.running.until import open_deciding
from astra_async.stats.sequential import RULE
from astra_async.types import Completion, ModelRequest, ModelSettings
from fakes import CountingSandbox, ScriptedPool, completion, xml_answer
from in_memory import run_in_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.running.runner import Runner

PROBLEMS = tuple(f"p{i:02}" for i in range(24))
SAMPLES = 8


def config(path: Path, models: tuple[str, ...], **fields: Any) -> RunConfig:
    settings = tuple(
        ModelSettings(name=name, spec=f"openai/{name}", provider="openai", model=name) for name in models
    )
    return replace(RunConfig(out=path, models=settings, samples=SAMPLES, until="decided"), **fields)


def passing(share: int) -> ScriptedPool:
    """About so many of four tests pass, in a pattern over problems and samples."""

    def answer(request: ModelRequest) -> Completion:
        wobble = (int(request.key.problem_id[1:]) * 7 + request.key.sample * 5) % 3 - 1
        return completion(xml_answer(max(0, min(4, share + wobble))))

    return ScriptedPool(answer)


def bring_about(path: Path, pools: Mapping[str, ScriptedPool], **fields: Any) -> Runner:
    stop_after, told = fields.pop("stop_after", None), fields.pop("told", None)

    def attach(runner: Runner) -> None:
        run = runner.directory.run
        run["models"] = [{"name": name, "spec": name} for name in dict.fromkeys([*_names(run), *pools])]
        run |= {
            "run_id": "the same",
            "formats": ["xml"],
            "samples": SAMPLES,
            "problems": {name: {} for name in PROBLEMS},
        }
        runner.directory.save()
        wanted = config(path, tuple(pools), **fields)
        runner.deciding = open_deciding(wanted, runner.directory, PROBLEMS, docker=True)
        counted = itertools.count(1)
        if told is not None:
            runner.on_result = lambda _: told.append(runner.deciding.message) if runner.deciding else None
        if stop_after is not None:
            runner.on_result = lambda _: runner.stop() if next(counted) == stop_after else None

    runner = asyncio.run(
        run_in_memory(
            path,
            pools,
            CountingSandbox(),
            problem_ids=PROBLEMS,
            samples=SAMPLES,
            retry_delays_s=(0.0,),
            on_open=attach,
        )
    )
    if told is not None and runner.deciding:
        told[:] = dict.fromkeys([*told, runner.deciding.message])
    return runner


def _names(run: Mapping[str, Any]) -> list[str]:
    return [model["name"] for model in run.get("models", [])]


def record(path: Path) -> dict[str, Any]:
    return orjson.loads((path / "run.json").read_bytes())["deciding"]  # type: ignore[no-any-return]


def asked(path: Path, model: str) -> set[int]:
    lines = map(orjson.loads, (path / "completions.jsonl").read_bytes().splitlines())
    return {line["sample"] for line in lines if line["model"] == model}


def test_models_far_apart_are_asked_one_round(tmp_path: Path) -> None:
    pools = {"good": passing(4), "bad": passing(1)}
    runner = bring_about(tmp_path / "run", pools)
    assert [asked(tmp_path / "run", name) for name in pools] == [{0, 1}, {0, 1}]
    assert runner.tally.planned == runner.tally.final == 2 * 2 * len(PROBLEMS)
    found = record(tmp_path / "run")
    assert found["planned"] == {"good": 2, "bad": 2}
    assert [(look["k"], look["state"]) for look in found["looks"]] == [(2, "better")]
    report = build_report([tmp_path / "run"])
    assert report.conclusions[0].startswith("good is better than bad: its mean score is ")
    assert "], decided after 2 samples of each problem). good and bad cost " in report.conclusions[0]
    assert report.complete
    assert len(load_run(tmp_path / "run").missing) == 0
    assert report.table("looks_spread").column("common_k") == [2, 2]


def test_a_model_stops_when_all_its_pairs_are_decided(tmp_path: Path) -> None:
    pools = {"good": passing(4), "near": passing(3), "bad": passing(0)}
    bring_about(tmp_path / "run", pools)
    planned = record(tmp_path / "run")["planned"]
    assert planned["bad"] == 2
    assert all(asked(tmp_path / "run", name) == set(range(k)) for name, k in planned.items())


def test_after_looks_a_report_makes_no_ordinary_test_of_the_pair(tmp_path: Path) -> None:
    bring_about(tmp_path, {"low": passing(1), "high": passing(4), "same": passing(4)})
    report = build_report([tmp_path])
    assert report.table("pairwise").rows == ()
    assert len(report.conclusions) == 3
    assert not any("for new problems like these" in said for said in report.conclusions)
    against = dict(
        zip(report.leaderboard.column("model"), report.leaderboard.column("against_best"), strict=True)
    )
    assert against["low"] == "behind"
    assert sorted(map(str, against.values())) == ["behind", "highest mean", "not separable"]


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("stop_after", [1, 30, 60, 100])
def test_a_stop_and_a_resume_make_the_same_looks(tmp_path: Path, stop_after: int) -> None:
    whole = {"a": passing(3), "b": passing(3), "c": passing(1)}
    bring_about(tmp_path / "whole", whole)
    bring_about(
        tmp_path / "run",
        {name: passing(s) for name, s in (("a", 3), ("b", 3), ("c", 1))},
        stop_after=stop_after,
    )
    bring_about(tmp_path / "run", {name: passing(s) for name, s in (("a", 3), ("b", 3), ("c", 1))})
    expected, found = record(tmp_path / "whole"), record(tmp_path / "run")
    assert found["planned"] == expected["planned"]
    states = [
        [(look["k"], look["difference"], look["state"]) for look in each["looks"]]
        for each in (expected, found)
    ]
    assert states[0] == states[1]


def slow(share: int) -> ScriptedPool:
    quick = passing(share)._answer

    async def answer(request: ModelRequest) -> Completion:
        await asyncio.sleep(0.002 * (request.key.sample + 1))
        return quick(request)  # type: ignore[return-value]

    return ScriptedPool(answer)


THREE = {"a": 4, "b": 3, "c": 3}


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_after(lines: int, directory: Path) -> int:
    """A process that runs until so many verdicts are there, and is killed then; its exit code."""
    command = [sys.executable, __file__, str(directory)]
    path = ":".join(filter(None, sys.path))
    with subprocess.Popen(command, env={"PYTHONPATH": path, "HOME": str(directory.parent)}) as process:
        end = time.monotonic() + 240
        while process.poll() is None and lines_in(directory / "results.jsonl") < lines:
            assert time.monotonic() < end, f"waited in vain for {lines} verdicts"
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    return process.returncode


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("moments", [(70, 144), (1, 150, 200)])
def test_kills_at_any_moment_change_no_digit(tmp_path: Path, moments: tuple[int, ...]) -> None:
    bring_about(tmp_path / "whole", {name: slow(share) for name, share in THREE.items()})
    for lines in moments:
        killed_after(lines, tmp_path / "run")
    bring_about(tmp_path / "run", {name: slow(share) for name, share in THREE.items()})
    expected, found = record(tmp_path / "whole"), record(tmp_path / "run")
    assert found == expected
    assert lines_in(tmp_path / "run" / "results.jsonl") == lines_in(tmp_path / "whole" / "results.jsonl")


def test_a_missing_sample_makes_no_look_and_the_same_command_goes_on(tmp_path: Path) -> None:
    broken = passing(4)
    answer = broken._answer

    def failing(request: ModelRequest) -> Any:
        if request.key.problem_id == "p03" and request.key.sample == 1:
            raise TransientError("lost")
        return answer(request)

    broken._answer = failing
    runner = bring_about(tmp_path / "run", {"good": broken, "bad": passing(1)})
    assert record(tmp_path / "run")["looks"] == []
    assert runner.tally.missing.total() == 1
    assert asked(tmp_path / "run", "good") == {0, 1}
    said = build_report([tmp_path / "run"]).conclusions[0]
    assert said == "good and bad: no look yet, because no round is complete."
    bring_about(tmp_path / "run", {"good": passing(4), "bad": passing(1)})
    assert [look["state"] for look in record(tmp_path / "run")["looks"]] == ["better"]


def test_a_later_model_joins_with_pairs_and_an_error_rate_of_its_own(tmp_path: Path) -> None:
    bring_about(tmp_path / "run", {"good": passing(4), "bad": passing(1)})
    before = record(tmp_path / "run")["looks"]
    bring_about(tmp_path / "run", {"good": passing(4), "bad": passing(1), "new": passing(1)})
    found = record(tmp_path / "run")
    assert [group["models"] for group in found["groups"]] == [["good", "bad"], ["new"]]
    assert [look for look in found["looks"] if {look["a"], look["b"]} == {"good", "bad"}] == before
    assert found["planned"]["good"] == 2
    assert found["planned"]["bad"] > 2  # its pair with the newcomer is open


def test_looks_cannot_be_planned_by_who_has_seen_results_or_changed_after(tmp_path: Path) -> None:
    pools = {"good": passing(4), "bad": passing(1)}
    bring_about(tmp_path / "run", pools)
    with pytest.raises(ConflictError, match="another margin"):
        bring_about(tmp_path / "run", pools, margin=5.0)
    bring_about(tmp_path / "plain", pools, until=None)
    with pytest.raises(ConflictError, match="started without --until"):
        bring_about(tmp_path / "plain", pools)
    with pytest.raises(UsageError, match="name two"):
        bring_about(tmp_path / "one", {"good": passing(4)})
    with pytest.raises(UsageError, match="must be used together"):
        bring_about(tmp_path / "two", pools, until="precise")


def test_looks_of_another_version_of_the_rule_are_kept_and_not_continued(tmp_path: Path) -> None:
    pools = {"good": passing(4), "bad": passing(1)}
    bring_about(tmp_path / "run", pools)
    assert (record(tmp_path / "run")["rule"], record(tmp_path / "run")["made_by"]) == (
        RULE,
        version("astra_async"),
    )
    run = orjson.loads((tmp_path / "run" / "run.json").read_bytes())
    run["deciding"] |= {
        "rule": 1,
        "made_by": "0.9.1",
        "looks": [run["deciding"]["looks"][0] | {"difference": 0.5}],
    }
    (tmp_path / "run" / "run.json").write_bytes(orjson.dumps(run))
    with pytest.raises(
        ConflictError,
        match=r"version 1 of the decision rule.* with astra_async 0\.9\.1, which started",
    ):
        bring_about(tmp_path / "run", pools)
    said = build_report([tmp_path / "run"]).conclusions[0]
    assert said.startswith("good is better than bad: its mean score is 50.0 points higher ")
    runner = bring_about(tmp_path / "run", pools, until=None)
    assert runner.tally.final == 2 * SAMPLES * len(PROBLEMS)


def test_what_the_next_round_costs_is_told_before_it_is_asked(tmp_path: Path) -> None:
    told: list[str] = []
    bring_about(tmp_path / "run", {"a": passing(3), "b": passing(3)}, told=told)
    assert told[0] == (
        "0 of 1 pairs decided, 1 open after 0 samples of each problem;"
        " next round: up to 2 samples of each problem from a, b"
    )
    assert told[1].startswith(
        "0 of 1 pairs decided, 1 open after 2 samples of each problem;"
        " next round: up to 4 samples of each problem from a, b, about $"
    )
    assert told[-1].startswith("0 of 1 pairs decided, 1 not separable after ")
    assert "next" not in told[-1]


@pytest.mark.parametrize(("planned", "expected"), [({}, 2), ({"good": 4}, 4), (None, 8)])
def test_what_no_round_has_come_to_is_not_planned(planned: dict[str, int] | None, expected: int) -> None:
    deciding = {"rounds": [2, 4, 8]} | ({} if planned is None else {"planned": planned})
    run = {"models": [{"name": "good"}], "formats": ["xml"], "problems": {"p": {}}, "samples": 8}
    metrics = planned_metrics(run | {"deciding": deciding})
    assert metrics.planned == {("good", "xml"): {"p": expected}}


def test_without_the_flag_all_samples_are_asked_after_all(tmp_path: Path) -> None:
    pools = {"good": passing(4), "bad": passing(1)}
    bring_about(tmp_path / "run", pools)
    runner = bring_about(tmp_path / "run", pools, until=None)
    assert runner.tally.final == 2 * SAMPLES * len(PROBLEMS)
    assert load_run(tmp_path / "run").metrics.summary("good", "xml").k == SAMPLES


def test_a_precise_mean_ends_a_model(tmp_path: Path) -> None:
    bring_about(tmp_path / "run", {"one": passing(3)}, until="precise", target_se=20.0)
    assert asked(tmp_path / "run", "one") == {0, 1, 2, 3}
    said = build_report([tmp_path / "run"]).conclusions[0]
    assert said == (
        "one has reached the target standard error of 20.0 points (decided after 4 samples of each problem)."
    )


def test_a_finished_run_is_told_what_it_would_have_spent(tmp_path: Path) -> None:
    bring_about(tmp_path / "run", {"good": passing(4), "bad": passing(1)}, until=None)
    (row,) = build_report([tmp_path / "run"]).table("looks_replayed").by_name()
    assert (row["asked"], row["decided"], row["pairs"], row["same"]) == (0.25, 1, 1, 1)
    assert float(str(row["cost_usd"])) == pytest.approx(float(str(row["whole_usd"])) / 4)


def regrade(parent: Path, new: Path, **fields: Any) -> Runner:
    """Grade the answers of `parent` in `new`, without requests to models."""
    _found(parent, new, opened_run(parent / "run.json"))
    models = dict.fromkeys(("good", "near", "bad"), ScriptedPool(refuse))
    return bring_about(new, models, until=None, answers_only_from_record=True, **fields)


def refuse(request: ModelRequest) -> Completion:
    raise AssertionError(f"{request.key} was requested")


def test_a_regrade_has_the_plan_of_its_parent_and_looks_at_its_own_verdicts(tmp_path: Path) -> None:
    bring_about(tmp_path / "run", {"good": passing(3), "near": passing(3), "bad": passing(0)})
    runner = regrade(tmp_path / "run", tmp_path / "new")
    parent, new = record(tmp_path / "run"), record(tmp_path / "new")
    assert parent["planned"]["bad"] < parent["planned"]["near"]
    assert runner.tally.final == runner.tally.planned == len(PROBLEMS) * sum(parent["planned"].values())
    assert new["looks"] == parent["looks"]
    assert build_report([tmp_path / "new"]).conclusions == build_report([tmp_path / "run"]).conclusions
    assert regrade(tmp_path / "run", tmp_path / "new").tally.missing.total() == 0
    bring_about(tmp_path / "run", {"good": passing(3), "near": passing(3), "bad": passing(0)}, until=None)
    runner = regrade(tmp_path / "run", tmp_path / "new")
    assert runner.tally.final == runner.tally.planned == 3 * SAMPLES * len(PROBLEMS)


def test_a_regrade_keeps_looks_of_another_rule_and_says_so(tmp_path: Path) -> None:
    bring_about(tmp_path / "run", {"good": passing(3), "near": passing(3), "bad": passing(0)})
    run = orjson.loads((tmp_path / "run" / "run.json").read_bytes())
    run["deciding"]["rule"] = 1
    (tmp_path / "run" / "run.json").write_bytes(orjson.dumps(run))
    runner = regrade(tmp_path / "run", tmp_path / "new")
    assert record(tmp_path / "new")["looks"] == run["deciding"]["looks"]
    assert runner.deciding
    assert "version 1 of the decision rule" in runner.deciding.warning


def test_a_regrade_of_a_stopped_run_grades_all_answers_and_has_no_next_round(tmp_path: Path) -> None:
    pools = {"good": passing(3), "near": passing(3), "bad": passing(0)}
    bring_about(tmp_path / "run", pools, stop_after=160)
    assert has_open_pairs(record(tmp_path / "run"), ["xml"])
    runner, new = regrade(tmp_path / "run", tmp_path / "new"), record(tmp_path / "new")
    assert runner.tally.final == runner.tally.planned == len(PROBLEMS) * sum(new["planned"].values())
    assert max(look["k"] for look in new["looks"] if look["state"] == "open") == 4
    assert not has_open_pairs(new, ["xml"])


if __name__ == "__main__":
    bring_about(Path(sys.argv[1]), {name: slow(share) for name, share in THREE.items()})

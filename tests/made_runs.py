"""Run directories from a seeded generator, with the same lines as a real run."""

from __future__ import annotations

import hashlib
import random
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import structs

from astra_async.log import encode
from astra_async.types import Completion, NamedOutcome, Result, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from astra_async.types import Failure, FinishReason, Format, Outcome

SKILLS = {"react": ("Form Handling", "State Management"), "node": ("API Integration", "Form Handling")}


@dataclass(frozen=True, kw_only=True)
class MadeProblem:
    id: str
    total: int = 5
    main_skill: str = "react"
    sub_skills: tuple[str, ...] = ()
    family: str = ""


@dataclass(frozen=True, kw_only=True)
class Made:
    """Parameters of a generated run; `skill` is the probability that a test passes, by model."""

    skill: Mapping[str, float] = field(default_factory=lambda: {"alpha": 0.8, "beta": 0.6})
    formats: Sequence[Format] = ("xml",)
    problems: Sequence[MadeProblem] = ()
    samples: int = 4
    seed: int = 1
    simulated: bool = True
    parent: str | None = None
    leave_out: frozenset[tuple[str, str, str, int]] = frozenset()
    run_id: str = "made"


def agreeing(line: dict[str, Any], passed: int, **fields: Any) -> dict[str, Any]:
    """Return the line with this number of passed tests and consistent other fields, so that it is valid."""
    total = fields.get("total", line["total"])
    outcomes = ["passed"] * passed + ["failed"] * (total - passed)
    verdict = {
        "status": "scored",
        "failure": None if passed == total else "tests_failed",
        "passed": passed,
        "score": passed / total,
        "tests": [{"name": f"test {i}", "outcome": outcome} for i, outcome in enumerate(outcomes)],
    }
    return line | verdict | fields


def made_problems(n: int, *, families: bool = False) -> list[MadeProblem]:
    skills = list(SKILLS)
    return [
        MadeProblem(
            id=f"p{i:02}",
            total=3 + i % 5,
            main_skill=skills[i % len(skills)],
            sub_skills=SKILLS[skills[i % len(skills)]][: 1 + i // 2 % 2],
            family=f"family{i // 2}" if families else "",
        )
        for i in range(n)
    ]


def write_run(directory: Path, made: Made) -> Path:
    """Write the run directory; keys in `leave_out` get an event instead of a result."""
    directory.mkdir(parents=True)
    (directory / "run.json").write_bytes(orjson.dumps(run_json(made)))
    results, completions, events = bytearray(), bytearray(), bytearray()
    for result, text in made_results(made):
        key = (result.model, result.format, result.problem_id, result.sample)
        if key in made.leave_out:
            event = dict(zip(("model", "format", "problem_id", "sample"), key, strict=True))
            events += (
                orjson.dumps({"at": "", "kind": "sandbox_error", **event, "detail": "no daemon"}) + b"\n"
            )
            continue
        results += encode(result) + b"\n"
        completions += orjson.dumps(completion_record(result, text)) + b"\n"
    (directory / "results.jsonl").write_bytes(results)
    (directory / "completions.jsonl").write_bytes(completions)
    (directory / "events.jsonl").write_bytes(events)
    return directory


def run_json(made: Made) -> dict[str, Any]:
    problems = made.problems or made_problems(4)
    return {
        "schema": 1,
        "run_id": made.run_id,
        "created_at": "2026-11-20T10:00:00.000Z",
        "parent": made.parent,
        "samples": made.samples,
        "models": [
            {"name": name, "spec": f"simulated/{name}", "temperature": None, "context_length": 128_000}
            for name in made.skill
        ],
        "formats": list(made.formats),
        "problems": {
            problem.id: {
                "name": f"Problem {problem.id}",
                "main_skill": problem.main_skill,
                "sub_skills": list(problem.sub_skills),
                "family": problem.family,
                "statement_characters": 700 + 31 * number,
                "total": problem.total,
                "reference": {
                    "output_characters": 1000 + 17 * number,
                    "lines_written": 30 + number,
                    "files_changed": 2,
                }
                if number
                else None,
            }
            for number, problem in enumerate(problems)
        },
        "fingerprints": {"models": dict.fromkeys(made.skill, "f" * 64)},
        "versions": {"astra_async": "0.1.0", "python": "3.11.7"},
        "simulated": made.simulated,
    }


def made_results(made: Made) -> list[tuple[Result, str]]:
    """Return all results of the plan with the answers' texts; a seed determines them."""
    return [
        _result(made, model, answer_format, (number, problem), sample)
        for sample in range(made.samples)
        for number, problem in enumerate(made.problems or made_problems(4))
        for model in made.skill
        for answer_format in made.formats
    ]


def completion_record(result: Result, text: str) -> dict[str, Any]:
    completion = Completion(
        text=text,
        finish_reason=result.finish_reason,
        usage=result.usage,
        returned_model=result.returned_model,
        ttft_s=result.ttft_s,
        latency_s=result.latency_s,
        attempts=result.attempts,
        cost_usd=result.cost_usd,
    )
    key = {name: getattr(result, name) for name in ("model", "format", "problem_id", "sample")}
    return {"schema": 1, **key, **asdict(completion), "prompt_sha256": result.prompt_sha256}


def _result(
    made: Made, model: str, answer_format: Format, place: tuple[int, MadeProblem], sample: int
) -> tuple[Result, str]:
    number, problem = place
    rng = random.Random(f"{made.seed}/{model}/{answer_format}/{problem.id}/{sample}")
    ease = made.skill[model] * (0.7 + 0.6 * random.Random(f"{made.seed}/{problem.id}").random())
    solvable = rng.random()
    outcomes: list[Outcome] = [
        "passed" if solvable < ease or rng.random() < ease else "failed" for _ in range(problem.total)
    ]
    failure: Failure | None = None if all(outcome == "passed" for outcome in outcomes) else "tests_failed"
    finish: FinishReason = "stop"
    kind = rng.random()
    if kind < 0.02:
        failure, finish = "refusal", "refusal"
    elif kind < (0.08 if answer_format == "json" else 0.03):
        failure = "format_error"
    unusable = failure in ("refusal", "format_error")
    passed = 0 if unusable else outcomes.count("passed")
    text = f"<solution>{model} {problem.id} {sample} {'x' * rng.randrange(200, 900)}</solution>"
    sha = hashlib.sha256(f"{model}{answer_format}{problem.id}{outcomes}".encode()).hexdigest()
    return (
        Result(
            schema=1,
            model=model,
            format=answer_format,
            problem_id=problem.id,
            sample=sample,
            status="no_solution" if unusable else "scored",
            failure=failure,
            passed=passed,
            total=problem.total,
            score=passed / problem.total,
            tests=()
            if unusable
            else tuple(NamedOutcome(name=f"test {i}", outcome=outcome) for i, outcome in enumerate(outcomes)),
            exit_code=None if unusable else int(passed < problem.total),
            repairs=("fences",) if rng.random() < 0.1 else (),
            finish_reason=finish,
            usage=Usage(
                input_tokens=5000 + 100 * number,
                cached_tokens=4000,
                output_tokens=len(text),
                reasoning_tokens=0,
            ),
            cost_usd=0.01 + 0.00001 * len(text),
            attempts=1 + (rng.random() < 0.1),
            ttft_s=0.3 + rng.random(),
            latency_s=5 + 10 * rng.random(),
            test_s=0 if unusable else 2 + rng.random(),
            input_characters=20_000 + 400 * number,
            output_characters=len(text),
            files_changed=0 if unusable else 1 + rng.randrange(4),
            lines_written=0 if unusable else rng.randrange(20, 120),
            prompt_sha256=hashlib.sha256(f"{answer_format}{problem.id}".encode()).hexdigest(),
            solution_sha256="" if unusable else sha,
            image_id="" if unusable else "sha256:" + "1" * 64,
            returned_model=f"{model}-2026",
            output_tail="" if failure is None else f"FAIL {problem.id}",
            started_at=f"2026-11-20T10:{sample:02}:00.000Z",
            finished_at=f"2026-11-20T10:{sample:02}:30.000Z",
        ),
        text,
    )


def write_turns(directory: Path, made: Made, turns: int, skill: Mapping[str, float]) -> None:
    """Add follow-up turns to failed samples; each turn passes tests with this `skill`, by model.

    With a model's own skill a turn is worth what a blind sample is. Every third solution is the one before.
    """
    run = orjson.loads((directory / "run.json").read_bytes()) | {"turns": turns, "feedback": {}}
    (directory / "run.json").write_bytes(orjson.dumps(run))
    later = Made(
        skill=skill, formats=made.formats, problems=made.problems, samples=made.samples, seed=made.seed
    )
    places = {problem.id: (at, problem) for at, problem in enumerate(made.problems or made_problems(4))}
    results, answers = bytearray(), bytearray()
    for first, _ in made_results(made):
        key = (first.model, first.format, first.problem_id, first.sample)
        last, number = first, made.samples + first.sample * turns
        for turn in range(1, turns + 1):
            if last.failure is None or key in made.leave_out:
                break
            result, text = _result(later, *key[:2], places[first.problem_id], number + turn)
            if number % 3 == 0 and last.status == "scored":
                result = structs.replace(last, cost_usd=result.cost_usd)
            last = structs.replace(result, sample=first.sample)
            results += encode(structs.asdict(last) | {"turn": turn}) + b"\n"
            said = {"turn": turn, "feedback": f"{first.total - last.passed} tests failed"}
            answers += orjson.dumps(completion_record(last, text) | said) + b"\n"
    (directory / "turn_results.jsonl").write_bytes(results)
    (directory / "turns.jsonl").write_bytes(answers)

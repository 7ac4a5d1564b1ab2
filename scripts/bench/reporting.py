"""Time and memory of a report over many result lines, each step in the order of a real report.

Makes a run directory of models x problems x samples (32 x 65 x 481 is a million lines of about 2.3 kB, with
messages of 250 characters and output tails of 500), loads it, works out every table and writes the CSV files.
The page and the figures are timed apart, with `--page`: they depend on the number of problems and on the
samples carried.

    scripts/bench/run reporting [--models 32] [--problems 65] [--samples 481] [--page] [--keep DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import tempfile
import time
from pathlib import Path

import orjson

TESTS = [f"renders item {number} of the list when the filter is empty" for number in range(7)]
MESSAGE = (
    "AssertionError: expected [ Array(1) ] to deeply equal [ { id: 12 } ]\n- Expected\n+ Received\n  [\n"
    '-   { "id": 12, "title": "Acme" }\n+   { "id": "12", "title": " Acme " }\n  ]\n src/App.test.jsx:86:23'
)
CHANGES = [
    {"path": f"src/part{number}.jsx", "added": 40, "removed": 2, "kind": "changed"} for number in (1, 2)
]
WORDS = ("const", "let", "return", "items", "filter", "map", "state", "props", "useState", "onChange", "test")


def main() -> None:
    """Print one line for each step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=int, default=32)
    parser.add_argument("--problems", type=int, default=65)
    parser.add_argument("--samples", type=int, default=481)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary) / "run"
        if not (directory / "results.jsonl").exists():
            make(directory, options.models, options.problems, options.samples, answers=options.page)
        size = (directory / "results.jsonl").stat().st_size
        lines = options.models * options.problems * options.samples
        print(f"{lines:,} lines, {size / 1e6:,.0f} MB, {size / lines:,.0f} bytes each")
        measure(directory, Path(temporary) / "report", page=options.page)


def measure(directory: Path, out: Path, *, page: bool) -> None:
    """Build the tables and write them, then the page if asked for."""
    start = time.perf_counter()
    from astra_async.report.tables import build_report
    from astra_async.report.write import write_runs, write_table

    report = build_report([directory])
    _say("all tables", start)
    out.mkdir()
    for table in report.tables():
        write_table(out / f"{table.name}.csv", table)
    _say("and their CSV files", start)
    write_runs(out / "runs.csv", report.entries)
    _say("and runs.csv", start)
    if page:
        from astra_async.report.write import write_built

        index = write_built(report, out)
        _say(f"and the page, {index.stat().st_size / 1e6:.1f} MB, with all figures", start)


def make(directory: Path, models: int, problems: int, samples: int, *, answers: bool) -> None:
    """A run directory whose lines have the sizes of real ones."""
    rng = random.Random(1)
    directory.mkdir(parents=True, exist_ok=True)
    names = [f"provider/model-{number:02}" for number in range(models)]
    ids = [f"problem-{number:02}" for number in range(problems)]
    (directory / "run.json").write_bytes(orjson.dumps(_description(names, ids, samples)))
    with (
        (directory / "results.jsonl").open("wb") as results,
        (directory / "completions.jsonl").open("wb") as log,
    ):
        for sample in range(samples):
            for problem in ids:
                for strength, model in enumerate(names, 1):
                    line = _line(rng, strength / (models + 1), (model, problem, sample))
                    results.write(orjson.dumps(line) + b"\n")
                    if answers:
                        log.write(orjson.dumps(_answer(rng, line)) + b"\n")


def _description(names: list[str], ids: list[str], samples: int) -> dict[str, object]:
    return {
        "schema": 1,
        "run_id": "bench",
        "created_at": "2026-11-20T10:00:00.000Z",
        "parent": None,
        "samples": samples,
        "models": [{"name": name, "spec": name} for name in names],
        "formats": ["xml"],
        "problems": {
            problem: {
                "name": problem,
                "main_skill": f"skill {place % 10}",
                "sub_skills": [f"sub {place % 34}"],
            }
            for place, problem in enumerate(ids)
        },
        "simulated": True,
    }


def _line(rng: random.Random, strength: float, key: tuple[str, str, int]) -> dict[str, object]:
    passed = sum(rng.random() < 0.4 + 0.6 * strength for _ in TESTS)
    outcomes = ["passed"] * passed + ["failed"] * (len(TESTS) - passed)
    return {
        "schema": 1,
        **dict(zip(("model", "problem_id", "sample"), key, strict=True)),
        "format": "xml",
        "status": "scored",
        "failure": None if passed == len(TESTS) else "tests_failed",
        "passed": passed,
        "total": len(TESTS),
        "score": passed / len(TESTS),
        "tests": [
            {"name": name, "outcome": outcome} | ({} if outcome == "passed" else {"message": MESSAGE})
            for name, outcome in zip(TESTS, outcomes, strict=True)
        ],
        "extra_tests": [],
        "exit_code": int(passed < len(TESTS)),
        "timed_out": False,
        "repairs": [],
        "dropped": [],
        "suspicions": [],
        "finish_reason": "stop",
        "usage": {"input_tokens": 6012, "cached_tokens": 5888, "output_tokens": 812, "reasoning_tokens": 0},
        "cost_usd": 0.01421,
        "attempts": 1,
        "ttft_s": 0.4 + rng.random(),
        "latency_s": 9 + rng.random(),
        "test_s": 2 + rng.random(),
        "input_characters": 22863,
        "output_characters": 2000 + rng.randrange(1500),
        "changes": CHANGES,
        "files_changed": 2,
        "lines_written": 84,
        "prompt_sha256": hashlib.sha256(key[1].encode()).hexdigest(),
        "solution_sha256": hashlib.sha256(rng.randbytes(8)).hexdigest(),
        "image_id": "sha256:" + "1" * 64,
        "returned_model": key[0] + "-2026-01-01",
        "output_tail": "" if passed == len(TESTS) else (MESSAGE * 3)[-500:],
        "note": "",
        "started_at": "2026-11-20T10:00:00.000Z",
        "finished_at": "2026-11-20T10:00:30.000Z",
    }


def _answer(rng: random.Random, line: dict[str, object]) -> dict[str, object]:
    """Program text that compresses about as well as real answers do."""
    code = "\n".join("  " + " ".join(rng.choices(WORDS, k=7)) + ";" for _ in range(60))
    key = {name: line[name] for name in ("model", "format", "problem_id", "sample")}
    return {"schema": 1, **key, "text": code}


def _say(what: str, start: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{time.perf_counter() - start:7.1f} s  {peak:6.0f} MB at most  {what}", flush=True)


if __name__ == "__main__":
    main()

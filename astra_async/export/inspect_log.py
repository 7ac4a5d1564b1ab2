"""Export as `.eval` logs of inspect_ai, one for each model and format, for its viewer and data frames.

The format (version 2: a zip file of header, summaries and samples) is written without importing inspect_ai. A
sample's epoch is its number + 1. If samples are missing, they are left out and the log's status is `error`.
The score `tests` is p/T; `perfect` is 1 if all tests passed and 0 otherwise.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter, defaultdict
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.export.atif import agents_part, transcripts
from astra_async.export.lines import lines, usage_of
from astra_async.running.recorded import stored_prompt
from astra_async.types import is_agent
from astra_async.types.records import score_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.report.load import Run

_FILTERED = "content_filter"
_STOP = {"stop": "stop", "length": "max_tokens", "refusal": _FILTERED, _FILTERED: _FILTERED}
_KEY = ("model", "format", "problem_id", "sample")
_METADATA = ("status", "repairs", "suspicions", "cost_usd", "attempts")
_SUMMARIZED = (
    *("id", "epoch", "input", "target", "scores", "metadata"),
    *("model_usage", "total_time", "working_time", "uuid"),
)
_NAMED = "(prompt {}; its text is in the folder prompts/ of the run directory)"
_PROMPTS_KEPT = 200
_NEVER = "1970-01-01T00:00:00Z"
_WITHHELD = "(the answer is not part of this export; to include prompts and answers, use --with-answers)"


def write_inspect(runs: tuple[Run, ...], out: Path, *, with_answers: bool) -> list[Path]:
    """Write the logs into `out` and return their paths.

    Each log is written atomically, with one sample in memory at a time.
    """
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for run in runs:
        for pair, (model, answer_format) in enumerate(run.pairs):
            task = _id(run.settings.run_id, model, answer_format)
            stamp = (run.started_at or run.settings.created_at or _NEVER)[:19].replace(":", "-")
            path = out / f"{stamp}+00-00_astra-{answer_format}_{task}.eval"
            draft = path.with_suffix(".draft")
            _write_log(run, pair, draft, task, with_answers=with_answers)
            draft.replace(path)
            written.append(path)
    return written


def _write_log(run: Run, pair: int, path: Path, task: str, *, with_answers: bool) -> None:
    summaries, steps = [], transcripts(run) if with_answers and is_agent(run.pairs[pair][1]) else None
    asked = lru_cache(_PROMPTS_KEPT)(partial(stored_prompt, run.directory))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as log:
        for record, answer in lines(run, pair, with_answers=with_answers):
            digest = record.get("prompt_sha256") or "not recorded"
            prompt = (asked(digest) if with_answers else None) or _NAMED.format(digest)
            sample = _sample(record, answer, prompt, run)
            if steps is not None:
                sample |= agents_part(steps(record), record, _NEVER)
            log.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", orjson.dumps(sample))
            kept = {name: sample[name] for name in _SUMMARIZED}
            summaries.append({**kept, "completed": True, "message_count": 2})
        log.writestr("summaries.json", orjson.dumps(summaries))
        log.writestr("header.json", orjson.dumps(_header(run, pair, task, summaries)))


def _header(run: Run, pair: int, task: str, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    model, answer_format = run.pairs[pair]
    planned = len(run.problems) * run.settings.samples
    created = run.started_at or run.settings.created_at
    return {
        "version": 2,
        "status": "success" if len(summaries) == planned else "error",
        "eval": {
            "eval_id": task,
            "run_id": run.settings.run_id,
            "created": created,
            "task": f"astra-{answer_format}",
            "task_id": task,
            "task_version": 0,
            "dataset": {
                "name": "astra",
                "samples": len(run.problems),
                "sample_ids": list(run.problems),
                "shuffled": False,
            },
            "model": model,
            "model_args": {},
            "config": {"epochs": run.settings.samples},
            "packages": {"astra_async": run.settings.versions.get("astra_async", "")},
            "metadata": {"answer_format": answer_format, "simulated": run.settings.simulated},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": planned,
            "completed_samples": len(summaries),
            "scores": [_metrics(name, summaries) for name in ("tests", "perfect")],
        },
        "stats": {
            "started_at": created,
            "completed_at": run.finished_at or created,
            "model_usage": _total(summaries),
        },
    }


def _total(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of each model's known token counts."""
    total: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for summary in summaries:
        for model, usage in summary["model_usage"].items():
            total[model].update({name: tokens for name, tokens in usage.items() if tokens is not None})
    return total


def _metrics(name: str, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean over problems of the mean over samples (equations 1 and 2 of the paper)."""
    by_problem: dict[str, list[float]] = {}
    for summary in summaries:
        by_problem.setdefault(summary["id"], []).append(float(summary["scores"][name]["value"]))
    means = [sum(values) / len(values) for values in by_problem.values()]
    mean = sum(means) / len(means) if means else 0.0
    return {
        "name": name,
        "scorer": name,
        "params": {},
        "metrics": {"mean": {"name": "mean", "value": mean, "params": {}}},
    }


def _sample(record: Mapping[str, Any], answer: str | None, prompt: str, run: Run) -> dict[str, Any]:
    output = _output(record, _WITHHELD if answer is None else answer)
    usage = output["usage"]
    seconds = output["time"] + record.get("test_s", 0.0)
    return {
        "id": record["problem_id"],
        "epoch": record["sample"] + 1,
        "input": prompt,
        "target": "all tests passed",
        "messages": [{"role": "user", "content": prompt}, output["choices"][0]["message"]],
        "output": output,
        "scores": _scores(record),
        "metadata": {
            "skill": run.settings.problems[record["problem_id"]].main_skill,
            **{name: record.get(name) for name in _METADATA},
        },
        "store": {},
        # Inspect's viewer opens a sample at its events, so the prompt must be there too.
        "events": [_event(record, f"attachment://{_digest(prompt)}", output)],
        "model_usage": {record["model"]: usage} if usage else {},
        "started_at": record.get("started_at"),
        "completed_at": record.get("finished_at"),
        **dict.fromkeys(("total_time", "working_time"), seconds),
        "uuid": _id(run.settings.run_id, *(str(record[name]) for name in _KEY)),
        "attachments": {_digest(prompt): prompt},
    }


def _scores(record: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: record.get(name) for name in ("passed", "total", "failure", "rewards")}
    failed = [test["name"] for test in record.get("tests") or () if test["outcome"] != "passed"]
    is_perfect = record["passed"] == record["total"]
    if rewards := record.get("rewards"):
        explanation = "rewards: " + ", ".join(f"{name} {value}" for name, value in rewards.items())
    elif failed:
        explanation = "not passed: " + "; ".join(failed)[:2000]
    else:
        explanation = "all tests passed" if is_perfect else str(record["failure"])
    tests = {"value": score_of(record), "explanation": explanation, "metadata": metadata}
    perfect = {"value": int(is_perfect), "metadata": metadata}
    return {"tests": tests, "perfect": perfect}


def _output(record: Mapping[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "model": record["model"], "source": "generate"}
    stop = _STOP.get(record.get("finish_reason") or "stop", "unknown")
    return {
        "model": record.get("returned_model") or record["model"],
        "choices": [{"message": message, "stop_reason": stop}],
        "usage": usage_of(record),
        "time": record.get("latency_s") or 0.0,
    }


def _event(record: Mapping[str, Any], prompt: str, output: Mapping[str, Any]) -> dict[str, Any]:
    started = record.get("started_at") or _NEVER
    return {
        "event": "model",
        "timestamp": started,
        "working_start": 0.0,
        "model": record["model"],
        "input": [{"role": "user", "content": prompt}],
        "tools": [],
        "tool_choice": "none",
        "config": {},
        "output": output,
        "completed": record.get("finished_at") or started,
        "working_time": record.get("latency_s") or 0.0,
    }


def _id(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:22]


def _digest(text: str) -> str:
    """Return the name of an attachment: 32 hexadecimal digits, as inspect_ai requires."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]

"""Export for every_eval_ever, a shared collection of evaluation records (schemas 0.3.0).

    OUT/data/BENCHMARK/DEVELOPER/MODEL/UUID.json            one model and format: three results with intervals
    OUT/data/BENCHMARK/DEVELOPER/MODEL/UUID_samples.jsonl   a line for each sample

The files are written without the package every_eval_ever, which needs a newer Python. The schema has no field
for provisional numbers, so a model with missing samples is left out with a warning. The lines contain answers
only on request.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.errors import IncompleteRun
from astra_async.export.lines import lines, usage_of
from astra_async.files import write_atomically
from astra_async.report.entries import entries_of
from astra_async.report.leaderboard import leaderboard
from astra_async.report.table import records
from astra_async.types.records import score_of
from astra_async.types.run_record import read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from astra_async.report.load import Run

SCHEMA_VERSION = "0.3.0"
_BENCHMARK = "astra_async"  # not "ASTRA", because the problems may not be the paper's
_METRICS = {  # title, description, suffix of the interval's columns
    "mean_score": (
        "Mean score",
        "Mean over problems and samples: share of passed tests, or a task's reward.",
        "total",
    ),
    "pass_at_1": ("pass@1", "Share of samples with the full score, mean over problems.", "total"),
    "median_sd": ("Median SD", "Median over problems of the samples' SD (ddof = 0).", "interval"),
}


def write_every_eval_ever(runs: tuple[Run, ...], out: Path, *, with_answers: bool) -> list[str]:
    """Write each complete model and format; return a warning for each incomplete one.

    Raises IncompleteRun if no model and format is complete. The file of lines is written before the record
    that names it.
    """
    left_out, written = [], 0
    for run in runs:
        rows = {
            (row["model"], row["format"]): row for row in records(leaderboard(entries_of((run,)), [], {}))
        }
        described = read_run(run.directory / "run.json")
        settings = {each["name"]: each for each in described.get("models", [])}
        for pair, (model, answer_format) in enumerate(run.pairs):
            row = rows.get((model, answer_format))
            if row is None or not row["complete"] or row["complete"] == "false":
                left_out.append(f"{model} ({answer_format}) is incomplete and was left out: resume the run")
                continue
            _Record(run, pair, row, settings.get(model, {})).write(out, with_answers=with_answers)
            written += 1
    if not written:
        raise IncompleteRun(f"{left_out[0]}; every_eval_ever has no field for provisional numbers")
    return left_out


class _Record:
    """One model under one format of one run."""

    def __init__(self, run: Run, pair: int, row: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self._run = run
        self._pair = pair
        self._row = row
        self._settings = settings
        self._model, self._format = run.pairs[pair]
        digest = hashlib.sha256(f"{run.settings.run_id}/{self._model}/{self._format}".encode()).digest()
        self._uuid = uuid.UUID(bytes=digest[:16], version=4)
        self._model_id = _model_id(settings.get("spec") or self._model)
        self._id = f"{_BENCHMARK}/{self._model_id}/{self._format}/{self._uuid}"

    def write(self, out: Path, *, with_answers: bool) -> None:
        developer, _, name = self._model_id.partition("/")
        place = f"data/{_BENCHMARK}/{_plain(developer)}/{_plain(name)}"
        folder = out / place
        folder.mkdir(parents=True, exist_ok=True)
        samples = f"{self._uuid}_samples.jsonl"
        found = lines(self._run, self._pair, with_answers=with_answers)
        digest = hashlib.sha256()

        def written() -> Iterator[bytes]:
            for record, answer in found:
                line = orjson.dumps(self._instance(record, answer), option=orjson.OPT_APPEND_NEWLINE)
                digest.update(line)
                yield line

        write_atomically(folder / samples, written())
        whole = self._aggregate() | {
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": f"{place}/{samples}",
                "hash_algorithm": "sha256",
                "checksum": digest.hexdigest(),
                "total_rows": len(self._run.pair_rows(self._pair)),
            }
        }
        text = orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        write_atomically(folder / f"{self._uuid}.json", text)

    def _aggregate(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self._id,
            "evaluation_timestamp": str(_unix(self._run.started_at or self._run.settings.created_at)),
            "retrieved_timestamp": str(int(time.time())),
            "source_metadata": {
                "source_name": "astra_async",
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
                "additional_details": {"run_id": self._run.settings.run_id},
            },
            "eval_library": {"name": "astra_async", "version": version("astra_async")},
            "model_info": {
                "name": self._model,
                "id": self._model_id,
                "additional_details": {
                    "deployment_type": "unknown",
                    "model_availability": "unknown",
                    "simulated": str(bool(self._run.settings.simulated)).lower(),
                },
            },
            # With one sample of each problem there is no SD, and the schema does not allow missing values.
            "evaluation_results": [self._result(name) for name in _METRICS if self._row[name] is not None],
        }

    def _result(self, metric: str) -> dict[str, Any]:
        title, description, interval = _METRICS[metric]
        row = self._row
        score: dict[str, Any] = {
            "score": row[metric],
            "details": {
                "problems": str(row["n"]),
                "samples_per_problem": str(row["k"]),
                "valid_samples": str(row["valid"]),
                "answer_format": self._format,
            },
        }
        low, high = (row.get(f"{metric}_{interval}_{end}") for end in ("low", "high"))
        if low is not None and high is not None:
            score["uncertainty"] = {
                "confidence_interval": {
                    "lower": low,
                    "upper": high,
                    "confidence_level": 0.95,
                    "method": "over problems, for a new set of problems like these",
                },
                "num_samples": row["valid"],
            }
        return {
            "evaluation_result_id": f"{self._id}#{metric}",
            "evaluation_name": f"{_BENCHMARK} {title}",
            "source_data": {
                "dataset_name": _BENCHMARK,
                "source_type": "other",
                "additional_details": {"problems": str(row["n"])},
            },
            "metric_config": {
                "evaluation_description": description,
                "metric_id": metric,
                "metric_name": title,
                "metric_unit": "proportion",
                "lower_is_better": metric == "median_sd",
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 0.5 if metric == "median_sd" else 1,
            },
            "score_details": score,
            "generation_config": {"generation_args": self._arguments()},
        }

    def _arguments(self) -> dict[str, Any]:
        known = {name: self._settings.get(name) for name in ("temperature", "top_p", "top_k", "max_tokens")}
        given = {name: value for name, value in known.items() if value is not None}
        return given | {"max_attempts": 1, "sandbox": {"type": "docker"}}

    def _instance(self, record: Mapping[str, Any], answer: str | None) -> dict[str, Any]:
        solution = record.get("solution_sha256") or ""
        metadata = {
            "sample": str(record["sample"]),
            "passed": str(record["passed"]),
            "total": str(record["total"]),
            "status": record["status"],
        }
        agent = record.get("agent")
        answered = {"turn_idx": 0, "role": "assistant", "content": answer}
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self._id,
            "model_id": self._model_id,
            "evaluation_name": f"{_BENCHMARK} {_METRICS['mean_score'][0]}",
            "evaluation_result_id": f"{self._id}#mean_score",
            "sample_id": record["problem_id"],
            "sample_hash": record.get("prompt_sha256") or None,
            "interaction_type": "agentic" if agent else "single_turn",
            "input": {"raw": "", "reference": []},
            "output": None if agent else {"raw": [] if answer is None else [answer]},
            "messages": [answered] * (answer is not None) if agent else None,
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "messages[0].content" if agent else "output.raw",
                    "extracted_value": f"sha256:{solution}" if solution else "",
                    "extraction_method": "custom",
                    "is_terminal": True,
                }
            ],
            "evaluation": {
                "score": score_of(record),
                "is_correct": record["passed"] == record["total"],
                "num_turns": max(1, agent["steps"]) if agent else 1,
            },
            "token_usage": usage_of(record),
            "performance": {
                "latency_ms": _milliseconds(record.get("latency_s")),
                "time_to_first_token_ms": _milliseconds(record.get("ttft_s")),
            },
            "error": record["failure"],
            "metadata": metadata,
        }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _model_id(spec: str) -> str:
    return spec if "/" in spec else f"unknown/{spec}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip(".") or "unknown"


def _unix(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except (ValueError, TypeError):
        return 0

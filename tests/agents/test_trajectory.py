"""The trajectory of a sample: each result of a tool belongs to the model's call."""

from __future__ import annotations

from typing import Any

from astra_async.agents.transcript import steps_of
from astra_async.export.atif import trajectory

FINAL = {"model": "m", "format": "gemini-cli", "problem_id": "p", "sample": 0, "passed": 1, "total": 1}


def line(step: int, request: dict[str, Any], *calls: tuple[str, str, str]) -> dict[str, Any]:
    """A line of calls.jsonl, as an agent of Gemini's interface leaves it."""
    named = [{"id": i, "name": name, "arguments": arguments} for i, name, arguments in calls]
    answer = {"text": "", "finish_reason": "stop", "returned_model": "m", "latency_s": 1.0, "calls": named}
    return {
        "step": step,
        "sha256": str(step),
        "since": step - 1 if step else None,
        "request": request,
        **answer,
    }


def called(call_id: str, name: str, **args: str) -> dict[str, Any]:
    return {"functionCall": {"id": call_id, "name": name, "args": args}}


def gave(call_id: str, name: str, output: str) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": name, "response": {"output": output}}}


TASK = {"role": "user", "parts": [{"text": "Fix it."}]}
FIRST = [
    {"role": "model", "parts": [called("read_1764", "read", path="b"), called("run_1764", "run")]},
    {"role": "user", "parts": [gave("read_1764", "read", "text of b"), gave("run_1764", "run", "failed")]},
]
SECOND = [
    {"role": "model", "parts": [called("run_1765", "run")]},
    {"role": "user", "parts": [gave("run_1765", "run", "passed")]},
]


def test_results_belong_to_the_models_calls_if_the_client_makes_its_own_ids() -> None:
    records = [
        line(0, {"set": {"contents": [TASK]}}, ("c0", "read", '{"path": "b"}'), ("c1", "run", "{}")),
        line(1, {"grown": {"contents": [1, FIRST]}}, ("c2", "run", "{}")),
        line(2, {"grown": {"contents": [3, SECOND]}}),
        # Another conversation repeats all of this one.
        line(3, {"set": {"contents": [{**TASK, "parts": [{"text": "Go on."}]}, *FIRST, *SECOND]}}),
    ]
    found = trajectory(FINAL, list(steps_of(records, "gemini")), "run")
    assert found is not None
    observed = [step["observation"]["results"] for step in found["steps"] if "observation" in step]
    assert observed == [
        [
            {"source_call_id": "c0", "content": "text of b"},
            {"source_call_id": "c1", "content": "failed"},
        ],
        [{"source_call_id": "c2", "content": "passed"}],
    ]


def test_a_result_prefers_the_call_with_its_arguments() -> None:
    """The agent ran only the second of two calls of one tool."""
    ran = [
        {"role": "model", "parts": [called("read_9", "read", path="b")]},
        {"role": "user", "parts": [gave("read_9", "read", "text of b")]},
    ]
    records = [
        line(
            0,
            {"set": {"contents": [TASK]}},
            ("c0", "read", '{"path": "a"}'),
            ("c1", "read", '{"path": "b"}'),
        ),
        line(1, {"grown": {"contents": [1, ran]}}),
    ]
    (result,) = list(steps_of(records, "gemini"))[1].added[-1].results
    assert result.call.id == "c1"

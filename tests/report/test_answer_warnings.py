"""What recorded answers tell about a model's server, once for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import orjson
import pytest
from click.testing import CliRunner

from astra_async.cli.status import status
from astra_async.report.answer_warnings import (
    Answered,
    AnswerWarnings,
    asked_models,
    is_same_model,
    warnings_of,
    warnings_of_run,
)
from astra_async.report.tables import build_report
from made_runs import Made, write_run

if TYPE_CHECKING:
    from pathlib import Path

ASKED = {"m": "qwen3:8b", "other": "gpt-5"}
SIZES = {"long": 57_000, "longer": 90_000, "short": 9_000, "tiny": 800}


def answer(text: str = "42", prompt: str = "long", tokens: int | None = 13_000, **fields: Any) -> Answered:
    usage = {"input_tokens": tokens, "output_tokens": 5, "reported_usd": fields.pop("reported_usd", None)}
    fields = {"model": "m", "returned_model": "qwen3:8b", "finish_reason": "stop"} | fields
    line = fields | {"prompt_sha256": prompt, "text": text, "usage": usage}
    return msgspec.json.decode(orjson.dumps(line), type=Answered)


def told(*answers: Answered) -> list[str]:
    return warnings_of(answers, ASKED, SIZES)


def test_usual_answers_give_no_warning() -> None:
    cached = [
        answer(tokens=300),
        answer(),
        answer(prompt="short", tokens=2100),
        answer(prompt="tiny", tokens=90),
    ]
    assert told(*cached, answer(tokens=None), answer(tokens=1), answer(prompt="unknown", tokens=300)) == []


@pytest.mark.parametrize(
    ("answers", "tokens", "estimate"),
    [
        ([answer(tokens=2050)] * 4, "2,050", "13,571"),
        ([answer(prompt="longer", tokens=12_000), answer(tokens=12_000)], "12,000", "21,429"),
        ([answer(tokens=8000), answer(prompt="short", tokens=8000)], "8,000", "13,571"),
        ([answer(tokens=None, disbelieved_input_tokens=1024)], "1,024", "13,571"),
    ],
)
def test_a_prompt_that_the_server_cuts_is_named(answers: list[Answered], tokens: str, estimate: str) -> None:
    told_of = f"{tokens} tokens reported for a prompt of about {estimate}"
    remedy = "raise num_ctx (Ollama) or the server's context length"
    assert told(*answers) == [f"m: the server truncates prompts: {told_of}; {remedy}"]


def test_a_substituted_model_is_named_with_how_many_answers() -> None:
    answers = [answer()] * 2 + [answer(returned_model="qwen3:1.7b")] * 7
    assert told(*answers) == ["m: 7 of 9 answers are from qwen3:1.7b; requested was qwen3:8b"]


@pytest.mark.parametrize(
    ("asked", "returned"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet-20250929"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("gpt-4", "gpt-4-0613"),
        ("mistral-large-latest", "mistral-large-2411"),
        ("gemini-flash-latest", "gemini-3-flash-preview"),
        ("gemini-2.5-flash", "models/gemini-2.5-flash-preview-09-2025"),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1"),
        ("openrouter/auto", "openai/gpt-5"),
        ("Qwen/Qwen3-8B", "qwen/qwen3-8b"),
        ("llama3:latest", "llama3"),
        ("qwen", "/models/Qwen3-8B.Q4_K_M.gguf"),
        ("ft:gpt-4o-mini-2024-07-18:org::abc", "ft:gpt-4o-mini-2024-07-18:org::abc"),
    ],
)
def test_another_spelling_is_no_other_model(asked: str, returned: str) -> None:
    assert is_same_model(asked, returned)


@pytest.mark.parametrize(
    ("asked", "returned"),
    [
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-11-20"),
        ("claude-fable-5", "claude-opus-4-8"),
        ("llama-3.1-405b", "llama-3.1-70b"),
        ("llama-3.1-405b", "llama-3.1-205b"),
        ("grok-4", "grok-4-fast"),
    ],
)
def test_another_model_is_one(asked: str, returned: str) -> None:
    assert not is_same_model(asked, returned)


def test_names_that_servers_choose_are_not_compared() -> None:
    models = [
        {"name": "a", "provider": "azure", "model": "mine"},
        {"name": "b", "provider": "simulated", "model": "x"},
    ]
    assert asked_models([*models, {"name": "c", "provider": "openai", "model": "gpt-5"}]) == {"c": "gpt-5"}
    assert warnings_of([answer(model="a", returned_model="gpt-5")], {}, {}) == []


@pytest.mark.parametrize("text", ["", " \n", "\t"])
@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"reasoning": "hm"}, "reasoning text: check the server's reasoning parser"),
        ({"native_finish_reason": "tool_calls", "reasoning": "write_file{}"},
         "a tool call: check the server's tool-call parser"),
    ],
)  # fmt: skip
def test_empty_answers_whose_text_went_elsewhere_are_counted(
    text: str, fields: dict[str, Any], what: str
) -> None:
    assert told(*[answer(text, **fields)] * 12) == [f"m: 12 of 12 answers have no text but {what}"]
    assert told(*[answer(text, **fields)] * 2) == []  # may be the model's own
    assert told(*[answer(text, **fields)] * 3, *[answer()] * 4) == []
    assert told(*[answer()] * 4) == []


def test_reasoning_up_to_max_tokens_is_the_models_own() -> None:
    assert told(*[answer("", reasoning="hm", finish_reason="length")] * 12) == []


def test_a_tier_without_a_price_and_a_cost_that_differs_are_named() -> None:
    unpriced = [answer(unpriced_tier="priority")] * 2
    why = "no price is known for the service tier 'priority'"
    assert told(*unpriced, answer()) == [f"m: the cost of 2 of 3 answers is an estimate: {why}"]
    differs = [answer(reported_usd=0.021, priced_usd=0.01)] * 2
    costs = "a cost of $0.0420 for 2 answers, the configured prices give $0.0200"
    assert told(*differs) == [f"m: the provider reports {costs}: check price_input and price_output"]
    assert told(*[answer(reported_usd=0.0104, priced_usd=0.01)] * 2, answer(reported_usd=9.0)) == []


def test_a_running_program_says_each_warning_once() -> None:
    found, said = AnswerWarnings(ASKED, SIZES), []
    for number in range(40):
        found.add(answer(tokens=2050, returned_model="qwen3:8b" if number else "x"))
        said += found.new("m")
    assert [line.split(":")[1] for line in said] == [
        " the server truncates prompts",
        " 1 of 1 answers are from x; requested was qwen3",
    ]
    assert "1 of 40 answers" in found.lines()[1]


def test_status_and_report_derive_the_warnings_from_the_files(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made(skill={"alpha": 0.7}))
    run = orjson.loads((directory / "run.json").read_bytes())
    run["models"][0] |= {"provider": "openai", "model": "alpha-2"}
    (directory / "run.json").write_bytes(orjson.dumps(run))
    lines = (directory / "completions.jsonl").read_bytes().splitlines()
    records = [orjson.loads(line) | {"returned_model": "beta-9"} for line in lines]
    damaged = b'{"model": 3}\n{"model": "alpha", "text": \n'
    (directory / "completions.jsonl").write_bytes(
        damaged + b"".join(orjson.dumps(each) + b"\n" for each in records)
    )
    warning = f"alpha: {len(records)} of {len(records)} answers are from beta-9; requested was alpha-2"
    assert warnings_of_run(directory) == [warning]
    shown = CliRunner().invoke(status, [str(directory)], terminal_width=200).output
    assert f"warning: {warning}" in " ".join(shown.split())
    assert f"{directory}: {warning}" in build_report([directory]).warnings
    (directory / "completions.jsonl").unlink()
    assert warnings_of_run(directory) == []

"""Whole runs against servers that other projects wrote; scripts/real-servers installs each."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from astra_async.asking.throttle.retry import ATTEMPTS
from small_problems import write_problems
from threaded_server import answers_at, free_port
from waiting import awaited
from whole_runs import ASTRA, MODEL, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "real-servers"
INSTALLING_S = 800  # llama.cpp is compiled
IDS = ("p", "q")
LONG_PROMPT = 40_000  # characters


@pytest.fixture
def package(request: pytest.FixtureRequest) -> str:
    """The package that the test's mark names, installed; the test is skipped if that fails."""
    (name,) = request.node.get_closest_marker("installs").args
    done = subprocess.run([SCRIPT, name], capture_output=True, text=True, timeout=INSTALLING_S, check=False)
    if done.returncode != 0:
        pytest.skip(f"{name} cannot be installed: {done.stderr.strip()[-300:]}")
    return str(name)


@dataclass(frozen=True)
class Started:
    """A server that runs at a port of 127.0.0.1 and logs each request."""

    port: int
    log: Path

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def statuses(self) -> list[int]:
        """Return the HTTP statuses of the chat completions so far, from uvicorn's access log."""
        said = self.log.read_text(errors="replace")
        return [int(status) for status in re.findall(r'"POST /v1/chat/completions HTTP/1.1" (\d+)', said)]


@contextmanager
def started(folder: Path, port: int, *command: object, **environ: str) -> Iterator[Started]:
    """Start a server and wait until it accepts connections."""
    log = folder / f"server-{port}.log"
    with log.open("w") as output:
        words = [str(word) for word in command]
        process = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **environ}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        awaited(lambda: answers_at(port), f"an answer of {command[1]}: {log}")
        yield Started(port, log)
    finally:
        process.terminate()
        process.wait()


def a_run(folder: Path, base_url: str, *, samples: int = 2, characters: int = 0, **settings: Any) -> Run:
    folder.mkdir()
    return Run(
        folder=folder,
        problems=write_problems(folder, IDS, "any", characters=characters),
        problem_ids=IDS,
        base_url=base_url,
        samples=samples,
        options=("--generate-only",),
        settings={"spec": "openai-compatible/m", "name": MODEL, "timeout_s": 60.0, **settings},
    )


def completions(run: Run) -> list[dict[str, Any]]:
    return run.lines("completions.jsonl")


def of_all(lines: Sequence[dict[str, Any]], name: str) -> set[Any]:
    return {line[name] for line in lines}


@pytest.mark.long
@pytest.mark.installs("llama-cpp-python")
@pytest.mark.seconds(40)
def test_llama_cpp(package: str, tmp_path: Path) -> None:
    """Random weights answer with any bytes, so that every answer ends at max_tokens."""
    model, port = tmp_path / "tiny.gguf", free_port()
    subprocess.run([SCRIPT, package, ROOT / "tests" / "tiny_gguf.py", model], check=True, capture_output=True)
    server_words = ("-m", "llama_cpp.server", "--model", model, "--port", port, "--n_ctx", 8192)
    at_once = ("--interrupt_requests", False)  # by default each request cuts the answer of the one before it
    with started(tmp_path, port, SCRIPT, package, *server_words, *at_once) as server:
        run = a_run(tmp_path / "short", server.base_url, max_tokens=16)
        run.finish()
        run.check_end(of="completions.jsonl")
        assert of_all(completions(run), "native_finish_reason") == {"length"}
        assert of_all(completions(run), "cost_estimated") == {True}  # its streams report no tokens
        assert server.statuses() == [200] * 4

        # It loses the error of a streamed request that passes its context window, and sends nothing at all.
        run = a_run(tmp_path / "long", server.base_url, max_tokens=16, samples=1, characters=LONG_PROMPT)
        run.finish(code=1)
        run.check_end(missing=2, of="completions.jsonl")
        assert len(server.statuses()) <= 4 + 2 * ATTEMPTS


LITELLM = """
model_list:
  - model_name: m
    litellm_params: &upstream
      model: openai/steady
      api_base: UPSTREAM
      api_key: none
      input_cost_per_token: 1e-6
      output_cost_per_token: 2e-6
  - model_name: budgeted
    litellm_params: {<<: *upstream, max_budget: 1e-6, budget_duration: 1d}
router_settings: {num_retries: 0}
general_settings: {custom_auth: keys.of, custom_auth_run_common_checks: true}
"""
# Keys are in no database here. LiteLLM itself counts their requests, and renders the error of a spent budget.
LITELLM_KEYS = """
from litellm import BudgetExceededError
from litellm.proxy._types import UserAPIKeyAuth

async def of(request, key):
    if key == "sk-spent":
        raise BudgetExceededError(current_cost=1.0, max_budget=0.5)
    return UserAPIKeyAuth(api_key=key, token=key, rpm_limit=3 if key == "sk-slow" else None)
"""
LITELLM_ENVIRON = {
    "LITELLM_MASTER_KEY": f"sk-{'5f0e8c1fd3a24f6c' * 3}",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_RATE_LIMIT_WINDOW_SIZE": "5",  # seconds
}


@pytest.mark.long
@pytest.mark.installs("litellm")
@pytest.mark.seconds(90)
def test_litellm(package: str, tmp_path: Path) -> None:
    upstream_port, port = free_port(), free_port()
    (tmp_path / "keys.py").write_text(LITELLM_KEYS)
    config = tmp_path / "config.yaml"
    config.write_text(LITELLM.replace("UPSTREAM", f"http://127.0.0.1:{upstream_port}/v1"))
    upstream_words = (*ASTRA, "simulate", "--port", upstream_port, "--speed", 0, "--fault-rate", 0)
    litellm_words = (SCRIPT, package, "--config", config, "--host", "127.0.0.1", "--port", port)
    with (
        started(tmp_path, upstream_port, *upstream_words),
        started(tmp_path, port, *litellm_words, **LITELLM_ENVIRON) as server,
    ):
        run = a_run(tmp_path / "slow", server.base_url, samples=4)
        run.environ = {"OPENAI_API_KEY": "sk-slow"}
        run.finish()
        run.check_end(of="completions.jsonl")
        assert {"rate_limited", "paused", "resumed"} <= run.kinds()
        statuses = server.statuses()
        assert statuses.count(200) == 8
        assert set(statuses) == {200, 429}
        for line in completions(run):
            usage = line["usage"]
            assert line["native_finish_reason"] in {"stop", "length"}
            assert line["cost_usd"] == pytest.approx(
                (usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6
            )

        for name, key, model, answered, reason in (
            ("crossed", "sk-rich", "budgeted", 1, "crossed budget"),
            ("spent", "sk-spent", "m", 0, "Budget has been exceeded"),
            ("unknown", "sk-rich", "unknown", 0, "check the model's name"),
        ):
            before = len(server.statuses())
            run = a_run(tmp_path / name, server.base_url, spec=f"openai-compatible/{model}", max_in_flight=1)
            run.environ = {"OPENAI_API_KEY": key}
            assert reason in run.finish(code=3)
            assert len(completions(run)) == answered
            assert "pool_failed" in run.kinds()
            assert server.statuses()[before:].count(200) == answered
            assert len(server.statuses()) == before + answered + 1


AIMOCK = {
    "fixtures": [
        {
            "match": {"model": "m", "sequenceIndex": 0},
            "response": {
                "error": {"message": "Rate limit reached for requests", "code": "rate_limit_exceeded"},
                "status": 429,
                "retryAfter": 1,
            },
        },
        {"match": {}, "response": {"content": "Nothing to do.", "finishReason": "length"}},
    ]
}
NATIVE = {"openai-compatible": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"}


@pytest.mark.long
@pytest.mark.installs("aimock")
@pytest.mark.seconds(20)
def test_aimock(package: str, tmp_path: Path) -> None:
    port = free_port()
    fixtures = tmp_path / "fixtures.json"
    fixtures.write_text(json.dumps(AIMOCK))
    words = (SCRIPT, package, "--port", port, "--fixtures", fixtures, "--validate-on-load")
    with started(tmp_path, port, *words) as server:
        for provider, native in NATIVE.items():
            base_url = server.base_url if provider == "openai-compatible" else server.base_url[:-3]
            run = a_run(tmp_path / provider, base_url, spec=f"{provider}/m")
            run.environ = {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
            run.finish()
            run.check_end(of="completions.jsonl")
            assert of_all(completions(run), "native_finish_reason") == {native}
        statuses = journal(server)
    assert statuses.count(429) == 1
    assert statuses.count(200) == 4 * len(NATIVE)


def journal(server: Started) -> list[int]:
    """Return the HTTP statuses of all requests that aimock has answered."""
    with urlopen(f"http://127.0.0.1:{server.port}/__aimock/journal") as reply:
        return [entry["response"]["status"] for entry in json.load(reply)]

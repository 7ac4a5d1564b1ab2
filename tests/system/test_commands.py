"""Commands as a user types them: exit codes, and one clear line for each mistake."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import command_server

if TYPE_CHECKING:
    from collections.abc import Iterator

BUNDLED = Path(__file__).parents[2] / "astra_async" / "bundled" / "problems"


def astra(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return command_server.astra(*words, cwd=cwd, env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **environ})


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("run", 2, "no run directory: add --out DIR"),
        ("rnu", 2, "no such command: rnu; did you mean `astra run`?"),
        ("worker tls://127.0.0.1:1", 2, "needs certificates: set --tls-ca-file"),
        (
            "doctor --cluster tls://127.0.0.1:1",
            2,
            "needs certificates: set DASK_DISTRIBUTED__COMM",
        ),
        ("run --out x", 2, "no model: add --model"),
        ("run --out x --model foo/bar", 2, "unknown provider 'foo'"),
        ("run --out x --model simulated/steady --problems no.csv", 2, "no.csv: cannot be read"),
        ("run --out x --model simulated/steady --only nope", 2, "--only nope: no such problem"),
        ("run --out x --problems bundled --model openai/gpt-4o --generate-only", 2, "set OPENAI_API_KEY"),
        ("run --out x --model openai-compatible/a --generate-only", 2, "--base-url URL"),
        ("run --out x --model simulated/a --config no.toml", 2, "no.toml: No such file"),
        ("run --out /proc/x --model simulated/steady", 3, "choose another --out"),
        ("run --out x --model openai/gpt-4o", 2, "add --problems CSV, or --problems bundled"),
        ("run --out x --model gpt-4o", 2, "write provider/model, for example openai/gpt-4o"),
        ("run --model simulated/steady --budget-usd -1 --dry-run", 2, "--budget-usd -1: a number above 0"),
        ("run --model openai/a --base-url x --dry-run", 2, "--base-url x: an http:// or https:// URL"),
        ("run --model simulated/steady --samples many --dry-run", 2, "--samples many: a whole number"),
        ("run --model simulated/steady --until decided --dry-run", 2, "name two or more models"),
        ("run --model simulated/steady --until precise --dry-run", 2, "--until precise --target-se 1.5"),
        ("run --model simulated/steady --agent nop --dry-run", 2, "--agent nop is for tasks only"),
        ("run --model simulated/steady --timeout-multiplier 2 --dry-run", 2, "-multiplier is for tasks"),
        ("run --model simulated/steady --keep-artifacts --dry-run", 2, "--keep-artifacts is for tasks only"),
        ("run --model simulated/steady --reward-range 0:2 --dry-run", 2, "--reward-range is for tasks only"),
        ("run --out x --sampels 3", 2, "No such option '--sampels'"),
        ("run --out x --model simulated/nobody", 2, "unknown simulated model; choose one of steady, erratic"),
        ("run --out x --model simulated/steady --column id=qid", 2, "--column needs a problems CSV"),
        ("run --out x --model simulated/steady --projects p", 2, "--projects needs a problems CSV"),
        ("report .", 2, "no run.json"),
        ("show . m p 0", 2, ".: no run.json there"),
        ("regrade .", 2, "is not a run directory"),
        ("problems --problems no.csv", 2, "no.csv: cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    tmp_path: Path, command: str, code: int, said: str
) -> None:
    done = astra(*command.split(), cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.startswith("astra: ")
    assert done.stderr.count("\n") == 1
    assert [path for path in tmp_path.iterdir() if path.name != ".cache"] == []


def test_a_regrade_into_a_place_that_takes_nothing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(
        '{"schema": 1, "run_id": "a", "call": {}, "models": [], "problems": {}, "formats": ["xml"],'
        ' "samples": 1, "seed": null}'
    )
    done = astra("regrade", ".", "--out", "/proc/x/y", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("astra: /proc/x/y: ")
    assert done.stderr.rstrip().endswith("choose another --out")


def test_an_unknown_word_is_a_usage_error(tmp_path: Path) -> None:
    assert astra("frob", cwd=tmp_path).returncode == 2
    assert astra("run", "--samples", "many", cwd=tmp_path).returncode == 2


def test_a_traceback_needs_debug_and_holds_no_key(tmp_path: Path) -> None:
    command = ("run", "--out", "x", "--model", "foo/sk-secret-value")
    plain = astra(*command, cwd=tmp_path, OPENAI_API_KEY="sk-secret-value")
    assert "Traceback" not in plain.stderr
    debug = astra("--debug", *command, cwd=tmp_path, OPENAI_API_KEY="sk-secret-value")
    assert "Traceback" in debug.stderr
    assert "sk-secret-value" not in debug.stderr.partition("astra: ")[0]


def test_every_mistake_of_a_csv_is_listed(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("id,problem_statement,project\n,s,p\nb,s,\n")
    done = astra("problems", "--problems", "my.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "line 2" in done.stderr
    assert "line 3" in done.stderr


def test_problems_are_an_argument_or_an_option(tmp_path: Path) -> None:
    by_argument = astra("problems", "bundled", "--only", "task-api", cwd=tmp_path)
    by_option = astra("problems", "--problems", "bundled", "--only", "task-api", cwd=tmp_path)
    assert by_argument.returncode == 0
    assert by_argument.stdout == by_option.stdout
    both = astra("problems", "bundled", "--problems", "bundled", cwd=tmp_path)
    assert both.returncode == 2
    assert "name the problems once" in both.stderr


def test_a_dry_run_plans_and_writes_nothing(tmp_path: Path) -> None:
    done = astra(
        *("run", "--problems", "bundled", "--model", "openai/gpt-4o", "--only", "product-api"),
        *("--samples", "4", "--dry-run"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "openai/gpt-4o" in done.stdout
    assert "$" in done.stdout
    assert [path for path in tmp_path.iterdir() if path.name != ".cache"] == []


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("--model openai/gpt-4o", 0, "Prompts take 2,"),
        ("--model openai/gpt-4o", 0, "note: openai/gpt-4o needs an API key: set OPENAI_API_KEY"),
        ("--model openai/gpt-4o --budget-usd 0.001", 0, "would stop the run early"),
        ("--model openai/gpt-4o --budget-usd 500", 0, "covers it"),
        ("--model simulated/steady --budget-usd 5", 2, "no price is known for simulated/steady"),
        ("--model openai-compatible/a --base-url http://user:pw@host/v1", 2, "without user and password"),
        ("--model azure/x", 2, "azure/x"),
    ],
)
def test_a_dry_run_refuses_what_a_run_refuses_except_for_a_missing_key(
    tmp_path: Path, command: str, code: int, said: str
) -> None:
    words = ("run", "--problems", "bundled", "--only", "product-api", "--samples", "2", "--dry-run")
    done = astra(*words, *command.split(), cwd=tmp_path, OPENAI_API_KEY="")
    assert done.returncode == code, done.stderr
    assert said in " ".join((done.stdout + done.stderr).split())
    assert [path for path in tmp_path.iterdir() if path.name != ".cache"] == []


def test_the_first_line_names_an_address_of_the_environment(tmp_path: Path) -> None:
    words = ("run", "--problems", "bundled", "--only", "product-api", "--model", "openai/gpt-4o", "--dry-run")
    done = astra(*words, cwd=tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.stderr.startswith("openai/gpt-4o: requests go to http://127.0.0.1:9/v1 (OPENAI_BASE_URL)\n")


def test_a_dry_run_says_which_prompts_a_context_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text('[[models]]\nspec = "simulated/steady"\ncontext_length = 4000\n')
    words = ("run", "--only", "product-api", "--dry-run", "--config", "small.toml")
    done = astra(*words, cwd=tmp_path)
    assert "simulated/steady: 1 of 1 prompts and an answer of 2,000 tokens may not fit" in done.stdout


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    """A user's own CSV with a zip and an alias for every column."""
    source = BUNDLED / "product-api"
    with zipfile.ZipFile(tmp_path / "api.zip", "w") as archive:
        for path in sorted((source / "project").rglob("*")):
            archive.write(path, path.relative_to(source / "project"))
    with (tmp_path / "my.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["Question ID", "Title", "Problem Statement", "Project Zip", "Sub-Skills"])
        writer.writerow(
            ["api", "API", (source / "statement.md").read_text(), "api.zip", "routing;validation"]
        )
    return tmp_path / "my.csv"


def test_problems_shows_how_a_csv_was_read(zipped: Path) -> None:
    done = astra("problems", "--problems", "my.csv", cwd=zipped.parent)
    assert done.returncode == 0, done.stderr
    assert "project = 'Project Zip'" in done.stdout
    assert "routing, validation" in done.stdout
    assert "Average input files" in done.stdout


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A CSV with columns that two fields fit, and problems that nobody should pay for."""
    for name, manifest in (("good", "configuration: {scoring: {command: sh t.sh}}"), ("bad", "a: [b\nc")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hackerrank.yml").write_text(manifest)
    (tmp_path / "my.csv").write_text(
        "id,title,name,statement,project\nfine,,,Do it.,good\nempty,,, ,good\nyaml,,,Do it.,bad\n"
    )
    return tmp_path / "my.csv"


@pytest.mark.parametrize(
    "command",
    ["problems", "run --dry-run --model simulated/steady", "run --out run --generate-only --model x"],
)
def test_nobody_is_asked_for_a_problem_that_cannot_be_read(odd: Path, server: str, command: str) -> None:
    words = command.replace("--model x", f"--model openai-compatible/steady --base-url {server}").split()
    done = astra(
        *words, "--problems", "my.csv", *(["--samples", "2"] if "run" in words else []), cwd=odd.parent
    )
    assert done.returncode == 1
    said = " ".join((done.stdout + done.stderr).split())
    assert "warning: columns 'name', 'title' all match name" in said
    assert "problem empty: the statement is empty; fill it in" in said
    assert "problem yaml: no test command: hackerrank.yml: invalid YAML: line 2" in said
    if "--generate-only" in words:
        lines = (odd.parent / "run" / "completions.jsonl").read_text().splitlines()
        assert len(lines) == 2


@pytest.fixture
def server() -> Iterator[str]:
    """`astra simulate` in a process of its own."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "astra_async",
            "simulate",
            "--port",
            "0",
            "--speed",
            "0",
            "--fault-rate",
            "0.2",
            *("--fault", "rate_limit", "--fault", "server_error", "--fault", "overloaded"),  # before any text
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split(" at ")[1].split()[0]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_answers_of_several_providers_are_recorded_without_docker(zipped: Path, server: str) -> None:
    models = ("openai-compatible/steady", "anthropic/erratic", "gemini/weak", "openai-responses/refuser")
    words = ["run", "--problems", "my.csv", "--out", "run", "--samples", "5", "--generate-only"]
    for model in models:
        words += ["--model", model]
    done = astra(*words, "--base-url", server, cwd=zipped.parent, DOCKER_HOST="unix:///nowhere.sock")
    assert done.returncode == 0, done.stderr
    lines = (zipped.parent / "run" / "completions.jsonl").read_text().splitlines()
    assert len(lines) == len(models) * 5
    assert f"{len(models) * 5} of {len(models) * 5} answers are recorded but not tested" in done.stderr
    planned = astra(*words, "--base-url", server, "--dry-run", cwd=zipped.parent)
    assert f"run already has {len(lines)} of these answers" in planned.stdout
    shown = astra("show", "run", "anthropic/erratic", "api", "3", cwd=zipped.parent)
    assert "--- prompt" in shown.stdout
    assert "--- answer" in shown.stdout


def test_no_engine_is_told_with_the_remedy_before_anything_is_paid(zipped: Path, server: str) -> None:
    words = ("run", "--problems", "my.csv", "--out", "run", "--model", "openai-compatible/steady")
    done = astra(
        *words, "--base-url", server, "--image", "any", cwd=zipped.parent, DOCKER_HOST="unix:///nowhere.sock"
    )
    assert done.returncode == 3
    assert "engine" in done.stderr.lower()
    assert not (zipped.parent / "run").exists()


def test_help_imports_nothing_that_is_slow(tmp_path: Path) -> None:
    code = (
        "import sys, time, contextlib\nfrom astra_async.cli import main\nsys.argv = ['astra', '--help']\n"
        "with contextlib.suppress(SystemExit):\n    main()\n"
        "print(sorted({'pydantic', 'aiohttp', 'numpy', 'rich'} & set(sys.modules)), time.process_time())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "regrade" in done.stdout
    imported, _, seconds = done.stdout.splitlines()[-1].rpartition(" ")
    assert imported == "[]"
    assert float(seconds) < 1


def test_everything_that_is_printed_goes_through_the_console() -> None:
    for path in (BUNDLED.parents[1] / "cli").glob("*.py"):
        printing = re.findall(r"\bclick\.echo\(|(?<![.\w])print\(|sys\.std(?:out|err)", path.read_text())
        assert not printing or path.name == "console.py", path

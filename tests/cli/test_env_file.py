"""API keys from `.env` in the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_async.cli.env_file import read_env_file
from astra_async.errors import UsageError
from command_server import astra
from made_runs import Made, write_run

TEXT = """
# keys
export OPENAI_API_KEY="sk-from-file"
ANTHROPIC_API_KEY = 'quoted'   # comment
HF_TOKEN=plain # comment
EMPTY_KEY=
PATH=/evil
LD_PRELOAD=/evil.so
not a line
"""


def test_only_credentials_that_are_not_set_are_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(TEXT)
    environ = {"HF_TOKEN": "set", "PATH": "/bin"}
    said = read_env_file(environ, tmp_path / ".env")
    assert said.endswith(".env: OPENAI_API_KEY, ANTHROPIC_API_KEY; not NAME=value, ignored: line 9")
    assert environ == {
        "HF_TOKEN": "set",
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk-from-file",
        "ANTHROPIC_API_KEY": "quoted",
    }
    assert "sk-from-file" not in said


def test_no_file_is_no_error_and_an_unreadable_one_is_named(tmp_path: Path) -> None:
    assert read_env_file({}, tmp_path / ".env") == ""
    (tmp_path / ".env").mkdir()
    with pytest.raises(UsageError, match="--no-env-file"):
        read_env_file({}, tmp_path / ".env")


def test_a_run_names_the_keys_first_and_can_ignore_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("OPENAI_API_KEY=sk-from-file\n")
    words = ("run", "--problems", "bundled", "--only", "task-api", "--model", "openai/m", "--dry-run")
    run = astra(*words, env={"OPENAI_API_KEY": ""})
    assert run.stderr.startswith("from .env: OPENAI_API_KEY\n"), run.stderr
    assert "needs an API key" not in run.stderr
    without = astra(*words, "--no-env-file", env={"OPENAI_API_KEY": ""})
    assert ".env" not in without.stderr
    assert "openai/m needs an API key" in without.stderr


def test_label_and_batches_read_the_file_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("OPENAI_API_KEY=sk-from-file\n")
    write_run(tmp_path / "run", Made())
    for words in (("label", "run", "--draw", "2"), ("batches", "run")):
        assert astra(*words, env={"OPENAI_API_KEY": ""}).stderr.startswith("from .env: OPENAI_API_KEY\n")
        assert ".env" not in astra(*words, "--no-env-file", env={"OPENAI_API_KEY": ""}).stderr

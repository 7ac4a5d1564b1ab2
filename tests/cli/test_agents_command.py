"""`astra agents`: what is known without an engine, and what is refused before one is asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from astra_async.agents.installing import KNOWN, Installed
from astra_async.cli.images import _show_installed
from command_server import astra

if TYPE_CHECKING:
    import subprocess

    import pytest


def agents(*words: str) -> subprocess.CompletedProcess[str]:
    """Without an engine."""
    return astra("agents", *words, env={**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:1"})


def test_the_agents_are_listed_where_no_engine_answers() -> None:
    done = agents("list")
    assert done.returncode == 0
    assert "installed agents cannot be listed" in done.stderr
    for name, known in KNOWN.items():
        assert name in done.stdout
        assert known.settings.version in done.stdout


def test_installed_versions_are_listed_with_their_hashes(capsys: pytest.CaptureFixture[str]) -> None:
    version, sha256 = KNOWN["codex"].settings.version, "ab" * 32
    _show_installed([Installed(volume="v", name="codex", version=version, sha256=sha256)], newest=False)
    assert f"{version}, sha256 abababababab" in capsys.readouterr().out


def test_an_agent_that_is_not_known_is_refused_with_those_that_are() -> None:
    done = agents("install", "codex", "nobody")
    assert done.returncode == 2
    assert "nobody: unknown agent; known agents: claude-code, codex" in done.stderr


def test_without_an_engine_nothing_is_installed() -> None:
    done = agents("install", "codex")
    assert done.returncode == 3
    assert "No Docker Engine answers" in done.stderr

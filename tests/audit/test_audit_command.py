"""`astra audit` as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from astra_async.audit.auditor import _alone, recorded_solutions
from astra_async.errors import ConflictError
from astra_async.report.audited import AUDIT_LOG
from obedient_sandbox import RIGHT, Grader

if TYPE_CHECKING:
    from pathlib import Path


def astra(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "ASTRA_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "astra_async", *words]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    ran = astra(tmp_path, "audit", ".")
    assert ran.returncode == 2
    assert "run" in ran.stderr
    assert not (tmp_path / AUDIT_LOG).exists()


def test_the_help_names_what_an_audit_writes(tmp_path: Path) -> None:
    ran = astra(tmp_path, "audit", "--help")
    assert ran.returncode == 0
    assert "audit.jsonl" in ran.stdout
    assert "--fail-on-flag" in ran.stdout


def test_only_chosen_samples_are_audited(tmp_path: Path) -> None:
    Grader(tmp_path).of(RIGHT, RIGHT + "#\n")
    one, two = recorded_solutions(tmp_path, lambda _: True)
    [chosen] = recorded_solutions(tmp_path, lambda key: key.sample == 1)
    assert chosen.key == two.key != one.key
    assert recorded_solutions(tmp_path, lambda key: key.model == "other") == []


def test_two_audits_of_one_run_do_not_work_at_a_time(tmp_path: Path) -> None:
    with _alone(tmp_path), pytest.raises(ConflictError, match="another audit of this run"), _alone(tmp_path):
        pass
    with _alone(tmp_path) as log:
        assert log.path == tmp_path / AUDIT_LOG

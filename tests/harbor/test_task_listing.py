"""`astra problems` lists the tasks of a folder and counts those that are left out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from command_server import astra

TASKS = Path(__file__).parents[1] / "data" / "harbor" / "tasks"


def test_tasks_are_listed_with_image_limits_and_users() -> None:
    done = astra("problems", "--problems", str(TASKS))
    assert done.returncode == 0, done.stderr
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines()]
    rows = {line[0]: line[1:] for line in lines if line}
    assert len(rows) == 13
    assert rows["custom-user"] == ["Dockerfile", "", "", "", "no-network", "worker / root", "", "600 s"]
    assert rows["several-rewards"] == ["Dockerfile", "", "1 GB", "2 GB", "public", "", "", "600 s"]
    assert rows["hello-world"] == ["Dockerfile", "1", "0.5 GB", "", "no-network", "", "120 s", "60 s"]
    assert rows["separate-verifier"][-1] == "600 s, separate"


def test_left_out_tasks_are_counted_and_named(tmp_path: Path) -> None:
    for name in ("plain", "composed", "large"):
        shutil.copytree(TASKS / "fraction", tmp_path / name)
    (tmp_path / "composed" / "environment" / "docker-compose.yaml").write_text("services: {}\n")
    (tmp_path / "large" / "task.toml").write_text("[environment]\ngpus = 8\n")
    done = astra("problems", "--problems", str(tmp_path), "--json", "-")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [task["id"] for task in record["tasks"]] == ["plain"]
    assert record["left_out"] == {"composed": "compose", "large": "gpu"}
    assert record["warnings"] == ["2 of 3 tasks are left out: compose 1, gpu 1"]
    assert "composed: compose" in done.stderr


def test_only_chooses_a_task_and_an_unknown_one_is_refused() -> None:
    done = astra("problems", "--problems", str(TASKS), "--only", "service", "--json", "-")
    (task,) = json.loads(done.stdout)["tasks"]
    assert (task["id"], task["agent"]["timeout_s"], task["verifier"]["timeout_s"]) == ("service", None, 600)
    unknown = astra("problems", "--problems", str(TASKS), "--only", "servce")
    assert unknown.returncode == 2
    assert "service" in unknown.stderr


def test_an_invalid_task_is_named_in_one_line(tmp_path: Path) -> None:
    shutil.copytree(TASKS / "fraction", tmp_path / "odd")
    (tmp_path / "odd" / "task.toml").write_text("[verifier]\ntimeout_sec = 'long'\n")
    alone = astra("problems", "--problems", str(tmp_path / "odd"))
    assert alone.returncode == 2
    assert "odd/task.toml" in alone.stderr
    assert "$.verifier.timeout_sec" in alone.stderr
    shutil.copytree(TASKS / "fraction", tmp_path / "plain")
    beside = astra("problems", "--problems", str(tmp_path))
    assert beside.returncode == 0
    assert "1 of 2 tasks are left out: invalid 1" in beside.stdout
    assert "$.verifier.timeout_sec" in beside.stdout


def test_one_task_with_a_bad_build_context_does_not_end_the_list(tmp_path: Path) -> None:
    """A link inside of the task is allowed."""
    for name in ("plain", "odd"):
        shutil.copytree(TASKS / "fraction", tmp_path / name)
    (tmp_path / "plain" / "environment" / "link").symlink_to("../tests/test.sh")
    (tmp_path / "odd" / "environment" / ".dockerignore").write_text("a\n" * 501)
    done = astra("problems", "--problems", str(tmp_path), "--json", "-")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [task["id"] for task in record["tasks"]] == ["plain"]
    assert "more than 500 patterns" in record["left_out"]["odd"]
    assert record["warnings"] == ["1 of 2 tasks are left out: invalid 1"]


def test_variables_that_are_not_set_are_listed(tmp_path: Path) -> None:
    tables = {"one": "verifier", "two": "solution", "three": "verifier.environment"}
    for name, table in tables.items():
        shutil.copytree(TASKS / "fraction", tmp_path / name)
        (tmp_path / name / "task.toml").write_text(f'[{table}]\nenv = {{ A = "${{UNSET_A}}" }}\n')
    done = astra("problems", "--problems", str(tmp_path), "--json", "-")
    assert done.returncode == 0, done.stderr
    (warning,) = json.loads(done.stdout)["warnings"]
    text = "`env` in task.toml needs variables that are not set: export UNSET_A=..."
    assert warning == f"one, three, two: {text}"
    run = ("--model", "simulated/steady", "--agent", "nop", "--samples", "1", "--out", str(tmp_path / "run"))
    started = astra("run", "--problems", str(tmp_path), "--allow-network", *run)
    assert f"warning: no samples of one, three, two: {text}" in started.stderr

"""Datasets of a registry are fetched from their git repositories, pinned and resumable."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from astra_async.errors import ProblemsError, SourceError, UsageError
from astra_async.harbor.registry import LOCK_NAME, dataset_in, fetch_dataset
from astra_async.harbor.task import read_tasks
from command_server import astra

TASKS = Path(__file__).parents[1] / "data" / "harbor" / "tasks"
NAMES = ("fraction", "hello-world", "service")


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *author, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with three tasks, in two commits."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    for name in NAMES:
        shutil.copytree(TASKS / name, folder / "datasets" / "small" / name)
    (folder / "README.md").write_text("Not a task.\n")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "tasks")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "config", "uploadpack.allowFilter", "true")
    return folder


def registry(repository: Path, **changes: Any) -> bytes:
    commit = git(repository, "rev-parse", "HEAD")
    tasks = [
        {
            "name": name,
            "git_url": f"file://{repository}",
            "git_commit_id": commit,
            "path": f"datasets/small/{name}",
        }
        | changes
        for name in NAMES
    ]
    return json.dumps([{"name": "small", "version": "2.0", "description": "", "tasks": tasks}]).encode()


def test_a_dataset_is_fetched_at_its_commit_and_not_twice(repository: Path, tmp_path: Path) -> None:
    dataset = dataset_in(registry(repository), "small@2.0")
    (repository / "datasets" / "small" / "service" / "instruction.md").write_text("Later.\n")
    git(repository, "commit", "--quiet", "-am", "later")
    said: list[str] = []
    lock = fetch_dataset(dataset, tmp_path / "out", said.append)
    assert sorted(lock.tasks) == list(NAMES)
    assert [task.id for task in read_tasks(tmp_path / "out").tasks] == list(NAMES)
    assert "Later" not in (tmp_path / "out" / "service" / "instruction.md").read_text()
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == sorted([*NAMES, LOCK_NAME])
    shutil.rmtree(repository)
    assert fetch_dataset(dataset, tmp_path / "out", said.append) == lock
    assert len(said) == 1


def test_a_damaged_task_is_fetched_again(repository: Path, tmp_path: Path) -> None:
    dataset, out = dataset_in(registry(repository), "small"), tmp_path / "out"
    lock = fetch_dataset(dataset, out, lambda _: None)
    (out / "fraction" / "tests" / "test.sh").write_text("echo 1\n")
    said: list[str] = []
    assert fetch_dataset(dataset, out, said.append) == lock
    assert said[0].startswith("fetching 1 task from")
    assert (out / "fraction" / "tests" / "test.sh").read_bytes() == (
        TASKS / "fraction" / "tests" / "test.sh"
    ).read_bytes()


def test_hooks_and_filters_of_a_repository_run_nothing(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitattributes").write_text("* filter=lfs\n")
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "-m", "attributes")
    fetch_dataset(dataset_in(registry(repository), "small"), tmp_path / "out", lambda _: None)
    assert len(read_tasks(tmp_path / "out").tasks) == len(NAMES)


def test_a_link_in_a_repository_is_refused(repository: Path, tmp_path: Path) -> None:
    (repository / "datasets" / "small" / "service" / "passwd").symlink_to("/etc/passwd")
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "-m", "link")
    with pytest.raises(ProblemsError, match="only contain regular files"):
        fetch_dataset(dataset_in(registry(repository), "small"), tmp_path / "out", lambda _: None)


@pytest.mark.parametrize(
    ("wanted", "changes", "message"),
    [
        ("large", {}, "no dataset 'large'; it has small"),
        ("small@1", {}, "no version '1' of small; it has 2.0"),
        ("small", {"path": "../x"}, "unsafe path"),
        ("small", {"name": "../x"}, "unsafe path"),
        ("small", {"git_url": "ext::sh -c id"}, "neither https:// nor file://"),
        ("small", {"git_url": "--upload-pack=id"}, "neither https:// nor file://"),
        ("small", {"git_commit_id": "--output=x"}, "not a full commit hash"),
        ("small", {"git_url": 7}, "not a list of datasets"),
    ],
)
def test_what_is_wrong_with_a_registry_is_said(
    repository: Path, wanted: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        dataset_in(registry(repository, **changes), wanted)


def test_the_highest_version_is_taken_unless_there_is_a_head() -> None:
    def of(*versions: str) -> bytes:
        return json.dumps([{"name": "a", "version": version, "tasks": []} for version in versions]).encode()

    assert dataset_in(of("2.0", "10.1", "9"), "a").version == "10.1"
    assert dataset_in(of("2.0", "head"), "a").version == "head"


def test_a_missing_commit_or_path_is_said(repository: Path, tmp_path: Path) -> None:
    for changes, message in (
        ({"git_commit_id": "0" * 40}, "git fetch failed"),
        ({"path": "datasets/none"}, "no task in datasets/none"),
    ):
        with pytest.raises(SourceError, match=message):
            fetch_dataset(
                dataset_in(registry(repository, **changes), "small"), tmp_path / "out", lambda _: None
            )


def test_the_command_says_what_came_and_what_is_next(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "registry.json"
    file.write_bytes(registry(repository))
    out = tmp_path / "tasks"
    done = astra("fetch", "harbor:small@2.0", "--registry", str(file), "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert f"small 2.0: 3 tasks, pinned in {out / LOCK_NAME}" in done.stdout
    assert f"next: astra problems --problems {out}" in done.stdout
    absent = astra("fetch", "harbor:small", "--registry", str(tmp_path / "none.json"))
    assert absent.returncode == 1
    assert "name a registry file with --registry" in absent.stderr

"""Fetch a dataset of Harbor tasks: from a registry file and the git repositories that it names.

    DIR/TASK/               the tasks
    DIR/harbor.lock.json    dataset, version, and for each task its repository, commit, path and hash

A registry is a JSON list of datasets ({name, version, tasks}), whose tasks are {name, git_url,
git_commit_id, path}. The git client fetches one commit of each repository without history, hooks, submodules
or LFS files. A task that the lock names with its hash is complete and not fetched again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.request import urlopen

import msgspec

from astra_async.errors import SourceError, UsageError
from astra_async.files import write_atomically
from astra_async.harbor.task import TASK_FILE, read_task
from astra_async.harbor.task_files import files_of
from astra_async.listing import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REGISTRY = "https://raw.githubusercontent.com/laude-institute/harbor/main/registry.json"
LOCK_NAME = "harbor.lock.json"
_REGISTRY_BYTES = 64 * 1024**2
_GIT_S, _HTTP_S = 1800.0, 60.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_URL = re.compile(r"(?:https|file)://\S+")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,199}")
_VERSION = re.compile(r"\d+")
# Nothing of a repository or of its attributes runs a program.
_SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "-c", "protocol.https.allow=always"),
    *("-c", "protocol.file.allow=always", "-c", "filter.lfs.smudge=", "-c", "filter.lfs.process="),
    *("-c", "filter.lfs.required=false", "-c", "submodule.recurse=false"),
)


class TaskSource(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a registry."""

    git_url: str
    path: str
    name: str = ""
    git_commit_id: str | None = None

    @property
    def id(self) -> str:
        """Name of the task's folder."""
        return self.name or PurePosixPath(self.path).name


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset in a registry."""

    name: str
    version: str
    tasks: list[TaskSource]


class LockedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A fetched task: its repository, commit and path, and a hash of its files."""

    git_url: str
    git_commit_id: str
    path: str
    sha256: str


class TaskLock(msgspec.Struct, frozen=True, kw_only=True):
    """`harbor.lock.json`."""

    dataset: str
    version: str
    tasks: dict[str, LockedTask] = {}


def read_registry(place: str) -> bytes:
    """Read a registry from a file or an https address. Raises SourceError."""
    try:
        if place.startswith("https://"):
            with urlopen(place, timeout=_HTTP_S) as reply:  # noqa: S310 - https
                return bytes(reply.read(_REGISTRY_BYTES))
        with Path(place).open("rb") as stream:
            return stream.read(_REGISTRY_BYTES)
    except OSError as error:
        raise SourceError(f"{place}: {error}; name a registry file with --registry") from error


def dataset_in(registry: bytes, wanted: str) -> Dataset:
    """Return the dataset NAME or NAME@VERSION of a registry; without a version `head`, else the highest.

    Raises UsageError if the registry is invalid or has no such dataset.
    """
    try:
        datasets = msgspec.json.decode(registry, type=list[Dataset])
    except msgspec.DecodeError as error:
        raise UsageError(f"the registry is not a list of datasets: {error}") from error
    name, _, version = wanted.partition("@")
    found = {each.version: each for each in datasets if each.name == name}
    if not found:
        names = ", ".join(sorted({each.name for each in datasets})[:20])
        raise UsageError(f"the registry has no dataset {name!r}; it has {names}")
    if version and version not in found:
        raise UsageError(f"the registry has no version {version!r} of {name}; it has {', '.join(found)}")
    chosen = version or ("head" if "head" in found else max(found, key=_order))
    for task in found[chosen].tasks:
        _check(task)
    return found[chosen]


def fetch_dataset(dataset: Dataset, folder: Path, say: Callable[[str], None]) -> TaskLock:
    """Fetch all tasks of a dataset into a folder. The lock is rewritten after each repository.

    Raises SourceError if a repository cannot be fetched, ProblemsError if a task is invalid.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = _read_lock(folder / LOCK_NAME, dataset)
    waiting: dict[tuple[str, str], list[TaskSource]] = defaultdict(list)
    for task in dataset.tasks:
        if not _is_there(folder / task.id, lock.tasks.get(task.id), task):
            waiting[task.git_url, task.git_commit_id or "HEAD"].append(task)
    for (url, commit), tasks in waiting.items():
        say(f"fetching {counted(len(tasks), 'task')} from {url} at {commit[:12]}")
        with TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            fetched = _checkout(url, commit, [task.path for task in tasks], Path(scratch))
            for task in tasks:
                locked = _take(Path(scratch), task, folder, fetched)
                lock = TaskLock(
                    dataset=lock.dataset, version=lock.version, tasks={**lock.tasks, task.id: locked}
                )
        write_atomically(folder / LOCK_NAME, msgspec.json.format(msgspec.json.encode(lock), indent=2))
    return lock


def _order(version: str) -> list[int]:
    return [int(number) for number in _VERSION.findall(version)]


def _check(task: TaskSource) -> None:
    parts = PurePosixPath(task.path).parts
    if not _NAME.fullmatch(task.id) or task.path.startswith("/") or ".." in parts:
        raise UsageError(f"the registry names an unsafe path: {task.path!r}")
    if not _URL.fullmatch(task.git_url):
        raise UsageError(f"the registry names {task.git_url!r}, which is neither https:// nor file://")
    if task.git_commit_id not in {None, "HEAD"} and not _COMMIT.fullmatch(task.git_commit_id or ""):
        raise UsageError(f"the registry names {task.git_commit_id!r}, which is not a full commit hash")


def _read_lock(path: Path, dataset: Dataset) -> TaskLock:
    try:
        lock = msgspec.json.decode(path.read_bytes(), type=TaskLock)
    except FileNotFoundError:
        return TaskLock(dataset=dataset.name, version=dataset.version)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is damaged ({error}); remove it to fetch again") from error
    if (lock.dataset, lock.version) != (dataset.name, dataset.version):
        raise UsageError(f"{path.parent} holds {lock.dataset}@{lock.version}; choose another --out")
    return lock


def _is_there(folder: Path, locked: LockedTask | None, task: TaskSource) -> bool:
    if locked is None or not (folder / TASK_FILE).is_file():
        return False
    same = (locked.git_url, locked.path) == (task.git_url, task.path)
    return same and read_task(folder).sha256 == locked.sha256


def _checkout(url: str, commit: str, paths: Iterable[str], folder: Path) -> str:
    """Check out some paths of one commit; return the commit's hash."""
    _git(folder, "init", "--quiet", "--template=")
    _git(folder, "sparse-checkout", "set", "--no-cone", *(f"/{path}/" for path in paths))
    _git(folder, "fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", url, commit)
    _git(folder, "config", "remote.origin.url", url)
    _git(folder, "config", "remote.origin.promisor", "true")
    _git(folder, "checkout", "--quiet", "FETCH_HEAD")
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        done = subprocess.run(
            ["git", *_SAFE, *arguments],  # noqa: S607 - the user's git
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise SourceError(
            "git is not installed; install it, for example with: apt-get install git"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"git {arguments[0]} took longer than {_GIT_S:.0f} s") from error
    if done.returncode:
        said = " ".join(done.stderr.split())[-500:]
        raise SourceError(f"git {arguments[0]} failed: {said}")
    return done.stdout


def _take(checkout: Path, task: TaskSource, folder: Path, commit: str) -> LockedTask:
    """Copy one task out of a checkout."""
    source = checkout / task.path
    if not (source / TASK_FILE).is_file():
        raise SourceError(f"{task.git_url} has no task in {task.path} at {commit[:12]}")
    made, target = checkout / ".git" / "taken" / task.id, folder / task.id
    for path in files_of(source):
        copy = made / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    sha256 = read_task(made).sha256
    if target.exists():
        shutil.rmtree(target)
    made.rename(target)
    return LockedTask(git_url=task.git_url, git_commit_id=commit, path=task.path, sha256=sha256)

"""Harbor tasks: a folder with `task.toml`, parsed and checked.

`task.toml` is parsed by its declaration below, with the field names and defaults of Harbor's format (schema
1.4 and older). Unknown keys are ignored; in tables that are used they become a warning. A task folder is
untrusted: only regular files inside of it are read, up to limits of number and size, and a symbolic link to
anything else is an error.

A task that needs a missing feature (compose files, GPUs, Windows ...) is left out by name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from astra_async.errors import ProblemsError
from astra_async.harbor.task_files import TEXT_BYTES, bytes_of, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TASK_FILE, INSTRUCTION = "task.toml", "instruction.md"
_OLD_FILE = "task.yaml"
_CANARY = re.compile(r"(?:<!--.*canary.*-->|#.*canary.*)", re.IGNORECASE)
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([GMK])\s*", re.IGNORECASE)
_MEGABYTES = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,199}")
_CONVERTED_OR_UNUSED = ("allow_internet", "memory", "storage", "gpu_types")
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")

NetworkMode = Literal["public", "no-network", "allowlist"]
_Image = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][\w./:@-]{0,500}$")]
# Without `..`, as in Harbor: the path becomes a name in an archive.
_Path = Annotated[str, msgspec.Meta(pattern=r"^(?!(?:.*/)?\.\.(?:/|$))[^\x00\n]+$")]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=10**7)]  # TOML also has nan and inf
_Count = Annotated[float, msgspec.Meta(gt=0, le=10**4)]
_Megabytes = Annotated[int, msgspec.Meta(gt=0, le=10**8)]


class Healthcheck(msgspec.Struct, frozen=True, kw_only=True):
    """`[environment.healthcheck]`, with the meaning of Docker's HEALTHCHECK; times in seconds."""

    command: str
    interval_sec: _Seconds = 5.0
    timeout_sec: _Seconds = 30.0
    start_period_sec: Annotated[float, msgspec.Meta(ge=0, le=10**7)] = 0.0
    start_interval_sec: _Seconds = 5.0
    retries: Annotated[int, msgspec.Meta(ge=1, le=10**4)] = 3


class EnvironmentTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[environment]` or `[verifier.environment]`."""

    build_timeout_sec: _Seconds = 600.0
    docker_image: _Image | None = None
    os: str = "linux"
    workdir: _Path | None = None
    cpus: _Count | None = None
    memory_mb: _Megabytes | None = None
    storage_mb: _Megabytes | None = None
    gpus: int | None = None
    tpu: Any = None
    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None
    env: dict[str, str] = {}
    mcp_servers: list[Any] = []
    skills_dir: str | None = None
    healthcheck: Healthcheck | None = None


class AgentTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[agent]`."""

    timeout_sec: _Seconds | None = None
    user: str | int | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None


class CollectTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[[verifier.collect]]`: a command that runs after the agent and before artifacts are copied."""

    command: str
    service: str = "main"
    timeout_sec: _Seconds = 60.0
    user: str | int | None = None


class VerifierTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[verifier]`."""

    timeout_sec: _Seconds = 600.0
    env: dict[str, str] = {}
    user: str | int | None = None
    network_mode: NetworkMode | None = None
    allowed_hosts: list[str] | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentTable | None = None
    collect: list[CollectTable] = []


class ArtifactPath(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `artifacts`: a path that a separate verifier finds as the agent left it.

    Harbor's `destination`, a path on the host, is ignored.
    """

    source: _Path
    exclude: list[str] = []
    service: str | None = None


class SolutionTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[solution]`."""

    env: dict[str, str] = {}


class TaskConfig(msgspec.Struct, frozen=True, kw_only=True):
    """task.toml."""

    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    environment: EnvironmentTable = EnvironmentTable()
    solution: SolutionTable = SolutionTable()
    artifacts: list[_Path | ArtifactPath] = []
    steps: list[Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """One task.

    `id` is the folder's name, `sha256` a hash of all files in the folder, `instruction` the text for the
    agent without leading canary lines. `has_dockerfile` is True if `environment/Dockerfile` exists.
    `warnings` name what is ignored.
    """

    id: str
    folder: Path
    sha256: str
    instruction: str
    config: TaskConfig
    has_dockerfile: bool
    has_solution: bool
    warnings: tuple[str, ...] = ()

    @property
    def is_separate(self) -> bool:
        """True if the verifier runs in its own container."""
        verifier = self.config.verifier
        return verifier.environment_mode == "separate" or verifier.environment is not None

    @property
    def verifier_environment(self) -> EnvironmentTable:
        """Environment in which the verifier runs."""
        return self.config.verifier.environment or self.config.environment

    @property
    def has_verifier_image(self) -> bool:
        """True if a separate verifier has its own image: `docker_image` or `tests/Dockerfile`."""
        own = self.config.verifier.environment
        is_named = own is not None and own.docker_image is not None
        return is_named or (self.is_separate and (self.folder / "tests" / "Dockerfile").is_file())

    @property
    def agent_network(self) -> NetworkMode:
        """Network policy while the agent works."""
        return self.config.agent.network_mode or self.config.environment.network_mode or "public"

    @property
    def verifier_network(self) -> NetworkMode:
        """Network policy while the verifier runs."""
        return self.config.verifier.network_mode or self.verifier_environment.network_mode or "public"

    @property
    def artifacts(self) -> tuple[ArtifactPath, ...]:
        """Artifacts of the task, all in their long form."""
        return tuple(
            ArtifactPath(source=each) if isinstance(each, str) else each for each in self.config.artifacts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """The tasks of a folder. `left_out` maps the folder's name of a task that cannot run to the reason."""

    tasks: tuple[HarborTask, ...]
    left_out: Mapping[str, str]

    @property
    def summary(self) -> str:
        """One line on the tasks that are left out, with the number of each reason; "" without such tasks."""
        if not self.left_out:
            return ""
        counts = Counter(reason.partition(":")[0] for reason in self.left_out.values()).most_common()
        named = ", ".join(f"{reason} {count}" for reason, count in counts)
        total = len(self.tasks) + len(self.left_out)
        return f"{len(self.left_out):,} of {total:,} tasks are left out: {named}"


def is_task_folder(path: Path) -> bool:
    """Return True for a task, and for a folder with tasks; also for tasks in Terminal-Bench's old format."""
    names = (TASK_FILE, _OLD_FILE)
    return any((path / name).exists() or any(path.glob(f"*/{name}")) for name in names)


def read_tasks(path: Path) -> TaskSet:
    """Read a task, or all tasks of a folder, in the order of their names.

    An invalid task of a folder is left out with its error. Raises ProblemsError for a single invalid task,
    and for a folder without tasks.
    """
    if (path / TASK_FILE).exists():
        task = read_task(path)
        reason = unsupported(task)
        return TaskSet(tasks=() if reason else (task,), left_out={task.id: reason} if reason else {})
    tasks, left_out = [], {}
    for folder in _task_folders(path):
        try:
            task = read_task(folder)
        except ProblemsError as error:
            left_out[folder.name] = f"invalid: {error}"
            continue
        if reason := unsupported(task):
            left_out[task.id] = reason
        else:
            tasks.append(task)
    return TaskSet(tasks=tuple(tasks), left_out=left_out)


def read_task(folder: Path) -> HarborTask:
    """Read one task. Raises ProblemsError if its folder or its task.toml is invalid."""
    folder = folder.resolve()
    if not _ID.fullmatch(folder.name):
        raise ProblemsError(f"{folder}: a task's folder needs a name of letters, digits, '.', '_' and '-'")
    content = bytes_of(folder / TASK_FILE)
    config = parse_config(content, str(folder / TASK_FILE))
    unknown = list(_unknown_keys(tomllib.loads(content.decode()), msgspec.to_builtins(config)))
    sha256 = hash_of(folder)
    instruction = "" if config.steps else bytes_of(folder / INSTRUCTION).decode("utf-8", "replace")
    task = HarborTask(
        id=folder.name,
        folder=folder,
        sha256=sha256,
        instruction=without_canary(instruction),
        config=config,
        has_dockerfile=(folder / "environment" / "Dockerfile").is_file(),
        has_solution=(folder / "solution" / "solve.sh").is_file(),
        warnings=(f"unknown keys in {TASK_FILE} are ignored: {', '.join(unknown)}",) if unknown else (),
    )
    has_test = task.has_verifier_image or (folder / "tests" / "test.sh").is_file()
    if not config.steps and not has_test and config.environment.os == "linux":
        raise ProblemsError(f"{folder}: tests/test.sh is missing")
    if not config.steps and not task.instruction.strip():
        raise ProblemsError(f"{folder / INSTRUCTION}: the instruction is empty")
    return task


def unsupported(task: HarborTask) -> str:
    """Return the feature of a task that this program does not have; "" if the task can run."""
    config, environments = task.config, (task.config.environment, task.verifier_environment)
    folders = ("environment", "tests") if task.is_separate else ("environment",)
    has_compose = any((task.folder / folder / name).exists() for folder in folders for name in _COMPOSE)
    rules = (
        ("compose", has_compose or any(each.service != "main" for each in config.verifier.collect)),
        ("steps", bool(config.steps)),
        ("gpu", any(each.gpus for each in environments)),
        ("tpu", any(each.tpu for each in environments)),
        ("windows", any(each.os != "linux" for each in environments)),
        ("mcp", any(each.mcp_servers for each in environments)),
        ("skills", any(each.skills_dir for each in environments)),
        ("allowlist", "allowlist" in (task.agent_network, task.verifier_network)),
        ("no image", config.environment.docker_image is None and not task.has_dockerfile),
    )
    return next((name for name, applies in rules if applies), "")


def parse_config(content: bytes, name: str) -> TaskConfig:
    """Parse task.toml; old keys are converted.

    Raises ProblemsError with `name`, the key and the expected type.
    """
    if len(content) > TEXT_BYTES:
        raise ProblemsError(f"{name}: larger than {TEXT_BYTES:,} bytes")
    try:
        raw = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProblemsError(f"{name}: invalid TOML: {error}") from error
    for parent in (raw, raw.get("verifier")):
        if isinstance(parent, dict) and isinstance(table := parent.get("environment"), dict):
            _convert_old_keys(table, name)
    try:
        config = msgspec.convert(raw, TaskConfig)
    except msgspec.ValidationError as error:
        raise ProblemsError(f"{name}: {error}") from error
    if config.verifier.environment_mode == "shared" and config.verifier.environment is not None:
        raise ProblemsError(f"{name}: [verifier.environment] needs environment_mode = 'separate'")
    return config


def _unknown_keys(given: Mapping[str, Any], used: Mapping[str, Any], table: str = "") -> Iterator[str]:
    """Yield keys of tables that the declaration does not have. Other tables are not searched."""
    for key, value in given.items():
        name = f"{table}{key}"
        if key in used and isinstance(value, dict) and isinstance(used[key], dict):
            if key != "env":
                yield from _unknown_keys(value, used[key], f"{name}.")
        elif table and key not in used and key not in _CONVERTED_OR_UNUSED:
            yield name


def without_canary(instruction: str) -> str:
    """Return an instruction without the canary comments at its beginning and the blank lines after them."""
    lines = instruction.split("\n")
    at = next((n for n, line in enumerate(lines) if not _CANARY.fullmatch(line.strip())), len(lines))
    at = next((n for n in range(at, len(lines)) if lines[n].strip()), len(lines))
    return "\n".join(lines[at:])


def _convert_old_keys(table: dict[str, Any], name: str) -> None:
    """Convert `allow_internet`, `memory = "2G"` and `storage` to the current keys."""
    internet = table.pop("allow_internet", None)
    if isinstance(internet, bool):
        table.setdefault("network_mode", "public" if internet else "no-network")
    if isinstance(table.get("os"), str):
        table["os"] = table["os"].lower()
    for old, new in (("memory", "memory_mb"), ("storage", "storage_mb")):
        value = table.pop(old, None)
        if value is None:
            continue
        found = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if not found:
            raise ProblemsError(f"{name}: {old} = {value!r} is not a size such as '2G' or '512M'")
        table.setdefault(new, int(float(found[1]) * _MEGABYTES[found[2].upper()]))


def _task_folders(path: Path) -> list[Path]:
    folders = sorted(each.parent for each in path.glob(f"*/{TASK_FILE}"))
    if not folders:
        old = " (task.yaml is the old format of Terminal-Bench: convert it with: harbor tasks migrate)"
        has_old = any(path.glob(f"*/{_OLD_FILE}")) or (path / _OLD_FILE).is_file()
        raise ProblemsError(f"{path}: no folder with {TASK_FILE}{old if has_old else ''}")
    return folders

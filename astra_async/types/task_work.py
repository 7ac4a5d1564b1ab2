"""Values of a task: everything that its samples need, from its folder and the options of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.types.agents import AgentSettings
from astra_async.types.sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Build = Callable[..., Awaitable[None]]

MEMORY_BYTES = 2 * 1024**3  # default memory
DISK_BYTES = 10 * 1024**3
_PROCESSES = 4096
_OUTPUT_BYTES = 64 * 1024

# Agents of tasks that call no model: one runs the task's own solution, one does nothing.
ORACLE = AgentSettings(name="oracle", version="1", command="/solution/solve.sh")
NOP = AgentSettings(name="nop", version="1", command="true")
WITHOUT_MODEL: Mapping[str, AgentSettings] = {ORACLE.name: ORACLE, NOP.name: NOP}

File = tuple[bytes, int]  # content and mode


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """Options for all tasks of a run.

    `allow_root` and `allow_network` are the consent to root's rights and to the network in containers.
    `minutes` replaces every task's own time limit of the agent; `times` multiplies the tasks' own limits.
    Rewards from `low` to `high` become scores from 0 to 1.
    """

    allow_root: bool = False
    allow_network: bool = False
    minutes: float | None = None
    times: float = 1.0
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProfile:
    """One container: its image and what it may use.

    An empty `user` or `workdir` is the image's. `rights`: the engine's default capabilities. `network`: the
    container can be connected to the engine's bridge; `connected`: it is from the beginning.
    """

    image: str = ""
    user: str = ""
    workdir: str = ""
    memory_bytes: int = MEMORY_BYTES
    cpus: float | None = None
    disk_bytes: int = DISK_BYTES
    environment: Mapping[str, str] = field(default_factory=dict)
    rights: bool = False
    network: bool = False
    connected: bool = False

    @property
    def limits(self) -> Limits:
        """The bounds of a command in it, its time apart."""
        return Limits(
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
            processes=_PROCESSES,
            output_bytes=_OUTPUT_BYTES,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A health check: `command` succeeds within `tries`, `interval_s` apart."""

    command: str
    tries: int = 3
    interval_s: float = 5.0
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """An absolute path that a separate verifier finds, and the patterns of names that are left out."""

    source: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """A command that runs in the agent's container after the agent and before artifacts are copied."""

    command: str
    user: str = ""
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWork:
    """Everything that the samples of one task need.

    `images` maps each image to the function `build(engine, progress=...)` that makes it; None if it is
    pulled. The agent's image is the first. `agent` and `verifier` describe containers; if `verifier` is None,
    the verifier runs in the agent's container. Times are wall-clock seconds. If `agent_s` is None, the run's
    limit applies. Paths of `tests` and `solution` are absolute, those of `started_with` are relative to the
    working folder. `sha256` is of the task's folder.
    """

    sha256: str
    agent: TaskProfile
    images: Mapping[str, Build | None] = field(default_factory=dict)
    verifier: TaskProfile | None = None
    agent_s: float | None = None
    verifier_user: str = ""
    verifier_s: float = 600.0
    verifier_variables: Mapping[str, str] = field(default_factory=dict)
    verifier_connected: bool = False
    tests: Mapping[str, File] = field(default_factory=dict)
    solution: Mapping[str, File] = field(default_factory=dict)
    solution_variables: Mapping[str, str] = field(default_factory=dict)
    started_with: Mapping[str, File] = field(default_factory=dict)
    collecting: tuple[Collecting, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    health: Health | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)

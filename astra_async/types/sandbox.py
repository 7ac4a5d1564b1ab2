"""Containers: what one may use and has to do, what happened in it, and the Protocol that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Protocol

from annotated_types import Gt

from astra_async.types.declarations import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

Size = Annotated[int, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one container may use (`[sandbox]` in TOML)."""

    timeout_s: Annotated[float, Gt(0), Setting("Longest time of a problem's tests, in seconds.")] = 300.0
    memory_bytes: Annotated[Size, Setting("Memory, and no swap.")] = 4 * 1024**3
    processes: Annotated[Size, Setting("Processes and threads at once.")] = 512
    tmp_bytes: Annotated[
        Size, Setting("Size of /tmp, and of each other folder that an image leaves to the tests.")
    ] = 256 * 1024**2
    file_bytes: Annotated[Size, Setting("Largest file.")] = 1024**3
    disk_bytes: Annotated[Size, Setting("All that is written to the project; it counts as memory.")] = (
        2 * 1024**3
    )
    output_bytes: Annotated[Size, Setting("Kept of the output: half from its head, half from its tail.")] = (
        1024**2
    )
    report_bytes: Annotated[Size, Setting("Largest test report that is read.")] = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One container's work. `archive` is a tar of the whole project, relative to its root.

    The sandbox rewrites owners to the run's user. `result_files` are paths or globs relative to the
    project; they are deleted before the command runs and read when nothing of it runs any more. `deleted` are
    paths that the image may hold and the project shall not.
    """

    image: str
    archive: bytes
    command: str
    result_files: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What happened in a healthy container.

    `output` is head and tail of standard output and error as they came, with a line that says how
    many bytes were left out between them; `stdout` the same of standard output alone (for TAP).
    `failed_limit` names a limit other than time and memory that was hit (`disk`), else None. `disk_watched`:
    somewhere the tests could write more than the kernel bounds, and only its size was watched.
    `node` is the machine of a cluster, empty without one; `strained` whether its tasks had to wait for a core
    meanwhile, None where that is judged on this machine.
    """

    exit_code: int | None
    timed_out: bool = False
    out_of_memory: bool = False
    failed_limit: str | None = None
    disk_watched: bool = False
    duration_s: float
    output: str = ""
    stdout: str = ""
    output_bytes: int = 0
    reports: Mapping[str, bytes] = field(default_factory=dict)
    report_problems: tuple[str, ...] = ()
    image_id: str = ""
    node: str = ""
    strained: bool | None = None


class Sandbox(Protocol):
    """Runs one job in a fresh container, or raises SandboxError; nothing of it remains afterwards."""

    async def image_id(self, image: str) -> str:
        """The content id (sha256:...) of an image; raises ImageError when it is not there."""
        ...

    def expect(self, image: str, limits: Limits) -> None:
        """An answer for this image is under way: a container may be made ahead. Never blocks."""

    async def run(self, job: Job) -> Execution:
        """Run the job's command; waits for a free slot first."""
        ...


class RunSandbox(Sandbox, Protocol):
    """The sandbox of a whole run: what shows it, stops it and closes it needs to know this much.

    `slots` containers at once, and `on_slots` hears when that changes; `running` counts jobs.
    `alone` gives one of several machines with nothing else of the run on it; None where there is but one.
    """

    alone: Callable[[], AbstractAsyncContextManager[Sandbox]] | None
    on_slots: Callable[[int], None]

    @property
    def slots(self) -> int:
        """Containers at once, now."""
        ...

    @property
    def running(self) -> int:
        """Jobs that have a slot."""
        ...

    @property
    def ahead(self) -> int:
        """Containers that are made and wait for a job, on a cluster those that nodes were told to make."""
        ...

    def stop_waiting(self) -> None:
        """From now on an engine, or a cluster, that is away is not waited for: the run is being stopped."""

    async def close(self) -> None:
        """Remove every container that was made for the run, wherever it is."""

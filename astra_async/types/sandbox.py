"""Containers: limits, jobs, results, and the Protocol that runs a job."""

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
    """Limits of one container (`[sandbox]` in TOML)."""

    timeout_s: Annotated[float, Gt(0), Setting("Maximum time of a problem's tests, in seconds.")] = 300.0
    memory_bytes: Annotated[Size, Setting("Maximum memory in bytes, without swap.")] = 4 * 1024**3
    processes: Annotated[Size, Setting("Maximum number of processes and threads at once.")] = 512
    tmp_bytes: Annotated[
        Size, Setting("Maximum size of /tmp, and of each other writable folder of the image, in bytes.")
    ] = 256 * 1024**2
    file_bytes: Annotated[Size, Setting("Maximum size of a file in bytes.")] = 1024**3
    disk_bytes: Annotated[Size, Setting("Maximum bytes written to the project; they count as memory.")] = (
        2 * 1024**3
    )
    output_bytes: Annotated[
        Size, Setting("Bytes of the output to keep: half from its head, half from its tail.")
    ] = 1024**2
    report_bytes: Annotated[Size, Setting("Maximum size of a test report in bytes.")] = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work of one container.

    Attributes:
        archive: tar of the whole project, relative to its root; the sandbox sets the owners.
        result_files: paths or globs relative to the project. They are deleted before the command runs, and
            read after all its processes have ended.
        deleted: paths to remove from the project's folder of the image.
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
    """Result of a job in a healthy container.

    Attributes:
        output: head and tail of standard output and error in original order; a line between them has the
            number of omitted bytes.
        stdout: head and tail of standard output alone (for TAP).
        failed_limit: reached limit other than time and memory (`disk`), else None.
        disk_watched: True if the kernel could not limit some writable folder, so only its size was watched.
        node: machine of a cluster; empty without a cluster.
        strained: True if tasks on the node had to wait for a core; None if this machine decides.
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
    """Runner of jobs in fresh containers; each container is removed afterwards. Raises SandboxError."""

    async def image_id(self, image: str) -> str:
        """Return the content id (sha256:...) of an image. Raises ImageError: the image does not exist."""
        ...

    def expect(self, image: str, limits: Limits) -> None:
        """Announce a job for this image, so that a container can be created ahead. Never blocks."""

    async def run(self, job: Job) -> Execution:
        """Wait for a free slot, then run the job's command."""
        ...


class RunSandbox(Sandbox, Protocol):
    """Sandbox of a whole run, with its state and its end.

    `on_slots` is called with the number of slots when it may have changed.
    """

    on_slots: Callable[[int], None]

    @property
    def alone(self) -> Callable[[], AbstractAsyncContextManager[Sandbox]] | None:
        """Return the opener of a sandbox on one of several machines without other jobs of the run.

        None if there is only one machine.
        """
        ...

    @property
    def slots(self) -> int:
        """Return the current maximum number of containers at once."""
        ...

    @property
    def running(self) -> int:
        """Return the number of jobs with a slot."""
        ...

    @property
    def ahead(self) -> int:
        """Return the number of containers created ahead, or on a cluster requested from nodes."""
        ...

    def stop_waiting(self) -> None:
        """Stop waiting for an unavailable engine or cluster, because the run is being stopped."""

    async def close(self) -> None:
        """Remove all containers of the run on all machines."""

"""The hardened configuration of every container in which code of a model runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.testing.sandbox.keeper import HELD, entry_point
from astra_async.testing.sandbox.resultfiles import PROJECT
from astra_async.testing.sandbox.seccomp import profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.testing.sandbox.fitness import Fitness
    from astra_async.types import Limits

HOST_NAME = "sandbox"  # the same in every run: some reporters write it into their files
FALLBACK_HOME = "/tmp/home"  # noqa: S108 - a private tmpfs of the container
_PAGE_BYTES = 4096
_LEAST_FILES = 1024
_SHARED_MEMORY_BYTES = 256 * 1024**2  # Chromium crashes with Docker's default of 64 MiB

# Watch modes off, time and order the same everywhere, and nothing that asks or calls home.
ENVIRONMENT: Mapping[str, str] = {
    "CI": "true",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "NG_CLI_ANALYTICS": "false",
    "npm_config_offline": "true",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
}


def hardened(
    image_id: str,
    limits: Limits,
    *,
    fitness: Fitness,
    seccomp: bool,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """The body of the create request, for any command: the container idles (see `keeper`), tests are an exec.

    Wherever the tests may write, a tmpfs of a certain size and number of files takes what they write, as far
    as the image lets one be put there (see `looking`), or a layer upon what the image keeps (see
    `bounded_layers`). No read-only root: the engine refuses uploads then,
    and `/etc/hosts` is one. No AutoRemove: it loses the exit status. No log driver: endless output would fill
    the disk.
    """
    home_variable = [f"HOME={fitness.home}"] if fitness.home else []
    body = confined(image_id, entry_point(limits.timeout_s), limits, keeper=fitness.keeper, labels=labels)
    body |= {
        "Hostname": HOST_NAME,
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()] + home_variable,
        "WorkingDir": PROJECT,
        "Tty": False,
    }
    small, large = tmpfs(limits.tmp_bytes, fitness), tmpfs(limits.disk_bytes, fitness)
    body["HostConfig"]["SecurityOpt"] += [f"seccomp={profile()}"] if seccomp else []
    body["HostConfig"] |= {
        "IpcMode": "private",
        "ShmSize": _SHARED_MEMORY_BYTES,
        "Tmpfs": {
            "/tmp": f"exec,{tmpfs(limits.tmp_bytes)},mode=1777",  # noqa: S108 - a private tmpfs of the container
            **dict.fromkeys(fitness.empty, f"exec,{small}"),
        },
        "Mounts": [volume(path, "tmpfs", large) for path in fitness.contents],
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.file_bytes, "Hard": limits.file_bytes},
        ],
    }
    return body


def confined(
    image_id: str, first_process: list[str], limits: Limits, *, keeper: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """A create request's body for a container without network and rights, whose first process we hold."""
    return {
        "Image": image_id,
        "Entrypoint": first_process,
        "Cmd": [],
        "User": keeper,
        "Labels": dict(labels),
        "NetworkDisabled": True,
        **HELD,
        # Process 1 ignores SIGTERM: whoever stops the container, or the engine, must not wait 10 s in vain.
        "StopSignal": "SIGKILL",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "LogConfig": {"Type": "none", "Config": {}},
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "PidsLimit": limits.processes,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
        },
    }


def tmpfs(size: int, fitness: Fitness | None = None) -> str:
    """Options of a tmpfs: as many files as it has pages; with `fitness`, owned by the tests' user."""
    options = f"nosuid,nodev,size={size},nr_inodes={max(size // _PAGE_BYTES, _LEAST_FILES)}"
    return options if fitness is None else f"{options},mode=755,uid={fitness.uid},gid={fitness.gid}"


def volume(path: str, kind: str, options: str) -> dict[str, Any]:
    """A file system that the engine mounts: its archive requests reach it. It goes with the container."""
    driver = {"Name": "local", "Options": {"type": kind, "device": kind, "o": options}}
    return {
        "Type": "volume",
        "Target": path,
        "VolumeOptions": {"NoCopy": True, "DriverConfig": driver},
    }

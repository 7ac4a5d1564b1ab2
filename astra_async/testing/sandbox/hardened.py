"""The hardened configuration of every container in which code of a model runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.testing.sandbox.script import SCRIPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Limits

PROJECT = "/projects/challenge"
HOST_NAME = "sandbox"  # the same in every run: some reporters write it into their files
FALLBACK_HOME = "/tmp/home"  # noqa: S108 - a private tmpfs of the container
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
    image_id: str, limits: Limits, *, user: str, home: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The body of the create request, for any command: orders come over standard input (see `script`).

    No read-only root: the engine refuses uploads then, and test runners write caches. No AutoRemove:
    it loses the exit status. No log driver: an endless output would fill the host's disk.
    """
    home_variable = [f"HOME={home}"] if home else []
    return {
        "Image": image_id,
        "Entrypoint": ["bash", "-c", SCRIPT],
        "Cmd": [],
        "Hostname": HOST_NAME,
        "User": user,
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()] + home_variable,
        "WorkingDir": PROJECT,
        "Labels": dict(labels),
        "NetworkDisabled": True,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        # Process 1 ignores SIGTERM: whoever stops the container, or the engine, must not wait 10 s in vain.
        "StopSignal": "SIGKILL",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": _host_config(limits),
    }


def _host_config(limits: Limits) -> dict[str, Any]:
    return {
        "NetworkMode": "none",
        "IpcMode": "private",
        "ShmSize": _SHARED_MEMORY_BYTES,
        "LogConfig": {"Type": "none", "Config": {}},
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "PidsLimit": limits.processes,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "Tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,size={limits.tmp_bytes},mode=1777"},  # noqa: S108
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.file_bytes, "Hard": limits.file_bytes},
        ],
    }

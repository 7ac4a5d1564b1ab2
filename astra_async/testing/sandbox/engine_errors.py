"""Translate exceptions of Docker, aiohttp and the operating system into SandboxError."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from astra_async.errors import ContainerLost, EngineUnavailable, ImageError, SandboxError
from astra_async.redaction import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class PathUnreachable(SandboxError):  # noqa: N818 - names what was seen
    """Files made by the code under test prevent the engine from following a path; the message says why."""


class HostTrouble(SandboxError):  # noqa: N818 - names what was seen
    """The engine's host lacks a resource, such as disk space; a container cannot cause this error."""


_NO_CONNECTION = 900  # aiodocker's own status for "the socket does not answer"
_NOT_FOUND = 404
_SHOWN_CHARACTERS = 400
_BEGINNINGS = ("prepare the command", "start the command")  # no command has run in the container yet
# Messages for images without the program that starts the container.
_PROGRAMS = {
    "bash": "The image has no bash on its PATH, which runs every test command",
    "perl": (
        "The base image has no perl, which agents need to reach their model; set ASTRA_BASE_IMAGE to an image"
        " with perl, such as Debian's"
    ),
}
_SHORTAGES = ("no space left on device", "disk quota exceeded")
_PATH_ERRORS = ("not a directory", "too many levels of symbolic links", "file name too long")


@asynccontextmanager
async def engine_call(action: str, *, timeout_s: float | None, running: bool = False) -> AsyncIterator[None]:
    """Limit the block to `timeout_s` seconds, and translate foreign exceptions into SandboxError.

    `action` completes the sentence "Docker Engine could not ...". `running` is True if a container is in use,
    so that a lost connection means a lost container.
    """
    import aiohttp
    from aiodocker.exceptions import DockerError

    try:
        async with asyncio.timeout(timeout_s):
            yield
    # aiodocker raises AssertionError for a stream whose connection is closed.
    except (DockerError, aiohttp.ClientError, OSError, EOFError, ValueError, AssertionError) as error:
        raise translate(error, action, running=running) from error


def translate(error: Exception, action: str, *, running: bool = False) -> SandboxError:
    """Return the SandboxError for `error`; see `engine_call` for the arguments."""
    from aiodocker.exceptions import DockerError

    if isinstance(error, TimeoutError):
        return SandboxError(f"Docker Engine took too long to {action}; is its host overloaded?")
    if isinstance(error, DockerError) and error.status != _NO_CONNECTION:
        return _refusal(error.status, both_ends(error.message), action)
    if isinstance(error, ValueError):
        return SandboxError(
            f"Docker Engine gave an invalid response to the request to {action}: {both_ends(error)}"
        )
    if running:
        return ContainerLost(f"Connection to Docker Engine lost during: {action}: {both_ends(error)}")
    if "permission denied" in str(error).lower():
        return EngineUnavailable(
            f"This user may not speak to Docker Engine ({both_ends(error)}); "
            "run as root, or add the user to the group docker"
        )
    remedy = "start one (scripts/engine does), or point DOCKER_HOST at it"
    if os.environ.get("DOCKER_HOST"):
        remedy = "start the one that DOCKER_HOST names, or correct DOCKER_HOST"
    return EngineUnavailable(f"No Docker Engine answers ({both_ends(error)}); {remedy}")


def both_ends(text: object) -> str:
    """Return the beginning and the end of a foreign text, for use in a message."""
    return one_line(text, length=_SHOWN_CHARACTERS, ends=True)


def path_error(message: str) -> str | None:
    """Return the problem with a path in a container, or None for any other engine error.

    Only the beginning and end of the message are examined, because the code under test chose the names
    between them.
    """
    if "too many links in /" in message.partition("/")[0] + "/":
        return "too many links"
    return next((text for text in _PATH_ERRORS if message.endswith(f": {text}")), None)


def _refusal(status: int, message: str, action: str) -> SandboxError:
    lowered = message.lower()
    if lowered.endswith(_SHORTAGES):
        return HostTrouble(
            f"The Docker host's disk is full: could not {action} ({message}); "
            "free space, e.g. with `docker system df` and `docker image prune`"
        )
    if "no such image" in lowered:
        return ImageError(f"Image not found: {message}; build it (`astra images build`) or pull it")
    for program, remedy in _PROGRAMS.items():
        if f'"{program}"' in lowered and "not found" in lowered:
            return ImageError(f"{remedy}: {message}")
    if status == _NOT_FOUND and "no such container" in lowered:
        return ContainerLost(f"The container vanished before Docker Engine could {action}")
    if "is not running" in lowered and action in _BEGINNINGS:
        return ContainerLost(f"The container ended before Docker Engine could {action}")
    return SandboxError(f"Docker Engine could not {action}: {message} (status {status})")

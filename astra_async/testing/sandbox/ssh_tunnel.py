"""SSH tunnel to an engine on another machine: `DOCKER_HOST=ssh://[user@]host[:port][/path/of/docker.sock]`.

The system's ssh client forwards a local socket to the engine's socket. The client uses the user's keys,
agent, known hosts and `~/.ssh/config`. A forwarded connection does not count towards the server's limit of
ten sessions; the docker command (`docker system dial-stdio`) needs one session for each connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from astra_async.errors import EngineUnavailable
from astra_async.testing.sandbox.engine_errors import both_ends

_REMOTE = "/var/run/docker.sock"
_CONNECTED_S = 30.0
_LOOK_S = 0.05
_SHOWN_BYTES = 4096
_OPTIONS = (
    *("-o", "BatchMode=yes"),  # fail instead of asking for a password
    *("-o", "ExitOnForwardFailure=yes"),
    *("-o", "ServerAliveInterval=15"),
    *("-o", "ControlPath=none"),
)


class SshTunnel:
    """Local socket forwarded to an engine's socket; opened on first use and again after a failure."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        try:
            port = url.port
        except ValueError as error:
            raise EngineUnavailable(f"DOCKER_HOST={address} is no address of a Docker Engine") from error
        if not url.hostname or url.hostname.startswith("-") or url.password:
            raise EngineUnavailable(
                f"DOCKER_HOST=ssh://{url.hostname or ''} must name a host and no password; use ssh keys"
            )
        self._host = url.hostname
        self._target = f"{url.username}@{url.hostname}" if url.username else url.hostname
        self._port = ("-p", str(port)) if port else ()
        self._remote = url.path if url.path.strip("/") else _REMOTE
        self._folder = Path(tempfile.mkdtemp(prefix="astra-"))
        self.socket = self._folder / "docker.sock"
        self._ssh: asyncio.subprocess.Process | None = None
        self._opening = asyncio.Lock()

    async def ensure(self) -> None:
        """Open the tunnel unless it is open.

        Raises:
            EngineUnavailable: there is no ssh client, or it cannot reach the host; with ssh's message.
        """
        async with self._opening:
            if self._ssh is None or self._ssh.returncode is not None:
                self.socket.unlink(missing_ok=True)
                await self._open()

    async def close(self) -> None:
        """Terminate the ssh client."""
        if self._ssh is not None and self._ssh.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._ssh.terminate()
            await self._ssh.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _open(self) -> None:
        forward = f"{self.socket}:{self._remote}"
        log = self._folder / "ssh.log"
        try:
            with log.open("wb") as output:
                self._ssh = await asyncio.create_subprocess_exec(
                    *("ssh", "-N", "-T", *_OPTIONS, *self._port, "-L", forward, "--", self._target),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=output,
                    start_new_session=True,  # Ctrl-C must not end ssh before containers are removed
                )
        except FileNotFoundError as error:
            raise EngineUnavailable(
                f"No ssh client is installed, which is needed to reach the engine of {self._host}"
            ) from error
        last_look = time.monotonic() + _CONNECTED_S
        while not self.socket.is_socket():
            if self._ssh.returncode is not None or time.monotonic() > last_look:
                words = both_ends(log.read_bytes()[-_SHOWN_BYTES:].decode(errors="replace"))
                raise EngineUnavailable(
                    f"ssh does not reach the engine of {self._host} ({words or 'no answer'}); "
                    f"try `ssh {self._target} docker version`"
                )
            await asyncio.sleep(_LOOK_S)

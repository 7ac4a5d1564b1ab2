"""Fast start of `astra` commands in tests: a server process imports the modules once.

A process of its own imports the package once and forks for each command, with its words, folder and
environment. Only the start is spared; all that a command does, it does as ever. Tests of the start itself and
of kills start `python -m astra_async`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from astra_async.cli import main
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOADED = (
    *("cli.run", "cli.dryrun", "cli.status", "cli.batches", "cli.label", "cli.images", "cli.problems"),
    *("running.opening", "running.until", "simulate.server", "asking.providers", "problems.fetch.download"),
    *("testing.sandbox.docker_sandbox", "asking.batches.interfaces"),
    *("cli.report", "cli.viewer", "report.tables", "report.write", "export.loaded", "export.parquet"),
)
_FDS = 3
_MOST_BYTES = 2**20
_turn = threading.Lock()


def astra(
    *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; `env` is its whole environment."""
    request = {"words": words, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
    with ExitStack() as stack, _turn:
        streams = [stack.enter_context(os.fdopen(os.memfd_create("stream"), "w+")) for _ in range(_FDS)]
        streams[0].write(typed)
        streams[0].seek(0)
        code = _asked(request, [stream.fileno() for stream in streams])
        for stream in streams[1:]:
            stream.seek(0)
        return subprocess.CompletedProcess(words, code, *(stream.read() for stream in streams[1:]))


def _asked(request: Mapping[str, object], fds: list[int]) -> int:
    _, server = _server()
    socket.send_fds(server, [json.dumps(request).encode()], fds)
    pid = int(server.recv(64))
    server.settimeout(PATIENCE_S)
    try:
        return int(server.recv(64))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        server.settimeout(None)
        server.recv(64)
        raise AssertionError(f"astra {request['words']} did not end in {PATIENCE_S} s") from None


@cache
def _server() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the server of this process and return the connection; the server ends with the connection."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = subprocess.Popen([sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()])
    its.close()
    return server, ours


def _serve(connection: socket.socket) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in `main`, before any thread starts
    for name in _LOADED:
        importlib.import_module(f"astra_async.{name}")
    gc.freeze()
    while True:
        request, fds, _, _ = socket.recv_fds(connection, _MOST_BYTES, _FDS)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become(json.loads(request), fds)
        for fd in fds:
            os.close(fd)
        connection.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: dict[str, Any], fds: list[int]) -> NoReturn:
    """Run the command in this process and exit."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["astra", *request["words"]]
    main()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))

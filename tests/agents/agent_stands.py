"""Small honest stand-ins for the gateway and for one sample's calls, to run agents against."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from astra_async.problems.prepare import Prepared, prepare
from astra_async.types import ModelSettings, Problem, Project, ProjectFile, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from astra_async.errors import AstraError
    from astra_async.types import Solution
    from astra_async.types.agents import AgentEnd, AgentWire

MODEL = ModelSettings(name="m", spec="openai/m-1", provider="openai", model="m-1")


class Calls:
    """Counts what the gateway below answers; `model_s` as the real one has it."""

    def __init__(self, token: str = "astra-secret-token") -> None:
        self.token = token
        self.settings = MODEL
        self.ended = asyncio.Event()
        self.asked = asyncio.Event()  # once
        self.end: AgentEnd | None = None
        self.trouble: AstraError | None = None
        self.steps = self.replayed = 0
        self.usage = Usage(input_tokens=0, output_tokens=0)
        self.cost_usd: float | None = 0.25
        self.cost_estimated = self.translated = False
        self.repeated_usd = 0.0
        self.removed: dict[str, None] = {}
        self._asked_s = 0.0
        self._since: float | None = None

    @property
    def model_s(self) -> float:
        return self._asked_s + (time.monotonic() - self._since if self._since else 0.0)

    def begin(self) -> None:
        self._since = time.monotonic()

    def finish(self) -> None:
        assert self._since
        self._asked_s += time.monotonic() - self._since
        self._since = None
        self.steps += 1
        self.asked.set()


class Gateway:
    """One HTTP server on a unix socket: answers POSTs that bear a token that is admitted, after `think_s`."""

    def __init__(self, folder: Path, *, think_s: float = 0.0) -> None:
        self.socket = folder / "gateway.sock"
        self.think_s = think_s
        self.admitted: dict[str, Calls] = {}
        self.asked: list[str] = []

    async def start(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._serve, self.socket)

    @contextmanager
    def admit(self, calls: Any, speaks: AgentWire, model_name: str) -> Iterator[None]:
        assert (speaks, model_name) == ("chat", "m-1")
        self.admitted[calls.token] = calls
        try:
            yield
        finally:
            del self.admitted[calls.token]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            token = head.partition("Bearer ")[2].partition("\r\n")[0]
            calls = self.admitted[token]
            self.asked.append(head.splitlines()[0])
            calls.begin()
            await asyncio.sleep(self.think_s)
            calls.finish()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class OneProject:
    """A store that has one project."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = tuple(ProjectFile(path=path, content=files[path]) for path in sorted(files))

    async def load(self, location: str) -> Project:
        return Project(files=self._files, sha256="0" * 64)

    async def load_reference(self, location: str) -> Solution:
        raise AssertionError(location)


async def problem(image: str, files: dict[str, bytes], *, hidden: tuple[str, ...] = ()) -> Prepared:
    """A problem made ready as the program does it."""
    row = Problem(
        id="p", statement="Do it.", project="p", image=image, test_command="true", hidden_paths=hidden
    )
    return await prepare(row, OneProject(files), ["xml"])

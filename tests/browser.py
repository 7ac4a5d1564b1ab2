"""A headless Chromium on one page, driven through the DevTools protocol over a WebSocket."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
_START_S = 30


class Tab:
    """One tab; `complaints` are console messages and exceptions, `requests` the addresses asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._calls = 0
        self._loaded = False

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        number = self._calls
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    async def open(self, url: str) -> None:
        """Load a page to its load event."""
        self._loaded = False
        await self.call("Page.navigate", url=url)
        while not self._loaded:
            await self._next()

    async def run(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait, frame by frame, until an expression of the page is true."""
        assert await self.run(
            "new Promise((done) => { const end = Date.now() + 10000; const look = () =>"
            f" ({condition}) ? done(true) : Date.now() > end ? done(false) : requestAnimationFrame(look);"
            " look(); })"
        ), condition

    async def screenshot(self, path: Path, *, width: int, height: int) -> None:
        """What a window of that size shows."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        answer = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    async def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._socket.receive_json(timeout=_START_S)
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(str(message["params"]))
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        return message


@asynccontextmanager
async def open_tab(profile: Path) -> AsyncIterator[Tab]:
    """Start the browser with an empty profile; it ends with the block."""
    assert PROGRAM is not None
    command = [PROGRAM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    try:
        address = await asyncio.wait_for(_address(process), _START_S)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/json") as response:
                tabs = await response.json()
            url = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            async with session.ws_connect(url, max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await tab.call(f"{domain}.enable")
                yield tab
    finally:
        process.terminate()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if found := re.search(rb"ws://([^/]+)/", line):
            return found[1].decode()
    raise AssertionError("the browser ended before it listened")

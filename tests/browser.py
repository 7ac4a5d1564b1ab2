"""A headless Chromium on one page, driven through the DevTools protocol over a WebSocket."""

from __future__ import annotations

import asyncio
import atexit
import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, _PROGRAMS)), None)
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
)
_START_S = 120
_UNTIL_S = 60
# What Chromium says of all that is under way when a container of this machine gets its network interface.
_CHANGED = "net::ERR_NETWORK_CHANGED"


class Tab:
    """One tab; `complaints` are console messages and exceptions, `requests` the requested addresses."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._socket = socket
        self._calls = 0
        self._loaded = False
        self._lost = False  # the page itself was: a browser with a window loads it again by itself

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
        """Load a page and wait for its load event."""
        self._loaded = False
        while (await self.call("Page.navigate", url=url)).get("errorText") == _CHANGED:
            pass
        while not self._loaded:
            await self._next()

    async def run(self, script: str) -> Any:
        """Return the value of an expression; a promise is awaited."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression of the page is true, also where the page loads itself once more.

        One that fails is not true yet.
        """
        end = time.monotonic() + _UNTIL_S
        is_true = f"(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()"
        while not await self.run(is_true):
            assert time.monotonic() < end, f"{condition}: {await self.run('document.body?.innerText')}"
            await asyncio.sleep(0.02)
            if self._lost:
                self._lost = False
                await self.call("Page.reload")

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
                if _CHANGED not in (complaint := str(message["params"])):
                    self.complaints.append(complaint)
            case "Network.loadingFailed":
                failed = message["params"]
                self._lost |= (failed["type"], failed["errorText"]) == ("Document", _CHANGED)
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        return message


@asynccontextmanager
async def open_tab() -> AsyncIterator[Tab]:
    """Open a tab with a new profile in the browser of this process; close both after the block."""
    host, whole = await asyncio.to_thread(_browser)
    async with aiohttp.ClientSession() as session, session.ws_connect(f"ws://{host}{whole}") as control:
        browser = Tab(control)
        own = {"browserContextId": (await browser.call("Target.createBrowserContext"))["browserContextId"]}
        target = (await browser.call("Target.createTarget", url="about:blank", **own))["targetId"]
        try:
            async with session.ws_connect(f"ws://{host}/devtools/page/{target}", max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await tab.call(f"{domain}.enable")
                yield tab
        finally:
            await browser.call("Target.disposeBrowserContext", **own)


@cache
def _browser() -> tuple[str, str]:
    """Start the browser, which ends with this process; return its host and the browser's path."""
    assert PROGRAM is not None
    profile = Path(tempfile.mkdtemp(prefix="astra-browser-"))
    process = subprocess.Popen(
        [PROGRAM, *_FLAGS, f"--user-data-dir={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the program may be a shell script that waits for the browser
    )

    def end() -> None:
        os.killpg(process.pid, signal.SIGKILL)  # its further output is not needed
        process.wait()
        shutil.rmtree(profile, ignore_errors=True)

    atexit.register(end)
    listens = profile / "DevToolsActivePort"  # contains port and path when the browser listens
    for _ in range(_START_S * 20):
        if listens.exists() and len(lines := listens.read_text().splitlines()) > 1:
            return f"127.0.0.1:{lines[0]}", lines[1]
        assert process.poll() is None, "the browser ended before it listened"
        time.sleep(0.05)
    raise AssertionError("the browser does not listen")

"""Installed agents with a provider that spoils their second request: the end, the score, and what was sent.

Needs `astra agents install claude-code codex`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from aiohttp import ClientSession, web
from test_kill_and_resume import lines

from astra_async.agents.gateway.gateway_server import INTERFACES
from astra_async.agents.installing import KNOWN, installed_as
from astra_async.simulate.server import SimulatedServer
from astra_async.types import Completion, ToolCall, Usage
from astra_async.types.simulation import SimulationSettings
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_PASSED_ON = {"authorization", "x-api-key", "content-type", "anthropic-version", "x-astra-sample"}
pytestmark = [pytest.mark.docker, pytest.mark.timeout(300), pytest.mark.seconds(8)]

MODELS = {"claude-code": "anthropic/steady", "codex": "openai-responses/steady"}
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef", "OPENAI_API_KEY": "sk-test-0123456789abcdef"}
TOO_LONG = {
    "messages": "prompt is too long: 213462 tokens > 200000 maximum",
    "responses": "Your input exceeds the context window of this model.",
}
OVERLOADED = {"messages": "overloaded_error", "responses": "server_is_overloaded"}
# Status, code, message and headers of an error response.
ERRORS: dict[str, tuple[int, str, str, dict[str, str]]] = {
    "429 with Retry-After": (429, "rate_limit_exceeded", "Rate limited", {"Retry-After": "1"}),
    "429 without Retry-After": (429, "rate_limit_exceeded", "Rate limited", {}),
    "529": (529, "overloaded_error", "Overloaded", {}),
    "context": (400, "context_length_exceeded", "", {}),
    "400": (400, "invalid_request_error", "messages.1: this field is not allowed", {}),
}
_USAGE = Usage(input_tokens=50, output_tokens=5)
_EMPTY = Completion(text="", finish_reason="stop", usage=_USAGE, returned_model="m")
_BAD_CALLS = {
    "messages": ToolCall(id="toolu_bad", name="Bash", arguments='{"command": "ls'),
    "responses": ToolCall(id="call_bad", name="exec_command", arguments='{"cmd": "ls'),
}
# Complete answers by fault and interface; the faults of streams begin with an empty one.
ANSWERS = {
    (fault, speaks): answer
    for speaks, call in _BAD_CALLS.items()
    for fault, answer in {
        "529 twice in the stream": _EMPTY,
        "cut": _EMPTY,
        "empty": _EMPTY,
        "refusal": replace(_EMPTY, text="No.", finish_reason="refusal"),
        "bad JSON": replace(_EMPTY, calls=(call,)),
    }.items()
}
HIDDEN = ("429 with Retry-After", "429 without Retry-After", "529", "529 twice in the stream", "cut")
# How claude-code and codex end if they see the fault, as in their users' terminals.
ENDS = {
    "context": ("done", "context"),
    "400": ("done", "crashed"),
    "refusal": ("done", "done"),
    "empty": ("done", "done"),
    "bad JSON": ("done", "done"),
}


class Spoiling:
    """Proxy of a simulated provider. `asked` has all requests, `spoiled` counts the spoiled ones."""

    def __init__(self, fault: str, target: str, session: ClientSession) -> None:
        self.asked: list[bytes] = []
        self.spoiled = 0
        self._fault, self._target, self._session = fault, target, session
        self._first, self._times = 1, {"": 0, "529 twice in the stream": 2}.get(fault, 1)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        number = len(self.asked)
        self.asked.append(body)
        if self._first <= number < self._first + self._times:
            self.spoiled += 1
            return await self._spoil(request, orjson.loads(body), body)
        return await _streamed(request, await self._fetched(request, body))

    async def _fetched(self, request: web.Request, body: bytes) -> bytes:
        kept = {name: value for name, value in request.headers.items() if name.lower() in _PASSED_ON}
        async with self._session.post(self._target + request.path_qs, data=body, headers=kept) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.read()

    async def _spoil(self, request: web.Request, asked: dict[str, Any], body: bytes) -> web.StreamResponse:
        speaks = "messages" if "messages" in asked else "responses"
        interface = INTERFACES[speaks]  # type: ignore[index]  # one of both
        if self._fault in ERRORS:
            status, code, message, headers = ERRORS[self._fault]
            error = interface.error(message or TOO_LONG[speaks])
            error["error"] |= {"code": code} if speaks == "responses" else {"type": code}
            if self._fault == "context":
                error["error"]["type"] = "invalid_request_error"
            return web.json_response(error, status=status, headers=headers)
        stream = interface.stream(interface.whole(ANSWERS[self._fault, speaks], "m", "x", 1), asked)
        if self._fault == "529 twice in the stream":
            error = interface.error("Overloaded")
            error["error"]["type"] = error["error"]["code"] = OVERLOADED[speaks]
            event = error if speaks == "messages" else {"type": "error", **error["error"]}
            return await _streamed(request, stream.partition(b"\n\n")[0] + b"\n\n" + interface.encoded(event))
        if self._fault == "cut":
            stream = await self._fetched(request, body)
            return await _streamed(request, stream[: len(stream) // 2], is_cut=True)
        return await _streamed(request, stream)


async def _streamed(request: web.Request, content: bytes, *, is_cut: bool = False) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(content)
    if is_cut and request.transport:
        request.transport.abort()
    else:
        await response.write_eof()
    return response


@asynccontextmanager
async def spoiling(fault: str) -> AsyncIterator[tuple[Spoiling, str]]:
    """A proxy that runs, and its base URL."""
    simulated = await SimulatedServer.start(settings=SimulationSettings(speed=0, faults=False))
    target, _, path = simulated.base_url.removeprefix("http://").partition("/")
    application = web.Application(client_max_size=1024**3)
    async with ClientSession() as session:
        proxy = Spoiling(fault, f"http://{target}", session)
        application.router.add_post("/{path:.*}", proxy.answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield proxy, f"http://127.0.0.1:{runner.addresses[0][1]}/{path}".rstrip("/")
        await runner.cleanup()
    await simulated.stop()


async def ran(agent: str, fault: str, folder: Path) -> tuple[dict[str, Any], Spoiling, int]:
    """Run one sample. Return its final line, the proxy, and the number of answered calls on record."""
    async with spoiling(fault) as (proxy, url):
        model = f'[[models]]\nname = "m"\nspec = "{MODELS[agent]}"\nbase_url = "{url}"\n'
        (folder / "astra.toml").write_text(model)
        command = (
            *(sys.executable, "-m", "astra_async", "run", "--config", str(folder / "astra.toml")),
            *("--problems", "bundled", "--only", "task-api", "--agent", agent, "--samples", "1"),
            *("--agent-steps", "40", "--seed", "1", "--out", str(folder / "run")),
        )
        output = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, stdout=output, stderr=output, env={**os.environ, **KEYS}
        )
        async with asyncio.timeout(2 * PATIENCE_S):
            assert await process.wait() == 0
    (line,) = lines(folder / "run" / "results.jsonl")
    calls = [call for call in lines(folder / "run" / "calls.jsonl") if not call.get("failed")]
    return line, proxy, len(calls)


@pytest.fixture(autouse=True)
def _installed(agent: str) -> None:
    """Skip unless the agent is installed."""
    names = ["docker", "volume", "ls", "--quiet"]
    volumes = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()
    here = {(each.name, each.version) for each in map(installed_as, volumes) if each}
    if (agent, KNOWN[agent].settings.version) not in here:
        pytest.skip(f"needs: astra agents install {agent}")


@pytest.mark.parametrize("fault", HIDDEN)
@pytest.mark.parametrize("agent", MODELS)
async def test_a_hidden_fault_changes_nothing_for_the_agent(agent: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    expected, plain, _ = await ran(agent, "", tmp_path / "plain")
    line, proxy, answered = await ran(agent, fault, tmp_path)
    assert line["agent"]["end"] == "done"
    assert (line["passed"], line["total"]) == (expected["passed"], expected["total"])
    assert answered == len(plain.asked) == len(proxy.asked) - proxy.spoiled, "a request was paid twice"


@pytest.mark.parametrize("fault", ENDS)
@pytest.mark.parametrize("agent", MODELS)
async def test_a_fault_that_an_agent_sees_ends_it_or_costs_one_request(
    agent: str, fault: str, tmp_path: Path
) -> None:
    line, proxy, answered = await ran(agent, fault, tmp_path)
    assert line["agent"]["end"] == ENDS[fault][list(MODELS).index(agent)]
    assert line["status"] in {"scored", "no_solution"}
    assert proxy.spoiled == 1
    assert len(proxy.asked) == answered + (fault == "400"), "only the refused request has no answer"
    assert len(proxy.asked) == len(set(proxy.asked)), "a request was repeated"

"""CPU of this process for each model call of an agent: a gateway with eight samples, whose bodies grow.

The model's server and the agents are processes of their own. A body begins with 60 KB of system and tools and
grows by 3 KB a step; an answer has 50 events. All is as in a run: pool, throttle, calls.jsonl synced to disk
before an answer is served. `translated`: the agent speaks another interface than its model.

    scripts/bench/run gateway [--steps 40] [--samples 8] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
from programs import python, toy_server

from astra_async.agents.call_log import CallLog
from astra_async.agents.gateway.gateway_server import Gateway
from astra_async.agents.model_calls import AgentCalls
from astra_async.asking.providers import open_provider
from astra_async.asking.throttle import Pool
from astra_async.types import ModelSettings, SampleKey
from astra_async.types.agents import AgentLimits

TICKS_S = os.sysconf("SC_CLK_TCK")
SYSTEM = "You are an agent that works on a project. " * 700  # 30 KB
TOOLS_KB, STEP_BYTES = 30, 3_000
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


def main() -> None:
    """Print the table, or be the process that is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.samples))
        return
    print("| agent speaks | calls | KB of a body | ms of CPU a call | MB |")
    print("|---|---|---|---|---|")
    for speaks in PATHS:
        found = [measured(speaks, options.samples, options.steps) for _ in range(options.rounds)]
        ms, kilobytes, megabytes = (statistics.median(each) for each in zip(*found, strict=True))
        name = speaks + ("" if speaks == "chat" else ", translated")
        calls = options.samples * options.steps
        print(f"| {name} | {calls} | {kilobytes:.0f} | {ms:.2f} | {megabytes:.0f} |")


def measured(speaks: str, samples: int, steps: int) -> tuple[float, float, float]:
    """Milliseconds a call, kilobytes a body, megabytes of the process."""
    with toy_server(events=50, writes=50) as server, tempfile.TemporaryDirectory() as folder:
        command = python("gateway.py", "--serve", json.dumps([server.base_url, folder]), "--samples", samples)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                socket, tokens = json.loads(process.stdout.readline())
                asyncio.run(work(speaks, socket, tokens, 2))  # connections, and code that is loaded at first
                before_s = spent_s(process.pid)
                sent = asyncio.run(work(speaks, socket, tokens, steps))
                taken_s = spent_s(process.pid) - before_s
                status = Path(f"/proc/{process.pid}/status").read_text()
            finally:
                process.terminate()
    resident = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    calls = samples * steps
    return 1e3 * taken_s / calls, sent / calls / 1e3, int(resident.split()[1]) / 1e3


def spent_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


async def serve(place: str, samples: int) -> None:
    """The process that is measured; prints where it listens and the samples' tokens."""
    base_url, folder = json.loads(place)
    spec = "openai-compatible/toy"
    settings = ModelSettings(
        name=spec, spec=spec, provider="openai-compatible", model="toy", base_url=base_url, max_tokens=1_000
    )
    gateway, log = Gateway(), CallLog.open(Path(folder) / "calls.jsonl")
    await gateway.start()
    pool = Pool(settings, open_provider(settings, environ={}), price=lambda _: 0.0)
    with ExitStack() as admitted:
        tokens = []
        for number in range(samples):
            key = SampleKey(spec, "bench", "p", number)
            calls = AgentCalls(key, pool=pool, settings=settings, log=log, limits=AgentLimits(steps=None))
            admitted.enter_context(gateway.admit(calls))
            tokens.append(calls.token)
        print(json.dumps([str(gateway.socket), tokens]), flush=True)
        await asyncio.Event().wait()


async def work(speaks: str, socket: str, tokens: list[str], steps: int) -> int:
    """All agents at once; returns the bytes that they have sent."""
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket)) as session:
        return sum(await asyncio.gather(*(agent(session, speaks, token, steps) for token in tokens)))


async def agent(session: aiohttp.ClientSession, speaks: str, token: str, steps: int) -> int:
    """One conversation; returns its bytes."""
    said: list[dict[str, Any]] = []
    sent = 0
    for step in range(steps):
        said.append({"role": "user", "content": f"{os.urandom(8).hex()} {step} " + "x" * STEP_BYTES})
        body = json.dumps(body_of(speaks, said)).encode()
        sent += len(body)
        headers = {"Authorization": f"Bearer {token}"}
        async with session.post(f"http://gateway{PATHS[speaks]}", data=body, headers=headers) as reply:
            reply.raise_for_status()
            await reply.read()
        said.append({"role": "assistant", "content": f"Step {step} is done."})
    return sent


def body_of(speaks: str, said: list[dict[str, Any]]) -> dict[str, Any]:
    """A request as agents send it."""
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20)}}
    about = {"description": "A tool. " * 60}
    if speaks == "messages":
        tools: list[dict[str, Any]] = [
            {"name": f"t{n}", **about, "input_schema": schema} for n in range(TOOLS_KB)
        ]
        return {
            "model": "m",
            "max_tokens": 900,
            "stream": True,
            "system": SYSTEM,
            "messages": said,
            "tools": tools,
        }
    functions = [{"name": f"t{n}", **about, "parameters": schema} for n in range(TOOLS_KB)]
    messages = [{"role": "system", "content": SYSTEM}, *said]
    tools = [{"type": "function", "function": each} for each in functions]
    return {"model": "m", "stream": True, "messages": messages, "tools": tools}


if __name__ == "__main__":
    main()

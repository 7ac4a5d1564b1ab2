"""CPU of one streamed call through a provider, against a server in a process of its own.

Prompt of 23,000 characters, answer of 3,000 characters in 50 or 700 events. The server sends each event
in a write of its own (`apart`: the client wakes for every event, the worst case) or a whole answer at once
(`together`). The figures are this process's user and system time for each call, median of the rounds.

    scripts/bench/run stream [--calls 640] [--rounds 5] [--in-flight 32]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import statistics
import time
from typing import TYPE_CHECKING

import orjson
import uvloop

from astra_async.asking.providers import open_provider
from astra_async.types import ModelRequest, ModelSettings, RateLimits, SampleKey

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from astra_async.types import Provider

PROMPT = "const express = require('express');\n" * 639
ANSWER_CHARACTERS = 3_000


class Watch:
    """A pool that takes no notice."""

    def limits(self, limits: RateLimits) -> None:
        """Not sent by this server."""

    def first_token(self) -> None:
        """Not measured here."""

    def streamed(self, characters: int) -> None:
        """Not shown here."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=32)
    arguments = parser.parse_args()
    print("events  sent      CPU ms/call (median)   least   calls/s   resident MB")
    for events in (50, 700):
        for apart in (False, True):
            rounds = [measured(events, apart=apart, options=arguments) for _ in range(arguments.rounds)]
            cpu = [1000 * each[0] / arguments.calls for each in rounds]
            speed = statistics.median(arguments.calls / each[1] for each in rounds)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{events:6}  {'apart' if apart else 'together':8}  {statistics.median(cpu):20.2f}"
                f"  {min(cpu):6.2f}  {speed:8.0f}  {peak:12}"
            )


def measured(events: int, *, apart: bool, options: argparse.Namespace) -> tuple[float, float]:
    """(CPU seconds, seconds) of one round of calls; a tenth of them warms up before."""
    ports: Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(events, apart, ports), daemon=True)
    server.start()
    try:
        return uvloop.run(round_of_calls(ports.get(timeout=10), options))
    finally:
        server.terminate()
        server.join()


async def round_of_calls(port: int, options: argparse.Namespace) -> tuple[float, float]:
    """Make the calls, so many in flight, over one provider."""
    base_url = f"http://127.0.0.1:{port}/v1"
    settings = ModelSettings(
        name="toy", spec="openai-compatible/toy", provider="openai-compatible", model="toy", base_url=base_url
    )
    provider = open_provider(settings, environ={})
    each = options.calls // options.in_flight
    await asyncio.gather(*(worker(provider, max(1, each // 10)) for _ in range(options.in_flight)))
    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker(provider, each) for _ in range(options.in_flight)))
    spent = time.process_time() - cpu, time.perf_counter() - started
    await provider.close()
    return spent


async def worker(provider: Provider, calls: int) -> None:
    """One call after the other."""
    request = ModelRequest(key=SampleKey("toy", "xml", "p", 0), prompt=PROMPT, prompt_sha256="0" * 64)
    for _ in range(calls):
        completion = await provider.complete(request, Watch())
        if len(completion.text) < ANSWER_CHARACTERS // 2:
            raise SystemExit("the answer is not whole")


def serve(events: int, apart: bool, ports: Queue[int]) -> None:  # noqa: FBT001 - a process's arguments
    """The server's process: the same answer for every request."""
    frames = [b"%x\r\n%b\r\n" % (len(event), event) for event in answer(events)]
    frames.append(b"0\r\n\r\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                length = request.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                if not apart:
                    writer.write(head + b"".join(frames))
                    continue
                writer.write(head)
                for frame in frames:
                    writer.write(frame)
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


def answer(events: int) -> list[bytes]:
    """One answer of chat completions as so many events, with the three that end it."""
    piece = "x" * max(1, ANSWER_CHARACTERS // events)
    shared = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "toy-1"}
    usage = {"prompt_tokens": 6000, "completion_tokens": events, "total_tokens": 6000 + events}
    choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
    bodies = [
        *({**shared, "choices": [choice]} for _ in range(events)),
        {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**shared, "choices": [], "usage": usage},
    ]
    return [*(b"data: %b\n\n" % orjson.dumps(body) for body in bodies), b"data: [DONE]\n\n"]


if __name__ == "__main__":
    main()

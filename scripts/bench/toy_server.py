"""A chat-completions server for measurements: one answer, streamed as told, within a limit if told.

Prints its base URL, then, when terminated, what it has seen. As cheap as Python allows, so that it does not
compete with what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from small_problems import solution

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
REFUSAL = b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'
LIMITED = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b"
) % (len(REFUSAL), REFUSAL)


class Server:
    """Counts what it sees; the limit is a bucket of one second's worth."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.seen = {"requests": 0, "rejected": 0, "first_at": 0.0, "last_at": 0.0}
        self._options = options
        self._writes = grouped(answer(options.characters, options.events), options.writes)
        self._level, self._at = float(options.per_second), time.monotonic()
        self._rng = random.Random(1)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection's requests, one after the other."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.seen["first_at"] = self.seen["first_at"] or time.time()
                self.seen["requests"] += 1
                if not self._admits():
                    self.seen["rejected"] += 1
                    writer.write(LIMITED)
                    continue
                await self._answer(writer)
                self.seen["last_at"] = time.time()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        if self._options.early_headers:
            writer.write(HEAD)
        await asyncio.sleep(self._latency_s())
        if not self._options.early_headers:
            writer.write(HEAD)
        for data in self._writes:
            writer.write(data)
            await asyncio.sleep(self._options.spread / len(self._writes))
        writer.write(b"0\r\n\r\n")

    def _latency_s(self) -> float:
        """Constant, or log-normal with the same mean where a sigma is given."""
        sigma, mean_s = float(self._options.sigma), float(self._options.latency)
        return mean_s * self._rng.lognormvariate(-sigma * sigma / 2, sigma)

    def _admits(self) -> bool:
        most = self._options.per_second
        if not most:
            return True
        now = time.monotonic()
        self._level = min(most, self._level + (now - self._at) * most)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


def answer(characters: int, events: int) -> list[bytes]:
    """The events of an answer that passes three tests, padded to its length."""
    text = solution(3).ljust(characters)
    size = -(-len(text) // events)
    shared = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "toy-1"}
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    bodies: list[dict[str, object]] = [
        {**shared, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in pieces
    ]
    bodies.append({**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": 6000, "completion_tokens": events, "total_tokens": 6000 + events}
    bodies.append({**shared, "choices": [], "usage": usage})
    return [*(b"data: %b\n\n" % json.dumps(body).encode() for body in bodies), b"data: [DONE]\n\n"]


def grouped(events: list[bytes], writes: int) -> list[bytes]:
    """The events as HTTP chunks, joined to so many writes."""
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    size = -(-len(chunks) // writes)
    return [b"".join(chunks[start : start + size]) for start in range(0, len(chunks), size)]


async def serve(options: argparse.Namespace) -> None:
    """Answer until SIGTERM."""
    server = Server(options)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, backlog=1024)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", flush=True)
    await stop.wait()
    print(json.dumps(server.seen), flush=True)


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--writes", type=int, default=50)
    parser.add_argument("--characters", type=int, default=3000)
    parser.add_argument("--spread", type=float, default=0.0, help="seconds from first to last event")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before the first event")
    parser.add_argument("--early-headers", type=int, default=0, help="1: headers at once, as most do")
    parser.add_argument("--sigma", type=float, default=0.0, help="of a log-normal latency")
    parser.add_argument("--per-second", type=float, default=0.0, help="requests allowed, 0 for all")
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

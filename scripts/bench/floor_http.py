"""The least that asking a model takes: streamed calls with aiohttp, and nothing kept.

Usage: floor_http.py BASE_URL CALLS IN_FLIGHT CHARACTERS_OF_THE_PROMPT
"""

from __future__ import annotations

import asyncio
import json
import sys

import aiohttp


async def main(base_url: str, calls: int, in_flight: int, characters: int) -> None:
    """Make the calls."""
    body = {"model": "toy", "stream": True, "messages": [{"role": "user", "content": "x" * characters}]}
    gate = asyncio.Semaphore(in_flight)

    async def call(session: aiohttp.ClientSession) -> str:
        async with gate, session.post(f"{base_url}/chat/completions", json=body) as response:
            pieces = []
            async for line in response.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    pieces += [choice["delta"].get("content", "") for choice in choices]
            return "".join(pieces)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        answers = await asyncio.gather(*(call(session) for _ in range(calls)))
    if not all(answers):
        raise SystemExit("an answer is empty")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))

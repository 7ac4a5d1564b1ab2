"""A plain client and invented solutions for the tests of the simulated server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from astra_async.bundled import BundledAnswers, Faulty
from astra_async.simulate.server import SimulatedServer
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from astra_async.simulate.limits import Clocks

QUIET = SimulationSettings(speed=0, faults=False)
PROMPT = "Make the shop sell things. Answer with <solution>. " * 120


def shop_files(mark: str) -> dict[str, str]:
    lines = "\n".join(f"\tconst line{number} = '{mark} & \"{number}\" < 3';" for number in range(20))
    return {"src/shop.js": f"// {mark}\n{lines}\n", "src/sell/index.js": f"module.exports = '{mark}'\n"}


def wrong(passed: int) -> Faulty:
    name = f"wrong-{passed}"
    return Faulty(
        name=name, files=shop_files(name), expected_passed=passed, error_class="logic", summary="wrong"
    )


SHOP = BundledAnswers(reference=shop_files("right"), faulty=tuple(map(wrong, range(5))), total=5)


def know_everything(problem_id: str) -> BundledAnswers | None:
    return None if problem_id.startswith("unknown") else SHOP


@dataclass
class Heard:
    """What a client has heard: the answer's parts, and the raw events."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    refusal: str = ""
    finish: str | None = None
    usage: dict[str, Any] | None = None
    done: bool = False
    error: dict[str, Any] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    body: bytes = b""


@asynccontextmanager
async def running(
    settings: SimulationSettings = QUIET, clocks: Clocks | None = None
) -> AsyncIterator[tuple[SimulatedServer, aiohttp.ClientSession]]:
    server = await SimulatedServer.start(
        settings=settings,
        answers=know_everything,
        find_problem=lambda prompt: "shop" if "shop" in prompt else None,
        clocks=clocks,
    )
    async with aiohttp.ClientSession() as session:
        try:
            yield server, session
        finally:
            await server.stop()


def chat_body(model: str = "steady", prompt: str = PROMPT, **more: Any) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }


async def chat(
    place: tuple[SimulatedServer, aiohttp.ClientSession], sample: str | None = "7/xml/shop/0", **body: Any
) -> Heard:
    """One chat completion; a connection that breaks is the caller's to expect."""
    server, session = place
    headers = {} if sample is None else {"x-astra-sample": sample}
    url = f"{server.base_url}/chat/completions"
    async with session.post(url, json=chat_body(**body), headers=headers) as response:
        heard = Heard(response.status, headers=response.headers, body=await response.read())
    if response.content_type != "text/event-stream":
        return heard
    for data in sse_data(heard.body):
        if data == b"[DONE]":
            heard.done = True
            continue
        event = orjson.loads(data)
        heard.events.append(event)
        _hear(heard, event)
    return heard


def sse_data(body: bytes) -> list[bytes]:
    """The data of every event; each event must be one block of well-formed lines."""
    blocks = body.split(b"\n\n")
    assert blocks.pop() == b""
    lines = [line for block in blocks for line in block.split(b"\n")]
    assert all(line.startswith((b"data: ", b"event: ")) for line in lines)
    return [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]


def _hear(heard: Heard, event: dict[str, Any]) -> None:
    heard.error = event.get("error") or heard.error
    heard.usage = event.get("usage") or heard.usage
    for choice in event.get("choices", ()):
        heard.text += choice["delta"].get("content") or ""
        heard.refusal += choice["delta"].get("refusal") or ""
        heard.finish = choice["finish_reason"] or heard.finish

"""An answer longer than any can be: cut off, paid for, and asked for once more at the most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bedrock_server import BedrockServer, bedrock, frame
from provider_calls import KEYS, Watch, call, request, settings
from wire_server import Reply, serving, sse

from astra_async.asking.providers import open_provider
from astra_async.asking.throttle import Pool
from astra_async.errors import TruncatedStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.types import Usage

MEGABYTE = 2**20
TOO_LONG = 33 * MEGABYTE


def delta(characters: int) -> bytes:
    return sse({"choices": [{"index": 0, "delta": {"content": "x" * characters}}]})


@pytest.mark.parametrize("pieces", [[delta(MEGABYTE)] * 33, [delta(TOO_LONG)]], ids=["many", "one"])
async def test_it_is_tried_twice_in_all_and_every_attempt_is_paid_for(pieces: Sequence[bytes]) -> None:
    priced: list[Usage] = []

    def price(usage: Usage) -> float:
        priced.append(usage)
        return float(usage.output_tokens or 0)

    async with serving(Reply(pieces=pieces)) as server:
        chosen = settings(base_url=server.base_url, max_tokens=100)
        provider = open_provider(chosen, environ=KEYS)
        pool = Pool(chosen, provider, price=price)
        try:
            with pytest.raises(TruncatedStream, match="longer than 33554432 characters") as caught:
                await pool.call(request())
        finally:
            await pool.close()
            await provider.close()
    assert caught.value.attempts == len(server.asked) == 2
    assert caught.value.cost_usd is not None
    cost = int(caught.value.cost_usd)
    least = 2 * TOO_LONG / 10  # no tokenizer makes fewer tokens of that
    assert cost > least


async def test_bedrock_cuts_it_off_as_well() -> None:
    watch = Watch()
    events = [frame("contentBlockDelta", {"delta": {"text": "x" * MEGABYTE}, "contentBlockIndex": 0})] * 33

    async def ask() -> None:
        server = BedrockServer(events)
        async with bedrock(server):
            await call(settings("bedrock/toy", base_url=server.base_url), watch=watch)

    with pytest.raises(TruncatedStream, match="longer than 33554432 characters"):
        (await ask())
    assert watch.characters == TOO_LONG

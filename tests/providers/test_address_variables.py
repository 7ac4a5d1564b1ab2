"""A variable of the environment names the server; a run that is continued is held to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
from recorded import chat_chunk
from wire_server import Reply, serving, sse

import astra_async
from astra_async.errors import ConflictError

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_changed_variable_is_refused_as_a_changed_base_url_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    out = tmp_path / "run"

    async def run(samples: int) -> None:
        await astra_async.run(
            problems="bundled",
            only=["product-api"],
            model="openai/m",
            out=out,
            samples=samples,
            generate_only=True,
        )

    stream = sse(chat_chunk({"content": "42"}, "stop"), "[DONE]")
    async with serving(Reply(pieces=[stream])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        await run(1)
        await run(2)
        recorded = orjson.loads((out / "run.json").read_bytes())
        assert recorded["models"][0]["base_url"] == server.base_url
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        with pytest.raises(ConflictError, match="base_url"):
            await run(2)

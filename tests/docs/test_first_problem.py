"""docs/first-problem.md, followed to the letter in an empty folder by a shell.

Substituted, and nothing else: the real model by a server that knows the page's own solution.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from threaded_server import ThreadedServer

PAGE = (Path(__file__).parents[2] / "docs" / "first-problem.md").read_text(encoding="utf-8")
_FENCE = r"```\w*\n(.*?)^```"
FILES = dict(re.findall(rf"^`([\w./]+)`[^`]*?:\n\n{_FENCE}", PAGE, re.MULTILINE | re.DOTALL))
FILES |= dict(
    re.findall(rf"^`(shop/hackerrank.yml)` says.*?columns:\n\n{_FENCE}", PAGE, re.MULTILINE | re.DOTALL)
)
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


class OneAnswer(ThreadedServer):
    """Answers every chat completion with one text, whole or as a stream."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.port = 0
        self._text = text

    async def listen(self) -> asyncio.Server:
        listening = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        return listening

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().casefold()
        length = re.search(r"content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        usage = {"prompt_tokens": 900, "completion_tokens": 200}
        choice = {"index": 0, "delta": {"content": self._text}, "finish_reason": "stop"}
        events = orjson.dumps({"id": "1", "model": "gpt-4o", "choices": [choice], "usage": usage}).decode()
        body = f"data: {events}\n\ndata: [DONE]\n\n".encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
            + f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        writer.close()


def test_the_page_shows_every_file_that_it_needs() -> None:
    assert FILES.keys() == {
        *("shop/prices.py", "shop/test_prices.py", "shop/requirements.txt", "shop/hackerrank.yml"),
        *("solution/prices.py", "problems.csv"),
    }
    assert len(COMMANDS) == 5


@pytest.mark.first
@pytest.mark.docker
def test_the_page_leads_from_an_empty_folder_to_a_graded_run(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    solved = FILES["solution/prices.py"]
    answer = f'<solution><file path="prices.py"><![CDATA[{solved}]]></file></solution>'
    with OneAnswer(answer) as server:
        environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ASTRA_BASE_URL": f"http://127.0.0.1:{server.port}/v1",
        }
        said = []
        for block in COMMANDS:
            done = subprocess.run(
                ["bash", "-euc", block],
                cwd=tmp_path,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
    validated, planned, _, looked = said[1:]
    assert re.search(r"discount +.*\b1\b.*\b4\b.*\bfit\b", validated)
    assert "openai/gpt-4o" in planned
    assert "4 of 4 samples, 100 %" in looked
    assert "result: 4 of 4 tests passed, scored (all tests passed)" in looked
    assert "+    return round(total(prices)" in looked
    assert (tmp_path / "runs" / "first" / "report" / "index.html").exists()
    assert not {path.name for path in tmp_path.iterdir()} - {
        *("shop", "solution", "problems.csv", "validation.json", "runs"),
    }

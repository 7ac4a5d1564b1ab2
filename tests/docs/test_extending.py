"""The examples of docs/extending.md, run as they stand there, each in the place that the page gives it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from astra_async.asking.providers.exchange import HttpProvider
from astra_async.asking.providers.models import resolve
from astra_async.errors import ProviderError
from astra_async.images.stacks.commands import Commands
from astra_async.images.stacks.image_sets import project_set, toolchain_set
from astra_async.images.stacks.model import Stack
from astra_async.report.entries import entries_of
from astra_async.testing.reports.report_text import UnreadableReport
from astra_async.types import ModelRequest, ModelSettings, RateLimits, SampleKey

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
PLACES = sorted(set(re.findall(r"`((?:astra_async|tests)/[\w/.]+)`", PAGE)))


def example(title: str) -> dict[str, Any]:
    """What the example of a section defines."""
    defined: dict[str, Any] = {}
    exec(compile(EXAMPLES[title], f"docs/extending.md ({title})", "exec"), defined)
    return defined


class Watch:
    def __init__(self) -> None:
        self.characters = 0

    def limits(self, limits: RateLimits) -> None:
        raise AssertionError(limits)

    def first_token(self) -> None:
        pass

    def streamed(self, characters: int) -> None:
        self.characters += characters


def ask_toy(events: list[str], seen: list[Any]) -> Any:
    async def answer(asked: web.Request) -> web.Response:
        seen.append((asked.path, dict(asked.headers), await asked.json()))
        body = "".join(f"data: {event}\n\n" for event in events)
        return web.Response(body=body.encode(), headers={"content-type": "text/event-stream"})

    async def main() -> Any:
        app = web.Application()
        app.router.add_post("/v1/say", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        settings = resolve(
            ModelSettings(
                name="toy/1",
                spec="openai-compatible/1",
                provider="openai-compatible",
                model="1",
                base_url=f"http://127.0.0.1:{runner.addresses[0][1]}",
                max_tokens=50,
            )
        )
        wire = example("A provider")["Toy"](settings, "key-of-the-toy", environ={})
        async with ClientSession() as session:
            provider = HttpProvider(settings, wire, session, environ={})
            request = ModelRequest(key=SampleKey("m", "xml", "p", 0), prompt="Hello", prompt_sha256="00")
            try:
                return await provider.complete(request, Watch())
            finally:
                await runner.cleanup()

    return asyncio.run(main())


def test_the_provider_asks_and_reads_and_counts() -> None:
    seen: list[Any] = []
    completion = ask_toy(['{"word": "good "}', '{"word": "day"}', '{"end": {"tokens": [3, 2]}}'], seen)
    assert completion.text == "good day"
    assert completion.usage.input_tokens == 3
    [(path, headers, body)] = seen
    assert path == "/v1/say"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Toy key-of-the-toy"
    assert body == {"model": "1", "text": "Hello", "longest": 50}


@pytest.mark.parametrize("events", [['{"word": "good "}'], ['{"word": "good "}', '{"error": "gone"}']])
def test_an_answer_without_its_end_is_no_answer(events: list[str]) -> None:
    with pytest.raises(ProviderError):
        ask_toy(events, [])


def test_the_report_format_reads_its_lines() -> None:
    defined = example("A report format")
    text = "noise\nPASS adds \nnoise\n  FAIL no line\nFAIL \x1b[31mdivides: by zero\nFAIL ends: \nPASS \n"
    assert defined["lines_start"](text) == text.index("PASS")
    assert defined["lines_start"]("nothing") == -1
    cases, trouble = defined["read_lines"](text)
    assert [(case.name, case.outcome, case.message) for case in cases] == [
        ("adds", "passed", ""),
        ("divides", "failed", "by zero"),
        ("ends", "failed", ""),
    ]
    assert not trouble


def test_the_report_format_hides_no_failure_and_keeps_no_flood() -> None:
    read_lines = example("A report format")["read_lines"]
    cases, _ = read_lines("PASS adds\n" + "noise\n" * 200_000 + "FAIL adds: no\n")
    assert [case.outcome for case in cases] == ["passed", "failed"]
    with pytest.raises(UnreadableReport):
        read_lines("PASS adds\n" * 100_000 + "FAIL adds: no\n")
    [case], _ = read_lines("FAIL " + "x" * 3_000_000 + ": " + "y" * 3_000_000)
    assert (len(case.name), len(case.message)) == (1_000, 500)


def test_the_stack_makes_the_folders_of_two_images() -> None:
    find_go = example("A stack")["find_go"]
    commands = Commands(text="go test", languages=frozenset(), folders=(), node_version="", installs=())
    files = {"api/go.mod": b"module x\n", "api/main.go": b"package main\n"}
    assert find_go(files, "", commands) is None
    part = find_go(files, "api", commands)
    stack = Stack(name=part.label, toolchain=part.toolchain, files=part.files, install=part.install)
    _, toolchain = toolchain_set(stack.toolchain)
    assert b"golang-go" in toolchain["Dockerfile"]
    _, own = project_set(stack, "astra/stack-go:1")
    assert own["challenge/api/go.mod"] == b"module x\n"
    assert b"go mod download" in own["install.sh"]


def test_the_table_is_made_of_entries() -> None:
    table = example("A table")["answers_table"](entries_of(()))
    assert table.rows == ()
    assert [column.name for column in table.columns] == ["model", "format", "valid", "perfect"]


def test_the_name_of_a_provider_over_http_stands_in_no_place_that_the_page_leaves_out() -> None:
    package = Path(__file__).parents[2] / "astra_async"
    named = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if '"gemini"' in path.read_text()
    }
    assert named == {"asking/providers/__init__.py"}


@pytest.mark.parametrize("place", PLACES)
def test_every_place_that_the_page_names_exists(place: str) -> None:
    assert (Path(__file__).parents[2] / place).exists()


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("astra_async/asking/providers/__init__.py", ["PROVIDERS"]),
        ("astra_async/asking/providers/request_fields.py", ["meaningless"]),
        ("astra_async/testing/reports/report_files.py", ["_FORMATS"]),
        ("astra_async/images/stacks/detect.py", ["_FINDERS"]),
        ("astra_async/images/stacks/commands.py", ["_CALLS"]),
        ("astra_async/images/stacks/image_sets.py", ["_SKIPPED"]),
    ],
)
def test_every_name_that_the_page_sends_a_reader_to_stands_there(place: str, names: list[str]) -> None:
    text = (Path(__file__).parents[2] / place).read_text()
    assert all(name in PAGE for name in names)
    assert all(re.search(rf"\b{name}\b", text) for name in names)

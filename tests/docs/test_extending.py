"""The examples of both pages on extending, run as they stand, in the place that the page gives them."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from astra_async.asking.providers.exchange import HttpProvider
from astra_async.asking.providers.models import resolve
from astra_async.errors import ConfigError, ProviderError, RateLimited
from astra_async.images.stacks import toolchain_set
from astra_async.languages import lacks
from astra_async.languages.needs import Commands, Stack
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report_text import UnreadableReport
from astra_async.types import (
    Completion,
    Exchange,
    ModelRequest,
    ModelSettings,
    RateLimits,
    RateWindow,
    SampleKey,
    Usage,
)
from made_runs import Made, made_problems, write_run

DOCS = Path(__file__).parents[2] / "docs" / "development"
PAGE = "".join(
    (DOCS / name).read_text(encoding="utf-8")
    for name in ("extending.md", "extending-tests.md", "extending-tables.md")
)
EXAMPLES = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
PLACES = sorted(set(re.findall(r"`((?:astra_async|tests)/[\w/.]+)`", PAGE)))


def example(title: str) -> dict[str, Any]:
    """What the example of a section defines."""
    defined: dict[str, Any] = {}
    exec(compile(EXAMPLES[title], f"docs/development/extending.md ({title})", "exec"), defined)
    return defined


class Watch:
    def __init__(self) -> None:
        self.characters = 0
        self.announced: list[RateLimits] = []

    def limits(self, limits: RateLimits) -> None:
        self.announced.append(limits)

    def first_token(self) -> None:
        pass

    def streamed(self, characters: int) -> None:
        self.characters += characters


ASKED = ModelRequest(key=SampleKey("m", "xml", "p", 0), prompt="Hello", prompt_sha256="00")
FIRST = '{"word": "good "}'
WHOLE = (FIRST, '{"word": "day"}', '{"end": {"tokens": [3, 2]}}')


def toy(**fields: Any) -> Any:
    given = {"base_url": "http://127.0.0.1:9", "max_tokens": 50, **fields}
    chosen = ModelSettings(name="toy/1", spec="openai/1", provider="openai", model="1", **given)
    return example("A provider")["Toy"](resolve(chosen), "key-of-the-toy", environ={})


def ask_toy(
    *events: str, asked: ModelRequest = ASKED, watch: Watch | None = None, **fields: Any
) -> tuple[Completion, dict[str, Any]]:
    """What an answer of these events comes to, and what was asked."""
    seen: list[dict[str, Any]] = []
    status, headers = fields.pop("status", 200), fields.pop("headers", {})

    async def answer(asked: web.Request) -> web.Response:
        seen.append({"path": asked.path, "headers": asked.headers, "body": await asked.json()})
        body = "".join(f"data: {event}\n\n" for event in events) if status == 200 else events[0]
        return web.Response(body=body.encode(), status=status, headers=headers)

    async def main() -> Completion:
        app = web.Application()
        app.router.add_post("/v1/say", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        wire = toy(base_url=f"http://127.0.0.1:{runner.addresses[0][1]}", **fields)
        async with ClientSession() as session:
            provider = HttpProvider(wire.settings, wire, session, environ={})
            try:
                return await provider.complete(asked, watch or Watch())
            finally:
                await runner.cleanup()

    return asyncio.run(main()), seen[0]


def test_the_provider_asks_and_reads_and_counts() -> None:
    completion, seen = ask_toy(*WHOLE)
    assert (completion.text, completion.finish_reason) == ("good day", "stop")
    assert completion.usage == Usage(input_tokens=3, output_tokens=2)
    assert seen["headers"]["authorization"] == "Toy key-of-the-toy"
    assert seen["body"] == {"model": "1", "said": [{"by": "human", "text": "Hello"}], "longest": 50}


def test_the_provider_is_asked_with_its_settings_and_the_whole_conversation() -> None:
    asked = replace(ASKED, earlier=(Exchange(answer="Hi.", feedback="No.", sha256="11"),))
    _, seen = ask_toy(*WHOLE, asked=asked, system_prompt="Be brief.", temperature=0.5, extra_body={"a": 1})
    assert [part["by"] for part in seen["body"]["said"]] == ["human", "toy", "human"]
    assert [part["text"] for part in seen["body"]["said"]] == ["Hello", "Hi.", "No."]
    assert (seen["body"]["system"], seen["body"]["heat"], seen["body"]["a"]) == ("Be brief.", 0.5, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": ("END",)},
        {"reasoning_effort": "low"},
        {"top_k": 4},
        {"service_tier": "flex"},
        {"project": "p"},
    ],
    ids=str,
)
def test_what_the_provider_does_not_name_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(fields))} is not supported .* unset it"):
        toy(**fields)


@pytest.mark.parametrize("field", ["model", "said", "stream", "n"])
def test_what_is_measured_cannot_be_replaced(field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} cannot be set, because the benchmark sets it"):
        toy(extra_body={field: "another"})


@pytest.mark.parametrize(
    ("why", "finish"), [("full", "length"), ("refused", "refusal"), ("tired", "other"), ("", "stop")]
)
def test_the_providers_reasons_for_an_end(why: str, finish: str) -> None:
    assert ask_toy(FIRST, f'{{"end": {{"why": "{why}"}}}}')[0].finish_reason == finish


@pytest.mark.parametrize("events", [[FIRST], [FIRST, '{"error": "gone"}'], ['{"word": {"a": 1}}', WHOLE[-1]]])
def test_an_answer_without_its_end_is_no_answer(events: list[str]) -> None:
    with pytest.raises(ProviderError):
        ask_toy(*events)


@pytest.mark.parametrize("tokens", ["[1, 2, 3]", "7", '["3", {}]'])
def test_an_answer_outlives_counts_of_another_shape(tokens: str) -> None:
    completion, _ = ask_toy(FIRST, f'{{"end": {{"tokens": {tokens}}}}}')
    assert (completion.text, completion.usage) == ("good ", Usage())


TOO_FAST = '{"wrong": {"kind": "too_fast", "text": "slower, please"}}'


@pytest.mark.parametrize("body", [TOO_FAST, '{"wrong": 5}', "<html>a proxy's page</html>"])
def test_a_limit_is_told_with_the_time_to_wait(body: str) -> None:
    with pytest.raises(RateLimited) as caught:
        ask_toy(body, status=429, headers={"X-Toy-Wait-MS": "1500"})
    assert caught.value.hint_s == 1.5


def test_an_error_in_mid_stream_says_what_the_provider_said() -> None:
    with pytest.raises(RateLimited, match="slower, please"):
        ask_toy(FIRST, TOO_FAST)


def test_a_prompt_that_is_too_long_is_a_result() -> None:
    body = '{"wrong": {"kind": "too_long", "text": "no"}}'
    assert ask_toy(body, status=413)[0].finish_reason == "context_exceeded"


def test_the_providers_limits_are_told() -> None:
    watch = Watch()
    ask_toy(*WHOLE, watch=watch, headers={"x-toy-limit": "60", "x-toy-left": "59", "x-toy-reset": "1s"})
    assert watch.announced == [RateLimits(requests=RateWindow(limit=60, remaining=59, reset_s=1))]


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


def test_the_language_finds_what_an_audit_may_change() -> None:
    source = b'it("adds", function()\n  assert.are.equal(3, shop.add(1, 2))\nend)\n'
    [test] = example("A language")["LUA"].mutate({"shop_spec.lua": source})
    assert (test.title, [each.text for each in test.places]) == ("adds", ["3"])


def test_the_language_lacks_nothing_and_its_image_is_made() -> None:
    lua = example("A language")["LUA"]
    assert lacks(lua) == ()
    commands = Commands(text="busted", languages=frozenset({"lua"}), folders=(), installs=())
    files = {"shop.lua": b"return {}\n"}
    assert lua.images.find(files, "api", commands) is None
    part = lua.images.find(files, "", commands)
    stack = Stack(name=part.label, toolchain=part.toolchain, files=part.files, install=part.install)
    assert b"lua-busted" in toolchain_set(stack.toolchain)[1]["Dockerfile"]


_ASKED = """
from astra_async.overlay import path_policy
from astra_async.types import Problem, Project, ProjectFile
texts = {"shop.lua": "return {}", "checks/shop_spec.lua": "describe('a', function() it('b') end)"}
files = tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items())
problem = Problem(id="p", statement="s", project="p", test_command="busted -o junit")
policy = path_policy(problem, Project(files=files, sha256="0"))
paths = ("shop.lua", "cart.lua", "checks/shop_spec.lua", "busted.lua", "luassert/init.lua")
paths += ("lua_modules/a.lua", "a.luac")
print(*(policy.refusal(path, "x") for path in paths))
"""


def test_one_line_in_the_registry_protects_the_language(tmp_path: Path) -> None:
    package = tmp_path / "astra_async"
    shutil.copytree(
        Path(__file__).parents[2] / "astra_async", package, ignore=shutil.ignore_patterns("bundled")
    )
    (package / "languages" / "lua.py").write_text(EXAMPLES["A language"])
    registry = package / "languages" / "__init__.py"
    line = "\nfrom astra_async.languages.lua import LUA\n\n__all__"
    text = registry.read_text().replace("\n__all__", line).replace("    PHP,\n", "    PHP,\n    LUA,\n")
    registry.write_text(text)
    said = subprocess.run(
        [sys.executable, "-c", _ASKED], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [
        *("None", "None", "protected_test", "runner_configuration", "shadows_module"),
        *("dependency_folder", "compiled"),
    ]


def test_the_table_is_made_of_entries_and_says_where_samples_are_missing(tmp_path: Path) -> None:
    lacking = Made(problems=made_problems(3), leave_out=frozenset({("beta", "xml", "p00", 0)}))
    entries = entries_of((load_run(write_run(tmp_path / "run", lacking)),))
    table = example("A table")["answers_table"](entries)
    assert [column.name for column in table.columns] == ["model", "format", "valid", "perfect"]
    assert [row[:3] for row in table.rows] == [("alpha", "xml", 12), ("beta", "xml", 11)]
    assert [table.shown(place)[3].startswith("~") for place in range(2)] == [False, True]
    assert all(f"`{name}`" in PAGE or f"`{name}(" in PAGE for name in ("planned", "valid", "summary", "rows"))


def test_the_name_of_a_provider_over_http_stands_in_no_place_that_the_page_leaves_out() -> None:
    package = Path(__file__).parents[2] / "astra_async"
    named = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if '"gemini"' in path.read_text() and "agents" not in path.relative_to(package).with_suffix("").parts
    }  # an interface that agents speak has that name, too
    assert named == {"asking/providers/__init__.py"}


@pytest.mark.parametrize("place", PLACES)
def test_every_place_that_the_page_names_exists(place: str) -> None:
    assert (Path(__file__).parents[2] / place).exists()


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("astra_async/asking/providers/__init__.py", ["PROVIDERS"]),
        (
            "astra_async/asking/providers/request_fields.py",
            ["protected_fields", "supported_settings", "refusal_remedies"],
        ),
        ("astra_async/asking/providers/answer.py", ["finish_reasons", "finish_reasons_without_text"]),
        ("astra_async/asking/providers/error_body.py", ["_CODES_OF_STATUS"]),
        ("astra_async/asking/providers/error_rules.py", ["RULES"]),
        ("astra_async/asking/providers/error_meaning.py", ["hint_s"]),
        ("tests/docs/test_models_page.py", ["COLUMNS"]),
        ("tests/providers/provider_calls.py", ["KEYS"]),
        ("astra_async/testing/reports/report_files.py", ["_SIGNS"]),
        ("astra_async/languages/__init__.py", ["LANGUAGES"]),
        (
            "astra_async/languages/language.py",
            ["find", "TestFiles", "Tools", "Lookup", "Merge", "holds"],
        ),
    ],
)
def test_every_name_that_the_page_sends_a_reader_to_stands_there(place: str, names: list[str]) -> None:
    text = (Path(__file__).parents[2] / place).read_text()
    assert all(name in PAGE for name in names)
    assert all(re.search(rf"\b{name}\b", text) for name in names)

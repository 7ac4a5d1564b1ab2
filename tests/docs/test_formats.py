"""docs/formats.md and the TOML example say what the code does: made of it, or compared with it."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import orjson
import pytest
from msgspec import structs

import astra_async
from astra_async.config import RunConfig, load_config
from astra_async.fingerprint import Parts
from astra_async.options import options, tables
from astra_async.problems.manifest import read_install_command, read_manifest
from astra_async.running import trouble
from astra_async.running.description import run_description
from astra_async.running.directory import RunDirectory
from astra_async.running.evidence import Evidence
from astra_async.running.trouble import EVENTS
from astra_async.types import (
    Completion,
    Failure,
    Result,
    SampleKey,
    Status,
    Trouble,
    Usage,
    declared,
)
from astra_async.types.calls import FinishReason
from astra_async.types.pools import EventKind

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "formats.md").read_text(encoding="utf-8")
EXAMPLE = DOCS / "example.toml"


def generator() -> ModuleType:
    found = importlib.util.spec_from_file_location("docs_script", ROOT / "scripts" / "docs.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def section(title: str) -> str:
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def first_cells(title: str) -> set[str]:
    """The names in the first column of a section's tables."""
    cells = re.findall(r"^\| ([^|]*) \|", section(title), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_tables_are_what_the_code_declares() -> None:
    script = generator()
    remedy = "run .venv/bin/python scripts/docs.py"
    assert script.page(PAGE) == PAGE, remedy
    assert script.example() == EXAMPLE.read_text(encoding="utf-8"), remedy


def test_the_example_is_a_configuration_and_names_every_key() -> None:
    config = load_config({"out": "x"}, EXAMPLE)
    assert (config.samples, config.models[0].name) == (4, "steady")
    whole = re.sub(r"^#(?=\w+ = )", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    keys = tomllib.loads(whole)
    assert keys.keys() == options().keys() | tables().keys()
    for name, table in tables().items():
        inside = keys[name][0] if name in {"models", "agents"} else keys[name]
        assert inside.keys() == {item.name for item in declared(table)}


def test_every_value_of_the_example_would_be_accepted(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    whole = re.sub(r"^#(?=\w+ = )", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    path.write_text(whole.replace('spec = "simulated/steady"', 'spec = "openai/gpt-4o"'))
    (model,) = load_config({}, path).models
    assert (model.name, model.stop, model.extra_headers) == ("steady", ("END",), {"x-team": "${TEAM}"})


def test_every_field_of_a_result_is_described() -> None:
    assert first_cells("results.jsonl") == {item.name for item in structs.fields(Result)}


def test_every_field_of_an_output_is_described(tmp_path: Path) -> None:
    of_nothing: dict[str, Any] = dict.fromkeys(("passed", "score", "sample"), 0)
    result = Result(
        turn=1,
        schema=1,
        model="m",
        format="xml",
        problem_id="p",
        status="scored",
        failure=None,
        total=1,
        **of_nothing,
    )
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_output(
            result, Evidence(tests=(), output="text", output_bytes=4, stderr_lines=((0, 1),))
        )
    assert first_cells("outputs.jsonl") == orjson.loads((tmp_path / "outputs.jsonl").read_bytes()).keys()


async def test_every_field_of_live_json_is_described(tmp_path: Path) -> None:
    options: dict[str, Any] = {"problems": "bundled", "model": "simulated/steady", "samples": 1, "limit": 1}
    await astra_async.run(out=tmp_path / "r", generate_only=True, **options)
    live = orjson.loads((tmp_path / "r" / "live.json").read_bytes())
    assert first_cells("live.json") == live.keys()
    assert first_cells("A model in live.json") == live["models"]["simulated/steady"].keys()
    words = set(re.findall(r"`([a-z_]+)`", section("live.json")))
    assert live["samples"].keys() | live["containers"].keys() <= words


def test_every_field_of_an_answer_and_of_run_json_is_described(tmp_path: Path) -> None:
    usage, key = Usage(), SampleKey("m", "xml", "p", 0)
    answer = Completion(
        text="", finish_reason="stop", usage=usage, returned_model="", ttft_s=None, latency_s=0
    )
    config: Any = RunConfig(out=tmp_path, models=())
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.record_completion(key, answer, "0")
        parts = Parts(models={}, formats={}, problems={}, grading={})
        directory.extend(parts, run_description(config, {}), 1)
        directory.save()
    recorded = orjson.loads((tmp_path / "completions.jsonl").read_bytes())
    of_few = {"agent", "unpriced_tier", "priced_usd", "reasoning", "disbelieved_input_tokens"}
    assert first_cells("completions.jsonl") == recorded.keys() | of_few
    assert first_cells("run.json") == orjson.loads((tmp_path / "run.json").read_bytes()).keys()


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Statuses and failures", {*get_args(Status), *get_args(Failure)}),
        ("completions.jsonl", set(get_args(FinishReason))),
        ("events.jsonl", set(get_args(Trouble))),
    ],
)
def test_every_word_of_a_closed_set_is_described(title: str, names: set[str]) -> None:
    assert names <= set(re.findall(r"`([a-z_]+)`", section(title)))


def test_every_kind_of_event_is_explained() -> None:
    assert set(EVENTS) == {*get_args(EventKind), *get_args(Trouble), *get_args(trouble._RunnerEvent)}


def test_the_manifest_that_is_shown_is_read_without_a_warning() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    manifest = read_manifest(shown.encode())
    assert (manifest.command, manifest.result_files) == ("npm test", ("junit.xml",))
    assert manifest.readonly_paths == ("test/**", "package.json")
    assert manifest.hidden_paths == ("test/hidden/**",)
    assert manifest.weights == {"GET /products": 0.5}
    assert not [warning for warning in manifest.warnings if "the sum of" not in warning]
    assert read_install_command(shown.encode()) == "npm install"


@pytest.mark.parametrize("path", [*DOCS.rglob("*.md"), *ROOT.glob("*.md")], ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", path.read_text(encoding="utf-8")):
        page = path.parent / target if target else path
        assert page.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in anchors, f"{target}#{anchor}"

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.log import encode
from astra_async.report.page import page_html
from astra_async.report.page_samples import embed
from astra_async.report.plots import draw_all
from astra_async.report.tables import build_report
from made_runs import Made, completion_record, made_problems, made_results, run_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


class Elements(HTMLParser):
    """All start tags with their attributes, and the text of every script by its id."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs).get("id") or "page"
            self.scripts[self._script] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] += data


def page(directory: Path, budget_bytes: int = 20_000_000, *, plots: bool = False) -> str:
    report = build_report([directory])
    return page_html(report, draw_all(report) if plots else [], budget_bytes)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Elements:
    """A run in which every text that comes from outside tries to break out of the page."""
    directory = tmp_path_factory.mktemp("page") / "run"
    directory.mkdir()
    made = Made(skill={HOSTILE: 0.5, "plain": 0.7}, problems=made_problems(4), samples=3)
    description = run_json(made)
    description["problems"]["p00"]["name"] = HOSTILE
    description["problems"]["p00"]["sub_skills"] = [HOSTILE]
    (directory / "run.json").write_bytes(orjson.dumps(description))
    results, completions = bytearray(), bytearray()
    for result, _ in made_results(made):
        line: dict[str, Any] = orjson.loads(encode(result))
        line |= {"output_tail": HOSTILE, "note": HOSTILE, "repairs": [HOSTILE], "returned_model": HOSTILE}
        line["tests"] = [{"name": HOSTILE, "outcome": "passed"}]
        results += orjson.dumps(line) + b"\n"
        completions += orjson.dumps(completion_record(result, HOSTILE)) + b"\n"
    (directory / "results.jsonl").write_bytes(results)
    (directory / "completions.jsonl").write_bytes(completions)
    return Elements(page(directory, plots=True))


def test_the_page_loads_nothing_from_anywhere(hostile: Elements) -> None:
    for tag, attributes in hostile.tags:
        for name in ("src", "href", "action", "data", "xlink:href", "srcset", "poster"):
            value = attributes.get(name)
            beside = tag == "a" and re.fullmatch(r"(tables/)?\w+\.(csv|json)", value or "")
            assert value is None or beside or value.startswith(("#", "data:,")), (tag, name, value)
    assert not {tag for tag, _ in hostile.tags} & {"img", "iframe", "object", "embed", "form", "base"}


def test_nothing_from_outside_becomes_markup(hostile: Elements) -> None:
    assert set(hostile.scripts) - {"data", "page"} == {
        name for name in hostile.scripts if name.startswith("chunk-")
    }
    assert sum(tag == "script" for tag, _ in hostile.tags) == len(hostile.scripts)
    for _, attributes in hostile.tags:
        assert not any(name.startswith("on") for name in attributes)


def test_only_the_pages_own_script_may_run(hostile: Elements) -> None:
    digest = base64.b64encode(hashlib.sha256(hostile.scripts["page"].encode()).digest()).decode()
    policy = next(
        attributes["content"] or ""
        for tag, attributes in hostile.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_a_simulated_run_says_so_at_the_top(tmp_path: Path) -> None:
    simulated = page(write_run(tmp_path / "simulated", Made(simulated=True)))
    assert "These models are simulated." in simulated.split("<main>")[0]
    real = page(write_run(tmp_path / "real", Made(simulated=False)))
    assert "These models" not in real


def test_an_incomplete_run_says_so_at_the_top(tmp_path: Path) -> None:
    made = Made(leave_out=frozenset({("alpha", "xml", "p00", 0)}))
    assert "<strong>Incomplete.</strong>" in page(write_run(tmp_path / "run", made)).split("<main>")[0]


def test_every_sample_is_carried_where_the_budget_allows(tmp_path: Path) -> None:
    made = Made(formats=("xml", "json"))
    directory = write_run(tmp_path / "run", made)
    elements = Elements(page(directory))
    data = orjson.loads(elements.scripts["data"])
    carried = {}
    for number, (entry, problem, samples) in enumerate(data["chunks"]):
        chunk = orjson.loads(gzip.decompress(base64.b64decode(elements.scripts[f"chunk-{number}"])))
        assert list(chunk) == [str(sample) for sample in samples]
        facts = data["entries"][entry]
        for sample, record in chunk.items():
            carried[facts["model"], facts["format"], facts["problems"][problem], int(sample)] = record
    results = made_results(made)
    assert len(carried) == len(results)
    for result, text in results:
        record = carried[result.model, result.format, result.problem_id, result.sample]
        assert record["answer"] == text
        assert record["passed"] == result.passed
        assert record["output_tail"] == result.output_tail
        assert len(record["tests"]) == len(result.tests)


def test_the_map_has_every_sample_and_its_reason(tmp_path: Path) -> None:
    made = Made(leave_out=frozenset({("beta", "xml", "p02", 1)}))
    data = orjson.loads(Elements(page(write_run(tmp_path / "run", made))).scripts["data"])
    numbers = {entry["model"]: entry for entry in data["entries"]}
    for result, _ in made_results(made):
        entry = numbers[result.model]
        place = entry["problems"].index(result.problem_id)
        expected = (
            -1 if (result.model, result.problem_id, result.sample) == ("beta", "p02", 1) else result.passed
        )
        assert entry["passed"][place][result.sample] == expected
        if expected >= 0:
            assert data["failures"][entry["failure"][place][result.sample]] == (result.failure or "")


def test_failures_are_carried_first_when_not_all_fit(tmp_path: Path) -> None:
    made = Made(skill={"alpha": 0.7}, problems=made_problems(6), samples=16)
    report = build_report([write_run(tmp_path / "run", made)])
    everything = embed(report.entries)
    assert everything.left_out == 0
    budget = sum(len(chunk.data) for chunk in everything.chunks) // 2
    some = embed(report.entries, budget)
    assert 0 < sum(len(chunk.data) for chunk in some.chunks) <= budget
    carried = {(chunk.problem, sample) for chunk in some.chunks for sample in chunk.samples}
    assert some.left_out == 96 - len(carried)
    rows = report.entries[0].rows()
    failed = {(int(row["problem"]), int(row["sample"])) for row in rows if row["passed"] < row["total"]}
    perfect = carried - failed
    assert not perfect or failed <= carried
    assert "are not in this page" in page(report.runs[0].directory, budget)


def test_an_answer_is_found_however_its_line_is_written(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made(skill={"alpha": 0.7}, samples=1))
    path = directory / "completions.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    turned = [orjson.dumps(dict(reversed(line.items()))) for line in lines[:2]]
    rest = [orjson.dumps(line) for line in lines[2:]]
    path.write_bytes(b"\n".join([*turned, b"not json", b'["list"]', *rest]) + b"\n")
    chunks = embed(build_report([directory]).entries).chunks
    for chunk in chunks:
        for record in orjson.loads(gzip.decompress(base64.b64decode(chunk.data))).values():
            assert record["answer"].startswith("<solution>alpha")


def test_a_lost_answer_leaves_its_result_readable(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made(samples=1))
    (directory / "completions.jsonl").unlink()
    for chunk in embed(build_report([directory]).entries).chunks:
        for record in orjson.loads(gzip.decompress(base64.b64decode(chunk.data))).values():
            assert record["answer"] is None
            assert record["total"] >= 3


def test_every_section_of_the_report_is_on_the_page(tmp_path: Path) -> None:
    html = page(write_run(tmp_path / "run", Made(formats=("xml", "json"))), plots=True)
    sections = re.findall(r'<section id="(\w+)"', html)
    assert sections == [
        *("leaderboard", "pairs", "skills", "problems", "formats"),
        *("failures", "lengths", "costs", "harness", "provenance"),
    ]
    assert html.count("<figure ") == 13

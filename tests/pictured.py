"""The viewer's pages in docs/pictures, for a generated run, and the layout of a page."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.asking.prompt import build_prompt
from astra_async.bundled import bundled_problems_csv
from astra_async.overlay import integrate
from astra_async.problems import load_problems
from astra_async.types import Integrated, Project, ProjectFile, Solution
from astra_async.view.access import Access
from astra_async.view.replay import _RecordedPolicy
from astra_async.view.serving import Viewer, served
from browser import Tab, open_tab
from fakes import a_problem
from made_runs import Made, MadeProblem, agreeing, write_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SIZE = {"width": 1280, "height": 640}
PAGES = {
    "overview": "",
    "map": "map",
    "samples": "list",
    "tests": "problem/library-api",
    "sample": "sample/simulated%2Ferratic/library-api/2",
}
KEY = ("simulated/erratic", "xml", "library-api", 2)
SKILL = {
    "simulated/steady": 0.93,
    "simulated/json-shy": 0.9,
    "simulated/erratic": 0.82,
    "simulated/refuser": 0.8,
    "simulated/weak": 0.55,
}
BEFORE = """\"\"\"Books that are lent, and when they have to come back.\"\"\"


def fee(days_late):
    return 0


def lend(book, reader):
    raise NotImplementedError
"""
AFTER = """\"\"\"Books that are lent, and when they have to come back.\"\"\"

MOST_BOOKS = 5


def fee(days_late):
    return 0.25 * max(0, days_late)


def lend(book, reader):
    if len(reader.books) > MOST_BOOKS:
        raise ValueError("no more books for this reader")
    reader.books.append(book)
    return book
"""
OUTPUT = (
    "\x1b[1m============ test session starts ============\x1b[0m\ncollected 6 items\n\n"
    "tests/test_library.py \x1b[32m.....\x1b[0m\x1b[31mF\x1b[0m\n\n"
    "E   Failed: DID NOT RAISE <class 'ValueError'>\n"
    "\x1b[31m1 failed\x1b[0m, \x1b[32m5 passed\x1b[0m in 0.21s\n"
)
TESTS = (
    *("a book is lent", "a late book costs a fee", "a book in time costs nothing"),
    *("a reader has the book", "the fee grows by the day", "a sixth book is refused"),
)
# Layout of a page, independent of the run.
_LAYOUT = """(() => {
  const texts = (what) => [...document.querySelectorAll(what)].map((node) => node.textContent.trim());
  const all = (what) => [...new Set(texts(what))].filter(Boolean);
  return {
    pages: all('#top nav a'), columns: [...all('.board th'), ...all('.row-head span')],
    states: all('.chips .chip').map((text) => text.replace(/[\\d,]+$/, '').trim()),
    tabs: all('.tabs a').map((text) => text.replace(/ \\(\\d+\\)$/, '')),
  };
})()"""


def made_run(directory: Path) -> Path:
    """Write a run of simulated models on the bundled problems; one sample has all its texts."""
    names = [problem.id for problem in load_problems(bundled_problems_csv()).problems]
    problems = tuple(
        MadeProblem(id=name, total=len(TESTS) if name == KEY[2] else 4 + number % 5)
        for number, name in enumerate(names)
    )
    write_run(directory, Made(skill=SKILL, problems=problems, samples=16, seed=4))
    file = ProjectFile(path="src/library.py", content=BEFORE.encode())
    prompt = build_prompt(a_problem(), Project(files=(file,), sha256=""), "xml").text
    digest = hashlib.sha256(prompt.encode()).hexdigest()
    (directory / "prompts").mkdir()
    (directory / "prompts" / f"{digest}.txt").write_text(prompt)
    answer = f'<solution><file path="src/library.py"><![CDATA[{AFTER}]]></file></solution>'
    change = {"path": "src/library.py", "kind": "changed", "added": 9, "removed": 2}
    integrated = integrate(
        Project(files=(file,), sha256=""),
        Solution(files={"src/library.py": AFTER}),
        _RecordedPolicy({file.path: file}, {"changes": [change]}),
    )
    assert isinstance(integrated, Integrated)
    told = {"changes": [change], "solution_sha256": integrated.sha256, "prompt_sha256": digest}
    told |= {"output_tail": OUTPUT}
    _change(directory / "results.jsonl", lambda line: _failed(line) | told)
    _change(directory / "completions.jsonl", lambda line: line | {"text": answer, "prompt_sha256": digest})
    return directory


def _failed(line: dict[str, Any]) -> dict[str, Any]:
    failed = agreeing(line, len(TESTS) - 1, total=line["total"])
    for test, name in zip(failed["tests"], TESTS, strict=False):
        test["name"] = name
    failed["tests"][-1]["message"] = "Failed: DID NOT RAISE <class 'ValueError'>"
    return failed


def _change(path: Path, change: Any) -> None:
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    names = ("model", "format", "problem_id", "sample")
    lines = [change(line) if tuple(line[name] for name in names) == KEY else line for line in lines]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


@asynccontextmanager
async def opened(run: Path) -> AsyncIterator[tuple[Tab, str]]:
    """Open a tab in the size of the pictures; yield the tab and the viewer's address."""
    async with served(Viewer([run], Access(None)), "127.0.0.1", 0) as port, open_tab() as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", **SIZE, deviceScaleFactor=1, mobile=False)
        light = {"name": "prefers-color-scheme", "value": "light"}
        await tab.call("Emulation.setEmulatedMedia", features=[light])
        yield tab, f"http://127.0.0.1:{port}/"


async def layout(tab: Tab, address: str, name: str) -> dict[str, Any]:
    """Open a page of the viewer, wait until it is complete, and return its layout."""
    await tab.open(f"{address}?{name}#/{PAGES[name]}")
    await tab.until("document.querySelector('.board, canvas, .rows .row, .tabs') !== null")
    await tab.until("document.querySelector('#run-state').textContent !== 'loading'")
    await asyncio.sleep(0.5)  # time for later requests of the page
    found: dict[str, Any] = await tab.run(_LAYOUT)
    return found

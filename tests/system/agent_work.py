"""Scripted work of agents on three bundled problems and one own problem, and the command that runs it."""

from __future__ import annotations

import asyncio
import csv
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from agent_tools import Step
from scripted_upstream import KEYS, MODELS, PRICES, Script, Upstream
from test_kill_and_resume import lines

from astra_async import bundled
from astra_async.agents.installing import KNOWN, installed_as, known_agent
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUNDLED = ("product-api", "task-api", "tool-hire")
OWN = "own-prices"
STATEMENT = 'Write discounted(prices, percent) in "prices.py" with `rounded` in money/rounding.py.'
BEFORE = {
    "prices.py": '"""Prices in €."""\n\n\ndef discounted(prices, percent):\n    raise NotImplementedError\n',
    "test_prices.py": (
        "from prices import discounted\n\n\n"
        "def test_a_discount_is_taken_off():\n    assert discounted([50, 50], 10) == 90\n\n\n"
        "def test_two_decimals():\n    assert discounted([0.333], 50) == 0.17\n"
    ),
    "obsolete.py": "OLD = True\n",
    "hackerrank.yml": (
        "configuration:\n  scoring:\n    command: python -m pytest --junitxml=unit.xml\n"
        "    files: [unit.xml]\n  readonly_paths: [test_prices.py]\n"
    ),
}
AFTER = {
    "prices.py": (
        '"""Prices in €."""\n\nfrom money.rounding import rounded\n\n\n'
        "def discounted(prices, percent):\n    return rounded(sum(prices) * (100 - percent) / 100)\n"
    ),
    "money/rounding.py": 'def rounded(amount):\n    """As 0,17 €."""\n    return round(amount, 2)\n',
}


@dataclass(frozen=True, kw_only=True)
class Work:
    """The scripted solution of one problem."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    marker: str
    deleted: tuple[str, ...] = ()

    def script(self) -> Script:
        steps: list[Step] = []
        for path, text in self.after.items():
            if path in self.before:
                old, new = changed_part(self.before[path], text)
                steps += [
                    Step(kind="read", path=path),
                    Step(kind="edit", path=path, old=old, new=new, content=text),
                ]
            else:
                steps.append(Step(kind="write", path=path, content=text))
        command = " && ".join([*(f"rm {path}" for path in self.deleted), "ls"])
        return Script(marker=self.marker, steps=[*steps, Step(kind="run", command=command)])


def changed_part(before: str, after: str) -> tuple[str, str]:
    """Return the changed lines with as many lines around as make the old part unique."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = next(at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1])
    tails = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    tail = next(at for at, pair in enumerate(tails) if pair[0] != pair[1])
    while True:
        parts = ["".join(each[head : len(each) - tail]) for each in (old, new)]
        if parts[0] and before.count(parts[0]) == 1:
            return parts[0], parts[1]
        head, tail = max(0, head - 1), max(0, tail - 1)


def works() -> dict[str, Work]:
    """Return the work on each problem."""
    made = {}
    for name in BUNDLED:
        answers = bundled.load_answers(name)
        assert answers is not None
        folder = bundled.bundled_problems_csv().parent / "problems" / name / "project"
        before = {path: (folder / path).read_text(encoding="utf-8") for path in answers.reference}
        marker = bundled.read_statement(name)
        made[name] = Work(before=before, after=answers.reference, marker=marker)
    return made | {OWN: Work(before=BEFORE, after=AFTER, marker=STATEMENT, deleted=("obsolete.py",))}


def write_problems(folder: Path) -> Path:
    """Write a CSV with three bundled problems, and a problem with its own zip archive."""
    with bundled.bundled_problems_csv().open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["id"] in BUNDLED]
    for row in rows:
        row |= {
            name: str(bundled.bundled_problems_csv().parent / row[name]) for name in ("project", "reference")
        }
    with zipfile.ZipFile(folder / "own.zip", "w") as archive:
        for path, text in BEFORE.items():
            archive.writestr(path, text)
    own = dict.fromkeys(rows[0], "") | {"id": OWN, "name": OWN, "problem_statement": STATEMENT}
    image = next(row["image"] for row in rows if row["id"] == "task-api")
    tests = orjson.dumps(["test_a_discount_is_taken_off", "test_two_decimals"]).decode()
    rows.append(own | {"project": "own.zip", "image": image, "tests": tests})
    with (folder / "problems.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(own))
        writer.writeheader()
        writer.writerows(rows)
    return folder / "problems.csv"


async def run(
    folder: Path, agent: str, speaks: str, server: Upstream, *options: str, tables: str = "", code: int = 0
) -> list[dict[str, Any]]:
    """Run an agent on the problems until the exit code is `code`, and return the final lines."""
    process = await start(folder, agent, speaks, server, *options, tables=tables)
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == code, (folder / "output").read_text()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return lines(folder / "run" / "results.jsonl")


async def start(
    folder: Path, agent: str, speaks: str, server: Upstream, *options: str, tables: str = ""
) -> asyncio.subprocess.Process:
    """Start or continue a run in `folder`. `tables` are further tables of its configuration."""
    prices = "".join(f"{name} = {price}\n" for name, price in PRICES.items())
    model = f'[[models]]\nname = "m"\nspec = "{MODELS[speaks]}"\nbase_url = "{server.url}"\n{prices}'
    (folder / "astra.toml").write_text(model + tables)
    command = (
        *(sys.executable, "-m", "astra_async", "run", "--config", str(folder / "astra.toml")),
        *("--problems", str(write_problems(folder)), "--samples", "1", "--agent-steps", "40"),
        *("--agent", agent, *options, "--out", str(folder / "run")),
    )
    with (folder / "output").open("a") as output:
        return await asyncio.create_subprocess_exec(
            *command, stdout=output, stderr=output, env={**os.environ, **KEYS}
        )


def installed_agents() -> list[str]:
    """Return all installed agents as NAME, or NAME@VERSION for another version than the tested one."""
    names = ["docker", "volume", "ls", "--quiet"]
    volumes = subprocess.run(names, capture_output=True, text=True, check=False).stdout.split()
    found = filter(None, map(installed_as, volumes))
    return sorted(
        {
            each.name if KNOWN[each.name].settings.version == each.version else f"{each.name}@{each.version}"
            for each in found
            if each.name in KNOWN
        }
    )


def interface_of(agent: str) -> str:
    """Return the interface of an agent that is named as NAME or NAME@VERSION."""
    known = known_agent(agent)
    assert known is not None
    return str(known.settings.speaks)

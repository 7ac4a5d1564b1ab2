"""What the viewer's page takes in a browser: first paint, a filter, a sample, with 66,560 samples.

Makes the run of `scripts/bench/run view` (or takes --keep DIR), opens it in headless Chromium, and measures
inside of the page, from the start of the navigation or of the event to the frame that shows the outcome.

    scripts/bench/run view_page [--models 32] [--problems 65] [--samples 32] [--rounds 5] [--keep DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import view

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from browser import Tab, open_tab

_DRAWN = "(document.querySelector('canvas')?.height ?? 0) > 200 && document.querySelector('.grid-names a')"
# Noted by the page itself in the first frame in which the condition holds, in ms since the navigation began.
_NOTE = """
(() => {{ const look = () => {{
  let seen = false; try {{ seen = Boolean({condition}); }} catch {{}}
  if (seen) window.noted = performance.now(); else requestAnimationFrame(look); }};
  requestAnimationFrame(look); }})()
"""
_TYPE = (
    "{{ const field = document.getElementById('filter-text');"
    " field.value = '{}'; field.dispatchEvent(new Event('input')); }}"
)
_KEY = "dispatchEvent(new KeyboardEvent('keydown', { key: 's' }))"
_STEP = """
new Promise((done) => {{ const began = performance.now(); {act};
  const look = () => (({condition}) || performance.now() - began > 10000
    ? done(performance.now() - began) : requestAnimationFrame(look));
  requestAnimationFrame(look); }})
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("models", 32), ("problems", 65), ("samples", 32), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or Path(temporary) / "run"
        if not (directory / "results.jsonl").exists():
            view.make(directory, options.models, options.problems, options.samples)
        with view.viewer(directory) as started:
            asyncio.run(_measure(f"http://127.0.0.1:{started.port}/", options.rounds))


async def _measure(address: str, rounds: int) -> None:
    run = await _all_read(address)
    model, problem = (
        quote(run[of][0][name], safe="") for of, name in (("models", "name"), ("problems", "id"))
    )
    shown = "document.querySelector('.verdict strong')"
    other = f"document.querySelector('h1')?.textContent.endsWith('sample {{}}') && {shown}"
    pages = {
        "overview, first paint": ("", "document.querySelectorAll('.board tbody tr').length > 0"),
        "map, first paint": ("map", _DRAWN),
        "list, first paint": ("list", "document.querySelector('.rows .row')"),
        "a sample by its address": (f"sample/{model}/{problem}/0", shown),
    }
    count = "document.querySelector('.count').textContent"
    press = "document.querySelectorAll('.chips button')[{}].click()"
    changed = f"{count} !== window.before"
    other_rows = "document.querySelector('.grid-names').firstChild !== window.first"
    steps: dict[str, tuple[str, list[tuple[str, str]]]] = {  # a route, and (what is done, until when)
        "a filter by state": ("map", [(press.format(n % 2), changed) for n in range(rounds + 1)]),
        "a filter by text": (
            "map",
            [(_TYPE.format(run["problems"][n]["id"]), other_rows) for n in range(rounds + 1)],
        ),
        "another order of the problems": (
            "map",
            [(_KEY, other_rows)] * (rounds + 1),
        ),
        "a sample, not asked for ahead": (
            f"sample/{model}/{problem}/0",
            [
                (f"location.hash = location.hash.replace(/\\d+$/, '{n}')", other.format(n))
                for n in range(3, 3 + 4 * (rounds + 1), 4)
            ],
        ),
    }
    print("| what | ms, median | ms, slowest |", "|---|---|---|", sep="\n")
    async with open_tab() as tab:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False
        )
        for what, (route, condition) in pages.items():
            _row(what, [await _painted(tab, f"{address}#/{route}", condition) for _ in range(rounds)])
        for what, (route, acts) in steps.items():
            await _painted(tab, f"{address}#/{route}", _DRAWN if route == "map" else shown)
            times = [await _step(tab, act, condition) for act, condition in acts]
            _row(what, times[1:])  # the first brings columns that later ones have


async def _all_read(address: str) -> dict[str, Any]:
    while True:
        with await asyncio.to_thread(urllib.request.urlopen, f"{address}api/run") as answer:
            run: dict[str, Any] = json.load(answer)
        if run["loading"] is None:
            return run
        await asyncio.sleep(0.2)


async def _painted(tab: Tab, url: str, condition: str) -> float:
    await tab.open("about:blank")
    note = await tab.call("Page.addScriptToEvaluateOnNewDocument", source=_NOTE.format(condition=condition))
    await tab.open(url)
    await tab.until("window.noted")
    await tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=note["identifier"])
    return float(await tab.run("window.noted"))


async def _step(tab: Tab, act: str, condition: str) -> float:
    await asyncio.sleep(0.3)
    await tab.run(
        "window.before = document.querySelector('.count')?.textContent;"
        " window.first = document.querySelector('.grid-names')?.firstChild"
    )
    return float(await tab.run(_STEP.format(act=act, condition=condition)))


def _row(what: str, milliseconds: list[float]) -> None:
    print(f"| {what} | {statistics.median(milliseconds):.0f} | {max(milliseconds):.0f} |", flush=True)


if __name__ == "__main__":
    main()

"""Makes docs/pictures: pages of the viewer and a report of a made run, and a run's display in a terminal.

    .venv/bin/python scripts/pictures.py       no Docker and no key, in Chromium; half a minute

What the viewer's pages consist of (columns, states, tabs) goes to layout.json beside them.
`tests/docs/test_pictures.py` holds the pages to it: a picture shows nothing that is no longer there.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import pyte
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import pictured  # noqa: E402 - a folder that is no package
from browser import open_tab  # noqa: E402 - the same

FOLDER = ROOT / "docs" / "pictures"
_ROWS, _COLUMNS = 14, 108
_PERCENT = re.compile(r"\] \d+ of \d+ answers, (\d+) %")
_WANTED = 60
_RUN = "run --problems bundled --samples 32 --generate-only --out"


def main() -> None:
    """Take the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = pictured.made_run(Path(folder) / "run")
        subprocess.run(
            [sys.executable, "-m", "astra_async", "report", str(run)], check=True, stdout=subprocess.DEVNULL
        )
        asyncio.run(_take(run))
        (FOLDER / "terminal.svg").write_text(_drawn(_watched(Path(folder) / "other")))


async def _take(run: Path) -> None:
    layouts = {}
    async with pictured.opened(run) as (tab, address):
        for name in pictured.PAGES:
            layouts[name] = await pictured.layout(tab, address, name)
            await tab.screenshot(FOLDER / f"{name}.png", **pictured.SIZE)
    async with open_tab() as tab:
        await tab.open((run / "report" / "index.html").resolve().as_uri())
        await tab.screenshot(FOLDER / "report.png", **pictured.SIZE)
    (FOLDER / "layout.json").write_text(json.dumps(layouts, indent=1) + "\n")


def _watched(out: Path) -> list[str]:
    """Run in a terminal; its screen as it stood when three fifths were answered."""
    screen = pyte.Screen(_COLUMNS, _ROWS)
    stream = pyte.ByteStream(screen)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    models = [word for name in pictured.SKILL for word in ("--model", name)]
    command = [sys.executable, "-m", "astra_async", *_RUN.split(), str(out), *models]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    kept: list[str] = []
    while True:
        try:
            stream.feed(os.read(ours, 65536))
        except OSError:  # the terminal's other side is closed
            break
        found = _PERCENT.search("\n".join(screen.display))
        if found and (not kept or int(found[1]) <= _WANTED):
            kept = list(screen.display)
    assert process.wait() == 0, "\n".join(screen.display)
    return kept


def _drawn(lines: list[str]) -> str:
    """The screen as SVG, without a font of somebody's server."""
    first = next(number for number, line in enumerate(lines) if _PERCENT.search(line))
    shown = "\n".join(line.rstrip() for line in lines[first:]).rstrip()
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    console.print(Text(shown), soft_wrap=True)
    svg = console.export_svg(title="astra run")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()

"""The live display: at several widths, and on a pty that is resized, read through a terminal emulator."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import json
import os
import re
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyte
import pytest
from rich.console import Console

from astra_async.cli.display import Display, Screen, Style, duration, line
from astra_async.running.plan import Speed
from astra_async.running.progress import ModelView, View
from waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROW = ModelView(
    model="openai/gpt-4o",
    format="xml",
    final=1234,
    planned=4160,
    mean_score=0.945,
    pass_at_1=0.5,
    in_flight=212,
    concurrency=256,
    waiting=5,
    tokens_in=12_345,
    tokens_out=2_000_000,
    rate_limited=41,
    retries=6,
    cost_usd=123.45,
    state="paused 12 s: retry-after",
)
VIEW = View(
    models=(
        ROW,
        replace(ROW, model="anthropic/claude-opus-4-1-with-a-long-name", state="running, 90k tokens/min"),
    ),
    planned=8320,
    answered=2500,
    final=2468,
    missing={"provider_error": 1},
    containers=2,
    containers_waiting=1,
    calls_per_minute=61.2,
    tests_per_minute=48.0,
    elapsed_s=65,
    left_s=3700,
    last="12:00:01 rate limited openai/gpt-4o: HTTP 429: slow down",
    note="stopping",
)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "?"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (65, "1 min 05 s"),
        (3599.9, "1 h 00 min"),
        (7620, "2 h 07 min"),
    ],
)
def test_durations_are_said_as_a_person_would(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_a_line_tells_counts_scores_troubles_and_time() -> None:
    assert line(replace(VIEW, models=(ROW,))) == (
        "2468/8320 samples, 2500 answers; openai/gpt-4o/xml 94.5 % (1234/4160); 2 containers (+1 waiting),"
        " 6 retries, 1 provider error; 1 min 05 s elapsed, 1 h 01 min left; stopping"
    )


def drawn(view: View, width: int, height: int = 24) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, height=height).print(Screen(view))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [36, 60, 80, 120, 200])
def test_no_number_is_cut_at_any_width(width: int) -> None:
    lines = drawn(VIEW, width)
    text = "\n".join(lines)
    assert max(map(len, lines)) < width
    for number in ("2468 of 8320 samples, 29 %", "1234/4160", "94.5 %", "61 answers/min", "48 tested/min"):
        assert number in text
    for number in ("1 min 05 s so far, 1 h 01 min left", "$246.90", "12 retries", "1 provider error"):
        assert number in text
    for whole, name in (
        ("$123.45", "cost"),
        ("212/256 +5", "calls"),
        ("12k/2.0M", "tokens"),
        ("50.0 %", "pass@1"),
    ):
        assert (whole in text) == (f"  {name}" in text)
    assert ("[#" in text) == (width >= 40)
    assert "paused 12 s: retry-after" in text
    assert "last: 12:00:01 rate" in text


def test_a_wide_terminal_shows_every_column() -> None:
    header = next(each for each in drawn(VIEW, 120) if each.startswith("model"))
    assert header.split() == [
        "model",
        "samples",
        "score",
        "pass@1",
        "calls",
        "tokens",
        "in/out",
        "429",
        "cost",
    ]


def test_a_low_terminal_says_how_many_models_it_does_not_show() -> None:
    lines = drawn(replace(VIEW, models=(ROW,) * 30), 80, height=14)
    assert len(lines) <= 13
    assert any(re.match(r"\.\.\. and \d+ more lines", each) for each in lines)


async def test_without_a_terminal_there_are_lines_and_no_control_characters() -> None:
    out = io.StringIO()
    await shown_for_a_moment(out, "lines")
    assert out.getvalue() == line(VIEW) + "\n"


async def test_json_lines_can_be_read_back() -> None:
    out = io.StringIO()
    await shown_for_a_moment(out, "json")
    assert json.loads(out.getvalue())["models"][0]["mean_score"] == 0.945


async def shown_for_a_moment(out: io.StringIO, style: Style) -> None:
    display = Display(style)
    with contextlib.redirect_stderr(out):
        task = asyncio.create_task(display.show(lambda: VIEW))
        await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_pace_estimates_from_what_was_finished_since_it_began() -> None:
    now = [100.0]
    pace = Speed(12, 10, lambda: now[0])
    assert pace.left_s(10, 50) is None
    assert pace.per_minute(12, 10) == (None, None)
    now[0] = 110.0
    assert pace.left_s(20, 50) == pytest.approx(30.0)
    assert pace.left_s(32, 52, graded=False) == pytest.approx(10.0)
    assert pace.per_minute(32, 20) == (120.0, 60.0)
    assert pace.elapsed_s == 10.0
    for second in range(111, 300):
        now[0] = second
        calls, tests = pace.per_minute(32, 20)
    assert (calls, tests) == (0, 0)  # nothing within the last minute


TESTS = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
SHOWING = """
import asyncio, sys
sys.path[:0] = {tests!r}
from dataclasses import replace
from astra_async.cli.display import Display
from test_display import VIEW

async def main():
    display = Display("live")
    display.say("said before")
    shown = asyncio.create_task(display.show(lambda: replace(VIEW, last="\\x1b]0;owned\\x07\\x1b[2J")))
    await asyncio.sleep(0.3)
    display.say("said meanwhile")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    shown.cancel()
    await asyncio.wait([shown])
    print("the end", file=sys.stderr)

asyncio.run(main())
"""


class Terminal:
    """A pty whose other side is drawn by a terminal emulator."""

    def __init__(self, width: int, height: int = 24) -> None:
        self._ours, self._theirs = os.openpty()
        self.screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(width, height)

    def resize(self, width: int, height: int = 24) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.screen.resize(height, width)

    @contextlib.contextmanager
    def running(self, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        # COLUMNS and LINES, which pytest-xdist sets, would stand before the size of the terminal.
        environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environ["TERM"] = "xterm-256color"
        ends = {"stdin": self._theirs, "stdout": self._theirs, "stderr": self._theirs}
        with subprocess.Popen(command, env=environ, **ends) as process:  # type: ignore[call-overload]
            self._process = process
            os.set_blocking(self._ours, False)
            try:
                yield process
            finally:
                process.kill()  # a failed test has stopped reading: its program would wait for ever
        os.close(self._ours)
        os.close(self._theirs)

    def enter(self) -> None:
        os.write(self._ours, b"\n")

    @property
    def lines(self) -> list[str]:
        with contextlib.suppress(BlockingIOError):
            while text := os.read(self._ours, 65536):
                self._stream.feed(text)
        return [each.rstrip() for each in self.screen.display if each.strip()]

    def await_lines(self, hold: Callable[[list[str]], bool]) -> list[str]:
        def seen() -> list[str]:
            has_ended, lines = self._process.poll() is not None, self.lines
            assert not has_ended or hold(lines), f"the program ended, and showed {lines}"
            return lines

        return awaited(seen, "the display", until=hold)


def bars(lines: list[str]) -> list[int]:
    """The width of every progress bar on the screen."""
    return [len(each) for each in lines if each.startswith("[#")]


def _is_whole(lines: list[str], width: int) -> bool:
    return (
        bars(lines) == [width - 1]
        and lines[:2] == ["said before", "said meanwhile"]
        and sum("1234/4160" in each for each in lines) == 2
        and sum("last:" in each for each in lines) == 1
    )


def test_a_resized_terminal_shows_one_whole_display() -> None:
    terminal = Terminal(120)
    with terminal.running(sys.executable, "-c", SHOWING.format(tests=TESTS)) as process:
        for width in (120, 80, 60, 100):
            terminal.resize(width)
            terminal.await_lines(lambda lines, width=width: bars(lines) == [width - 1])  # type: ignore[misc]
            time.sleep(1)  # two more drawings; the last of them may be half on the screen
            terminal.await_lines(lambda lines, width=width: _is_whole(lines, width))  # type: ignore[misc]
        terminal.enter()
        lines = terminal.await_lines(lambda lines: "the end" in lines)
        assert process.wait(60) == 0
        assert [each for each in lines if each.startswith(("said", "the end"))] == [
            "said before",
            "said meanwhile",
            "the end",
        ]
    assert terminal.screen.title == ""


def test_tokens_and_cost_of_a_model_with_several_agents_are_shown_once() -> None:
    rows = tuple(replace(ROW, format=name) for name in ("shell", "nop"))
    console = Console(file=io.StringIO(), width=200)
    console.print(Screen(replace(VIEW, models=rows), live=False))
    lines = cast("io.StringIO", console.file).getvalue().splitlines()
    first, second = (next(each for each in lines if f"({name})" in each) for name in ("shell", "nop"))
    assert "12k/2.0M" in first
    assert "$123.45" in first
    shown = [*["openai/gpt-4o", "(nop)", "1234/4160", "94.5", "%", "50.0", "%"], *ROW.state.split()]
    assert second.split() == shown

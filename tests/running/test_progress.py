from __future__ import annotations

import asyncio
import contextlib
import io
import json

import pytest
from rich.console import Console

from astra_async.running.progress import ModelView, Pace, View, display, duration, line, table

VIEW = View(
    models=(
        ModelView(
            model="openai/x",
            format="xml",
            final=3,
            planned=10,
            mean_score=0.75,
            pass_at_1=None,
            in_flight=2,
            concurrency=8,
            waiting=5,
            tokens_in=12_345,
            tokens_out=2_000_000,
            rate_limited=4,
            retries=6,
            cost_usd=1.5,
            state="paused 12 s: retry-after",
        ),
    ),
    planned=10,
    answered=5,
    final=3,
    missing={"provider_error": 1},
    containers=2,
    containers_waiting=1,
    elapsed_s=65,
    left_s=3700,
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
    assert line(VIEW) == (
        "3/10 samples, 5 answers; openai/x/xml 75.0 % (3/10); 2 containers (+1 waiting), 6 retries,"
        " 1 provider_error; 1 min 05 s elapsed, 1 h 01 min left; stopping"
    )


def test_the_table_shows_why_a_model_is_slow() -> None:
    out = io.StringIO()
    Console(file=out, width=140).print(table(VIEW))
    text = out.getvalue()
    for part in ("2/8 +5", "12k/2.0M", "$1.50", "paused 12 s: retry-after", "75.0 %"):
        assert part in text


def test_without_a_terminal_there_are_lines_and_no_control_characters() -> None:
    out = io.StringIO()
    asyncio.run(shown_for_a_moment(out, "lines"))
    assert out.getvalue() == line(VIEW) + "\n"


def test_json_lines_can_be_read_back() -> None:
    out = io.StringIO()
    asyncio.run(shown_for_a_moment(out, "json"))
    assert json.loads(out.getvalue())["models"][0]["mean_score"] == 0.75


async def shown_for_a_moment(out: io.StringIO, style: str) -> None:
    task = asyncio.create_task(display(lambda: VIEW, Console(file=out), style))  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_pace_estimates_from_what_was_finished_since_it_began() -> None:
    now = [100.0]
    pace = Pace(10, lambda: now[0])
    assert pace.left_s(10, 50) is None
    now[0] = 110.0
    assert pace.left_s(20, 50) == pytest.approx(30.0)
    assert pace.elapsed_s == 10.0

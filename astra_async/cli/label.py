"""`astra label`: classify the errors of failed samples into the paper's four classes with a judge."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.asking.judge_prompt import REJECTED
from astra_async.cli import EXIT_INCOMPLETE
from astra_async.cli.click_options import config_options
from astra_async.cli.console import open_console, say, tell
from astra_async.cli.env_file import env_file_option
from astra_async.cli.signals import Stopper
from astra_async.config import load_config
from astra_async.errors import UsageError
from astra_async.options import BUNDLED
from astra_async.types.run_record import read_run, require_run

if TYPE_CHECKING:
    from astra_async.config import RunConfig
    from astra_async.running.judging import JudgingTally


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--judge", metavar="SPEC", help="Judge: provider/model, or a name in [[models]].")
@click.option(
    "--draw",
    type=click.IntRange(1),
    metavar="N",
    help="Print N random failed samples as CSV, to label by hand.",
)
@click.option("--again", is_flag=True, help="Ask again for samples whose judgment was rejected.")
@config_options("base_url", "max_in_flight", "budget_usd", "price_input", "price_output")
@env_file_option
def label(
    directory: Path,
    *,
    judge: str | None,
    draw: int | None,
    again: bool,
    config_file: Path | None,
    **given: Any,
) -> int:
    """Classify the errors of failed samples with a judge model; labels by hand are never changed.

    The same command resumes, and every judgment is paid for once. The report compares judge and people.
    """
    if draw is not None:
        return _draw(directory, draw)
    if judge is None:
        raise UsageError("no judge: add --judge PROVIDER/MODEL, or --draw N to label by hand")
    fixed = {**given, "model": (judge,), "out": str(directory), "problems": BUNDLED}
    config = load_config(fixed, config_file, environ=os.environ)
    for line in (*config.addresses, *(f"warning: {warning}" for warning in config.warnings)):
        tell(line)
    return asyncio.run(_label(config, again=again))


async def _label(config: RunConfig, *, again: bool) -> int:
    from astra_async.running.judging import open_judging

    stopper = Stopper()
    with stopper.installed():
        async with open_judging(config, tell, again=again) as (judging, pool):
            stopper.drains(pool.stop)
            already = judging.tally.judged
            tell(f"{judging.tally.planned} failed samples, {already} of them already judged")
            await judging.run(pool, tell)
    _tell(judging.tally, already)
    _print_tables(config.out)
    if stopper.received is not None:
        return 128 + stopper.received
    return 0 if judging.tally.judged == judging.tally.planned else EXIT_INCOMPLETE


def _tell(tally: JudgingTally, already: int) -> None:
    cost = "" if tally.cost_usd is None else f", {tally.cost_usd:.4f} USD"
    tell(f"{tally.judged - already} judged now{cost}")
    _tell_rejected(tally)
    for trouble, count in list(tally.troubles.items())[:5]:
        tell(f"{count}: {trouble}")
    if tally.judged < tally.planned:
        tell(f"{tally.planned - tally.judged} samples are not judged yet; run the same command again")


def _tell_rejected(tally: JudgingTally) -> None:
    """Print why replies give no label, with a sample for each reason, and the command that asks again."""
    if not tally.rejected:
        return
    tell(f"{len(tally.rejected)} of {tally.judged} replies of the judge give no label:")
    for why, count in Counter(tally.rejected.values()).most_common():
        example = next(key for key, each in tally.rejected.items() if each == why)
        tell(f"  {count}: {REJECTED.get(why, why)} (for example {' '.join(map(str, example))})")
    words = [word for word in sys.argv[1:] if word != "--again"]
    tell(f"to ask the judge again for these samples: {shlex.join(['astra', *words, '--again'])}")


def _print_tables(directory: Path) -> None:
    from astra_async.report.entries import entries_of
    from astra_async.report.failures import judge_tables, judged_classes
    from astra_async.report.load import load_run
    from astra_async.report.text import render_terminal

    entries = entries_of((load_run(directory),))
    render_terminal([judged_classes(entries), *judge_tables(entries)], open_console())


def _draw(directory: Path, count: int) -> int:
    from astra_async.report.labels import COLUMNS, HAND, csv_of
    from astra_async.running.judging import draw_samples, failed_samples

    require_run(directory)
    samples = failed_samples(directory)
    drawn_by = str(read_run(directory / "run.json")["run_id"])
    rows = [each.key._asdict() | {"source": HAND} for each in draw_samples(samples, count, drawn_by)]
    say(csv_of((*COLUMNS, "source"), rows).removesuffix("\n"))
    tell(f"{min(count, len(samples))} of {len(samples)} failed samples; add classes, copy to labels.csv")
    return 0

"""`await astra_async.run(...)`: a complete run from Python, like `astra run` but without terminal output."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.config import RunConfig, load_config
from astra_async.errors import UsageError
from astra_async.options import options as declared_options
from astra_async.running.opening import drive, open_run
from astra_async.tasks import cancel
from astra_async.types import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.export.loaded import Loaded
    from astra_async.running.opening import RunEnd
    from astra_async.running.progress import OpenRun
    from astra_async.types import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Outcome of a run: `complete`, `incomplete` (samples are missing) or `no_answers` (every model failed).

    `missing` has (reason, count) of missing samples, then of missing follow-up turns; most frequent first.
    """

    directory: Path
    outcome: RunEnd
    missing: tuple[tuple[str, int], ...]

    def load(self, *, provisional: bool = False) -> Loaded:
        """Load the run as data frames (`astra_async.load`)."""
        from astra_async.export.loaded import load

        return load(self.directory, provisional=provisional)


async def run(
    config: RunConfig | str | Path | None = None,
    *,
    on_result: Callable[[Result], None] | None = None,
    say: Callable[[str], None] | None = None,
    generate_only: bool = False,
    **options: Any,
) -> Finished:
    """Request samples of every problem from models and test them; the same call again resumes the run.

    Args:
        config: a RunConfig, or a TOML file that `options` supplement.
        on_result: called with every result when it is recorded, including follow-up turns (`turn`). An
            exception raised by it ends the run, which can be resumed.
        say: called with each line that the command would print.
        generate_only: record answers without testing them.
        options: named like the command's flags: problems, model, out, samples, budget_usd, ... A repeatable
            flag takes a list. Checks, environment variables and defaults are those of the command.

    A cancelled run starts nothing new; requests and tests in progress finish and are recorded. When
    cancelled again, the run ends at once.

    Raises:
        UsageError: settings, problems, keys or the directory are invalid; the message is one line.
        EngineUnavailable, StorageError: the run cannot continue; recorded results are kept for a resume.
    """
    if isinstance(config, RunConfig):
        if options:
            raise UsageError(f"run(): options and a RunConfig are exclusive; remove {', '.join(options)}")
    else:
        given = _as_flags(options)
        config = load_config(given, None if config is None else Path(config), environ=os.environ)
    opening = open_run(
        config,
        generate_only=generate_only,
        say=say or (lambda _: None),
        on_result=on_result or (lambda _: None),
    )
    async with opening as opened:
        outcome = await _driven(opened)
        tally = opened.runner.tally
        reasons = [*tally.reasons.most_common(), *tally.turns.reasons.most_common()]
        missing = tuple((reason.text, count) for reason, count in reasons)
    return Finished(directory=config.out, outcome=outcome, missing=missing)


def _as_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in the command line's form; options that were not given are None."""
    known = declared_options()
    for name in given:
        refuse_unknown(name, known, "run()")
    flags: dict[str, Any] = dict.fromkeys(known)
    for name, value in given.items():
        text = str(value) if isinstance(value, Path) else value
        several = known[name].several
        flags[name] = ((text,) if isinstance(text, str) else tuple(text)) if several else text
    return flags


async def _driven(opened: OpenRun) -> RunEnd:
    driving = asyncio.create_task(drive(opened))
    try:
        return await asyncio.shield(driving)
    except asyncio.CancelledError:
        opened.stop()
        try:
            await asyncio.shield(driving)
        except asyncio.CancelledError:
            await cancel(driving)
        raise

"""`await astra_async.run(...)`: a whole run from Python as the command makes it, silent on the terminal."""

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
    """How a run ended: `complete`, `incomplete` (samples are missing), `no_answers` (every model failed).

    `missing` tells why samples, and then why further turns are missing, most of them first: (reason, count).
    """

    directory: Path
    outcome: RunEnd
    missing: tuple[tuple[str, int], ...]

    def load(self, *, provisional: bool = False) -> Loaded:
        """The run as frames (`astra_async.load`)."""
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
    """Ask models for samples of every problem and test them; the same call again resumes.

    Args:
        config: a RunConfig, or a TOML file; what it leaves out stands in `options`.
        on_result: gets every final line as it is recorded, a further turn's with its `turn`; what it raises
            ends the run, resumable.
        say: gets the lines that the command would print.
        generate_only: record answers and test none.
        options: as the command's flags are called: problems, model, out, samples, budget_usd ... A flag that
            may be repeated takes a list. The same checks, variables and defaults hold.

    A cancelled run begins nothing more and lets the calls and tests under way come to their end, which are
    recorded; cancelled again, it ends at once.

    Raises:
        UsageError: settings, problems, keys or the directory cannot be used; the message is one line.
        EngineUnavailable, StorageError: cannot go on; what was recorded until then is resumed.
    """
    if isinstance(config, RunConfig):
        if options:
            raise UsageError(f"run(): a RunConfig is whole; leave out {', '.join(options)}")
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
    """The options as the command line would hand them on, those that were not given as None."""
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

"""The problems of a configuration: where they come from, which are meant, and all of them made ready."""

from __future__ import annotations

import contextlib
import os
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.config import load_config
from astra_async.errors import ConfigError
from astra_async.listing import told_once
from astra_async.options import BUNDLED
from astra_async.prepare import prepare_all
from astra_async.problems import ProblemSet, load_problems, select
from astra_async.running.kept import hold
from astra_async.running.ownership import make_private
from astra_async.types import S3Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.prepare import Prepared
    from astra_async.problems.collect import Selection
    from astra_async.problems.fetch import Store
    from astra_async.types import Problem

_TELL_EVERY_S = 5.0
_NO_MODEL = "simulated/steady"  # never called


def cache_root() -> Path:
    """Where projects and expectations are kept between runs: ASTRA_CACHE, else the user's cache folder."""
    if named := os.environ.get("ASTRA_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "astra_async"


async def load_problem_set(config: RunConfig) -> ProblemSet:
    """The problems that `--problems` names; what can only be meant for a CSV is refused without one."""
    from astra_async.problems.collect import load_set

    if config.problems == BUNDLED:
        from astra_async.bundled import bundled_problems_csv

        meant = {"--projects": config.projects, "--column": config.columns, "--skills": config.skills}
        for flag, value in meant.items():
            if value:
                raise ConfigError(
                    f"{flag} is for a CSV of your own: name it with --problems, or leave it out"
                )
        return load_problems(bundled_problems_csv())
    async with open_store(config) as store:
        return await load_set(config.problems, store, wanted(config))


def wanted(config: RunConfig) -> Selection:
    """How the problems' CSV is read."""
    from astra_async.problems.collect import Selection

    return Selection(projects=config.projects, columns=config.columns, skills=config.skills)


def data_config(
    given: Mapping[str, Any], config_file: Path | None, *, recorded: Mapping[str, Any] | None = None
) -> RunConfig:
    """The configuration of a command that looks at problems and calls no model; see `load_config`."""
    fixed = {**given, "model": (_NO_MODEL,), "out": "."}
    return load_config(fixed, config_file, recorded=recorded, environ=os.environ)


async def chosen_problems(config: RunConfig, say: Callable[[str], None]) -> tuple[Problem, ...]:
    """The problems that this call runs; `say` gets what is odd about the whole set."""
    found = await load_problem_set(config)
    for warning in found.warnings:
        say(f"warning: {warning}")
    return select(found.problems, only=config.only, skill=config.skill, limit=config.limit)


@asynccontextmanager
async def open_store(config: RunConfig) -> AsyncIterator[Store]:
    """Where project files come from."""
    from astra_async.problems.fetch import Store
    from astra_async.problems.fetch.hub import hub_of

    with contextlib.suppress(OSError):  # a cache that cannot be made is told by whoever needs it
        make_private(cache_root())
    hold(cache_root())
    store = Store(cache_root() / "projects", s3=S3Settings(**config.s3), hub=hub_of(os.environ))
    try:
        yield store
    finally:
        await store.close()


async def ready_problems(
    config: RunConfig, problems: Sequence[Problem], say: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Prepared], dict[str, AstraError]]:
    """All problems made ready, and those that cannot be, with the reason; `say` hears how far it is."""
    async with open_store(config) as store:
        ready, failed = await prepare_all(
            problems,
            store,
            config.formats,
            leave_out=config.leave_out,
            agent_minutes=config.agent_limits.minutes,
            on_ready=_patience(say, len(problems)),
        )
    return ready, dict(failed)


def warnings_of(prepared: Mapping[str, Prepared]) -> Iterator[str]:
    """What is odd about problems, in lines that name them."""
    return told_once((name, text) for name, item in prepared.items() for text in item.warnings)


def _patience(say: Callable[[str], None], total: int) -> Callable[[int], None]:
    """Tells every few seconds how far it is."""
    reported_at = time.monotonic()

    def tell(done: int) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= _TELL_EVERY_S and done < total:
            reported_at = time.monotonic()
            say(f"{done:,} of {total:,} problems are ready")

    return tell

"""`astra run`: options, display, signals, report and exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli import EXIT_CANNOT_GO_ON, EXIT_INCOMPLETE
from astra_async.cli.click_options import config_options
from astra_async.cli.console import is_terminal, tell
from astra_async.cli.display import Display
from astra_async.cli.env_file import env_file_option
from astra_async.cli.signals import Stopper
from astra_async.cli.viewer import viewer_beside
from astra_async.config import RunConfig, load_config
from astra_async.errors import AstraError, BudgetExhausted
from astra_async.listing import counted, some
from astra_async.running.description import commands_to_finish, missing_cells, shell_command
from astra_async.running.progress import view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.cli.display import Style
    from astra_async.prepare import Prepared
    from astra_async.running.directory import RunDirectory
    from astra_async.running.opening import RunEnd
    from astra_async.running.progress import OpenRun
    from astra_async.running.runner import Runner
    from astra_async.running.trouble import Reason

    BeforeReport = Callable[[Path, Mapping[str, Prepared]], None]

_REASONS_SHOWN = 10
_EXIT_CODES: Mapping[RunEnd, int] = {
    "complete": 0,
    "incomplete": EXIT_INCOMPLETE,
    "no_answers": EXIT_CANNOT_GO_ON,
    "stopped": EXIT_INCOMPLETE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Configuration and options of one invocation of `run`."""

    config: RunConfig
    display: Display
    generate_only: bool = False
    before_report: BeforeReport | None = None
    view: bool = False
    port: int | None = None
    audit: bool = False

    def say(self, text: str) -> None:
        """Print one line above the display."""
        with contextlib.suppress(OSError):  # a closed terminal must not end a run
            self.display.say(text)


@click.command()
@config_options()
@click.option("--dry-run", is_flag=True, help="Print requests, prompt sizes, cost and time; send nothing.")
@click.option("--generate-only", is_flag=True, help="Record answers without testing them; needs no Docker.")
@click.option("--log-json", is_flag=True, help="Print progress as JSON lines on stderr.")
@click.option("--audit", is_flag=True, help="Audit the solutions after grading, like `astra audit`.")
@click.option("--view", is_flag=True, help="Start `astra view` for this run and print its address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port of --view. Default: first free port from 7575.",
)
@env_file_option
def run(*, config_file: Path | None, dry_run: bool, **given: Any) -> int:
    """Request K solutions of every problem from each model, test them, and report.

    The same command resumes an interrupted run.
    """
    flags = {name: given.pop(name) for name in ("generate_only", "log_json", "view", "port", "audit")}
    if dry_run and not given["out"]:
        given["out"] = "dry-run"
    config = load_config(given, config_file, environ=os.environ)
    for line in (*config.addresses, *(f"warning: {warning}" for warning in config.warnings)):
        tell(line)
    if dry_run:
        from astra_async.cli.dryrun import dry_run as plan_only

        return plan_only(config, generate_only=flags["generate_only"])
    return start(config, **flags)


def start(  # noqa: PLR0913 - the flags of the command
    config: RunConfig,
    *,
    log_json: bool = False,
    generate_only: bool = False,
    before_report: BeforeReport | None = None,
    view: bool = False,
    port: int | None = None,
    audit: bool = False,
) -> int:
    """Run a configuration on a uvloop and return the exit code."""
    import uvloop

    config = replace(config, command=("astra", *sys.argv[1:]))
    style: Style = "json" if log_json else ("live" if is_terminal() else "lines")
    call = Invocation(
        config=config,
        display=Display(style),
        generate_only=generate_only,
        before_report=before_report,
        view=view,
        port=port,
        audit=audit,
    )
    return uvloop.run(execute(call))


async def execute(call: Invocation) -> int:
    """Run the plan with display and signal handling, report, and return the exit code."""
    ours: list[RunDirectory] = []
    stopper = Stopper(on_late=lambda: _leave(call, ours, stopper))
    viewer = viewer_beside(call.config.out, call.say, call.port) if call.view else nullcontext()
    with stopper.installed(), viewer:
        code = await _open_and_drive(call, stopper, ours)
    if call.audit and not call.generate_only and stopper.received is None and code <= EXIT_INCOMPLETE:
        from astra_async.cli.auditing import audit_directory

        await audit_directory(call.config.out, call.config)
    if not call.generate_only and not stopper.at_once:
        from astra_async.cli.report import write_and_print
        from astra_async.running.spool import make_private

        make_private(call.config.out / "report")
        write_and_print([call.config.out], call.config.out / "report")
    return code


async def _open_and_drive(call: Invocation, stopper: Stopper, ours: list[RunDirectory]) -> int:
    """Open, drive and close a run; return the exit code. A signal before the first request ends it."""
    from astra_async.running.opening import open_run

    opening = open_run(call.config, generate_only=call.generate_only, say=call.say, on_directory=ours.append)
    try:
        async with opening as opened:
            code = await _drive(call, opened, stopper)
            if call.before_report and not stopper.at_once:
                call.before_report(call.config.out, opened.runner.plan.prepared)
            return code
    except asyncio.CancelledError:
        if stopper.received is None:
            raise
        call.say(f"stopped before the first request; start again with: {shell_command(call.config.command)}")
        return 128 + stopper.received


async def _drive(call: Invocation, opened: OpenRun, stopper: Stopper) -> int:
    """Run the samples with live display and signal handling; return the exit code."""
    from astra_async.running.opening import drive

    runner = opened.runner
    stopper.drains(partial(_drain, call, opened))
    showing = asyncio.create_task(
        call.display.show(lambda: view_of(opened, stopping=stopper.received is not None))
    )
    outcome: RunEnd = "stopped"
    try:
        outcome = await drive(opened)
    except asyncio.CancelledError:
        if stopper.received is None:
            raise
    finally:
        stopper.is_closing()
        showing.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):  # a closed terminal must not end a run
            await showing
    _say_what_is_missing(call, runner)
    for told in (*_doubtful_tests(runner), *lossy_answers(runner.directory)):
        call.say(told)
    stopped = stopper.received is not None
    call.say(_summary(call, runner, stopped=stopped))
    for command in commands_to_finish(
        runner.directory.run,
        missing_cells(runner.metrics, runner.directory.run),
        answered=call.generate_only and outcome == "complete",
        budget_usd=max(
            (error.raise_to_usd for error in runner.dead.values() if isinstance(error, BudgetExhausted)),
            default=None,
        ),
    ):
        call.say(f"continue with: {command}")
    if stopped and stopper.at_once:
        call.say(f"report so far: astra report {call.config.out}")
    return 128 + (stopper.received or 0) if stopped else _EXIT_CODES[outcome]


def _doubtful_tests(runner: Runner) -> Iterator[str]:
    """Yield a warning for problems with provisional or contradicted expected tests."""
    grading = runner.setup.grading
    if grading is None:
        return
    of = len(runner.plan.problem_ids)
    kinds = {
        "provisional": grading.expectations.provisional,
        "contradicted by a sample": grading.expectations.contradicted,
    }
    for kind, problems in kinds.items():
        if problems:
            first = next(iter(problems))
            yield (
                f"warning: T is {kind} for {len(problems)} of {of} problems ({some(list(problems))});"
                f" {first}: {problems[first]}"
            )


def lossy_answers(directory: RunDirectory) -> Iterator[str]:
    """Yield a warning if agents left files that are neither generated nor part of their answers."""
    if keys := directory.lossy:
        model, fmt, problem, sample = keys[0][:4]
        words = ("astra", "show", str(directory.path), model, problem, str(sample), "--format", fmt)
        yield (
            f"warning: files of {counted(len(keys), 'sample')} are not part of the agent's answer; list the"
            f" files of one sample: {shell_command(words)} --part result"
        )


def _summary(call: Invocation, runner: Runner, *, stopped: bool) -> str:
    tally = runner.tally
    if call.generate_only:
        text = f"{tally.answered} of {tally.planned} answers are recorded but not tested"
    else:
        text = f"{tally.final} of {tally.planned} samples are final"
    return f"{'stopped: ' if stopped else ''}{text}; nothing will be requested or tested twice"


def _leave(call: Invocation, ours: Sequence[RunDirectory], stopper: Stopper) -> None:
    """End this process at once; recorded data is not lost."""
    for directory in ours:
        with contextlib.suppress(AstraError):
            directory.spool.rescue()
        if not call.generate_only:
            from astra_async.testing.sandbox.sweep import remove_later

            remove_later(directory.run_id, os.environ)
            call.say("stopped without waiting; a separate process removes the remaining containers")
    os._exit(128 + (stopper.received or 0))


def _drain(call: Invocation, opened: OpenRun) -> None:
    tally = opened.runner.tally
    opened.stop()
    calls = sum(pool.state.in_flight for pool in opened.pools.values())
    running = opened.sandbox.running if opened.sandbox else 0
    for line in _left_behind(call, opened):
        call.say(line)
    call.say(
        f"stopping: waiting for {counted(calls, 'request')} and {counted(running, 'container')}"
        f" (tests take at most {call.config.limits.timeout_s:.0f} s); {tally.final} of {tally.planned}"
        " samples are final; a second signal stops at once"
    )


def _left_behind(call: Invocation, opened: OpenRun) -> Iterator[str]:
    """Yield a line about batches that continue at the providers."""
    batches = [each for pool in opened.pools.values() for each in pool.state.batches]
    if batches:
        requests = sum(each.requests for each in batches)
        named = ", ".join(each.id or "id not known yet" for each in batches)
        count = counted(len(batches), "batch", "batches")
        yield (
            f"left with the provider: {count} of {requests:,} requests ({named}); the same command collects;"
            f" `astra batches {call.config.out}` lists them, and --cancel cancels them"
        )


def _say_what_is_missing(call: Invocation, runner: Runner) -> None:
    for what, reasons in (("sample", runner.tally.reasons), ("turn", runner.tally.turns.reasons)):
        found = _reasons(reasons)
        for reason, count in found[:_REASONS_SHOWN]:
            call.say(f"{counted(count, what)} missing: {reason}")
        if len(found) > _REASONS_SHOWN:
            call.say(f"... and {len(found) - _REASONS_SHOWN} more reasons in {call.config.out}/events.jsonl")


def _reasons(counts: Mapping[Reason, int]) -> list[tuple[str, int]]:
    """Return (reason, count) by decreasing count; problems with the same cause share one reason."""
    sharing: dict[str, list[Reason]] = {}
    for reason in counts:
        sharing.setdefault(reason.cause, []).append(reason)
    found = []
    for cause, reasons in sharing.items():
        count = sum(counts[reason] for reason in reasons)
        more = f"{reasons[0].where} and {counted(len(reasons) - 1, 'more problem')}: {cause}"
        found.append((reasons[0].text if len(reasons) == 1 else more, count))
    return sorted(found, key=lambda reason: -reason[1])

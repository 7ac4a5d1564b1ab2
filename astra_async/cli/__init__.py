"""Command line: one module for each group of commands, imported when one of them is called.

Exit codes (docs/formats.md): 0 complete, 1 finished with missing samples or a failed check, 2 wrong usage,
3 cannot continue, 130 SIGINT, 143 SIGTERM. An error is one line on stderr; --debug adds the traceback.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from typing import NoReturn

import click

from astra_async.cli.console import tell
from astra_async.errors import (
    AstraError,
    EngineUnavailable,
    InvariantError,
    PoolUnusable,
    StorageError,
    UsageError,
)
from astra_async.redaction import mask, register_secrets_of

EXIT_INCOMPLETE = 1
EXIT_USAGE = 2
EXIT_CANNOT_GO_ON = 3
_ALIKE = 0.6

# command -> (module, summary). Modules are imported on demand, so that `--help` is fast.
_COMMANDS = {
    "demo": ("demo", "Run bundled problems with simulated models, without an API key."),
    "run": ("run", "Run models on problems; the same command resumes."),
    "status": ("status", "Show the progress of a run from its files."),
    "batches": ("batches", "List or cancel the batches of a run."),
    "view": ("viewer", "Show runs in a browser, also during the run."),
    "report": ("report", "Write tables, plots and an HTML page from run directories."),
    "compare": ("report", "Compare two runs or two models, paired by problem."),
    "export": ("report", "Export a run for inspect_ai, Parquet, the Hugging Face hub, JUnit."),
    "plan": ("report", "Calculate the samples or problems for a target precision."),
    "show": ("show", "Show one sample: prompt, answer, changes, tests, output."),
    "label": ("label", "Classify the errors of failed samples with a judge model."),
    "regrade": ("regrade", "Run the tests again on the recorded answers."),
    "audit": ("auditing", "Find solutions that also pass mutated tests."),
    "validate": ("validate", "Check problems: reference, untouched project, flaky tests."),
    "fetch": ("problems", "Download the paper's problems or another published set."),
    "problems": ("problems", "Show the loaded problems and the paper's Table 1."),
    "agents": ("images", "List, install and remove agents."),
    "images": ("images", "Build the images that tests run in."),
    "clean": ("images", "List or remove images, caches and containers of astra."),
    "simulate": ("demo", "Start the simulated provider server."),
    "worker": ("joining", "Join a cluster and run its tests on this machine."),
    "doctor": ("doctor", "Check this machine for missing parts."),
}


class _LazyGroup(click.Group):
    """Group of commands that imports a command only when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; for an unknown name, suggest the closest one."""
        near = difflib.get_close_matches(args[0], _COMMANDS, n=1, cutoff=_ALIKE) if args else []
        if near and args[0] not in _COMMANDS:
            raise click.UsageError(f"no such command: {args[0]}; did you mean `astra {near[0]}`?", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"astra_async.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="astra_async", message="%(version)s")
def astra(*, debug: bool) -> None:
    """Run benchmarks of language models on multi-file projects, and report the results."""


def main() -> NoReturn:
    """Run the command line and exit with a code of docs/formats.md."""
    debug = "--debug" in sys.argv
    # The program multiplies no large matrices, so numpy's threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    register_secrets_of(os.environ)
    try:
        code = astra.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(EXIT_USAGE)
    except click.ClickException as error:
        context: click.Context | None = getattr(error, "ctx", None)
        see = f" (see {context.command_path} --help)" if context else ""
        tell(f"astra: {mask(' '.join(error.format_message().split()))}{see}")
        sys.exit(EXIT_USAGE)
    except AstraError as error:
        _tell(error, debug=debug)
        sys.exit(exit_code(error))
    except Exception as error:  # noqa: BLE001 - outermost boundary: report a defect in one line
        _tell(error, debug=debug)
        tell("       this is a defect of astra; `astra --debug ...` shows the traceback. Records are safe.")
        sys.exit(EXIT_CANNOT_GO_ON)
    sys.exit(code if isinstance(code, int) else 0)


def _tell(error: Exception, *, debug: bool) -> None:
    """Print an error as one line on stderr, one line for each note, and with --debug the traceback."""
    if debug:
        tell(mask("".join(traceback.format_exception(error))))
    kind = "" if isinstance(error, AstraError) else f"{type(error).__name__}: "
    tell(f"astra: {kind}{mask(' '.join(str(error).split()))}")
    for note in getattr(error, "__notes__", ()):
        tell(f"       {mask(note)}")


def exit_code(error: AstraError) -> int:
    """Return the exit code for an error that ended the program."""
    if isinstance(error, UsageError):
        return EXIT_USAGE
    if isinstance(error, EngineUnavailable | StorageError | InvariantError | PoolUnusable):
        return EXIT_CANNOT_GO_ON
    return EXIT_INCOMPLETE

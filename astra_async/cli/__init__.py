"""The command line: one file for each group of commands, loaded only when it is asked for.

Exit codes (docs/formats.md): 0 complete, 1 finished with samples missing or a failed check, 2 wrong usage,
3 cannot go on, 130 SIGINT, 143 SIGTERM. Errors are one line on stderr; a traceback only with --debug.
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

# command -> (module, summary): what is not asked for is not imported, so that `--help` is instant.
_COMMANDS = {
    "demo": ("demo", "Bundled problems with simulated models: no key, no account."),
    "run": ("run", "A full run; the same command again resumes it."),
    "status": ("status", "How far a run is, from its files alone."),
    "batches": ("batches", "What a run has in batches at its providers; ends them."),
    "view": ("viewer", "Show runs in a browser, also while they grow."),
    "report": ("report", "Tables, plots and one HTML page from run directories."),
    "compare": ("report", "Two runs of the same problems, paired."),
    "export": ("report", "A run for inspect_ai, Parquet, the Hugging Face hub, JUnit."),
    "plan": ("report", "How many samples or problems a wanted precision takes."),
    "show": ("show", "One sample: prompt, answer, changes, tests, output."),
    "label": ("label", "Why failed samples failed, by a judge."),
    "regrade": ("regrade", "Run the tests again on the recorded answers."),
    "audit": ("auditing", "Find solutions that pass whatever the tests expect."),
    "validate": ("validate", "Check that problems are fit: reference, untouched, flaky."),
    "fetch": ("problems", "The paper's problems, or any published set, with hashes."),
    "problems": ("problems", "What was loaded: Table 1 of the paper."),
    "agents": ("images", "List, install and remove agents."),
    "images": ("images", "Build the images that tests run in."),
    "clean": ("images", "What astra keeps on this machine; removes what is named."),
    "simulate": ("demo", "The simulated provider server alone."),
    "worker": ("joining", "Run tests on this machine for a cluster."),
    "doctor": ("doctor", "What this machine has and what is missing."),
}


class _LazyGroup(click.Group):
    """Knows its commands by name and imports one only when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and a name that is no command meets the nearest one."""
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
    """Run benchmarks of language models on multi-file projects, and report what they show."""


def main() -> NoReturn:
    """Run the command line and exit with the code that docs/formats.md fixes."""
    debug = "--debug" in sys.argv
    # Nothing here multiplies large matrices: threads of numpy's only wait for each other, one for each core.
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
    except Exception as error:  # noqa: BLE001 - the outermost boundary: a defect of ours, told in one line
        _tell(error, debug=debug)
        tell("       this is a defect of astra; `astra --debug ...` shows where. Records are safe.")
        sys.exit(EXIT_CANNOT_GO_ON)
    sys.exit(code if isinstance(code, int) else 0)


def _tell(error: Exception, *, debug: bool) -> None:
    """One line on stderr, a line for each further mistake, and the traceback if asked for."""
    if debug:
        tell(mask("".join(traceback.format_exception(error))))
    kind = "" if isinstance(error, AstraError) else f"{type(error).__name__}: "
    tell(f"astra: {kind}{mask(' '.join(str(error).split()))}")
    for note in getattr(error, "__notes__", ()):
        tell(f"       {mask(note)}")


def exit_code(error: AstraError) -> int:
    """The exit code of an error that ended the program."""
    if isinstance(error, UsageError):
        return EXIT_USAGE
    if isinstance(error, EngineUnavailable | StorageError | InvariantError | PoolUnusable):
        return EXIT_CANNOT_GO_ON
    return EXIT_INCOMPLETE

"""Click options from the declarations in `astra_async.options`; click passes the typed text unchanged."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from astra_async.errors import UsageError
from astra_async.options import flag_of, options

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.types import Declared

    Command = TypeVar("Command", bound=Callable[..., Any])


def config_options(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds --config and the named options of `Options` (default: all)."""
    chosen = [option for option in options().values() if not names or option.name in names]

    def decorate(command: Command) -> Command:
        for option in reversed(chosen):
            command = declared_option(option)(command)
        return click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="ASTRA_CONFIG",
            help="TOML file with options, and tables for models, agents, S3 and sandbox.",
        )(command)

    return decorate


def problems_argument(command: Command) -> Command:
    """Add an optional argument with the meaning of --problems. Raises UsageError if both are given."""

    @wraps(command)
    def with_argument(*, source: str | None, **given: Any) -> Any:
        if source and given["problems"]:
            raise UsageError("name the problems once: as an argument, or with --problems")
        return command(**given | ({"problems": source} if source else {}))

    return cast("Command", click.argument("source", required=False, metavar="[PROBLEMS]")(with_argument))


def declared_option(option: Declared, flag: str = "") -> Callable[[Command], Command]:
    """Return a click option for a declaration; its value is the typed text, or None (empty for a list)."""
    flag = flag or flag_of(option.name)
    if option.plain is bool:
        return click.option(flag, option.name, is_flag=True, default=None, help=option.about.help)
    several = option.several or option.is_table
    shown = option.default not in (None, "", ()) and not several
    kinds = f" One of {', '.join(option.choices)}." if several and option.choices else ""
    return click.option(
        flag,
        option.name,
        multiple=several,
        metavar=option.about.metavar or f"[{'|'.join(option.choices)}]",
        help=option.about.help + kinds + (f" [default: {option.default}]" if shown else ""),
    )
